package guard

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/drift"
)

// groupOf has masters whose clocks are known, and all alike.
func groupOf(n int) *Group {
	g := NewGroup(GroupID{Size: n})
	for range n {
		clock := bounds{factor: 0.01, longest: hold, known: true, floor: time.Hour, ceiling: time.Hour}
		g.members = append(g.members, &standing{clock: clock})
	}
	return g
}

// The table of what follows from how fast the masters' clocks run at least: two of three say
// so, one after the other. Votes are looked at anew where that changes whether they count.
func TestGroup_pace_by_what_a_quorum_says(t *testing.T) {
	g := groupOf(3)
	raised := 0
	g.Warn(func() { raised++ })
	for i, c := range []struct {
		says, pace float64
		slower     bool
		raised     int
	}{
		{1.0025, 1, false, 0}, {1.0026, 1.0026, true, 0}, {1.0099, 1.0099, true, 0}, {1.02, 1.02, true, 1},
		{1.03, 1.03, true, 0}, {1.02, 1.02, false, 0}, {1.005, 1.005, false, 1}, {0.9, 1, false, 0},
	} {
		raised = 0
		first := g.read(g.members[2], g.members[2].clock, c.says)
		second := g.read(g.members[0], g.members[0].clock, c.says)
		if (first || second) != c.slower || g.AtLeast() != c.pace || raised != c.raised {
			t.Errorf("%d: %v: pace %v, slower %v, raised %d times; want %v, %v, %d", i, c.says, g.AtLeast(), first || second, raised, c.pace, c.slower, c.raised)
		}
	}
	raised = 0
	back := g.members[1].clock
	back.doubt = time.Minute
	for range 2 {
		g.read(g.members[1], back, 1)
	}
	if raised != 1 {
		t.Errorf("a clock went back: raised %d times", raised)
	}
}

// S60, S80: the lowest rate counts that a master has shown. It never rises.
func TestS80_pace_by_the_lowest_rate_that_a_master_has_shown(t *testing.T) {
	g := groupOf(5)
	for i, c := range []struct{ says, pace float64 }{{0, math.Inf(1)}, {3.03, 3}, {4.04, 3}, {0, 3}, {1.06 * 1.01, 1.06}, {2.02, 1.06}} {
		g.measure(c.says, 1.01)
		if pace := g.Pace(); math.Abs(pace-c.pace) > 1e-9 {
			t.Errorf("after %d masters: pace %v, want %v", i+1, pace, c.pace)
		}
	}
	open := func() bool {
		select {
		case <-g.Measured():
			return false
		default:
			return true
		}
	}
	if !open() {
		t.Error("counts as measured at a pace of 1.06")
	}
	g.measure(1.05*1.01, 1.01)
	if pace := g.Pace(); math.Abs(pace-1.05) > 1e-9 || open() {
		t.Errorf("pace %v, not measured %v", pace, open())
	}
}

// A clock is ahead of those that agree by how far it is ahead of the nearest of them.
func TestGroup_ahead_of_those_that_agree(t *testing.T) {
	g := groupOf(5)
	for i, off := range []time.Duration{0, 400 * ms, 800 * ms, 3 * time.Second} {
		g.members[i].clock.floor += off
		g.members[i].clock.ceiling += off
	}
	g.members[4].clock = bounds{}
	if off, said := g.aheadOfMost(g.members[3], 0); off != 2200*ms || said != agreed {
		t.Errorf("ahead by %v (%v), want 2.2s", off, said)
	}
}

// A quorum of clocks that went back shows that ours was set, and half of them does not.
func TestGroup_most_clocks_went_back(t *testing.T) {
	for n, need := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3} {
		g := groupOf(n)
		for back := range n {
			if got := g.mostWentBack(0); got != (back >= need) {
				t.Errorf("%d of %d: %v", back, n, got)
			}
			g.members[back].clock.doubt = 1
		}
		if !g.mostWentBack(0) || g.mostWentBack(1) {
			t.Errorf("all of %d", n)
		}
	}
}

