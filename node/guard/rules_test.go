package guard

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
)

// S62: every lease gives up what the guard tolerates.
func TestS62_unnoticed_by_the_config(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   time.Duration
	}{
		{careful, drift.Unnoticed},
		{Config{Hold: hold, ClockTolerance: drift.Tolerance, DriftFactor: 0.02}, 35 * ms},
		{Config{Hold: hold, ClockTolerance: drift.Tolerance + 10*ms}, drift.Unnoticed + 10*ms},
		{Config{Hold: hold}, 0},
		{Config{ClockTolerance: drift.Tolerance}, 0},
	} {
		if got := c.config.Unnoticed(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.config, got, c.want)
		}
	}
}

// A loss is told once, also if its marker is read a moment later. So is that a master proves no
// memory which we meet for the first time: our leases began without it.
func TestGuard_tells_of_a_loss_once(t *testing.T) {
	for name, c := range map[string]struct {
		client func(w *world) *watched
		then   func(w *world, g *watched)
		want   [2]bool
	}{
		"the marker has gone": {then: func(*world, *watched) {}, want: [2]bool{true, false}},
		"without a run_id":    {client: func(w *world) *watched { g := w.client(); g.edit = blindToRun; return g }, then: func(*world, *watched) {}, want: [2]bool{true, false}},
		"and it restarts":     {then: func(w *world, _ *watched) { w.restart("run2") }, want: [2]bool{true, true}},
	} {
		w := newWorld(t, day)
		if c.client == nil {
			c.client = (*world).client
		}
		g := c.client(w)
		if v := g.look(); v.Lost {
			t.Errorf("%s: told before", name)
		}
		w.marker = Marker{}
		for i, want := range c.want {
			w.pass(10 * ms)
			v := g.Look(g.evidence())
			g.write(v)
			if v.Lost != want {
				t.Errorf("%s, look %d: told %v", name, i, v.Lost)
			}
			if i == 0 {
				c.then(w, g)
			}
		}
	}
	w := newMaster(t, day)
	g := w.client()
	for i := range 3 {
		v := g.Look(g.evidence())
		g.write(v)
		if w.pass(10 * ms); v.Lost != (i == 0) {
			t.Errorf("a new master, look %d: told %v", i, v.Lost)
		}
	}
}

// No marker proves the memory of a master that has none.
func TestGuard_nothing_vouches_for_a_master_without_a_marker(t *testing.T) {
	w := newMaster(t, day)
	w.fixed = true
	g := w.client()
	g.look()
	for _, m := range []string{"", "what is this", "- 0"} {
		if g.Vouched(m) {
			t.Errorf("%q vouches", m)
		}
	}
}

// S50: by its replication a server was a master all the time.
func TestS50_a_server_that_remained_a_master(t *testing.T) {
	w := newWorld(t, day)
	w.promotion = "p1"
	g := w.client()
	g.look()
	for _, c := range []struct {
		replica   bool
		promotion string
		want      bool
	}{{false, "", true}, {false, "p1", true}, {false, "p2", false}, {true, "", false}, {true, "p1", false}} {
		if got := g.Remained(c.replica, c.promotion); got != c.want {
			t.Errorf("replica %v, promotion %q: %v", c.replica, c.promotion, got)
		}
	}
}

// A message with a grant counts only if an answer would: not by a master in quarantine. Nor is
// a command sent there that hands a lock on.
func TestGuard_in_quarantine_hears_and_hands_on_nothing(t *testing.T) {
	w := newMaster(t, day)
	g := w.client()
	ask := wire.Ask("a", wire.QueueOf("", "a"), "w:0", 1, time.Second)
	latch := wire.LatchOf("", "l", "g").Write([]string{"id"}, time.Second)
	latch.Op = wire.OpRead // so that a quarantine does not matter
	for _, rest := range []bool{true, false} {
		g.look()
		if got := g.Hears(wire.Proof(w.marker.String(), w.time())); got == rest {
			t.Errorf("quarantine %v: hears %v", rest, got)
		}
		cmd, err := g.Allow(ask)
		if held := err == nil && slices.Contains(cmd.Args, wire.HoldArg); err != nil || held != rest {
			t.Errorf("quarantine %v: %v is sent (%v)", rest, cmd.Args, err)
		}
		if _, err := g.Allow(&wire.Command{Op: wire.OpAcquire}); errors.Is(err, ErrQuarantined) != rest {
			t.Errorf("quarantine %v: %v", rest, err)
		}
		latch.Recalls = true
		if cmd, err := g.Allow(latch); err != nil || cmd.Args[2] != w.marker.Memory() {
			t.Errorf("a command that recalls is sent with %q (%v)", cmd.Args, err)
		}
		latch.Recalls = false
		if cmd, err := g.Allow(latch); err != nil || cmd != latch {
			t.Errorf("a command that recalls nothing is sent as %q (%v)", cmd.Args, err)
		}
		g.watch(hold)
	}
	g = w.client()
	g.edit = func(e *Evidence) { e.Blind, e.Marker = true, Marker{} }
	latch.Recalls = true
	if g.look(); g.Accepted() != "" {
		t.Errorf("accepts %q, which cannot be read", g.Accepted())
	}
	if cmd, err := g.Allow(latch); err != nil || cmd != latch {
		t.Errorf("a command that recalls is sent as %q (%v)", cmd.Args, err)
	}
}

