package guard

import (
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
)

// S35: the key may have been put back behind a vote that the master has
// forgotten and that somebody still counts. No vote is counted for longer than
// the longest attempt, so an extension counts again long before the quarantine
// ends.
func TestS35_an_extension_by_a_memory_lost_lately_does_not_count(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	if young, err := g.Weigh(wire.OpExtend, true); young || err != nil {
		t.Fatalf("before the loss: young %v, %v", young, err)
	}
	w.marker = Marker{}
	g.look()
	last := LongestAttempt + drift.Allowance(LongestAttempt, drift.DefaultFactor)

	w.pass(last - time.Microsecond)
	if young, err := g.Weigh(wire.OpExtend, true); !young || err != nil {
		t.Errorf("while a vote may be left: young %v, %v", young, err)
	}
	w.pass(time.Microsecond)
	if young, err := g.Weigh(wire.OpExtend, true); young || err != nil {
		t.Errorf("when none can be left: young %v, %v", young, err)
	}
	g.wantRest(hold-last, "lost its marker")
}

// With a guard that is shorter than the longest attempt no vote outlives the
// guard: its key has expired.
func TestS35_no_memory_is_young_for_longer_than_the_hold(t *testing.T) {
	w := newWorld(t, day)
	g := w.guard(Config{Hold: time.Second})
	g.look()
	w.marker = Marker{}
	g.look()
	w.pass(time.Second + drift.Allowance(time.Second, drift.DefaultFactor))
	if g.Young() {
		t.Error("still young")
	}
}

// S35: what was asked before a loss does not count after it, whether the guard
// has found the loss or the marker that came with the vote shows it.
func TestS35_a_vote_from_before_a_loss_is_worth_nothing(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	if _, err := g.Weigh(wire.OpAcquire, true); err != nil {
		t.Fatal(err)
	}
	for _, op := range []wire.Op{wire.OpAcquire, wire.OpAsk} {
		if _, err := g.Weigh(op, false); !errors.Is(err, ErrQuarantined) {
			t.Errorf("%v with another marker: %v", op, err)
		}
	}
	if young, err := g.Weigh(wire.OpExtend, false); !young || err != nil {
		t.Errorf("extend with another marker: young %v, %v", young, err)
	}
	w.marker = Marker{}
	g.look()
	for _, op := range []wire.Op{wire.OpAcquire, wire.OpAsk} {
		if _, err := g.Weigh(op, true); !errors.Is(err, ErrQuarantined) {
			t.Errorf("%v after the loss: %v", op, err)
		}
	}
}

// Which marker proves that a vote is of the memory that we know.
func TestS24c_only_the_marker_that_we_know_vouches(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	for what, c := range map[string]struct {
		marker Marker
		want   bool
	}{
		"ours":                          {w.marker, true},
		"none":                          {Marker{}, false},
		"of another run":                {NewMarker("run2", w.start), false},
		"of the same run, written anew": {NewMarker("run1", w.time()), false},
		"ours, with a longer hold":      {w.marker.with(2*hold, GroupID{}), true},
		"ours, with the name of a group": {
			w.marker.with(hold, GroupOf("orders", "a", "b", "c")), true},
	} {
		if got := g.Vouched(c.marker.String()); got != c.want {
			t.Errorf("a marker that is %s: %v", what, got)
		}
	}
	if g.Vouched("what is this") {
		t.Error("text that is no marker vouches")
	}
}

// S49: a suspend stops the monotonic clock. What came in before it is old when it is read
// behind it.
func TestS49_a_message_from_before_a_suspend_does_not_count(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	w.clock.wall = w.clock.wall.Add(HeardWithin + time.Microsecond)
	w.offset -= HeardWithin + time.Microsecond // the message was sent before
	if g.Hears(wire.Proof(w.marker.String(), w.time())) {
		t.Error("heard, though the master was not seen since the suspend")
	}
	asked := g.Now()
	w.clock.wall = w.clock.wall.Add(time.Minute)
	e := g.evidence()
	e.Sent = asked
	g.Look(e)
	if g.Hears(wire.Proof(w.marker.String(), w.time())) {
		t.Error("heard, though the suspend was while the question was under way")
	}
}

// S35: a message can be late without anybody noticing. It counts only as long as
// the master has shown lately that it remembers.
func TestS35_a_message_counts_while_the_memory_was_proven_lately(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.look()
	ours := w.marker.String()
	w.pass(HeardWithin)
	if !g.Hears(ours) {
		t.Error("not heard, though the marker was seen lately")
	}
	w.pass(time.Microsecond)
	if g.Hears(ours) {
		t.Error("heard, though nothing shows that the master still remembers")
	}
	g.edit = func(e *Evidence) { e.Took = HeardWithin / 2 } // as of when we asked
	g.look()
	w.pass(HeardWithin/2 + time.Microsecond)
	if g.Hears(ours) {
		t.Error("heard, though the marker was asked for long ago")
	}
	g.edit = nil
	g.look()
	if g.Hears(NewMarker("run2", w.start).String()) {
		t.Error("heard with another marker")
	}
	w.marker = Marker{}
	g.look()
	if g.Hears(w.marker.String()) {
		t.Error("heard in quarantine")
	}
}

// Where there is nothing to go by, votes are believed: the quarantines of such a
// master are those of restarts.
func TestS24c_without_a_readable_marker_votes_are_believed(t *testing.T) {
	w := newWorld(t, day)
	g := w.client()
	g.edit = func(e *Evidence) { e.Blind, e.Marker = true, Marker{} }
	g.look()
	if g.Accepted() != "" || !g.Vouched("") {
		t.Errorf("goes by the marker %q", g.Accepted())
	}
	g.watch(hold + time.Second)
	if !g.Hears(wire.Proof("", w.time())) {
		t.Error("does not believe a message")
	}
}