// S72: our own clock is right if it agrees with those of as many other masters as make a quorum with
// the one that seems wrong, that were looked at since, and that were not set, too, in that time (L93).
func TestS72_who_agrees_with_our_own_clock(t *testing.T) {
	const found, now, by = time.Minute, time.Minute + time.Second, time.Second
	for _, c := range []struct {
		masters, others int
		want            bool
	}{{1, 0, false}, {2, 0, false}, {2, 1, true}, {3, 0, false}, {3, 1, true}, {4, 1, false}, {4, 2, true}, {5, 1, false}, {5, 2, true}} {
		for what, edit := range map[string]func(b *bounds){
			"as ever":                  func(*bounds) {},
			"when it was found":        func(b *bounds) { b.at, b.seen = found+1, found },
			"is out":                   func(b *bounds) { b.out = now + 1 },
			"is not out any more":      func(b *bounds) { b.out = now },
			"was set before that":      func(b *bounds) { b.found = found - 3 },
			"was set just before that": func(b *bounds) { b.found = found - 2 },
			"was set then":             func(b *bounds) { b.found = found - 1 },
			"is in doubt":              func(b *bounds) { b.doubt = now + 1 },
			"is in no doubt any more":  func(b *bounds) { b.doubt = now },
			"may have been set as far": func(b *bounds) { b.most = by },
		} {
			g := groupOf(c.masters)
			step := &g.members[0].clock
			step.at, step.seen, step.found, step.from, step.by = now, now, found, found-2, by
			for i := 1; i <= c.others; i++ {
				g.members[i].clock.at, g.members[i].clock.seen, g.members[i].clock.most = found+1, found+1, by-1
				edit(&g.members[i].clock)
			}
			want := c.want && (what == "as ever" || strings.HasSuffix(what, "before that") || strings.HasSuffix(what, "any more"))
			if got := g.agree(g.members[0], step, now, time.Minute); got != want {
				t.Errorf("%d of %d others, %s: %v", c.others, c.masters-1, what, got)
			}
			want = want || c.want && what == "may have been set as far"
			if got := g.agree(g.members[0], step, now, time.Second); got != want {
				t.Errorf("%d of %d others, %s, after a while: %v", c.others, c.masters-1, what, got)
			}
		}
	}
}

// The table of what is written of a clock: how far it is ahead of those that are known well.
func TestGroup_offsets_to_those_that_are_known(t *testing.T) {
	const now = time.Minute
	for _, c := range []struct {
		what   string
		edit   func(m *standing)
		guest  bool
		offset bool
	}{
		{"a clock that is known", func(*standing) {}, false, true},
		{"without a name", func(m *standing) { m.run = "" }, false, false},
		{"called as the master itself", func(m *standing) { m.run = "a" }, false, false},
		{"not read lately", func(m *standing) { m.clock.at = now - HeardWithin - 1 }, false, false},
		{"read just lately", func(m *standing) { m.clock.at = now - HeardWithin }, false, true},
		{"in doubt", func(m *standing) { m.clock.doubt = now + 1 }, false, false},
		{"out", func(m *standing) { m.clock.out = now + 1 }, false, false},
		{"in another century", func(m *standing) { m.clock.floor -= farthest * time.Microsecond }, false, false},
		{"vague", func(m *standing) { m.clock.floor -= 2*sharp + 1 }, false, true},
		{"vague, by a guest", func(m *standing) { m.clock.floor -= 2*sharp + 1 }, true, false},
		{"sharp enough, by a guest", func(m *standing) { m.clock.floor -= 2 * sharp }, true, true},
	} {
		g := groupOf(2)
		for i, m := range g.members {
			m.run, m.joined, m.clock.at = string(rune('a'+i)), true, now
		}
		p := &timepiece{bounds: g.members[0].clock, state: familiar}
		p.floor, p.ceiling = p.floor+time.Hour, p.ceiling+time.Hour
		if c.guest {
			p.state = guest
		}
		c.edit(g.members[1])
		all := g.offsets(g.members[0], p, time.Unix(1e9, 0), now)
		if len(all) > 1 || (len(all) == 1) != c.offset || c.offset && all[0].name != "b" {
			t.Errorf("%s: %v, want one: %v", c.what, all, c.offset)
		}
	}
}

