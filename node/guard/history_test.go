package guard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
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
		full[i].name = fmt.Sprint("b", i)
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
		{"one that is not written, and the clock was set, says a guest", offsets{old}, offsets{said("a", 0, 11*ms, 12*ms), said("c", 0, 0, ms)}, true, false, offsets{old}},
		{"one that is not written, and none that is, says a guest", offsets{other}, offsets{said("a", 0, 0, ms)}, true, false, offsets{other}},
		{"one that is not written, confirmed, says a guest", offsets{old}, offsets{said("a", 0, 3*ms, 4*ms), said("c", 0, 0, ms)}, true, true, offsets{said("a", 0, 3*ms, 4*ms), said("c", 0, 0, ms)}},
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
			got, news := history{memory: "m", offsets: c.stored}.with(c.now, "m", p)
			if c.now != nil && !slices.Equal(got.offsets, c.want) || news != c.news {
				t.Errorf("%s, in state %d: writes %v (news: %v)\nwant %v (news: %v)", c.what, state, got, news, c.want, c.news)
			}
		}
	}
}

// S74, the table of when the history of a clock begins: with the first offsets beside a marker,
// and where none of them confirms the clock.
func TestS74_history_begins_beside_each_marker_anew(t *testing.T) {
	begin, now := time.Unix(1e9-9, 0), time.Unix(1e9, 0)
	same, off := said("a", 0, 3*ms, 4*ms), said("a", 0, 40*ms, 41*ms)
	old, other := said("a", 100*ms, 2*ms, 4*ms), said("b", 100*ms, -ms, ms)
	for _, c := range []struct {
		what   string
		stored offsets
		marker string
		now    offsets
		guest  bool
		begins bool // anew, with what the client has seen for two seconds; else it is left as it is
	}{
		{"the first", nil, "m", offsets{same}, false, true},
		{"confirmed", offsets{old}, "m", offsets{same}, false, false},
		{"confirmed by a guest", offsets{old}, "m", offsets{same}, true, false},
		{"confirmed by one, and contradicted by one", offsets{old, said("c", 0, 2*ms, 4*ms)}, "m", offsets{same, said("c", 0, 40*ms, 41*ms)}, false, false},
		{"beside another marker", offsets{old}, "before", offsets{same}, false, true},
		{"beside another marker, says a guest", offsets{old}, "before", offsets{same}, true, true},
		{"of a master that is not reached", offsets{other}, "m", offsets{same}, false, true},
		{"the clock was set", offsets{old}, "m", offsets{off}, false, true},
		{"the clock was set, says a guest", offsets{old}, "m", offsets{off}, true, false},
		{"the clock was set, says a guest, beside another marker", offsets{old}, "before", offsets{off}, true, false},
	} {
		p := &timepiece{bounds: bounds{factor: 0.01, longest: hold, tolerance: drift.Tolerance}, state: familiar}
		p.placed = now.Add(-2 * time.Second)
		if c.guest {
			p.state = guest
		}
		got, news := history{memory: c.marker, since: begin, offsets: c.stored}.with(c.now, "m", p)
		want := history{memory: c.marker, since: begin}
		if c.begins {
			want = history{memory: "m", since: now.Add(-2 * time.Second)}
		}
		if got.memory != want.memory || !got.since.Equal(want.since) || c.begins && !news {
			t.Errorf("%s: of %s since %v (news: %v), want %s since %v", c.what, got.memory, got.since, news, want.memory, want.since)
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
		p.stood = ahead + 5*ms
		moved := p.recall(now, ahead+c.low, ahead+c.high)
		stood := 5 * ms
		if c.moved == 0 {
			stood = max(c.floor, 5*ms-c.ago.Abs()/100)
		}
		if p.stood != ahead+stood || c.moved > 0 && p.was != ahead+c.high {
			t.Errorf("%s: stood at least %v ahead, was at most %v", c.what, p.stood-ahead, p.was-ahead)
		}
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
		{"the clock itself", func(_ *Group, p *timepiece, _ *standing) {
			p.said.offsets = append(p.said.offsets, said("self", 0, 0, 0))
		}, 3, false, true},
		{"by its other name", func(_ *Group, _ *timepiece, m *standing) { m.run, m.memory = "z", "c" }, 3, false, true},
		{"two are called alike", func(g *Group, _ *timepiece, m *standing) { g.members[2].memory, g.members[2].joined = m.run, true }, 2, false, true},
		{"it has moved from another address", func(g *Group, _ *timepiece, m *standing) { g.members[2].memory = m.run }, 3, false, true},
		{"not known", func(_ *Group, _ *timepiece, m *standing) { m.clock.known = false }, 2, false, true},
		{"two are not known", func(g *Group, _ *timepiece, m *standing) { m.clock.known, g.members[1].clock.known = false, false }, 1, false, false},
		{"not read lately", func(_ *Group, _ *timepiece, m *standing) { m.clock.seen = now - HeardWithin - 1 }, 2, false, true},
		{"just read lately", func(_ *Group, _ *timepiece, m *standing) { m.clock.seen = now - HeardWithin }, 3, false, true},
		{"only the answer came lately", func(_ *Group, _ *timepiece, m *standing) { m.clock.at, m.clock.seen = now, now-HeardWithin-1 }, 2, false, true},
		{"in doubt", func(_ *Group, _ *timepiece, m *standing) { m.clock.doubt = now + 1 }, 2, false, true},
		{"out", func(_ *Group, _ *timepiece, m *standing) { m.clock.out = now + 1 }, 2, false, true},
		{"nothing is written of it", func(_ *Group, _ *timepiece, m *standing) { m.run = "z" }, 2, false, true},
		{"only others are written of", func(_ *Group, p *timepiece, _ *standing) { p.said.offsets = offsets{said("x", 0, 0, 0)} }, 0, true, true},
		{"of more others than are left", func(_ *Group, p *timepiece, _ *standing) {
			p.said.offsets = offsets{said("x", 0, 0, 0), said("y", 0, 0, 0)}
		}, 0, true, true},
		{"of others, long ago", func(_ *Group, p *timepiece, _ *standing) { p.said.offsets = offsets{said("x", hold, 0, 0)} }, 0, true, true},
		{"nothing is written", func(_ *Group, p *timepiece, _ *standing) { p.said.offsets = nil }, 0, false, true},
	} {
		g := NewGroup(GroupID{Size: 5})
		p := &timepiece{bounds: bounds{factor: 0.01, longest: hold}, saidAt: said("", 0, 0, 0).at, heard: now - 500*ms}
		for _, run := range []string{"self", "a", "b", "c"} {
			m := &standing{run: run, clock: bounds{factor: 0.01, longest: hold, known: true, at: now - time.Second, seen: now - time.Second, floor: theirs, ceiling: theirs + 2*ms}}
			g.members = append(g.members, m)
			p.said.offsets = append(p.said.offsets, said(run, 0, 3*ms, 4*ms))
		}
		p.said.offsets = p.said.offsets[1:]
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

// S74: a master forgets a lease while its clock is behind, or has ended it by a clock that was ahead,
// and is marked anew while its clock is behind. The clock comes right, so that the marker seems old.
func TestS74_a_marker_that_a_clock_wrote_that_was_behind_proves_no_age(t *testing.T) {
	for _, behind := range []time.Duration{700 * ms, 20 * time.Second, 28 * time.Second, 40 * time.Second, 400 * day} {
		for _, after := range []time.Duration{0, time.Second, 2 * time.Second, 5 * time.Second} {
			for what, forget := range map[string]func(f fleet, old []*watched) (witness []*watched){
				"restarted": func(f fleet, old []*watched) []*watched {
					f[2].offset -= behind
					f[2].forget()
					return old
				},
				"restarted, and all that reach it are new": func(f fleet, _ []*watched) []*watched {
					f[2].offset -= behind
					f[2].forget()
					return f.client(careful, "")
				},
				"restarted, and only one that is new reaches it": func(f fleet, _ []*watched) []*watched {
					f[2].offset -= behind
					f[2].forget()
					return f.client(careful, "")[2:]
				},
				"was ahead": func(f fleet, old []*watched) []*watched {
					f[2].offset += hold + time.Second
					f.pass(700 * ms)
					lookAll(old)
					f.pass(100 * ms)
					f[2].offset -= hold + time.Second + behind
					return old
				},
			} {
				f := apartBy(t, 3, 10*ms)
				old := f.settledClient(t)
				began := f[0].clock.mono // somebody locks at the first and the third for a hold
				witness := forget(f, old)
				f.pass(900 * ms)
				lookAll(witness)
				f.watched(witness, after)
				f.pass(500 * ms)
				f[2].offset += behind // it is right
				newcomer := f.client(careful, "")
				lookAll(newcomer)
				for newcomer[2].Admit(wire.OpAcquire) != nil {
					f.pass(500 * ms)
					lookAll(witness)
					f.pass(500 * ms)
					lookAll(newcomer)
					if f[0].clock.mono-began > 2*hold+10*time.Second {
						t.Fatalf("%s, behind by %v, right after %v: does not vote: %v", what, behind, after, newcomer[2].Admit(wire.OpAcquire))
					}
				}
				if passed := f[0].clock.mono - began; passed < hold {
					t.Errorf("%s, behind by %v, right after %v: votes for a newcomer %v after it has granted what it forgot", what, behind, after, passed)
				}
			}
		}
	}
}

// S74: the age of a marker counts for a newcomer as soon as it is written where the clock is, a look
// after the marker.
func TestS74_a_marker_proves_its_age_where_the_clock_has_stayed(t *testing.T) {
	f := apartBy(t, 3, 10*ms)
	old := f.settledClient(t)
	f[2].forget()
	f.watched(old, hold-5*time.Second)
	newcomer := f.client(careful, "")
	lookAll(newcomer)
	if rest := newcomer[2].Rest(); rest < 5*time.Second || rest > 7*time.Second {
		t.Errorf("five seconds before the end of its quarantine the newcomer waits for %v", rest)
	}
}

// S74: the clock is behind for less than two looks, and a client that has looked just before marks the
// master then. Another client, to which the clock has not moved, does not say that the marker is old.
func TestS74_a_clock_that_was_behind_unseen_makes_no_marker_old(t *testing.T) {
	f := apartBy(t, 3, 10*ms)
	sees, looks := f.settledClient(t), f.settledClient(t)
	f[2].offset -= 5 * time.Second
	f[2].forget()
	f.pass(300 * ms)
	sees[2].look()
	f.pass(300 * ms)
	f[2].offset += 5 * time.Second
	f.pass(300 * ms)
	lookAll(looks)
	f.watched(looks, time.Second)
	newcomer := f.client(careful, "")
	lookAll(newcomer)
	if rest := newcomer[2].Rest(); rest < hold-2*time.Second {
		t.Errorf("a newcomer waits for %v, two seconds after a loss", rest)
	}
}

// S75: for an hour nobody has looked, so that what is written leaves open where a clock is. Somebody comes,
// locks at once, and is cut off; the clock goes ahead. Who comes next notices that.
func TestS75_it_is_written_where_a_clock_is_before_it_votes(t *testing.T) {
	for _, far := range []time.Duration{0, 5 * ms, 15 * ms} {
		for _, step := range []time.Duration{400 * ms, 900 * ms, 2 * time.Second, 20 * time.Second} {
			f := apartBy(t, 3, 10*ms)
			f.settledClient(t)
			f.pass(time.Hour)
			first := f.client(careful, "")
			farAway(first, far)
			for _, i := range []int{0, 2} {
				f.pass(far + ms)
				first[i].look()
			}
			for _, i := range []int{0, 2} {
				if err := first[i].Admit(wire.OpAcquire); err != nil {
					t.Fatalf("%v away: master %d does not vote at once: %v", far, i, err)
				}
				first[i].beforeVote()
			}
			f.pass(100 * ms)
			f[0].offset += step
			f.pass(time.Second)
			second := f.client(careful, "")
			lookAll(second)
			lookAll(second)
			if unseen := 4*far + 30*ms; step > unseen && second[0].Admit(wire.OpAcquire) == nil {
				t.Errorf("%v away: a clock that went ahead by %v votes for a newcomer", far, step)
			}
		}
	}
}

// S75: what is written just now, or cannot be written, is not written before a vote.
func TestS75_nothing_is_written_before_most_votes(t *testing.T) {
	for _, c := range []struct {
		what string
		edit func(*Evidence)
		gone time.Duration
		want bool
	}{
		{"just looked", nil, 0, false},
		{"looked lately", nil, HeardWithin, false},
		{"looked a while ago", nil, HeardWithin + ms, true},
		{"what is written is hidden", func(e *Evidence) { e.Offsets, e.Secret = "", true }, 10 * HeardWithin, false},
		{"the clock is hidden", func(e *Evidence) { e.Time = time.Time{} }, 10 * HeardWithin, false},
	} {
		f := apartBy(t, 3, 10*ms)
		guards := f.client(careful, "")
		for _, g := range guards {
			g.edit = c.edit
		}
		lookAll(guards)
		lookAll(guards)
		f.pass(c.gone)
		for _, g := range guards[1:] {
			if c.want {
				g.Look(g.evidence()) // so that there is something to say
			}
		}
		v := guards[0].BeforeVote()
		if v.Writes() != c.want {
			t.Errorf("%s: writes %+v, want %v", c.what, v.Args(), c.want)
		}
	}
}

// L43: all durable masters restart, and what was written of their clocks names the runs before. Clients
// that know that they are durable vote at once. Without that, or where only one master is written of that
// is not reached, they wait: who wrote it may hold a lock (S63).
func TestL43_durable_masters_that_have_all_restarted_are_believed(t *testing.T) {
	for _, c := range []struct{ durable, restart, votes bool }{{true, true, true}, {false, true, false}, {true, false, false}} {
		f := apartBy(t, 3, 10*ms)
		first, reached := 0, 0
		if c.restart {
			f.settledClient(t)
			for _, w := range f {
				w.run += "again"
			}
		} else {
			old := f.client(careful, "")[:2]
			lookAll(old)
			f.watched(old, 5*time.Second)
			first = 1
		}
		config := careful
		config.Durable = c.durable
		newcomer := f.client(config, "")[first:]
		lookAll(newcomer)
		for i, g := range newcomer {
			if err := g.Admit(wire.OpAcquire); err == nil {
				reached++
			} else if c.votes {
				t.Errorf("%+v: master %d: %v", c, i, err)
			}
		}
		if reached >= 2 && !c.votes {
			t.Errorf("%+v: %d masters vote", c, reached)
		}
	}
}

// S78: durable masters have restarted, all or those that the newcomer reaches. What is written of C's clock
// names them by their memory.
func TestS78_a_clock_that_was_set_is_noticed_after_durable_masters_have_restarted(t *testing.T) {
	config := careful
	config.Durable = true
	for _, c := range []struct {
		restarted int // how many, the last ones
		step      time.Duration
		votes     bool
	}{
		{3, 900 * ms, false}, {3, 200 * ms, false}, {3, -900 * ms, false}, {3, time.Hour, false}, {3, 0, true},
		{2, 900 * ms, false}, {2, 0, true},
	} {
		f := apartBy(t, 3, 10*ms)
		old := f.client(config, "")
		lookAll(old)
		f.watched(old, hold+time.Second)
		for _, w := range f[3-c.restarted:] {
			w.run += "again"
		}
		f[2].offset += c.step
		newcomer := f.client(config, "")
		lookAll(newcomer[1:])
		if newcomer[1].Admit(wire.OpAcquire) != nil && newcomer[2].Admit(wire.OpAcquire) == nil {
			t.Errorf("%+v: the master whose clock is right does not vote", c)
		}
		if votes := newcomer[2].Admit(wire.OpAcquire) == nil; votes != c.votes {
			t.Errorf("%+v: it votes: %v", c, votes)
		}
	}
}

// S78: C lost its data while its clock was behind. When all have restarted, the clock is right, and the
// marker seems old.
func TestS78_a_durable_master_that_lost_its_data_while_its_clock_was_behind_proves_no_age(t *testing.T) {
	config := careful
	config.Durable = true
	f := apartBy(t, 3, 10*ms)
	old := f.client(config, "")
	lookAll(old)
	f.watched(old, hold+time.Second)
	f[2].offset -= 2 * hold
	f[2].forget()
	f.watched(old, 2*time.Second)
	for _, w := range f {
		w.run += "again"
	}
	f[2].offset += 2 * hold
	newcomer := f.client(config, "")
	lookAll(newcomer[1:])
	if newcomer[2].Admit(wire.OpAcquire) == nil {
		t.Error("it votes")
	}
}

// A was flushed: it has another memory, and its clock tells as much of C's as before.
func TestS58_a_master_that_has_lost_its_marker_tells_of_other_clocks(t *testing.T) {
	f := apartBy(t, 3, 10*ms)
	f.settledClient(t)
	f[0].marker = Marker{}
	newcomer := f.client(careful, "")
	newcomer[0].look()
	newcomer[2].look()
	if err := newcomer[2].Admit(wire.OpAcquire); err != nil {
		t.Error(err)
	}
}

// L60: the masters hide their run_id.
func TestL60_a_newcomer_is_told_of_the_clocks_of_masters_that_hide_their_run(t *testing.T) {
	for _, step := range []time.Duration{0, 900 * ms} {
		f := apartBy(t, 3, 10*ms)
		come := func() []*watched {
			guards := f.client(careful, "")
			for _, g := range guards {
				g.edit = func(e *Evidence) { e.RunID = "" }
			}
			lookAll(guards)
			return guards
		}
		for range 2 { // the second one after a loss: the markers are no longer an operator's
			f.watched(come(), hold+time.Second)
			for _, w := range f {
				w.marker.Nonce, w.marker.New = "x"+w.run, false
			}
		}
		f[2].offset += step
		if newcomer := come(); step == 0 {
			mustVote(t, newcomer, -1, "")
		} else {
			mustVote(t, newcomer, 2, "ahead of what other clients have written")
		}
	}
}

// L43: the masters were just declared new, and nothing is written of their clocks yet.
func TestL43_durable_masters_that_restart_as_soon_as_they_are_declared_new_are_believed(t *testing.T) {
	f := apartBy(t, 3, 10*ms)
	config := careful
	config.Durable = true
	for _, w := range f {
		w.run += "again"
		f.client(config, "")[0].look() // the marker is of that run then, and no longer New
	}
	for range 2 {
		newcomer := f.client(config, "")
		lookAll(newcomer)
		mustVote(t, newcomer, -1, "")
		for _, w := range f {
			w.offsets = ""
		}
	}
}

// S63: what is written of a clock names only masters that have restarted, and proves nothing.
func TestS63_a_clock_that_only_masters_tell_of_that_have_restarted_is_not_believed(t *testing.T) {
	f := apartBy(t, 3, 10*ms)
	f.settledClient(t)
	f[0].forget()
	f[1].forget()
	newcomer := f.client(careful, "")
	lookAll(newcomer)
	if err := newcomer[2].Admit(wire.OpAcquire); err == nil || !strings.Contains(err.Error(), "for another") {
		t.Errorf("it votes, or does not say when it will: %v", err)
	}
	rest := newcomer[2].Rest() // for redlock run, which sits it out
	if rest < hold-time.Second || rest > hold+HeardWithin {
		t.Errorf("it votes in %v", rest)
	}
	f.watched(newcomer, rest+time.Second)
	mustVote(t, newcomer, -1, "")
}

// L59: a client has locked when it has read the clocks of two masters. The third is read later, and the
// client ends before it looks again.
func TestL59_a_clock_that_is_read_later_is_listed_too(t *testing.T) {
	f := apartBy(t, 3, 10*ms)
	c := f.client(careful, "")
	for _, g := range c[:2] {
		g.look()
	}
	for _, g := range c[:2] {
		g.beforeVote()
		if g.Unlisted() {
			t.Error("it lists no clock that it has read")
		}
	}
	c[2].look()
	for i, g := range c[:2] {
		if !g.Unlisted() {
			t.Error("it does not list the third clock")
		}
		g.beforeVote()
		if _, ok := parseHistory(f[i].offsets).offsets.of([]string{f[2].run}); !ok || g.Unlisted() {
			t.Errorf("master %d: %s", i, f[i].offsets)
		}
	}
}

// Where a client may not touch what is written of the clock, the marker alone proves its age.
func TestGuard_a_marker_proves_its_age_to_who_may_not_read_the_history(t *testing.T) {
	f := apartBy(t, 3, 10*ms)
	for _, w := range f {
		w.marker = marked(w.run, w.start)
	}
	for _, secret := range []bool{false, true} {
		c := f.client(careful, "")
		for _, g := range c {
			g.edit = func(e *Evidence) { e.Secret = secret }
			g.look()
		}
		if rest := c[1].Rest(); rest > 0 == secret {
			t.Errorf("may not be read %v: rests for %v", secret, rest)
		}
	}
}

// S74: since when a clock has been where it is, by itself. Our own clock has no part in it.
func TestTimepiece_placed(t *testing.T) {
	p := &timepiece{bounds: bounds{factor: 0.01, longest: hold, tolerance: drift.Tolerance, unsettled: unsettled}}
	first := day // its clock is that far ahead of ours
	look := func(at, off time.Duration) time.Time {
		node := time.Unix(0, int64(at+off))
		p.look(reading{node: node, sent: at, came: at + ms}, history{})
		return node
	}
	begin := look(time.Second, first)
	for _, c := range []struct {
		what    string
		at, off time.Duration
		begins  bool
	}{
		{"as before", 2 * time.Second, first, false},
		{"a little ahead", 3 * time.Second, first + 2*ms, false},
		{"set forward", 4 * time.Second, first + time.Second, true},
		{"stays there", 5 * time.Second, first + time.Second, false},
		{"set back", 6 * time.Second, first, true},
		{"stays again", 7 * time.Second, first, false},
		{"after a gap", 9 * time.Second, first, true},
	} {
		node := look(c.at, c.off)
		if c.begins {
			begin = node
		}
		if !p.placed.Equal(begin) {
			t.Errorf("%s: since %v, want %v", c.what, p.placed, begin)
		}
	}
}

// S72: an answer that was under way when our clock stood still is no look since. Else a master whose
// clock is right is marked anew, and everybody does without it.
func TestS72_an_answer_that_was_under_way_in_a_suspend_says_nothing(t *testing.T) {
	f := apartBy(t, 3, 10*ms)
	stood := f.settledClient(t)
	marker := f[0].marker
	late := stood[1].evidence()
	for _, w := range f {
		w.offset += 10 * time.Second // as it seems to who stood still
	}
	f.pass(ms)
	stood[0].look()
	f.pass(ms)
	late.Took = 2 * ms
	stood[1].Look(late)
	f.watched(stood, time.Second)
	if f[0].marker != marker {
		t.Errorf("marked anew: %v, was %v", f[0].marker, marker)
	}
}

// S86: what the masters that were read in time contradict is hidden by the others until two looks have been.
func TestEstimate_hides_a_step_while_some_were_read_late(t *testing.T) {
	const now, place = time.Minute, 200 * ms
	for what, c := range map[string]struct {
		all, sure span
		ago       time.Duration
		hides     bool
	}{
		"those in time contradict":            {span{0, place, true}, span{0, ms, true}, 0, true},
		"after two looks":                     {span{0, place, true}, span{0, ms, true}, 2 * HeardWithin, false},
		"just before":                         {span{0, place, true}, span{0, ms, true}, 2*HeardWithin - 1, true},
		"those in time do not":                {span{0, place, true}, span{place, place, true}, 0, false},
		"all contradict":                      {span{0, ms, true}, span{0, ms, true}, 0, false},
		"all were read late":                  {span{0, place, true}, span{}, 0, true},
		"all, two looks ago":                  {span{0, place, true}, span{}, 2 * HeardWithin, false},
		"all, and hardly":                     {span{place - 4*sharp, place, true}, span{}, 0, false},
		"those in time say that it went back": {span{0, 2 * place, true}, span{2 * place, 2 * place, true}, 0, true},
	} {
		p := &timepiece{bounds: bounds{factor: 0.01, longest: hold, tolerance: drift.Tolerance, at: now, floor: place, ceiling: place}, since: now - c.ago}
		if got := (estimate{span: c.all, sure: c.sure}).hides(p, now); got != c.hides {
			t.Errorf("%s: hides %v", what, got)
		}
	}
}
