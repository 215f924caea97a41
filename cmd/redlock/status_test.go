package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestStatus_tells_who_holds_the_lock(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	for _, s := range masters[:2] {
		if _, err := s.Do("SET", "name", "web1:42/nonce/7 nightly\x1b[31m run", "PX", 60000); err != nil {
			t.Fatal(err)
		}
	}
	c := clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", "name")
	c.Begin().WantExit(0)
	for _, part := range []string{"held by web1:42", `nightly\x1b[31m run`, "unless renewed", "kind: mutex", masters[0].Addr(), masters[2].Addr(), "free"} {
		if !strings.Contains(c.Out.String(), part) {
			t.Errorf("status does not say %q:\n%s", part, &c.Out)
		}
	}
	if strings.Contains(c.Out.String(), "\x1b") {
		t.Error("what somebody stored reaches the terminal as an escape sequence")
	}

	c = clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", "--json", "name")
	c.Begin().WantExit(0)
	var got status
	if err := json.Unmarshal(c.Out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(c.Out.String(), `"since": null`) {
		t.Errorf("JSON does not say that nobody knows since when:\n%s", &c.Out)
	}
	if !got.Held || got.Client != "web1:42" || got.RemainingMS < 50000 || len(got.Nodes) != 3 || got.Nodes[2].Value != "" {
		t.Errorf("JSON: %+v", got)
	}
}

func TestStatus_tells_free_from_unknown(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	if _, err := masters[0].Do("SET", "name", "a minority"); err != nil {
		t.Fatal(err)
	}
	c := clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", "name")
	c.Begin().WantExit(exitFree)
	if !strings.Contains(c.Out.String(), "a minority  no expiry") {
		t.Errorf("status does not show what is on a minority:\n%s", &c.Out)
	}
	for _, s := range masters {
		if n, err := s.Do("EXISTS", "redlock:marker"); err != nil || n != int64(0) {
			t.Errorf("status has written to %s (%v)", s.Addr(), err)
		}
	}

	masters[1].Kill()
	c = clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", "name")
	c.Begin().WantExit(exitFree)
	masters[2].Kill()
	c = clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", "name")
	c.Begin().WantExit(cli.ExitNoQuorum)
	c.WantStderr("no quorum", masters[2].Addr())
}

func TestStatus_shows_readers_permits_and_what_a_leader_says(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	addrs := redistest.URLs(masters)
	client, err := redlock.Dial(t.Context(), addrs, redlock.WithRestartGuard(0), redlock.WithNodeTimeout(9*time.Second), redlock.WithClientID("web1:42"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.RWMutex("config", redlock.Metadata("reload")).RLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RWMutex("notes", redlock.Metadata("edit")).Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Semaphore("gpu", 4).Acquire(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	rests, err := client.Mutex("cache", redlock.Cached()).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := rests.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	boss := client.Election("scheduler")
	lease, err := boss.Campaign(t.Context(), "10.0.0.7:8080")
	if err != nil {
		t.Fatal(err)
	}
	if err := boss.Proclaim(t.Context(), lease, "10.0.0.7:9090"); err != nil {
		t.Fatal(err)
	}
	token := fmt.Sprint(lease.Token())

	for name, parts := range map[string][]string{
		"config":    {"config: held by 1 reader, for another", "kind: read-write", "web1:42 (reload)", "reads", "since ", masters[2].Addr()},
		"notes":     {"notes: held for writing by web1:42 (edit), for another", "kind: read-write", "since: ", " ago, by the holder's clock)"},
		"cache":     {"cache: cached by web1:42, for another", "kind: mutex"},
		"gpu":       {"gpu: 2 of 4 permits free", "kind: semaphore", "web1:42", "permits ", " and ", "2 permits taken"},
		"scheduler": {"held by web1:42 (10.0.0.7:8080)", "kind: mutex", "since: ", "says: 10.0.0.7:9090", "fencing token: " + token},
	} {
		c := clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", name)
		c.Begin().WantExit(0)
		c.WantStdout(parts...)
		fits(t, c.Out.String())
	}
	for name, parts := range map[string][]string{
		"config":    {`"kind": "read-write"`, `"metadata": "reload"`, `"since": null`, `"since": "20`},
		"notes":     {`"kind": "read-write"`, `"metadata": "edit"`, `"since": "20`},
		"cache":     {`"kind": "mutex"`, `"held": true`, `"cached": true`},
		"gpu":       {`"kind": "semaphore"`, `"available": 2`, `"permits": 4`, `"slots": [`},
		"scheduler": {`"kind": "mutex"`, `"token": ` + token, `"says": "10.0.0.7:9090"`},
	} {
		c := clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", "--json", name)
		c.Begin().WantExit(0)
		c.WantStdout(parts...)
	}

	c := clitest.OnMasters(t, masters, "status")
	c.Begin().WantExit(0)
	c.WantStdout("config", "1 reader", "gpu", "2 of 4 permits free", "scheduler", "web1:42 (10.0.0.7:8080)")
	fits(t, c.Out.String())
}

// fits fails the test where a line is wider than a terminal.
func fits(t *testing.T, screen string) {
	t.Helper()
	for line := range strings.Lines(screen) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestStatus_fits_eighty_columns(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	clitest.Set(t, masters, "name", strings.Repeat("host", 30)+":1/n/1 "+strings.Repeat("metadata ", 30), "PX", 60000)
	c := clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", "name")
	c.Begin().WantExit(0)
	for line := range strings.Lines(c.Out.String()) {
		if strings.HasPrefix(line, "  127.0.0.1") {
			fits(t, line)
		}
	}
}

func TestStatus_fits_eighty_columns_where_masters_are_down(t *testing.T) {
	down := errors.New("dial tcp 127.0.0.1:58123: connect: connection refused, and whatever else an operating system may say of it")
	nodes := []redlock.NodeView{
		{Node: "127.0.0.1:58121", Value: "web1:42/nonce/7 nightly", Remaining: 20 * time.Second},
		{Node: "127.0.0.1:58122", Err: down},
		{Node: "127.0.0.1:58123"},
	}
	resting := map[string]memory{"127.0.0.1:58123": {rest: 30 * time.Second, why: "its marker does not say how far back it remembers"}}
	var screen strings.Builder
	if err := showNodes(&screen, nodes, resting); err != nil {
		t.Fatal(err)
	}
	fits(t, screen.String())
	if said := strings.Join(strings.Fields(screen.String()), " "); !strings.Contains(said, down.Error()) || !strings.Contains(said, "how far back it remembers") {
		t.Errorf("something is cut off:\n%s", &screen)
	}
	for line := range strings.Lines(screen.String()) {
		if !strings.HasPrefix(line, "  127.0.0.1:5812") && !strings.HasPrefix(line, strings.Repeat(" ", len("  127.0.0.1:58121  "))) {
			t.Errorf("a second line begins in another column: %q", line)
		}
	}
}

func TestSince_when_reads_as_a_time(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 3, 48, 0, time.Local)
	for ago, want := range map[time.Duration]string{
		37 * time.Second: "12:03:11 (37s ago, by the holder's clock)",
		26 * time.Hour:   "21 Nov 2026 (26h0m0s ago, by the holder's clock)",
		-2 * time.Second: "12:03:50 by the holder's clock, which is ahead of ours",
	} {
		if got := sinceWhen(now.Add(-ago), now); got != want {
			t.Errorf("%v ago: %q, want %q", ago, got, want)
		}
	}
}
