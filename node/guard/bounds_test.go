package guard

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
)

// The table of what the last of some readings shows. Each came at an instant, took so long,
// and said a time so far ahead of that instant: a right clock that was read when the question
// was sent is behind by what the reading took.
func TestBounds_by_readings(t *testing.T) {
	type at struct{ came, took, ahead time.Duration }
	for _, c := range []struct {
		what          string
		readings      []at
		forward, back bool
	}{
		{"one", []at{{0, 0, time.Hour}}, false, false},
		{"one of a clock in 1970", []at{{0, 0, -time.Minute}}, false, false},
		{"set forward", []at{{0, 0, 0}, {ms, 0, 6 * ms}}, true, false},
		{"set back", []at{{0, 0, 0}, {ms, 0, -6 * ms}}, false, true},
		{"within the tolerance", []at{{0, 0, 0}, {ms, 0, 4 * ms}}, false, false},
		{"ahead by just what is tolerated", []at{{0, 0, 0}, {ms, 0, 5*ms + ms/100}}, false, false},
		{"ahead by more", []at{{0, 0, 0}, {ms, 0, 5*ms + ms/100 + 1}}, true, false},
		{"behind by just what is tolerated", []at{{0, 0, 0}, {ms, 0, -5*ms - ms/100}}, false, false},
		{"behind by more", []at{{0, 0, 0}, {ms, 0, -5*ms - ms/100 - 1}}, false, true},
		{"set back behind a slow reading", []at{{0, 0, 0}, {100 * ms, 100 * ms, -100 * ms}, {101 * ms, 0, -20 * ms}}, false, true},
		{"set forward behind a slow reading", []at{{0, 0, 0}, {100 * ms, 100 * ms, 0}, {101 * ms, 0, 20 * ms}}, true, false},
		{"set forward again, behind a quick reading of it", []at{{0, 0, 0}, {ms, 0, 50 * ms}, {2 * ms, 0, 60 * ms}}, true, false},
		{"set forward again, behind a slow reading of it", []at{{0, 0, 0}, {100 * ms, 100 * ms, 200 * ms}, {101 * ms, 0, 230 * ms}}, true, false},
		{"set back, and forward again", []at{{0, 0, 0}, {ms, 0, -50 * ms}, {2 * ms, 0, 0}}, true, false},
	} {
		b := &bounds{factor: 0.01, longest: hold, tolerance: drift.Tolerance, unsettled: unsettled}
		var forward time.Duration
		var last time.Duration
		for _, r := range c.readings {
			last = time.Minute + r.came
			forward = b.read(reading{node: time.Unix(0, int64(last+r.ahead)), sent: last - r.took, came: last})
		}
		if (forward > 0) != c.forward || (b.doubt == last+unsettled) != c.back {
			t.Errorf("%s: forward %v, in doubt until %v", c.what, forward, b.doubt)
		}
	}
}

// A clock stands still if it shows the same for long, however often it is read meanwhile.
func TestBounds_a_clock_that_is_read_often_stands_still(t *testing.T) {
	b := &bounds{factor: 0.01, longest: hold, tolerance: drift.Tolerance}
	for now := time.Duration(0); now <= standsFor; now += 10 * ms {
		r := reading{node: time.Unix(1, 0), sent: now, came: now}
		if still := b.still(r); still != (now >= standsFor) {
			t.Errorf("after %v: stands still %v", now, still)
		}
		b.read(r)
	}
}

// A clock that goes in steps of 16 ms does not stand still because an answer is late.
func TestBounds_a_late_answer_shows_no_clock_that_stands_still(t *testing.T) {
	b := &bounds{factor: 0.01, longest: hold, tolerance: drift.Tolerance}
	node := time.Unix(1, 0)
	b.read(reading{node: node, sent: 0, came: 10 * ms})
	if b.still(reading{node: node, sent: 10 * ms, came: 10*ms + standsFor}) {
		t.Error("stands still")
	}
}

