package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestStatusTellsWhoHoldsTheLock(t *testing.T) {
	masters := redistest.StartN(t, 3)
	for _, s := range masters[:2] {
		if _, err := s.Do("SET", "name", "web1:42/nonce/7 nightly\x1b[31m run", "PX", 60000); err != nil {
			t.Fatal(err)
		}
	}
	c := onMasters(t, masters, "status", "--node-timeout", "1s", "name")
	c.start().wantExit(0)
	for _, part := range []string{"held by web1:42", `nightly\x1b[31m run`, "unless renewed", masters[0].Addr(), masters[2].Addr(), "free"} {
		if !strings.Contains(c.stdout.String(), part) {
			t.Errorf("status does not say %q:\n%s", part, &c.stdout)
		}
	}
	if strings.Contains(c.stdout.String(), "\x1b") {
		t.Error("what somebody stored reaches the terminal as an escape sequence")
	}

	c = onMasters(t, masters, "status", "--node-timeout", "1s", "--json", "name")
	c.start().wantExit(0)
	var got status
	if err := json.Unmarshal(c.stdout.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if !got.Held || got.Client != "web1:42" || got.RemainingMS < 50000 || len(got.Nodes) != 3 || got.Nodes[2].Value != "" {
		t.Errorf("JSON: %+v", got)
	}
}

func TestStatusTellsFreeFromUnknown(t *testing.T) {
	masters := redistest.StartN(t, 3)
	if _, err := masters[0].Do("SET", "name", "a minority"); err != nil {
		t.Fatal(err)
	}
	c := onMasters(t, masters, "status", "--node-timeout", "1s", "name")
	c.start().wantExit(exitFree)
	if !strings.Contains(c.stdout.String(), "a minority  no expiry") {
		t.Errorf("status does not show what is on a minority:\n%s", &c.stdout)
	}
	for _, s := range masters {
		if n, err := s.Do("EXISTS", "redlock:marker"); err != nil || n != int64(0) {
			t.Errorf("status has written to %s (%v)", s.Addr(), err)
		}
	}

	masters[1].Kill()
	c = onMasters(t, masters, "status", "--node-timeout", "1s", "name")
	c.start().wantExit(exitFree)
	masters[2].Kill()
	c = onMasters(t, masters, "status", "--node-timeout", "1s", "name")
	c.start().wantExit(exitNoQuorum)
	c.wantStderr("no quorum", masters[2].Addr())
}
