package guard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/drift"
)

// said is what clients knew of a clock some time ago.
func said(run string, ago, low, high time.Duration) offset {
	return offset{run, time.Unix(1e9, 0).Add(-ago), low, high}
}

// The table of what a client writes, by what is written, what it finds, and how well it
// knows the clock. Clocks drift by a hundredth: 1 ms in 100 ms.
func TestOffsets_that_a_client_writes(t *testing.T) {
	const ago = 100 * ms
	old, other := said("a", ago, 2*ms, 4*ms), said("b", ago, -ms, ms)
	full := slices.Repeat(offsets{other}, maxOffsets)
	for i := range full {
		full[i].run = fmt.Sprint("b", i)
	}
	for _, c := range []struct {
		what        string
		stored, now offsets
		guest, news bool
		want        offsets
	}{
		{"the first", nil, offsets{said("a", 0, 0, 8*ms)}, false, true, offsets{said("a", 0, 0, 8*ms)}},
		{"the first, says a guest", nil, offsets{said("a", 0, 0, 8*ms)}, true, true, offsets{said("a", 0, 0, 8*ms)}},
		{"a vague one", offsets{old}, offsets{said("a", 0, 0, 8*ms)}, false, false, offsets{said("a", 0, ms, 5*ms)}},
		{"a sharp one", offsets{old}, offsets{said("a", 0, 3*ms, 4*ms)}, false, false, offsets{said("a", 0, 3*ms, 4*ms)}},
		{"not fresh", offsets{said("a", fresh, 2*ms, 4*ms)}, offsets{said("a", 0, -9*ms, 19*ms)}, false, true, offsets{said("a", 0, -3*ms, 9*ms)}},
		{"of later", offsets{said("a", -ago, 2*ms, 4*ms)}, offsets{said("a", 0, 0, 8*ms)}, false, true, offsets{said("a", 0, ms, 5*ms)}},
		{"a little above", offsets{old}, offsets{said("a", 0, 8*ms, 9*ms)}, true, false, offsets{said("a", 0, 5*ms, 5*ms)}},
		{"a little below", offsets{old}, offsets{said("a", 0, -6*ms, -2*ms)}, true, false, offsets{said("a", 0, -2*ms, -2*ms)}},
		{"as far above as is tolerated", offsets{old}, offsets{said("a", 0, 10*ms, 12*ms)}, true, false, offsets{said("a", 0, 5*ms, 5*ms)}},
		{"as far below as is tolerated", offsets{old}, offsets{said("a", 0, -6*ms, -4*ms)}, true, false, offsets{said("a", 0, -4*ms, -4*ms)}},
		{"set forward", offsets{old}, offsets{said("a", 0, 11*ms, 12*ms)}, false, true, offsets{said("a", 0, 11*ms, 12*ms)}},
		{"set back", offsets{old}, offsets{said("a", 0, -6*ms, -5*ms)}, false, true, offsets{said("a", 0, -6*ms, -5*ms)}},
		{"set forward, says a guest", offsets{old}, offsets{said("a", 0, 11*ms, 12*ms)}, true, false, offsets{old}},
		{"set back, says a guest", offsets{old}, offsets{said("a", 0, -6*ms, -5*ms)}, true, false, offsets{old}},
		{"set forward long ago, says a guest", offsets{said("a", HeardWithin+ms, 2*ms, 4*ms)}, offsets{said("a", 0, 40*ms, 41*ms)}, true, false, offsets{said("a", HeardWithin+ms, 2*ms, 4*ms)}},
		{"another that is not reached, confirmed", offsets{old, other}, offsets{said("a", 0, 3*ms, 4*ms)}, false, false, offsets{said("a", 0, 3*ms, 4*ms), other}},
		{"another, and none that is reached", offsets{other}, offsets{said("a", 0, 0, ms)}, false, true, offsets{said("a", 0, 0, ms)}},
		{"another, and the clock was set", offsets{old, other}, offsets{said("a", 0, 11*ms, 12*ms)}, false, true, offsets{said("a", 0, 11*ms, 12*ms)}},
		{"another, confirmed and contradicted", offsets{old, said("c", 0, 2*ms, 4*ms), other}, offsets{said("a", 0, 3*ms, 4*ms), said("c", 0, 40*ms, 41*ms)}, false, true, offsets{said("a", 0, 3*ms, 4*ms), said("c", 0, 40*ms, 41*ms)}},
		{"another, and the clock was set, says a guest", offsets{old, other}, offsets{said("a", 0, 11*ms, 12*ms)}, true, false, offsets{old, other}},
		{"another from just lately enough", offsets{old, said("b", HeardWithin, 0, 0)}, offsets{said("a", 0, 3*ms, 4*ms)}, false, false, offsets{said("a", 0, 3*ms, 4*ms), said("b", HeardWithin, 0, 0)}},
		{"another from long ago", offsets{old, said("b", HeardWithin+1, 0, 0)}, offsets{said("a", 0, 3*ms, 4*ms)}, false, false, offsets{said("a", 0, 3*ms, 4*ms)}},
		{"another of much later", offsets{old, said("b", -HeardWithin-1, 0, 0)}, offsets{said("a", 0, 3*ms, 4*ms)}, false, false, offsets{said("a", 0, 3*ms, 4*ms)}},
		{"none is reached", offsets{other}, nil, false, false, nil},
		{"too many", append(offsets{old}, full...), offsets{said("a", 0, 3*ms, 4*ms)}, false, false, append(offsets{said("a", 0, 3*ms, 4*ms)}, full[:maxOffsets-1]...)},
	} {
		states := []acquaintance{familiar}
		if c.guest {
			states = []acquaintance{stranger, guest, away}
		}
		for _, state := range states {
			p := &timepiece{bounds: bounds{factor: 0.01, longest: hold, tolerance: drift.Tolerance}, state: state}
			got, news := c.stored.with(c.now, p)
			if !slices.Equal(got, c.want) || news != c.news {
				t.Errorf("%s, in state %d: writes %v (news: %v)\nwant %v (news: %v)", c.what, state, got, news, c.want, c.news)
			}
		}
	}
}