// A vote is a reading of the clock: a quick one makes up for a slow handshake (S48), and tells
// how our own clock runs (S60).
func TestVotes_read_the_clock(t *testing.T) {
	for _, late := range []time.Duration{0, 1500 * ms} {
		f := newFleet(t, 3)
		guards := f.client(careful, "")
		for _, g := range guards {
			g.edit = slowReply(late)
			g.Look(g.evidence())
		}
		f.pass(time.Second)
		for i, g := range guards {
			if !g.TimelyVote(g.w.time(), f[0].clock.mono) {
				t.Errorf("master %d: a vote does not count", i)
			}
		}
		if pace := guards[0].group.Pace(); late == 0 && pace != 1 {
			t.Errorf("pace %v", pace)
		}
		f[0].offset += 30 * ms
		if guards[0].Timely(f[0].time()) {
			t.Error("a step after a vote is not noticed")
		}
	}
}

// L37: where most clocks go back, ours is the wrong one, and votes count.
func TestL37_votes_count_while_our_own_clock_is_fast(t *testing.T) {
	f := apartBy(t, 3, 0)
	guards := f.client(careful, "")
	lookAll(guards)
	for second := range 3 {
		f.pass(time.Second)
		for i, w := range f {
			w.offset -= 100 * ms
			if second > 0 && !guards[i].TimelyVote(w.time(), w.clock.mono) {
				t.Errorf("second %d, master %d: a vote does not count", second, i)
			}
		}
		lookAll(guards)
	}
}

// S47: that our own clock has become slow is known soon, and in the time of a lease also if
// answers are late.
func TestS47_how_soon_our_own_clock_is_known_to_be_slow(t *testing.T) {
	for _, c := range []struct {
		rate float64 // of the masters' clocks, after a minute
		late time.Duration
		in   int // seconds
		want float64
	}{{1.05, 0, 5, 1.04}, {1.009, 0, 5, 1.0075}, {1.009, 30 * ms, 60, 1.0075}} {
		f := newFleet(t, 3)
		guards := f.client(careful, "")
		for second := range 60 + c.in {
			f.pass(time.Second)
			for i, w := range f {
				if second >= 60 {
					w.offset += time.Duration((c.rate - 1) * float64(time.Second))
				}
				guards[i].edit = slowReply(c.late)
			}
			lookAll(guards)
		}
		if pace := guards[0].group.AtLeast(); pace < c.want || pace > c.rate {
			t.Errorf("%d seconds after it became %v: pace %v", c.in, c.rate, pace)
		}
	}
}

// S77: a quarantine that is counted by a clock of ours that is too fast would end too early. It begins anew
// as long as the master's clock shows that. A quarantine that was over before does not.
func TestS77_a_fast_clock_of_ours_ends_no_quarantine(t *testing.T) {
	f := apartBy(t, 3, 0)
	guards := f.client(careful, "")
	lookAll(guards)
	lookAll(guards)
	f[2].restart("run2again")
	f[2].offsets = ""
	guards[2].look()
	for range 60 { // by our clock, in which the masters count 45 s
		f.pass(time.Second)
		for _, w := range f {
			w.offset -= 250 * ms
		}
		lookAll(guards)
	}
	if err := guards[2].Admit(wire.OpAcquire); !errors.Is(err, ErrQuarantined) {
		t.Errorf("the quarantine has ended: %v", err)
	}
	for _, w := range f {
		w.offset -= 250 * ms
	}
	if guards[2].TimelyVote(f[2].time(), f[2].clock.mono) {
		t.Error("a vote counts that shows that the quarantine has ended too early")
	}
	for _, g := range guards[:2] {
		if err := g.Admit(wire.OpAcquire); err != nil {
			t.Errorf("a master that has forgotten nothing is kept out: %v", err)
		}
	}
	f.watched(guards, careful.Hold+time.Second) // our clock is right again
	if err := guards[2].Admit(wire.OpAcquire); err != nil {
		t.Errorf("the quarantine has not ended: %v", err)
	}
}

// S84: a vote shows that the clock was set back or forward, and by the next look it is where it was. Neither
// that vote nor a message about the same question counts, and the master sits out as if a look had shown it.
func TestS84_a_clock_that_only_a_vote_has_seen_away_sits_out(t *testing.T) {
	for _, step := range []time.Duration{-time.Second, time.Second} {
		f := newFleet(t, 3)
		guards := f.client(careful, "")
		f.watched(guards, careful.Hold+time.Second)
		w, g := f[2], guards[2]
		w.offset += step
		if g.TimelyVote(w.time(), w.clock.mono) {
			t.Errorf("step %v: the vote counts", step)
		}
		if step < 0 && g.Hears(wire.Proof(w.marker.String(), w.time())) {
			t.Errorf("step %v: a message counts", step)
		}
		w.offset -= step
		if g.TimelyVote(w.time(), w.clock.mono) || g.Hears(wire.Proof(w.marker.String(), w.time())) {
			t.Errorf("step %v: the clock is back, and a vote or a message counts although nobody has looked", step)
		}
		g.look()
		if err := g.Admit(wire.OpAcquire); !errors.Is(err, ErrQuarantined) {
			t.Errorf("step %v: it may vote: %v", step, err)
		}
		if !g.TimelyVote(w.time(), w.clock.mono) {
			t.Errorf("step %v: no vote is timely after the look", step)
		}
		f.watched(guards, 2*careful.Hold)
		if err := g.Admit(wire.OpAcquire); err != nil {
			t.Errorf("step %v: it is kept out for ever: %v", step, err)
		}
	}
}