// What bounds our own clock from above gets better only, and is known of a clock that stands.
func TestLimit_by_readings(t *testing.T) {
	first := reading{node: time.Unix(100, 0)}
	later := func(passed, node, late time.Duration) reading {
		return reading{node: first.node.Add(node), sent: passed, came: passed + late}
	}
	for what, c := range map[string]struct {
		readings []reading
		want     float64
	}{
		"one":              {[]reading{first}, 0},
		"two":              {[]reading{first, later(time.Second, time.Second, 0)}, 1},
		"a slow one later": {[]reading{first, later(time.Second, time.Second, 0), later(time.Second, 2*time.Second, time.Second)}, 1},
		"a better one":     {[]reading{first, later(time.Second, 2*time.Second, time.Second), later(2*time.Second, 2*time.Second, 0)}, 1},
		"of the same time": {[]reading{first, later(0, time.Second, 0)}, 0},
		"it stands":        {[]reading{first, later(time.Second, 0, 0)}, math.SmallestNonzeroFloat64},
	} {
		var l limit
		for _, r := range c.readings {
			l.read(r)
		}
		if l.atMost != c.want {
			t.Errorf("%s: at most %v, want %v", what, l.atMost, c.want)
		}
	}
}

// The table of how far the first clock is ahead of a quorum that agrees (S45). Clocks that are
// not read are missing.
func TestGroup_how_far_a_clock_is_ahead(t *testing.T) {
	const far = 10 * time.Second
	for _, c := range []struct {
		size   int
		clocks []time.Duration
		said   verdictOfClocks
		off    time.Duration
	}{
		{1, []time.Duration{0}, agreed, 0},
		{3, []time.Duration{0}, unheard, 0},
		{3, []time.Duration{far, 0, 0}, agreed, far},
		{3, []time.Duration{far, 0, time.Second}, agreed, far - time.Second},
		{3, []time.Duration{far, time.Second, 0}, agreed, far - time.Second},
		{3, []time.Duration{0, far, far}, agreed, -far},
		{3, []time.Duration{0, far, 2 * far}, divided, 0},
		{3, []time.Duration{0, far}, unheard, 0},
		{5, []time.Duration{0, 0, far, 2 * far}, unheard, 0},
		{5, []time.Duration{far, 2 * far, 0, 0}, unheard, 0},
		{5, []time.Duration{0, far, 2 * far}, unheard, 0},
		{5, []time.Duration{0, far, 2 * far, 3 * far}, divided, 0},
	} {
		g := NewGroup(GroupID{Size: c.size})
		for i := range c.size {
			s := &standing{clock: bounds{factor: 0.01, longest: hold}}
			if i < len(c.clocks) {
				s.clock.known, s.clock.floor, s.clock.ceiling = true, time.Hour+c.clocks[i], time.Hour+c.clocks[i]
			}
			g.members = append(g.members, s)
		}
		if off, said := g.aheadOfMost(g.members[0], 0); said != c.said || off != c.off && said == agreed {
			t.Errorf("%v of %d: %v ahead, %v; want %v, %v", c.clocks, c.size, off, said, c.off, c.said)
		}
	}
}

// A quorum is one of the masters that there are to be, and of those that there are.
func TestGroup_needs_a_quorum_of_all(t *testing.T) {
	for _, c := range []struct{ size, members, want int }{{5, 1, 3}, {5, 5, 3}, {0, 5, 3}, {4, 4, 3}, {1, 1, 1}} {
		g := NewGroup(GroupID{Size: c.size})
		g.members = make([]*standing, c.members)
		if got := g.need(); got != c.want {
			t.Errorf("%+v: needs %d", c, got)
		}
	}
}

// The first masters are read before the others' guards are made.
func TestS47_too_few_masters_say_nothing_of_our_clock(t *testing.T) {
	f := newFleet(t, 2)
	guards := f.clientOf(careful, GroupID{Size: 5})
	for range 5 {
		f.pass(time.Second)
		for _, w := range f {
			w.offset += time.Second
		}
		lookAll(guards)
	}
	if pace := guards[0].group.AtLeast(); pace != 1 {
		t.Errorf("two of five run wild: pace %v", pace)
	}
}

// S59: for how long a clock that was set back gives no votes.
func TestS59_how_long_a_clock_that_was_set_back_is_in_doubt(t *testing.T) {
	f := newFleet(t, 3)
	guards := f.client(careful, "")
	lookAll(guards)
	f.pass(time.Second)
	f[1].offset -= 900 * ms
	v := guards[1].Look(guards[1].evidence())
	if v.Rest != unsettled || !strings.Contains(v.Reason, "set back by") {
		t.Errorf("rests for %v (%s), want %v", v.Rest, v.Reason, unsettled)
	}
	f.pass(time.Second)
	if rest := guards[1].Rest(); rest != unsettled-time.Second {
		t.Errorf("a second later for %v", rest)
	}
}