// The table of how bounds that follow from other clocks are joined with our own, which are
// of ten seconds ago: a clock may have drifted by 100 ms since, and 5 ms are tolerated.
func TestTimepiece_recalls_bounds(t *testing.T) {
	const ahead, now = time.Hour, time.Minute
	for _, c := range []struct {
		what                              string
		ago, low, high, moved, floor, top time.Duration
		state                             acquaintance
	}{
		{"sharper", 10 * time.Second, -20 * ms, 0, 0, -20 * ms, 0, familiar},
		{"sharp, but not with our own", 10 * time.Second, -20 * ms, 10 * ms, 0, -20 * ms, 10 * ms, guest},
		{"vaguer", 10 * time.Second, -200 * ms, 200 * ms, 0, -100 * ms, 110 * ms, guest},
		{"sharp, by vague bounds", 10 * time.Second, -110 * ms, -90 * ms, 0, -100 * ms, -90 * ms, familiar},
		{"as vague as may be for sharp ones", 10 * time.Second, -130 * ms, -90 * ms, 0, -100 * ms, -90 * ms, familiar},
		{"too vague for sharp ones, by a moment", 10 * time.Second, -130*ms - 1, -90 * ms, 0, -100 * ms, -90 * ms, guest},
		{"too vague for sharp ones", 10 * time.Second, -150 * ms, -90 * ms, 0, -100 * ms, -90 * ms, guest},
		{"a little below", 10 * time.Second, -110 * ms, -104 * ms, 0, -100 * ms, -100 * ms, familiar},
		{"as far below as is tolerated", 10 * time.Second, -110 * ms, -105 * ms, 0, -100 * ms, -100 * ms, familiar},
		{"as far above as is tolerated", 10 * time.Second, 115 * ms, 120 * ms, 0, 110 * ms, 110 * ms, familiar},
		{"a little above", 10 * time.Second, 114 * ms, 120 * ms, 0, 110 * ms, 110 * ms, familiar},
		{"below: was set forward", 10 * time.Second, -110 * ms, -106 * ms, 6 * ms, 0, 10 * ms, familiar},
		{"above: was set back", 10 * time.Second, 116 * ms, 120 * ms, -ms, 0, 10 * ms, familiar},
		{"of before our own", -time.Second, 0, 5 * ms, 0, 0, 5 * ms, familiar},
	} {
		p := &timepiece{bounds: bounds{factor: 0.01, longest: hold, tolerance: drift.Tolerance, unsettled: unsettled, known: true}}
		p.at, p.floor, p.ceiling = now-c.ago, ahead, ahead+10*ms
		moved := p.recall(now, ahead+c.low, ahead+c.high)
		if moved != c.moved || p.floor-ahead != c.floor || p.ceiling-ahead != c.top || p.state != c.state {
			t.Errorf("%s: moved %v, is %v to %v ahead, state %d; want %v, %v to %v, %d", c.what, moved, p.floor-ahead, p.ceiling-ahead, p.state, c.moved, c.floor, c.top, c.state)
		}
		if c.moved == 0 && p.at != max(now, now-c.ago) || c.moved > 0 && p.out != now+hold || c.moved < 0 && (p.doubt != now+unsettled || p.back != ms) {
			t.Errorf("%s: bounds of %v, out until %v, in doubt until %v", c.what, p.at, p.out, p.doubt)
		}
	}
}

