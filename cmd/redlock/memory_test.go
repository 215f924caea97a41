package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/guard"
)

func TestA_masters_marker_tells_when_it_votes(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	marked := func(run string, ago, hold time.Duration) guard.Marker {
		m := guard.NewMarker(run, now.Add(-ago))
		m.Hold = hold
		return m
	}
	for name, test := range map[string]struct {
		marker guard.Marker
		rest   time.Duration
		says   string
		votes  string
	}{
		"none":                   {guard.Marker{}, 30 * time.Second, "no client has marked it", "redlock init, before that"},
		"old enough":             {marked("run", time.Minute, 0), 0, "", ""},
		"young":                  {marked("run", 10*time.Second, 0), 20 * time.Second, "its memory is 10s old", "It votes in 20s."},
		"a longer guard":         {marked("run", time.Minute, time.Hour), 59 * time.Minute, "old", "It votes in 59m0s."},
		"another run":            {marked("other", time.Hour, 0), 30 * time.Second, "restarted", "30s after the next client"},
		"since nobody knows":     {guard.NewMarker("run", time.Time{}), 30 * time.Second, "how far back", "30s after the next client"},
		"a server without a run": {marked(guard.UnknownRun, time.Hour, 0), 0, "", ""},
	} {
		got := judgeMemory(test.marker, "run", now, 30*time.Second)
		if got.rest != test.rest || !strings.Contains(got.why, test.says) {
			t.Errorf("%s: %+v, want %v and %q", name, got, test.rest, test.says)
		}
		// Who has a marker cannot be declared new: init would refuse it.
		if votes := got.trace.votes(got.rest); got.rest > 0 && !strings.Contains(votes, test.votes) || test.marker.RunID != "" && strings.Contains(votes, "init") && got.rest > 0 {
			t.Errorf("%s: %q, want %q", name, votes, test.votes)
		}
	}
}

func TestStatus_shows_masters_that_do_not_vote(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	clitest.OnMasters(t, masters, "init").Begin().WantExit(0)
	if _, err := masters[2].Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	c := clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", "name")
	c.Begin().WantExit(exitFree)
	c.WantStdout("free, must not grant for another 30s: no client has marked it")
	if n := strings.Count(c.Out.String(), "must not grant"); n != 1 {
		t.Errorf("%d masters must not grant, want one:\n%s", n, &c.Out)
	}
	c = clitest.OnMasters(t, masters, "status", "--node-timeout", "1s", "--json", "name")
	c.Begin().WantExit(exitFree)
	c.WantStdout(`"quarantine_ms": 30`)
}

// Beside masters in use, one without a marker has lost its memory, or replaces one that
// is gone: init refuses it.
func TestDoctor_sends_nobody_to_an_Init_that_refuses(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	master := func(marker guard.Marker) facts {
		mem, f := judgeMemory(marker, "run", now, 30*time.Second), sound()
		f.Quarantine, f.Forgot, f.trace, f.inUse = span(mem.rest), mem.why, mem.trace, mem.inUse
		return f
	}
	empty := guard.Marker{}
	for name, test := range map[string]struct {
		beside guard.Marker
		init   bool
	}{
		"all new":               {empty, true},
		"an init halfway":       {guard.NewMaster("run", now.Add(-time.Second), 30*time.Second, guard.GroupID{}), true},
		"a client was first":    {guard.NewMarker("run", now.Add(-time.Second)), false},
		"in use":                {guard.NewMarker("run", now.Add(-time.Hour)), false},
		"in use, and restarted": {guard.NewMarker("other", now.Add(-time.Hour)), false},
	} {
		found := judge([]facts{master(empty), master(test.beside), master(test.beside)}, 50*time.Millisecond, guard.GroupID{})
		at := slices.IndexFunc(found, func(f finding) bool { return strings.Contains(f.What, "no client has marked it") })
		if at < 0 {
			t.Errorf("%s: nothing of the master without a marker: %+v", name, found)
		} else if do := found[at].Do; strings.Contains(do, "redlock init") != test.init || !strings.Contains(do, "It votes 30s after") {
			t.Errorf("%s: %q; init helps: %v", name, do, test.init)
		}
	}
}
