package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestStatus_shows_who_waits(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	first := clitest.RunOn(t, masters, append([]string{"name"}, clitest.Sh("echo yes >started; exec sleep 60")...)...).Begin()
	first.Content("started")
	second := clitest.RunOn(t, masters, append([]string{"--wait", "forever", "name"}, clitest.Sh("true")...)...).Begin()

	var got status
	second.Until("it waits, and status says so", func() bool {
		c := clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", "--json", "name")
		c.Begin().End()
		return json.Unmarshal(c.Out.Bytes(), &got) == nil && len(got.Waiting) == 1
	})
	c := clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", "name")
	c.Begin().WantExit(0)
	if !strings.Contains(c.Out.String(), "1 waiting:\n  1  "+got.Waiting[0]) {
		t.Errorf("status does not show who waits:\n%s", &c.Out)
	}
}

func TestStatus_shows_the_queue_in_order(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	until := time.Now().Add(time.Hour).UnixMilli()
	const waiters = 25
	for _, s := range masters {
		for i := range waiters {
			waiter := fmt.Sprintf("web%d:42/n/1", i)
			how, says := "-", strings.Repeat("long ", 30)
			if i == 1 {
				how, says = "r", "reload\x1b[31m"
			}
			if _, err := s.Do("ZADD", "redlock:queue:name", 1000-i, waiter); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Do("HSET", "redlock:wait:name", waiter, fmt.Sprintf("%d %s %s:3 %s", until, how, waiter, says)); err != nil {
				t.Fatal(err)
			}
		}
	}
	clitest.Set(t, masters, "name", "web0:42/n/7:0", "PX", 60000)

	c := clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", "name")
	c.Begin().WantExit(0)
	c.WantStdout("25 waiting:\n   1  web24:42 (long ", "\n  20  web5:42 (long ", "\n  and 5 more\n")
	fits(t, c.Out.String())

	c = clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", "--json", "name")
	c.Begin().WantExit(0)
	var got status
	if err := json.Unmarshal(c.Out.Bytes(), &got); err != nil || len(got.Queue) != waiters {
		t.Fatalf("%v, %d in the queue", err, len(got.Queue))
	}
	if q := got.Queue[23]; q.Position != 24 || q.Client != "web1:42" || !q.Shared || q.Ticket != 999 || fmt.Sprint(q.Places) != "[24 24 24]" {
		t.Errorf("%+v", q)
	}
}