// A vote without a time of the master is no reading of its clock.
func TestVotes_without_a_time_say_nothing_of_the_clock(t *testing.T) {
	f := newFleet(t, 3)
	guards := f.client(careful, "")
	lookAll(guards)
	f.pass(time.Second)
	before := guards[1].time.bounds
	if !guards[1].TimelyVote(time.Time{}, f[0].clock.mono) || guards[1].time.bounds != before {
		t.Errorf("does not count, or its clock is %+v, was %+v", guards[1].time.bounds, before)
	}
	if err := guards[1].Admit(wire.OpAcquire); err != nil {
		t.Error(err)
	}
}

// S15: two addresses of one server, which hides its run_id, and forgets its marker when both are connected.
func TestGuard_finds_that_two_connected_masters_are_one_server(t *testing.T) {
	f := newFleet(t, 3)
	f[2] = f[0]
	c := f.client(careful, "")
	for _, g := range c {
		g.edit = blindToRun
	}
	c[0].look()
	for i, g := range c {
		if err := g.Join(string(rune('a'+i)), ""); err != nil {
			t.Fatal(err)
		}
	}
	f[0].marker = Marker{}
	c[1].look()
	if v := c[2].look(); v.Stranger != nil {
		t.Errorf("what nobody has compared: %v", v.Stranger)
	}
	if v := c[0].look(); !errors.Is(v.Stranger, ErrSameNode) {
		t.Errorf("both vote: %v", v.Stranger)
	}
}

// S15: a server has one place in a group, and may move to another address.
func TestS15_join_and_leave(t *testing.T) {
	f := newFleet(t, 3)
	g := f.client(careful, "")
	for i, c := range []struct {
		join      int
		addr, run string
		memory    string
		leaves    bool // then
		sameAs    string
	}{
		{0, "a", "run1", "", false, ""},
		{0, "a", "run1", "", false, ""}, // connected again
		{1, "b", "run1", "", true, "a (run_id run1)"},
		{1, "b", "run2", "", false, ""},
		{2, "c", "run1", "", false, "a (run_id run1)"},
		{0, "a", "run1", "", true, ""},
		{0, "d", "run3", "", false, ""}, // another server answers there
		{2, "c", "run1", "", false, ""},
		{0, "a", "run1", "", false, "c (run_id run1)"},
		{0, "a", "", "", false, ""}, // who tells nothing may be any
		{1, "b", "", "", false, ""},
		{1, "b", "", "m", false, ""},
		{0, "a", "", "m", false, "b (it has the same marker, and hides its run_id)"},
		{0, "a", "run1", "m", false, "b (run_id run1)"}, // whose run is hidden
		{1, "b", "run2", "m", false, ""},
		{0, "a", "run4", "m", false, ""}, // its keys are a copy
	} {
		g[c.join].standing.memory = c.memory
		err := g[c.join].Join(c.addr, c.run)
		if errors.Is(err, ErrSameNode) != (c.sameAs != "") || err != nil && !strings.HasSuffix(err.Error(), c.sameAs) {
			t.Errorf("step %d: %v, want the same as %q", i, err, c.sameAs)
		}
		if c.leaves {
			g[c.join].Leave()
		}
	}
	alone := New(careful, f[0].clock, nil)
	if err := alone.Join("a", "run1"); err != nil {
		t.Errorf("a master alone: %v", err)
	}
	alone.Leave()
}

// What may be the name of a group.
func TestGroup_names_that_are_refused(t *testing.T) {
	for name, fine := range map[string]bool{
		"": true, "orders": true, "!~": true, "a-b": true, strings.Repeat("x", 64): true,
		strings.Repeat("x", 65): false, "-": false, "a b": false, " ": false, "\x7f": false, "ä": false, "a\n": false,
	} {
		if err := CheckGroupName(name); (err == nil) != fine {
			t.Errorf("%q: %v", name, err)
		}
	}
}
