package guard

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/wire"
)

// fleet is the masters of one group, in virtual time.
type fleet []*world

// newFleet has masters that clients have known since they started.
func newFleet(t *testing.T, n int) fleet {
	f := make(fleet, n)
	for i := range f {
		f[i] = newWorld(t, day)
		f[i].clock = f[0].clock
		f[i].marker = NewMaster(f[i].run, f[i].start, hold, GroupID{})
	}
	return f
}

// client is a guard of each master, in one group.
func (f fleet) client(c Config, name string) []*watched { return f.clientOf(c, f.group(name)) }

func (f fleet) group(name string) GroupID {
	masters := make([]string, len(f))
	for i := range f {
		masters[i] = fmt.Sprint("master", i)
	}
	return GroupOf(name, masters...)
}

func (f fleet) clientOf(c Config, id GroupID) []*watched { return f.clientBy(f[0].clock, c, id) }

// clientBy counts by a clock of its own.
func (f fleet) clientBy(own clock.Clock, c Config, id GroupID) []*watched {
	group := NewGroup(id)
	guards := make([]*watched, len(f))
	for i, w := range f {
		guards[i] = &watched{Guard: New(c, own, group), w: w}
	}
	return guards
}

func lookAll(guards []*watched) {
	for _, g := range guards {
		g.look()
	}
}

// farAway has every answer take that long from now on.
func farAway(guards []*watched, far time.Duration) {
	for _, g := range guards {
		g.edit = func(e *Evidence) { e.Took, e.Time = far, e.Time.Add(-far/2) }
	}
}

func (f fleet) pass(d time.Duration) { f[0].pass(d) }

func wantOtherGroup(t *testing.T, guards []*watched) {
	t.Helper()
	for i, g := range guards {
		if err := g.Admit(wire.OpAcquire); !errors.Is(err, ErrOtherGroup) {
			t.Errorf("master %d: %v, want ErrOtherGroup", i, err)
		}
	}
}

func TestS14_a_group_differs_by_size_and_by_name_and_not_by_addresses(t *testing.T) {
	three, other := GroupOf("", "a", "b", "c"), GroupOf("", "a", "b", "x")
	five := GroupOf("", "a", "b", "c", "d", "e")
	orders, billing := GroupOf("orders", "a", "b", "c"), GroupOf("billing", "a", "b", "c")
	renamed := GroupOf("orders", "x", "y", "z")
	for _, c := range []struct {
		what            string
		ours, theirs    GroupID
		differs, doubts bool
	}{
		{"the same", three, three, false, false},
		{"in another order", three, GroupOf("", "c", "a", "b"), false, false},
		{"another number", three, five, true, true},
		{"other addresses", three, other, false, true},
		{"another name", orders, billing, true, false},
		{"one has no name", orders, three, false, false},
		{"the same name vouches for other addresses", orders, renamed, false, false},
		{"no name, other addresses", three, renamed, false, true},
		{"a master that belongs to nobody", three, GroupID{}, false, false},
		{"a client that does not say", GroupID{}, five, false, false},
	} {
		if err := c.ours.Differs(c.theirs); errors.Is(err, ErrOtherGroup) != c.differs {
			t.Errorf("%s: %v", c.what, err)
		}
		if got := c.ours.Doubtful(c.theirs); got != c.doubts {
			t.Errorf("%s: doubtful %v", c.what, got)
		}
	}
}

// One master of another group is enough: with the others two groups could have a
// quorum each.
func TestS14_one_stranger_keeps_a_client_from_all_masters(t *testing.T) {
	f := newFleet(t, 3)
	f[2].marker.Group = GroupOf("", "a", "b", "c", "d", "e")
	guards := f.client(Config{Hold: hold}, "")
	lookAll(guards[:2])
	for _, g := range guards[:2] {
		if err := g.Admit(wire.OpAcquire); err != nil {
			t.Fatalf("before the third was looked at: %v", err)
		}
	}

	if v := guards[2].look(); !errors.Is(v.Stranger, ErrOtherGroup) {
		t.Errorf("the stranger is %v", v.Stranger)
	}

	wantOtherGroup(t, guards)
	f[0].restart("run2")
	guards[0].look()
	if f[2].marker.Group.Size != 5 || f[0].marker.Group != (GroupID{}) {
		t.Errorf("marked as ours beside a stranger: %v, %v", f[2].marker, f[0].marker)
	}
	for _, g := range guards {
		if err := g.Admit(wire.OpRelease); err != nil {
			t.Errorf("release: %v", err)
		}
	}
}