// One clock was read ten seconds ago, and another twenty: each may have drifted since.
func TestBounds_difference_of_two_clocks(t *testing.T) {
	const now = time.Minute
	a := bounds{factor: 0.01, longest: hold, at: now - 10*time.Second, floor: time.Hour, ceiling: time.Hour + 2*ms}
	b := bounds{factor: 0.01, longest: hold, at: now - 20*time.Second, floor: time.Minute, ceiling: time.Minute + 3*ms}
	low, high := difference(&a, &b, now)
	if apart := time.Hour - time.Minute; low != apart-3*ms-300*ms || high != apart+2*ms+300*ms {
		t.Errorf("ahead by %v to %v more than %v", low-apart, high-apart, apart)
	}
}

// The table of when a guard writes offsets at all.
func TestGuard_writes_offsets(t *testing.T) {
	for _, c := range []struct {
		what   string
		edit   func(g *watched, now time.Duration)
		writes bool
	}{
		{"as ever", func(*watched, time.Duration) {}, true},
		{"just after the last", func(g *watched, _ time.Duration) { g.look() }, false},
		{"may not write", func(g *watched, _ time.Duration) { g.edit = func(e *Evidence) { e.Secret = true } }, false},
		{"without the time", func(g *watched, _ time.Duration) { g.edit = func(e *Evidence) { e.Time = time.Time{} } }, false},
		{"without a restart guard", func(g *watched, _ time.Duration) { g.config.Hold = 0 }, false},
		{"our own clock is slow", func(g *watched, _ time.Duration) {
			for _, m := range g.group.members {
				m.atLeast = 1.02
			}
		}, false},
		{"too few are known", func(g *watched, _ time.Duration) {
			g.time.state, g.time.since = guest, g.clock.now()
			for _, m := range g.group.members {
				m.clock.at -= HeardWithin
			}
		}, false},
		{"is out", func(g *watched, now time.Duration) { g.time.out = now + HeardWithin + 1 }, false},
		{"will soon vote again", func(g *watched, now time.Duration) { g.time.out = now + HeardWithin }, true},
		{"is in doubt", func(g *watched, now time.Duration) { g.time.doubt = now + HeardWithin + 1 }, false},
		{"will soon be in no doubt", func(g *watched, now time.Duration) { g.time.doubt = now + HeardWithin }, true},
	} {
		f := apart(t, 3)
		guards := f.settledClient(t)
		f.pass(fresh)
		c.edit(guards[1], f[1].clock.mono)
		if v := guards[1].Look(guards[1].evidence()); (v.Offsets != "") != c.writes {
			t.Errorf("%s: writes %q, want some %v", c.what, v.Offsets, c.writes)
		}
	}
}

// The table of how far a clock was certainly set back since it was read ten seconds before;
// the reading took a second. It is compared anew from there.
func TestBounds_of_a_clock_that_went_back(t *testing.T) {
	const at = time.Hour
	for _, c := range []struct{ by, back time.Duration }{{0, 0}, {115 * ms, 0}, {116 * ms, 6 * ms}, {day, day - 110*ms}} {
		b := bounds{factor: 0.01, longest: hold, tolerance: drift.Tolerance, unsettled: unsettled, known: true, at: at, floor: day, stood: day, ceiling: day + ms}
		r := reading{sent: at + 9*time.Second, came: at + 10*time.Second}
		r.node = time.Unix(0, int64(day-c.by+r.sent))
		if got := b.behind(r); got != c.back {
			t.Errorf("back by %v: %v, want %v", c.by, got, c.back)
		}
		b.read(r)
		if low := r.atLeast() - 10*ms; c.back > 0 && (b.floor != low || b.stood != low || b.ceiling != low+time.Second+20*ms || b.doubt != r.came+unsettled || b.back != c.back) {
			t.Errorf("back by %v: then %v to %v ahead, in doubt until %v by %v", c.by, b.floor, b.ceiling, b.doubt, b.back)
		}
	}
}

// The pace is that of the last two windows at most.
func TestPace_forgets_how_a_clock_ran_before(t *testing.T) {
	p := pace{window: 2 * time.Second}
	var fast float64
	for second := range 104 {
		now := time.Duration(second) * time.Second
		ahead := 100 * ms * time.Duration(max(0, second-99))
		fast = p.read(reading{node: time.Unix(1e9, int64(now+ahead)), sent: now, came: now})
		if second == 101 && fast > 1.08 {
			t.Errorf("two seconds after it became 1.1: %v", fast)
		}
	}
	if math.Abs(fast-1.1) > 1e-9 {
		t.Errorf("four seconds after it became 1.1: %v", fast)
	}
}
