package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestWaitersAreThoseThatAQuorumAgreesAbout(t *testing.T) {
	got := agreed([][]string{{"a/n/1", "b/n/1"}, {"a/n/1", "c/n/1", "b/n/1"}, {"b/n/1", "d/n/1"}})
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("waiting: %q, want a and b", got)
	}
}

func TestStatusShowsWhoWaits(t *testing.T) {
	masters := redistest.StartN(t, 3)
	first := runOn(t, masters, append([]string{"name"}, sh("echo yes >started; exec sleep 60")...)...).start()
	first.content("started")
	second := runOn(t, masters, append([]string{"--wait", "forever", "name"}, sh("true")...)...).start()

	var got status
	second.until("it waits, and status says so", func() bool {
		c := onMasters(t, masters, "status", "--node-timeout", "1s", "--json", "name")
		c.start().end()
		return json.Unmarshal(c.stdout.Bytes(), &got) == nil && len(got.Waiting) == 1
	})
	c := onMasters(t, masters, "status", "--node-timeout", "1s", "name")
	c.start().wantExit(0)
	if !strings.Contains(c.stdout.String(), "1 waiting: "+got.Waiting[0]) {
		t.Errorf("status does not show who waits:\n%s", &c.stdout)
	}
}