// The table of which other masters say where a clock must be, and whether they are enough.
// There are five, of which one is never read; the clock is read half a second after the
// offsets were written, and the others' clocks a second before.
func TestGroup_estimates_a_clock_by_others(t *testing.T) {
	const now, theirs, within = time.Minute, time.Hour, 10 * ms
	for _, c := range []struct {
		what    string
		edit    func(g *Group, p *timepiece, m *standing)
		offsets int
		unread  bool
		enough  bool
	}{
		{"all that are read", func(*Group, *timepiece, *standing) {}, 3, false, true},
		{"the clock itself", func(g *Group, _ *timepiece, m *standing) { g.members[0].run = "c" }, 3, false, true},
		{"not known", func(_ *Group, _ *timepiece, m *standing) { m.clock.known = false }, 2, false, true},
		{"two are not known", func(g *Group, _ *timepiece, m *standing) { m.clock.known, g.members[1].clock.known = false, false }, 1, false, false},
		{"not read lately", func(_ *Group, _ *timepiece, m *standing) { m.clock.at = now - HeardWithin - 1 }, 2, false, true},
		{"just read lately", func(_ *Group, _ *timepiece, m *standing) { m.clock.at = now - HeardWithin }, 3, false, true},
		{"in doubt", func(_ *Group, _ *timepiece, m *standing) { m.clock.doubt = now + 1 }, 2, false, true},
		{"out", func(_ *Group, _ *timepiece, m *standing) { m.clock.out = now + 1 }, 2, false, true},
		{"nothing is written of it", func(_ *Group, _ *timepiece, m *standing) { m.run = "z" }, 2, false, true},
		{"only others are written of", func(_ *Group, p *timepiece, _ *standing) { p.said = offsets{said("x", 0, 0, 0)} }, 0, true, true},
		{"of more others than are left", func(_ *Group, p *timepiece, _ *standing) { p.said = offsets{said("x", 0, 0, 0), said("y", 0, 0, 0)} }, 0, false, true},
		{"of others, long ago", func(_ *Group, p *timepiece, _ *standing) { p.said = offsets{said("x", hold, 0, 0)} }, 0, true, true},
		{"nothing is written", func(_ *Group, p *timepiece, _ *standing) { p.said = nil }, 0, false, true},
	} {
		g := NewGroup(GroupID{Size: 5})
		p := &timepiece{bounds: bounds{factor: 0.01, longest: hold}, saidAt: said("", 0, 0, 0).at, heard: now - 500*ms}
		for _, run := range []string{"self", "a", "b", "c"} {
			m := &standing{run: run, clock: bounds{factor: 0.01, longest: hold, known: true, at: now - time.Second, floor: theirs, ceiling: theirs + 2*ms}}
			g.members = append(g.members, m)
			p.said = append(p.said, said(run, 0, 3*ms, 4*ms))
		}
		p.said = p.said[1:]
		c.edit(g, p, g.members[3])
		w := g.estimate(g.members[0], p, now)
		if w.offsets != c.offsets || w.unread != c.unread || w.enough != c.enough {
			t.Errorf("%s: %+v, want %d offsets, unread %v, enough %v", c.what, w, c.offsets, c.unread, c.enough)
		}
		low, high := theirs+3*ms-within-5*ms, theirs+6*ms+within+5*ms
		if w.offsets == 3 && w.low > low-5*ms && (w.low != low || w.high != high) {
			t.Errorf("%s: %v to %v ahead, want %v to %v", c.what, w.low, w.high, low, high)
		}
	}
}