// A master that changes hands while we look on.
func TestS14_a_master_that_was_given_to_another_group(t *testing.T) {
	f := newFleet(t, 3)
	guards := f.client(Config{Hold: hold}, "")
	lookAll(guards)
	f[0].marker.Group = GroupOf("", "a", "b", "c", "d", "e")

	told := 0
	guards[0].group.Warn(func() { told++ })
	f.pass(time.Second)
	guards[0].look()

	wantOtherGroup(t, guards)
	guards[1].look()
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// A client that has the wrong list must not mark a master that has just lost its
// memory before it has seen most of its masters.
func TestS14_a_client_names_its_group_when_it_has_seen_most_masters(t *testing.T) {
	f := newFleet(t, 3)
	guards := f.client(Config{Hold: hold}, "orders")

	guards[0].look()
	if f[0].marker.Group != (GroupID{}) {
		t.Errorf("marked after one of three: %v", f[0].marker)
	}
	guards[1].look()
	f.pass(time.Second)
	guards[0].look()
	for i, w := range f[:2] {
		if w.marker.Group.Size != 3 || w.marker.Group.Name != "orders" {
			t.Errorf("master %d is marked %v", i, w.marker)
		}
	}

	plain := f.client(Config{Hold: hold}, "")
	lookAll(plain)
	lookAll(plain)
	if f[0].marker.Group.Name != "orders" {
		t.Errorf("who gives no name has taken it away: %v", f[0].marker)
	}
}

// S5b: the longest guard of any client counts, on every master of a client that
// has seen it on one.
func TestS5b_the_longest_hold_on_any_master_counts_on_all(t *testing.T) {
	f := newFleet(t, 3)
	const long = 4 * hold
	careful := f.client(Config{Hold: long}, "")
	careful[0].look() // and no other
	guards := f.client(Config{Hold: hold}, "")
	for _, w := range f[1:] {
		w.restart("run2")
	}

	lookAll(guards)

	for i, g := range guards[1:] {
		if rest := g.Rest(); rest != long {
			t.Errorf("master %d rests for %v, want %v", i+1, rest, long)
		}
	}
	lookAll(guards)
	for i, w := range f {
		if w.marker.Hold != long {
			t.Errorf("master %d is marked with %v, want %v", i, w.marker.Hold, long)
		}
	}
}

// S5b: a quarantine that seemed to be over begins again when it comes out that
// somebody has a longer guard; the masters whose right to vote changes are told.
func TestS5b_a_longer_hold_that_is_seen_later(t *testing.T) {
	f := newFleet(t, 2)
	guards := f.client(Config{Hold: hold}, "")
	told := 0
	guards[0].group.Warn(func() { told++ })
	f[1].restart("run2")
	lookAll(guards)
	f.pass(hold + time.Second)
	lookAll(guards)
	if err := guards[1].Admit(wire.OpAcquire); err != nil {
		t.Fatal(err)
	}
	told = 0

	f[0].marker.Hold = 2 * hold
	guards[0].look()

	if told == 0 {
		t.Error("nobody is told")
	}
	if rest := guards[1].Rest(); rest != hold-time.Second {
		t.Errorf("rests for %v, want %v", rest, hold-time.Second)
	}
}

// S5b: nobody votes for us before the others can know how long our locks may
// last, and the marker is replaced only if nobody else did meanwhile.
func TestS5b_no_vote_before_our_hold_is_on_the_master(t *testing.T) {
	w := newWorld(t, day)
	g := w.guard(Config{Hold: 2 * hold})
	v := g.Look(g.evidence())
	if v.Over != w.marker || v.Write.Hold != 2*hold {
		t.Fatalf("writes %v over %v", v.Write, v.Over)
	}
	if err := g.Admit(wire.OpAcquire); !errors.Is(err, ErrQuarantined) {
		t.Errorf("before it was written: %v", err)
	}

	w.marker.Hold = 3 * hold // another client was quicker
	g.look()

	if w.marker.Hold != 3*hold {
		t.Errorf("lowered to %v", w.marker.Hold)
	}
	if err := g.Admit(wire.OpAcquire); err != nil {
		t.Error(err)
	}
}

// A client whose own clock is wrong, at its start, is nobody's fault: the masters
// agree with one another.
func TestClockGuard_masters_that_agree_overrule_a_new_client(t *testing.T) {
	for _, off := range []time.Duration{2 * time.Second, -2 * time.Second, day} {
		f := newFleet(t, 3)
		for _, w := range f {
			w.offset = off
		}
		guards := f.client(Config{Hold: hold, ClockTolerance: tolerance}, "")
		lookAll(guards)
		for i, g := range guards {
			if err := g.Admit(wire.OpAcquire); err != nil {
				t.Errorf("our clock is off by %v, master %d: %v", off, i, err)
			}
		}
	}
}

// A new client cannot tell a clock that is wrong from one that has just stepped.
func TestClockGuard_new_client_compares_the_masters_with_one_another(t *testing.T) {
	for _, secret := range []bool{false, true} {
		f := newFleet(t, 5)
		f[1].offset = 3 * time.Second
		guards := f.client(Config{Hold: hold, ClockTolerance: tolerance}, "")
		for _, g := range guards {
			g.edit = func(e *Evidence) { e.Secret = secret }
		}
		lookAll(guards)
		for i, g := range guards {
			v, err := g.look(), g.Admit(wire.OpAcquire)
			if (v.Rest > 0) != (i == 1) || i != 1 && err != nil || i == 1 && !errors.Is(err, ErrQuarantined) {
				t.Errorf("secret %v, master %d: rest %v, %v", secret, i, v.Rest, err)
			}
		}
	}
}

// Where no quorum agrees, the client's own clock decides, once: it may be set later.
func TestClockGuard_where_masters_disagree_the_clients_clock_decides(t *testing.T) {
	for _, secret := range []bool{false, true} {
		f := newFleet(t, 3)
		f.pass(time.Minute)
		f[0].offset, f[2].offset = 3*time.Second, 6*time.Second
		guards := f.client(Config{Hold: hold, ClockTolerance: tolerance}, "")
		for _, g := range guards {
			g.edit = func(e *Evidence) { e.Secret = secret }
		}
		for range 2 {
			lookAll(guards)
			for i, g := range guards {
				err := g.Admit(wire.OpAcquire)
				if i == 1 && err != nil || i != 1 && (err == nil || !strings.Contains(err.Error(), "ahead of ours")) {
					t.Errorf("secret %v, master %d: %v", secret, i, err)
				}
			}
			f[0].clock.wall = f[0].clock.wall.Add(-10 * time.Second)
			for _, w := range f {
				w.offset += 10 * time.Second
			}
		}
	}
}

// S45: our own clock is as wrong as that of one master, and the first that are read make
// no quorum without it. The others may still say which of them is right.
func TestS45_new_client_waits_for_the_clocks_that_may_agree(t *testing.T) {
	f := newFleet(t, 5)
	for i, w := range f {
		w.offset = -5 * time.Second // as we see it
		if i == 1 {
			w.offset = 0
		}
	}
	guards := f.client(Config{Hold: hold, ClockTolerance: tolerance}, "")
	lookAll(guards[:3])
	for i, g := range guards[:3] {
		if err := g.Admit(wire.OpAcquire); !errors.Is(err, ErrQuarantined) {
			t.Errorf("after three of five, of which one is wrong, master %d: %v", i, err)
		}
	}
	lookAll(guards[3:])
	for i, g := range guards {
		err := g.Admit(wire.OpAcquire)
		if i != 1 && err != nil || i == 1 && !errors.Is(err, ErrQuarantined) {
			t.Errorf("after all of them, master %d: %v", i, err)
		}
	}
}

// The others may never come. A clock that did not step for as long as we watched it is
// as good as one that is right.
func TestClockGuard_new_client_does_not_wait_for_ever_for_those_that_may_agree(t *testing.T) {
	f := newFleet(t, 5)
	f[1].offset = 3 * time.Second
	guards := f.client(Config{Hold: hold, ClockTolerance: tolerance}, "")
	lookAll(guards[:3])
	for range int(hold / time.Second) {
		f[0].pass(time.Second)
		lookAll(guards[:3])
	}
	for i, g := range guards[:3] {
		if err := g.Admit(wire.OpAcquire); err != nil {
			t.Errorf("master %d: %v", i, err)
		}
	}
}

// One master alone cannot be compared.
func TestClockGuard_new_client_waits_for_a_quorum_of_clocks(t *testing.T) {
	f := newFleet(t, 3)
	guards := f.client(Config{Hold: hold, ClockTolerance: tolerance}, "")
	guards[0].look()
	if err := guards[0].Admit(wire.OpAcquire); !errors.Is(err, ErrQuarantined) {
		t.Errorf("after one of three: %v", err)
	}
	guards[1].look()
	for i, g := range guards[:2] {
		if err := g.Admit(wire.OpAcquire); err != nil {
			t.Errorf("master %d: %v", i, err)
		}
	}
}

// secret has nothing written of the clocks of these masters.
func secret(guards []*watched) []*watched {
	for _, g := range guards {
		g.edit = func(e *Evidence) { e.Secret = true }
	}
	return guards
}

// A clock that was compared once need not be compared again when those of the others do not agree
// any more, and one that may decide has not been read.
func TestClockGuard_a_clock_that_was_compared_bears_others_that_step(t *testing.T) {
	f := newFleet(t, 3)
	guards := secret(f.client(careful, ""))[:2]
	lookAll(guards)
	f[1].offset += 3 * time.Second
	f.pass(time.Second)
	lookAll(guards)
	mustVote(t, guards, 1, "ahead of ours")
}

// A clock may be a second ahead of the nearest of a quorum that agrees.
func TestClockGuard_new_client_bears_a_clock_that_is_a_second_ahead(t *testing.T) {
	for more, but := range map[time.Duration]int{0: -1, 1: 1} {
		f := newFleet(t, 5)
		f[1].offset = agreement + more
		for _, w := range f[2:] {
			w.offset = -500 * time.Millisecond
		}
		guards := secret(f.client(careful, ""))
		lookAll(guards)
		mustVote(t, guards, but, "ahead of those of most masters")
	}
}

// A clock was set before it was looked at first, if at all: it is out for a hold from then on,
// however late the others are read.
func TestClockGuard_a_clock_that_is_compared_late_was_set_before_its_first_look(t *testing.T) {
	f := newFleet(t, 3)
	f[1].offset = 3 * time.Second
	guards := secret(f.client(careful, ""))
	guards[1].look()
	for range 5 {
		f.pass(time.Second)
		guards[1].look()
	}
	lookAll(guards)
	mustVote(t, guards, 1, "ahead of those of most masters")
	if rest := guards[1].Rest(); rest != hold-5*time.Second {
		t.Errorf("rests for %v, want %v", rest, hold-5*time.Second)
	}
}

// Where no quorum agrees, a clock that was read slowly is not ahead of ours because it may be.
func TestClockGuard_where_masters_disagree_no_slow_reading_is_ahead(t *testing.T) {
	f := newFleet(t, 3)
	f[0].offset, f[2].offset = -9*time.Second, -6*time.Second
	guards := secret(f.client(careful, ""))
	for _, g := range guards {
		g.edit = func(e *Evidence) { e.Secret, e.Took = true, 1400*ms }
	}
	lookAll(guards)
	mustVote(t, guards, -1, "")
}
