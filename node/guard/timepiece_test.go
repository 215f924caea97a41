package guard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
)

const ms = time.Millisecond

// The table of the states: where a clock stands after an event.
func TestTimepiece_state_by_event(t *testing.T) {
	events := map[string]func(p *timepiece) time.Duration{
		"look":           func(p *timepiece) time.Duration { return p.look(readingAt(101*time.Second), history{}) },
		"look after gap": func(p *timepiece) time.Duration { return p.look(readingAt(102*time.Second), history{}) },
		"compared well":  func(p *timepiece) time.Duration { return p.recall(100*time.Second, -5*ms, 5*ms) },
		"compared vaguely": func(p *timepiece) time.Duration {
			p.floor, p.ceiling = -time.Second, time.Second
			return p.recall(100*time.Second, -time.Second, time.Second)
		},
		"found ahead":  func(p *timepiece) time.Duration { return p.recall(100*time.Second, -90*ms, -50*ms) },
		"found behind": func(p *timepiece) time.Duration { return p.recall(100*time.Second, 50*ms, 90*ms) },
		"looks for a hold": func(p *timepiece) (moved time.Duration) {
			for at := time.Second; at <= hold; at += time.Second {
				moved = p.look(readingAt(100*time.Second+at), history{})
			}
			return moved
		},
	}
	for _, c := range []struct {
		event                           string
		moved                           int
		stranger, guest, away, familiar acquaintance
	}{
		{"look", 0, stranger, guest, away, familiar},
		{"look after gap", 0, stranger, stranger, away, away},
		{"compared vaguely", 0, guest, guest, away, familiar},
		{"compared well", 0, familiar, familiar, familiar, familiar},
		{"found ahead", 1, familiar, familiar, familiar, familiar},
		{"found behind", -1, familiar, familiar, familiar, familiar},
		{"looks for a hold", 0, familiar, familiar, familiar, familiar},
	} {
		for before, want := range []acquaintance{c.stranger, c.guest, c.away, c.familiar} {
			p := &timepiece{bounds: bounds{factor: 0.01, longest: hold + HeardWithin, tolerance: drift.Tolerance}}
			p.look(readingAt(100*time.Second), history{})
			p.state = acquaintance(before)
			moved := events[c.event](p)
			if p.state != want || moved > 0 != (c.moved > 0) || moved < 0 != (c.moved < 0) {
				t.Errorf("%s in state %d: state %d, moved %v; want %d, %d", c.event, before, p.state, moved, want, c.moved)
			}
			if out := c.moved > 0; out != (p.out > 0) || (c.moved < 0) != (p.doubt > 0) {
				t.Errorf("%s in state %d: out until %v, in doubt until %v", c.event, before, p.out, p.doubt)
			}
		}
	}
}

// The table of when there is a gap between two looks: by when they were sent, however late their
// answers come and in whichever order these are judged.
func TestTimepiece_gap_between_looks(t *testing.T) {
	type look struct{ sent, came time.Duration }
	for _, c := range []struct {
		what string
		look []look
		want acquaintance
	}{
		{"in time", []look{{0, 0}, {HeardWithin, HeardWithin}}, familiar},
		{"too late", []look{{0, 0}, {HeardWithin + 1, HeardWithin + 1}}, away},
		{"in time, and answered late", []look{{0, 0}, {HeardWithin, 3 * time.Second}}, familiar},
		{"too late, behind a late answer", []look{{0, time.Second}, {HeardWithin + 1, HeardWithin + 1}}, away},
		{"in time, behind one that is judged late", []look{{0, 0}, {time.Second, time.Second}, {500 * ms, time.Second}, {time.Second + HeardWithin, time.Second + HeardWithin}}, familiar},
	} {
		p := &timepiece{bounds: bounds{factor: 0.01, longest: hold + HeardWithin, tolerance: drift.Tolerance}}
		for _, l := range c.look {
			r := reading{sent: 100*time.Second + l.sent, came: 100*time.Second + l.came}
			r.node = time.Unix(0, int64(r.sent))
			if p.look(r, history{}); l == c.look[0] {
				p.state = familiar
			}
		}
		if p.state != c.want {
			t.Errorf("%s: state %d, want %d", c.what, p.state, c.want)
		}
		if p.overlooked(p.seen+HeardWithin) || !p.overlooked(p.seen+HeardWithin+1) {
			t.Errorf("%s: a vote does not count for as long as a look", c.what)
		}
	}
}

// Who is new waits for a hold from the answer to its first look to that to its last one, however
// soon after its own start it looks.
func TestTimepiece_for_how_long_who_is_new_waits(t *testing.T) {
	for _, start := range []time.Duration{0, 100 * time.Second} {
		for _, c := range []struct {
			sent, came time.Duration // of the last look
			want       acquaintance
		}{
			{hold - 1, hold - 1, stranger}, {hold, hold, familiar}, {hold - 500*ms, hold, familiar},
		} {
			p := &timepiece{bounds: bounds{factor: 0.01, longest: hold + HeardWithin, tolerance: drift.Tolerance}}
			look := func(sent, came time.Duration) {
				p.look(reading{node: time.Unix(0, int64(start+sent)), sent: start + sent, came: start + came}, history{})
			}
			look(0, time.Second)
			for at := time.Second; at <= hold; at += time.Second {
				look(at, at)
			}
			look(time.Second+c.sent, time.Second+c.came)
			if p.state != c.want {
				t.Errorf("started %v before, last look %v to %v: state %d, want %d", start, c.sent, c.came, p.state, c.want)
			}
		}
	}
}

// readingAt is of a clock that is right, and answers in two milliseconds.
func readingAt(now time.Duration) reading {
	return reading{node: time.Unix(0, int64(now-ms)), sent: now - 2*ms, came: now}
}

// apart has masters with run_ids of their own, whose clocks are days apart.
func apart(t *testing.T, n int) fleet { return apartBy(t, n, day) }

func apartBy(t *testing.T, n int, d time.Duration) fleet {
	f := newFleet(t, n)
	for i, w := range f {
		w.offset = time.Duration(i) * d
		w.run = fmt.Sprint("run", i)
		w.start = w.time().Add(-day)
		w.marker = NewMaster(w.run, w.start, hold, GroupID{})
	}
	return f
}

// watched has a client look at all its masters, once a second.
func (f fleet) watched(guards []*watched, d time.Duration) {
	for ; d > 0; d -= time.Second {
		f.pass(time.Second)
		lookAll(guards)
	}
}

// settledClient is a client that knows every master, though their clocks differ.
func (f fleet) settledClient(t *testing.T) []*watched {
	guards := f.client(careful, "")
	lookAll(guards)
	f.watched(guards, hold+time.Second)
	mustVote(t, guards, -1, "")
	return guards
}

// mustVote is so for all masters but one.
func mustVote(t *testing.T, guards []*watched, but int, reason string) {
	t.Helper()
	for i, g := range guards {
		err := g.Admit(wire.OpAcquire)
		if i != but && err != nil || i == but && (!errors.Is(err, ErrQuarantined) || !strings.Contains(err.Error(), reason)) {
			t.Errorf("master %d: %v; want all but %d to vote (%s)", i, err, but, reason)
		}
	}
}

// S58: a client that comes when a clock was set, in either direction, learns of it by what
// the others have written, also if they are gone.
func TestS58_a_newcomer_knows_what_the_clocks_did_before_it_came(t *testing.T) {
	for _, n := range []int{3, 5} {
		for _, ago := range []time.Duration{0, time.Second, 20 * time.Second} {
			for _, step := range []time.Duration{0, 900 * ms, 2*ago/100 + 30*ms, time.Hour, -900 * ms, -time.Hour} {
				f := apart(t, n)
				f.settledClient(t)
				f.pass(ago)
				f[1].offset += step
				guards := f.client(careful, "")
				lookAll(guards)
				but, reason := 1, "ahead of what other clients have written"
				if step < 0 {
					reason = "set back by"
				} else if step == 0 {
					but = -1
				}
				mustVote(t, guards, but, reason)
				if set := guards[1].group.members[1].clock; step < 0 && set.fit(f[1].clock.mono) {
					t.Error("the clock that was set tells something of others")
				}
				if t.Failed() {
					t.Fatalf("%d masters, %v after the last look, step %v", n, ago, step)
				}
			}
		}
	}
}

// S86: a newcomer's question to one of the others is late, so that where the others have a clock is vague. The rest
// say that the clock was set: it does not vote before the late one is read in time, or is known to be far away.
func TestS86_a_late_reading_of_another_clock_hides_no_step_from_a_newcomer(t *testing.T) {
	for _, n := range []int{3, 5} {
		for _, late := range []time.Duration{100 * ms, 400 * ms, 1400 * ms} {
			for _, others := range []int{1, n - 1} { // that are late
				f := apart(t, n)
				f.settledClient(t)
				f.pass(time.Second)
				f[0].offset += 90 * ms
				guards := f.client(careful, "")
				for _, g := range guards[1 : 1+others] {
					g.edit = slowRequest(late)
				}
				f.pass(late)
				lookAll(guards)
				if err := guards[0].Admit(wire.OpAcquire); err == nil {
					t.Error("it votes")
				}

				for _, g := range guards {
					g.edit = nil
				}
				lookAll(guards)
				mustVote(t, guards, 0, "ahead of what other clients have written")
				if t.Failed() {
					t.Fatalf("%d masters, %d are %v late", n, others, late)
				}
			}
		}
	}
}

// S86: masters that are far away never tell more, and no newcomer waits for that.
func TestS86_no_newcomer_waits_for_masters_that_are_far_away(t *testing.T) {
	f := apart(t, 3)
	f.settledClient(t)
	guards := f.client(careful, "")
	farAway(guards, 40*ms)
	f.pass(time.Second)
	lookAll(guards)
	mustVote(t, guards, -1, "")
}

// S86: beside one that is near, and contradicts, masters that are far away count after two looks.
func TestS86_a_newcomer_waits_for_masters_that_are_far_away_beside_one_that_contradicts(t *testing.T) {
	f := apart(t, 5)
	f.settledClient(t)
	f.pass(time.Second)
	f[0].offset += 40 * ms
	guards := f.client(careful, "")
	farAway(guards[1:4], 60*ms)
	lookAll(guards)
	if err := guards[4].Admit(wire.OpAcquire); err == nil {
		t.Error("the other near one votes at once")
	}
	f.watched(guards, 4*time.Second)
	if err := guards[4].Admit(wire.OpAcquire); err != nil {
		t.Errorf("it does not vote: %v", err)
	}
}

// S58: that a newcomer finds a clock set back may change what the votes of the others are worth, so
// that they are looked at again (L37).
func TestS58_a_newcomer_that_finds_a_clock_set_back_looks_at_all_votes_again(t *testing.T) {
	f := apart(t, 3)
	f.settledClient(t)
	f[1].offset -= 900 * ms
	guards := f.client(careful, "")
	lookAll(guards)
	raised := 0
	guards[1].group.Warn(func() { raised++ })
	mustVote(t, guards, 1, "set back by")
	if raised != 1 {
		t.Errorf("raised %d times", raised)
	}
}

// S58: who was away is as new, and the votes that it asks for before it has looked again
// do not count: the clock may have been set and set again meanwhile.
func TestS58_a_client_that_was_away_asks_the_others(t *testing.T) {
	f := apart(t, 3)
	guards, others := f.settledClient(t), f.settledClient(t)
	f[1].offset -= 900 * ms
	f.watched(others, 4*time.Second)
	f[1].offset += 900 * ms // as guards have always seen it
	for i, g := range guards {
		if g.TimelyVote(g.w.time(), g.w.clock.mono) {
			t.Errorf("master %d: a vote counts that nobody has looked for", i)
		}
	}
	lookAll(guards)
	mustVote(t, guards, 1, "ahead of what other clients have written")
}

// The clock of one master alone is right, also for a client that was away.
func TestClockGuard_one_master_alone_needs_no_other(t *testing.T) {
	f := newFleet(t, 1)
	guards := f.client(careful, "")
	lookAll(guards)
	f.pass(time.Minute)
	if !guards[0].TimelyVote(f[0].time(), f[0].clock.mono) {
		t.Error("a vote does not count")
	}
	mustVote(t, guards, -1, "")
}

// S58: with two masters a client that was away is as new, too.
func TestS58_of_two_masters_no_vote_counts_that_nobody_has_looked_for(t *testing.T) {
	f := apart(t, 2)
	guards := f.settledClient(t)
	f.pass(HeardWithin)
	for i, counts := range []bool{true, false} {
		f.pass(time.Duration(i))
		for _, g := range guards {
			if g.TimelyVote(g.w.time(), g.w.clock.mono) != counts {
				t.Errorf("%v after the last look: a vote counts %v", HeardWithin+time.Duration(i), !counts)
			}
		}
	}
}

// S58: two masters alone cannot tell which of their clocks was set, and wait for a third.
func TestS58_of_two_clocks_nobody_knows_which_was_set(t *testing.T) {
	f := apart(t, 3)
	f.settledClient(t)
	f[1].offset -= 900 * ms
	guards := f.client(careful, "")
	lookAll(guards[:2])
	for _, g := range guards[:2] {
		if g.Admit(wire.OpAcquire) == nil || !g.Young() {
			t.Errorf("one of two masters that differ may vote, or its extensions count")
		}
	}
	f.pass(10 * ms)
	lookAll(guards)
	mustVote(t, guards, 1, "set back by")
}

// S58: what others have written is compared until our own readings are good.
func TestS58_a_slow_handshake_is_compared_again(t *testing.T) {
	f := apart(t, 3)
	f.settledClient(t)
	f[1].offset += 900 * ms
	guards := f.client(careful, "")
	for _, g := range guards {
		g.edit = slowReply(1500 * ms)
	}
	lookAll(guards)
	mustVote(t, guards, -1, "")
	for _, g := range guards {
		g.edit = nil
	}
	f.pass(50 * ms)
	lookAll(guards)
	mustVote(t, guards, 1, "ahead of")
}

// S67: a newcomer reaches two masters of three, of which one was set forward and the other
// is asked slowly at first. Either may be wrong, so the bounds of the one are not narrowed by the
// other: its next reading would seem to be set back, and the clocks of most masters with it,
// when the first one really is.
func TestS67_one_other_master_narrows_no_bounds(t *testing.T) {
	f := apart(t, 3)
	f.settledClient(t)
	f[0].offset += 70 * ms
	guards := f.client(careful, "")[:2]
	guards[1].edit = slowRequest(200 * ms)
	lookAll(guards)
	guards[1].edit = nil
	lookAll(guards)
	if back := guards[1].time.back; back != 0 {
		t.Errorf("the right clock counts as set back by %v", back)
	}
}

// S63: a clock goes back, or is a little too slow, while the client that sees it reaches only
// some of the masters; then it comes forward again. The older offsets to the other masters do
// not confirm it to a newcomer, whether that reaches a master with a newer offset or none.
func TestS63_old_offsets_do_not_confirm_a_clock_that_moved_since(t *testing.T) {
	for name, moves := range map[string]struct{ step, each time.Duration }{"right": {}, "set back": {step: 100 * ms}, "set back far": {step: time.Hour}, "slow": {each: 13 * ms}} {
		for _, reached := range [][]int{{1, 2, 3, 4}, {1, 3, 4}} {
			f := apartBy(t, 5, ms)
			sees := f.settledClient(t)[:3]
			f[1].offset -= moves.step
			for range 8 {
				f[1].offset -= moves.each
				f.watched(sees, time.Second)
			}
			f[1].offset += 60 * ms
			for range 2 { // the first leaves nothing that confirms the clock to the second
				all := f.client(careful, "")
				var guards []*watched
				for _, i := range reached {
					guards = append(guards, all[i])
				}
				lookAll(guards)
				if err := guards[0].Admit(wire.OpAcquire); !errors.Is(err, ErrQuarantined) {
					t.Errorf("%s, a newcomer that reaches %v: %v", name, reached, err)
				}
			}
		}
	}
}

// S63: how old the offsets are is not asked of the clock in question. It was behind when they
// were written, so they seem to be older than any lease (seed 107891).
func TestS63_a_clock_that_was_set_does_not_say_how_old_offsets_are(t *testing.T) {
	f := apartBy(t, 5, ms)
	sees := f.settledClient(t)[:3]
	f[1].offset -= 4 * time.Second
	f.watched(sees, 8*time.Second)
	f[1].offset += 4*time.Second + 60*ms
	f.pass(hold - 2*time.Second)
	all := f.client(careful, "")
	guards := []*watched{all[1], all[3], all[4]}
	lookAll(guards)
	if err := guards[0].Admit(wire.OpAcquire); !errors.Is(err, ErrQuarantined) {
		t.Error(err)
	}
}

// Newcomers one after another let a clock move no further than one client does.
func TestS58_newcomers_do_not_hand_on_more_than_drift(t *testing.T) {
	f := apart(t, 3)
	f.settledClient(t)
	for n := range 60 {
		f.pass(100 * ms)
		f[1].offset += 4 * ms // 4 %
		guards := f.client(careful, "")
		lookAll(guards)
		if guards[1].Admit(wire.OpAcquire) != nil {
			if n > 10 {
				t.Errorf("noticed after %d", n)
			}
			return
		}
	}
	t.Error("never noticed")
}

// Clocks that are slewed within the drift factor keep no newcomer out.
func TestS58_newcomers_bear_slewing_within_the_drift_factor(t *testing.T) {
	for _, rate := range []float64{0.0005, -0.0005, 0.01, -0.01} {
		f := apart(t, 3)
		f.settledClient(t)
		for n := range 600 {
			f.pass(time.Second)
			f[1].offset += time.Duration(rate * float64(time.Second))
			guards := f.client(careful, "")
			lookAll(guards)
			mustVote(t, guards, -1, "")
			if t.Failed() {
				t.Fatalf("rate %v, newcomer %d", rate, n)
			}
		}
	}
}

// What is stored may be anything.
func TestOffsets_survive_writing_and_refuse_garbage(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var all offsets
		for i := range dice.IntN(5) {
			low := time.Duration(dice.Int64N(1e15)) - 5e14
			all = append(all, offset{fmt.Sprint("run", i), time.UnixMicro(dice.Int64N(2 * farthest)), low, low + time.Duration(dice.Int64N(1e10))})
		}
		got := parseOffsets(all.String())
		if len(got) != len(all) {
			t.Fatalf("%q: read %v", all.String(), got)
		}
		for i, o := range got {
			if w := all[i]; o.name != w.name || !o.at.Equal(w.at) || o.low > w.low || o.high < w.high || w.low-o.low > 3000 || o.high-w.high > 3000 {
				t.Fatalf("%q: read %v, want %v", all.String(), o, w)
			}
		}
	}
	for _, s := range []string{"what", "a:1:2", "a:1:2:3:4", "a:x:2:3", ":1:2:3", "a:1:3:2", "a:9223372036854775807:1:2", "a:-9223372036854775807:1:2", "a:1:-9223372036854775807:2", "a:1:2:3 b", strings.Repeat("a:1:2:3 ", maxOffsets+1)} {
		if got := parseOffsets(s); got != nil {
			t.Errorf("%.20q: read %v", s, got)
		}
	}
	// A client replaces what it cannot read.
	f := apart(t, 3)
	f[1].offsets = "what is this"
	f.settledClient(t)
	if parseHistory(f[1].offsets).offsets == nil {
		t.Errorf("left %q", f[1].offsets)
	}
}

// What is near is read as it was written, up to the farthest, and nothing beyond that.
func TestOffsets_at_their_bounds(t *testing.T) {
	const us = time.Microsecond
	of := func(at, low, high int64) string { return fmt.Sprintf("a:%d:%d:%d", at, low, high) }
	for s, reads := range map[string]bool{
		strings.Repeat("a:1:2:3 ", maxOffsets): true,
		of(2*farthest, 0, 0):                   true, of(2*farthest+1, 0, 0): false,
		of(-2*farthest, 0, 0): true, of(-2*farthest-1, 0, 0): false,
		of(0, -farthest, 0): true, of(0, -farthest-1, 0): false,
		of(0, 0, farthest): true, of(0, 0, farthest+1): false,
	} {
		if got := parseOffsets(s); (got != nil) != reads {
			t.Errorf("%.40q: read %v", s, got)
		}
	}
	for _, c := range []struct {
		name      string
		low, high time.Duration
		writable  bool
	}{
		{"a", 1 - farthest*us, farthest*us - 1, true}, {"a", -farthest * us, 0, false}, {"a", 0, farthest * us, false}, {"a:", 0, 0, false},
	} {
		o := offset{c.name, time.UnixMicro(0), c.low, c.high}
		if o.writable() != c.writable || c.writable && parseOffsets(offsets{o}.String()) == nil {
			t.Errorf("%s, %v to %v: writable %v, written as %s", c.name, c.low, c.high, o.writable(), offsets{o})
		}
	}
}

// Whatever is written and whatever year a master's clock says, the sums are durations.
func TestOffsets_of_any_size_add_up(t *testing.T) {
	parses := func(us int64) bool {
		return parseOffsets(fmt.Sprintf("run1:0:%d:%d", us, us)) != nil
	}
	far := int64(1)
	for parses(2*far) && parses(-2*far) {
		far *= 2 // the farthest that is read
	}
	for _, year := range []int{1970, 2026, 2180} {
		for _, us := range []int64{-far, far} {
			clock := bounds{known: true, factor: 0.01, longest: hold}
			clock.floor = time.Duration(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
			clock.ceiling = clock.floor
			p := &timepiece{bounds: clock, said: history{offsets: parseOffsets(fmt.Sprintf("run1:0:%d:%d", us, us))}, saidAt: time.Unix(0, int64(clock.floor))}
			s := &standing{}
			g := NewGroup(GroupID{Size: 2})
			g.members = []*standing{s, {run: "run1", clock: clock}}
			w := g.estimate(s, p, 0)
			if w.offsets != 1 || (us < 0) != (w.high < clock.ceiling) || (us > 0) != (w.low > clock.floor) {
				t.Errorf("%d, and an offset of %d us: must be %v to %v ahead", year, us, w.low, w.high)
			}
			if moved := p.against(0, w.low, w.high); (us < 0) != (moved > 0) {
				t.Errorf("%d, and an offset of %d us: was set by %v", year, us, moved)
			}
		}
	}
}

// S58: a clock that is too far off to be written, hides nothing of the others.
func TestS58_a_clock_in_another_century_hides_no_step_of_another(t *testing.T) {
	f := apart(t, 5)
	f[4].offset = 150 * 365 * day
	f.settledClient(t)
	f.pass(time.Second)
	f[1].offset += 900 * ms
	guards := f.client(careful, "")
	lookAll(guards)
	if err := guards[1].Admit(wire.OpAcquire); err == nil || !strings.Contains(err.Error(), "ahead of what other clients have written") {
		t.Errorf("the clock that was set: %v", err)
	}
}

// S58 with mixed guards (S5b): a client with a short guard finds a clock ahead. It must not
// write where the clock is now until every lease of any client from before has ended.
func TestS58_a_client_with_a_short_guard_tells_no_newcomer_that_a_step_was_none(t *testing.T) {
	f := apart(t, 3)
	holder := f.settledClient(t) // with TTLs and a guard of 30 s; it is cut off now
	short := careful
	short.Hold = hold / 6
	other := f.client(short, "")
	lookAll(other)
	f.watched(other, time.Second)
	lookAll(holder)
	stepped := f[0].clock.mono
	f[1].offset += 20 * time.Second // the keys of holder end 20 s early
	f.watched(other, short.Hold+3*time.Second)
	if other[1].Admit(wire.OpAcquire) == nil {
		t.Fatal("the client with the short guard does not honour the long one")
	}

	newcomer := f.client(careful, "")
	lookAll(newcomer)

	if err := newcomer[1].Admit(wire.OpAcquire); err == nil {
		t.Errorf("%v after the step a newcomer may vote by that master, while leases of up to %v may be left", f[0].clock.mono-stepped, hold)
	}
}

// S58: a client that met a master once, when it could reach no other, and comes back later
// than a hold, was away: the clock may have been set back and forward meanwhile.
func TestS58_a_stranger_that_was_away_for_a_hold_does_not_know_the_clock(t *testing.T) {
	f := apart(t, 3)
	others := f.settledClient(t)
	guards := f.client(careful, "")
	lookAll(guards[1:2])
	f.watched(others, hold+time.Second)
	f[1].offset -= 900 * ms
	f.watched(others, 5*time.Second)
	f[1].offset += 900 * ms // as guards have seen it long ago

	lookAll(guards)

	if guards[1].Admit(wire.OpAcquire) == nil {
		t.Error("may vote by the clock that was set")
	}
}

// S59, S58: a clock is set back, and those who watch it vote by it again after three seconds.
// From then on newcomers must find written where it is, or they do not see that it comes
// forward.
func TestS59_who_comes_right_after_the_three_seconds_knows_that_a_clock_comes_forward(t *testing.T) {
	f := apart(t, 3)
	holder := f.settledClient(t)
	f.pass(300 * ms)
	f[1].offset -= 900 * ms
	holder[1].look() // a vote has noticed it, between two heartbeats
	f.pass(700 * ms)
	lookAll(holder)
	f.watched(holder, 2*time.Second) // now 2.7 s after it was noticed
	f.pass(350 * ms)
	if err := holder[1].Admit(wire.OpAcquire); err != nil {
		t.Fatalf("%v: not yet", err)
	}
	// Here holder takes A and B, which is 1, and is cut off. Then the clock comes forward.
	f.pass(100 * ms)
	f[1].offset += 900 * ms

	newcomer := f.client(careful, "")
	lookAll(newcomer)
	if err := newcomer[1].Admit(wire.OpAcquire); err == nil {
		t.Error("a newcomer may vote by a clock that has come forward since a grant that counted")
	}
}

// S59: a look may have been sent when a clock went back, as late as without a gap, and be answered
// late, when the clock has come forward. Until then nobody votes by that clock.
func TestS59_a_look_that_is_answered_late_hides_no_clock_that_was_set_back(t *testing.T) {
	f := apart(t, 3)
	holder, other := f.settledClient(t), f.settledClient(t)
	lookAll(holder)
	f[1].offset -= 900 * ms
	holder[1].look()
	f.pass(HeardWithin) // here other sends its next look
	lookAll(holder)
	f.pass(HeardWithin - 2*ms)
	counts := holder[1].Admit(wire.OpAcquire) == nil
	f[1].offset += 900 * ms
	f.pass(ms)
	other[1].edit = slowRequest(HeardWithin - ms)
	if other[1].look(); counts && other[1].Admit(wire.OpAcquire) == nil {
		t.Error("one votes while the clock is back, and another when it has come forward")
	}
}

// S71: a clock goes back by as much as has passed since all of the others were written of, so
// that by this clock the writing is of just now, or still to come. Whoever votes by the clock
// has dropped what was written of those that it does not reach: it would confirm the clock to
// a newcomer when it has come forward again.
func TestS71_what_was_written_before_a_clock_was_set_does_not_confirm_it(t *testing.T) {
	for _, reached := range [][]int{{1, 3, 4}, {1, 2, 3}, {1, 2, 3, 4}} {
		for back := 500 * ms; back <= 8*time.Second; back += 500 * ms {
			for pause := time.Duration(0); pause <= 8*time.Second; pause += 250 * ms {
				f := apartBy(t, 5, ms)
				sees := f.settledClient(t)[:3]
				f[1].offset -= back
				f.pass(pause)
				lookAll(sees)
				for sees[1].Admit(wire.OpAcquire) != nil {
					f.watched(sees, time.Second)
				}
				f[1].offset += back
				f.pass(100 * ms)
				all := f.client(careful, "")
				var guards []*watched
				for _, i := range reached {
					guards = append(guards, all[i])
				}
				lookAll(guards)
				if err := guards[0].Admit(wire.OpAcquire); err == nil {
					t.Errorf("back by %v, noticed after %v: a newcomer that reaches %v may vote", back, pause, reached)
				}
			}
		}
	}
}

// S71: the same, if who votes by the clock is new and has waited for a hold.
func TestS71_who_waited_has_replaced_what_was_written_before_it_came(t *testing.T) {
	for back := hold - 2*time.Second; back <= hold+4*time.Second; back += 250 * ms {
		f := apartBy(t, 3, ms)
		f.settledClient(t)
		f[1].offset -= back
		all := f.client(careful, "")
		waits := all[1:]
		lookAll(waits)
		for waits[0].Admit(wire.OpAcquire) != nil {
			f.watched(waits, time.Second)
		}
		f[1].offset += back
		f.pass(100 * ms)
		newcomer := f.client(careful, "")[:2]
		lookAll(newcomer)
		if err := newcomer[1].Admit(wire.OpAcquire); err == nil {
			t.Errorf("back by %v: a newcomer may vote by a clock that has come forward", back)
		}
	}
}

// S71: with a short hold others may still not have seen that a clock went back, and count it as
// soon as it has come forward. Who is new and waits does so for as long as who saw it.
func TestS71_who_waits_does_so_until_all_have_seen_the_clock(t *testing.T) {
	f := apartBy(t, 3, ms)
	f.settledClient(t)
	f[1].offset -= 200 * ms
	waits := f.client(Config{Hold: 250 * ms, ClockTolerance: drift.Tolerance}, "")[1:]
	for _, w := range f {
		w.marker.Hold = 250 * ms
	}
	for waited := time.Duration(0); waited < unsettled; waited += 250 * ms {
		lookAll(waits)
		if waits[0].Admit(wire.OpAcquire) == nil {
			t.Fatalf("votes after %v", waited)
		}
		f.pass(250 * ms)
	}
	lookAll(waits)
	mustVote(t, waits, -1, "")
}

// S72: a clock goes ahead, which the clients see, and back again. Its keys have ended early, and
// to a client that comes later it is where it always was. The marker tells.
func TestS72_a_clock_that_was_ahead_for_a_while_is_told_of(t *testing.T) {
	for _, ahead := range []time.Duration{100 * ms, 3 * time.Second, time.Hour} {
		f := apart(t, 3)
		old := f.settledClient(t)
		f[1].offset += ahead
		f.watched(old, 3*time.Second)
		f[1].offset -= ahead
		f.watched(old, time.Second)
		newcomer := f.client(careful, "")
		lookAll(newcomer)
		for i, g := range newcomer {
			if err := g.Admit(wire.OpAcquire); errors.Is(err, ErrQuarantined) != (i == 1) {
				t.Errorf("ahead by %v: master %d: %v", ahead, i, err)
			}
		}
		f.watched(newcomer, hold+4*time.Second)
		mustVote(t, newcomer, -1, "")
		mustVote(t, old, -1, "")
	}
}

// S72: the next look is refused before it is told.
func TestS72_a_refused_look_forgets_nothing_that_is_to_be_told(t *testing.T) {
	f := apart(t, 3)
	old := f.settledClient(t)
	f[1].forget() // a client writes its marker, and not an operator
	f.watched(old, hold+10*time.Second)
	mustVote(t, old, -1, "")
	f[1].offset += time.Hour
	f.pass(ms)
	old[1].look()
	old[1].edit = refused
	f.pass(ms)
	old[1].Look(old[1].evidence())
	old[1].edit = nil
	f[1].offset -= time.Hour
	f.watched(old, time.Second)
	newcomer := f.client(careful, "")
	lookAll(newcomer)
	mustVote(t, newcomer, 1, "")
}

// S72: it is told once, or the master would be out for two holds.
func TestS72_a_clock_that_stays_ahead_is_told_of_once(t *testing.T) {
	f := apart(t, 3)
	old := f.settledClient(t)
	f[1].offset += time.Hour
	f.watched(old, 2*time.Second)
	told := f[1].marker
	if age := f[1].time().Sub(told.Since); age > 2*time.Second {
		t.Fatalf("the marker says that the memory is %v old", age)
	}
	f.watched(old, hold+3*time.Second)
	if f[1].marker != told {
		t.Errorf("told again: %v, was %v", f[1].marker, told)
	}
	mustVote(t, old, -1, "")
}

// L58: while a clock that was set sits out, what is written of it is from before. So a newcomer finds
// it set, and so does who was away meanwhile. The marker tells already, and nobody marks it again: else
// the master would be out for one more hold, to everybody.
func TestL58_a_clock_that_others_told_of_is_not_told_of_again(t *testing.T) {
	for back := time.Duration(0); back <= hold+5*time.Second; back += 1250 * ms {
		for _, knows := range []bool{false, true} {
			f := apart(t, 3)
			old := f.settledClient(t)
			other := f.settledClient(t)
			f.watched(old, 2*time.Second)
			f[1].offset += time.Hour
			f.watched(old, 2*time.Second)
			told := f[1].marker
			for passed := time.Duration(0); passed < back; passed += 625 * ms {
				f.pass(625 * ms)
				lookAll(old)
			}
			if !knows {
				other = f.client(careful, "")
			}
			for range (hold + 5*time.Second) / time.Second {
				lookAll(other)
				f.pass(375 * ms)
				lookAll(old)
				f.pass(625 * ms)
			}
			if f[1].marker != told {
				t.Errorf("a client comes back %v after that (it knew the masters: %v), and tells again: %v, was %v", back, knows, f[1].marker, told)
			}
			mustVote(t, old, -1, "")
			mustVote(t, other, -1, "")
		}
	}
}

// L58: who told that a clock was set has gone, and so nothing is written of where it is now. Each
// newcomer finds it set, and waits; none has those before it wait for longer.
func TestL58_newcomers_to_a_clock_that_was_told_of_have_nobody_wait(t *testing.T) {
	f := apart(t, 3)
	old := f.settledClient(t)
	f[1].offset += time.Hour
	f.watched(old, 2*time.Second)
	told := f[1].marker
	f.pass(2 * hold)
	first := f.client(careful, "")
	lookAll(first)
	for range 3 {
		f.watched(first, hold/3-2*time.Second)
		f.watched(append(f.client(careful, ""), first...), 3*time.Second)
	}
	mustVote(t, first, -1, "")
	if f[1].marker != told {
		t.Errorf("told again: %v, was %v", f[1].marker, told)
	}
}

// L58: a clock is set forward again and again. That is told once, until it votes again.
func TestL58_a_clock_that_is_set_again_and_again_is_told_of_once(t *testing.T) {
	f := apart(t, 3)
	all := f.settledClient(t)
	before, told := f[1].marker, map[Marker]bool{}
	for range hold / time.Second {
		f[1].offset += 100 * ms
		f.watched(all, 3*time.Second)
		told[f[1].marker] = true
	}
	if delete(told, before); len(told) != 1 {
		t.Errorf("told %d times: %v", len(told), told)
	}
}

// L71: a client was cut off when a clock was set, and the others have told of it and waited. The first
// answer that it gets again is late: it leaves open where the clock is by that much, which looks like one
// more step to the next answer. It is told of only if it was one.
func TestL71_a_late_answer_to_who_was_away_has_nobody_wait(t *testing.T) {
	for _, again := range []time.Duration{0, 300 * ms} {
		f := apart(t, 3)
		old, away := f.settledClient(t), f.settledClient(t)
		f[1].offset += time.Hour
		f.watched(old, hold+4*time.Second)
		mustVote(t, old, -1, "")
		told := f[1].marker
		away[1].edit = slowReply(500 * ms)
		lookAll(away)
		away[1].edit = nil
		f.pass(10 * ms)
		f[1].offset += again
		f.watched(away, hold)
		if !strings.Contains(away[1].reason, "ahead of ours") {
			t.Fatalf("the late answer left nothing open: %s", away[1].reason)
		}
		if got := f[1].marker != told; got != (again > 0) {
			t.Errorf("set again by %v: told %v", again, got)
		}
	}
}

// clientThatMayStandStill is a client whose own clock goes on only with goes, and while it looks at masters, once
// a second.
func (f fleet) clientThatMayStandStill() (guards []*watched, goes func(d time.Duration), looks func(d time.Duration, masters ...int)) {
	own := *f[0].clock
	guards = f.clientBy(&own, careful, f.group(""))
	goes = func(d time.Duration) {
		own.mono += d
		own.wall = own.wall.Add(d)
		f.pass(d)
	}
	return guards, goes, func(d time.Duration, masters ...int) {
		for ; d > 0; d -= time.Second {
			goes(time.Second)
			for _, i := range masters {
				guards[i].look()
			}
		}
	}
}

// L71: a client stood still, and cannot look at one of the masters until it believes the others again. It
// knows by what is written that it was its own clock, whether there are other clients or not.
func TestL71_who_stood_still_does_not_tell_later(t *testing.T) {
	for _, alone := range []bool{false, true} {
		f := apart(t, 3)
		stood, _, looks := f.clientThatMayStandStill()
		others := f.client(careful, "")
		watched := func(d time.Duration, masters ...int) {
			for ; d > 0; d -= time.Second {
				looks(time.Second, masters...)
				if !alone {
					lookAll(others)
				}
			}
		}
		watched(hold+3*time.Second, 0, 1, 2)
		before := f[1].marker
		f.pass(3 * time.Second) // and own stands still
		watched(hold+3*time.Second, 0, 2)
		watched(3*time.Second, 0, 1, 2)
		if stood[1].Rest() == 0 || stood[0].Rest() > 0 || stood[2].Rest() > 0 {
			t.Errorf("alone %v: it waits for %v, %v, %v", alone, stood[0].Rest(), stood[1].Rest(), stood[2].Rest())
		}
		if f[1].marker != before {
			t.Errorf("alone %v: marked anew: %v, was %v", alone, f[1].marker, before)
		}
	}
}

// L93: a client was cut off from a master when it stood still for a moment, and it may look at that master
// again long after it believes the others again.
func TestL93_who_stood_still_for_a_moment_does_not_tell_of_the_master_it_could_not_look_at(t *testing.T) {
	for _, later := range []time.Duration{time.Second, hold / 2, hold + 3*time.Second} {
		f := apart(t, 3)
		_, _, watched := f.clientThatMayStandStill()
		watched(hold+3*time.Second, 0, 1, 2)
		before := f[1].marker
		f.pass(hold / 60) // and own stands still
		watched(later, 0, 2)
		watched(hold+3*time.Second, 0, 1, 2)
		if f[1].marker != before {
			t.Errorf("%v later: marked anew: %v, was %v", later, f[1].marker, before)
		}
	}
}

// L93: the same, and it stood still while the last look at that master was under way.
func TestL93_who_stood_still_while_it_looked_does_not_tell(t *testing.T) {
	f := apart(t, 3)
	stood, _, watched := f.clientThatMayStandStill()
	watched(hold+3*time.Second, 0, 1, 2)
	before := f[1].marker
	f.pass(hold / 60) // and own stands still
	watched(time.Second, 0, 2)
	stood[1].edit = func(e *Evidence) { e.Took, e.Time = time.Second, e.Time.Add(-time.Second-hold/60) }
	stood[1].Look(stood[1].evidence())
	stood[1].edit = nil
	watched(hold/2, 0, 2)
	watched(hold+3*time.Second, 0, 1, 2)
	if f[1].marker != before {
		t.Errorf("marked anew: %v, was %v", f[1].marker, before)
	}
}

// L93: the same, and the first answer of that master is so late that it hides what the next one shows.
func TestL93_who_stood_still_and_was_answered_late_does_not_tell(t *testing.T) {
	f := apart(t, 3)
	stood, _, watched := f.clientThatMayStandStill()
	watched(hold+3*time.Second, 0, 1, 2)
	before := f[1].marker
	f.pass(hold / 60) // and own stands still
	watched(time.Second, 0, 2)
	watched(time.Second)
	stood[1].edit = slowReply(600 * ms)
	stood[1].look()
	stood[1].edit = nil
	watched(hold/2, 0, 2)
	watched(hold+3*time.Second, 0, 1, 2)
	if f[1].marker != before {
		t.Errorf("marked anew: %v, was %v", f[1].marker, before)
	}
}

// L93: the same, by a new client, in whose first look at that master it stands still.
func TestL93_who_stood_still_in_its_first_look_does_not_tell(t *testing.T) {
	f := apart(t, 3)
	f.settledClient(t)
	stood, goes, watched := f.clientThatMayStandStill()
	watched(time.Second, 0, 2)
	before, sent := f[1].marker, f[1].time()
	goes(300 * ms)
	f.pass(hold / 60) // and own stands still
	stood[0].look()
	stood[2].look()
	goes(100 * ms)
	stood[1].edit = func(e *Evidence) { e.Took, e.Time = 400*ms, sent }
	stood[1].Look(stood[1].evidence())
	stood[1].edit = nil
	watched(hold/2, 0, 2)
	watched(hold+10*time.Second, 0, 1, 2)
	if f[1].marker != before {
		t.Errorf("marked anew: %v, was %v", f[1].marker, before)
	}
}

// L93: looks at all masters were under way when a client stood still: the answers of some came before, and that
// of the last after it.
func TestL93_who_stood_still_among_its_looks_does_not_tell(t *testing.T) {
	f := apart(t, 3)
	stood, goes, watched := f.clientThatMayStandStill()
	watched(hold+3*time.Second, 0, 1, 2)
	before := f[0].marker
	goes(time.Second)
	lookAll(stood[1:])
	goes(ms)
	f.pass(hold / 3) // and own stands still
	stood[0].edit = func(e *Evidence) { e.Took = 2 * ms }
	stood[0].look()
	stood[0].edit = nil
	goes(500 * ms)
	stood[0].look()
	if f[0].marker != before {
		t.Errorf("marked anew: %v, was %v", f[0].marker, before)
	}
}

// L93: a client stood still for a moment, which only the clock of the master shows that is near, or whose answer
// is not late. By later answers of the others it knows that its own clock did.
func TestL93_who_stood_still_does_not_tell_of_the_master_whose_answer_was_in_time(t *testing.T) {
	for _, far := range []time.Duration{0, 40 * ms} {
		for _, still := range []time.Duration{far + 35*ms, far + 50*ms, 200 * ms, 700 * ms} {
			f := apart(t, 3)
			stood, goes, looks := f.clientThatMayStandStill()
			others := f.client(careful, "")
			watched := func(d time.Duration) {
				for ; d > 0; d -= time.Second {
					looks(time.Second, 0, 1, 2)
					lookAll(others)
				}
			}
			farAway(stood[1:], far)
			watched(hold + 3*time.Second)
			before := f[0].marker
			f.pass(still) // and own stands still
			goes(time.Second / 2)
			stood[0].look()
			goes(still + ms)
			for _, g := range stood[1:] {
				g.edit = slowReply(still)
				g.look()
				g.edit = nil
			}
			farAway(stood[1:], far)
			watched(4 * time.Second)
			if f[0].marker != before {
				t.Errorf("far %v, still %v: marked anew; others wait for %v, %v, %v", far, still, others[0].Rest(), others[1].Rest(), others[2].Rest())
			}
		}
	}
}

// S72: the clock of a master that is near was set so little that those that are far away do not show whether our
// own stood still. Leases may have ended early there, so it is told of while the step is news.
func TestS72_a_step_that_far_masters_do_not_show_is_told_of(t *testing.T) {
	for _, hold := range []time.Duration{2 * time.Second, hold} {
		f, c := apart(t, 3), careful
		c.Hold = hold
		for _, w := range f {
			w.marker.Hold = hold
		}
		guards := f.client(c, "")
		farAway(guards[1:], 40*ms)
		f.watched(guards, hold+5*time.Second)
		before := f[0].marker
		f[0].offset += 35 * ms
		for range 10 {
			f.pass(time.Second / 2)
			lookAll(guards)
		}
		if f[0].marker == before {
			t.Errorf("hold %v: it is not told of", hold)
		}
	}
}

// L71: what is written says of a step that was found a second ago whether it is news. A clock may drift by
// 10 ms meanwhile.
func TestL71_what_is_written_says_whether_a_step_is_news(t *testing.T) {
	for what, c := range map[string]struct {
		below   time.Duration // what is written, it was at most
		edit    func(p *timepiece)
		written bool
	}{
		"it was elsewhere":               {10*ms + 1, func(*timepiece) {}, true},
		"it may have got there by drift": {10 * ms, func(*timepiece) {}, false},
		"it went on":                     {time.Hour, func(p *timepiece) { p.floor, p.ceiling = p.floor+time.Second, p.ceiling+time.Second }, false},
		"nothing is written":             {time.Hour, func(p *timepiece) { p.said = history{} }, false},
	} {
		g := apart(t, 3).settledClient(t)[1]
		now, p := g.clock.now(), &g.time
		p.found, p.was = now-time.Second, g.group.estimate(g.standing, p, now).low-c.below
		c.edit(p)
		if got := g.written(now); got != c.written {
			t.Errorf("%s: written %v", what, got)
		}
	}
}

// S72: a newcomer finds by what is written that a clock is ahead, and it comes back before the newcomer has
// looked at the others once more.
func TestS72_a_newcomer_tells_of_a_clock_that_has_come_back(t *testing.T) {
	f := apart(t, 3)
	f.settledClient(t)
	before := f[1].marker
	f[1].offset += 3 * time.Second
	newcomer := f.client(careful, "")
	lookAll(newcomer)
	newcomer[1].Admit(wire.OpAcquire)
	f[1].offset -= 3 * time.Second
	f.watched(newcomer, 2*time.Second)
	if f[1].marker == before {
		t.Error("it is not told")
	}
}

// S72: another clock was set before, and has been right for long.
func TestS72_a_step_is_told_of_though_another_clock_was_set_before(t *testing.T) {
	f := apart(t, 3)
	all := f.settledClient(t)
	f[0].offset += 3 * time.Second
	f.watched(all, hold+4*time.Second)
	mustVote(t, all, -1, "")
	before := f[1].marker
	f[1].offset += 3 * time.Second
	f.watched(all, 2*time.Second)
	if f[1].marker == before {
		t.Error("it is not told")
	}
}

// L72: a clock is set back while a client is cut off, and the others write where it is now. The first
// question that comes through again is late, so that its answer hides how far the clock went back. The
// client does not take the place that it knew from before for one to which the clock was set forward.
func TestL72_a_clock_that_was_set_back_unseen_is_not_ahead(t *testing.T) {
	f := apart(t, 3)
	old, away := f.settledClient(t), f.settledClient(t)
	before := f[1].marker
	f[1].offset -= 400 * ms
	f.watched(old, 5*time.Second)
	away[1].edit = slowRequest(time.Second)
	lookAll(away)
	away[1].Admit(wire.OpAcquire)
	away[1].edit = nil
	f.watched(away, 2*time.Second)
	if rest := away[1].Rest(); rest == 0 || rest > unsettled {
		t.Errorf("it waits for %v", rest)
	}
	if f[1].marker != before {
		t.Errorf("marked anew: %v, was %v", f[1].marker, before)
	}
	f.watched(away, unsettled)
	mustVote(t, away, -1, "")
}

// S72: the others cannot be looked at for a while. It is told as soon as they can, while there may
// be leases from before.
func TestS72_a_clock_that_was_ahead_is_told_of_late(t *testing.T) {
	for wait, told := range map[time.Duration]bool{hold - time.Second: true, hold: false} {
		f := apart(t, 3)
		old := f.settledClient(t)
		before := f[1].marker
		f[1].offset += time.Hour
		old[1].look()
		f.watched(old[1:2], wait)
		lookAll([]*watched{old[0], old[2], old[1]})
		if got := f[1].marker != before; got != told {
			t.Errorf("after %v: told %v", wait, got)
		}
	}
}

// S72: to a client whose own clock is slow it is the masters' clocks that go ahead, one after the
// other. It knows which one is wrong.
func TestS72_who_knows_that_its_own_clock_is_slow_tells_nothing(t *testing.T) {
	for _, slow := range []bool{false, true} {
		f := apart(t, 3)
		old := f.settledClient(t)
		before := f[1].marker
		f[1].offset += time.Second
		old[1].look()
		f.pass(time.Second)
		lookAll([]*watched{old[0], old[2]})
		if slow {
			for _, m := range old[1].group.members {
				m.atLeast = 1.02
			}
		}
		old[1].look()
		if told := f[1].marker != before; told == slow {
			t.Errorf("our own clock is slow %v: told %v", slow, told)
		}
	}
}

// S72: to a client whose own clock stood still all the masters' clocks were set forward. It tells
// nobody.
func TestS72_who_stood_still_tells_nothing(t *testing.T) {
	f := apart(t, 3)
	stood := f.settledClient(t)
	var markers []Marker
	for _, w := range f {
		markers = append(markers, w.marker)
		w.offset += 10 * time.Second
	}
	f.watched(stood, 3*time.Second)
	for i, w := range f {
		if stood[i].Admit(wire.OpAcquire) == nil || w.marker != markers[i] {
			t.Errorf("master %d: votes (%v), or its marker was %v and is %v", i, stood[i].Rest(), markers[i], w.marker)
		}
	}
}

// S70: a master sits out since its clock was set forward, and meanwhile the clock goes back.
// When it votes again, it has been written where the clock is: later the clock comes back to
// where it was before all that.
func TestS70_who_votes_by_a_clock_that_was_set_has_written_where_it_is(t *testing.T) {
	f := apart(t, 3)
	holder := f.settledClient(t)
	f.pass(300 * ms)
	f[1].offset += 900 * ms
	holder[1].look() // a vote has noticed it, between two heartbeats
	f.pass(700 * ms)
	lookAll(holder)
	f[1].offset -= 1800 * ms
	for holder[1].Admit(wire.OpAcquire) != nil {
		f.pass(10 * ms)
		if f[1].clock.mono%time.Second == 0 {
			lookAll(holder)
		}
	}
	// Here holder takes A and B, which is 1, and is cut off. Then the clock comes forward.
	f.pass(100 * ms)
	f[1].offset += 900 * ms

	newcomer := f.client(careful, "")
	lookAll(newcomer)
	if err := newcomer[1].Admit(wire.OpAcquire); err == nil {
		t.Error("a newcomer may vote by a clock that has come forward since a grant that counted")
	}
}

// S58, S48: the others answer the handshake late, and the master whose clock was set does
// not. One vague comparison makes no clock familiar.
func TestS58_what_is_compared_with_vague_readings_is_compared_again(t *testing.T) {
	f := apart(t, 3)
	f.settledClient(t)
	f[1].offset += 900 * ms
	guards := f.client(careful, "")
	guards[0].edit, guards[2].edit = slowRequest(1400*ms), slowRequest(1400*ms)
	lookAll(guards)
	guards[0].edit, guards[2].edit = nil, nil
	for range 3 {
		f.pass(200 * ms)
		lookAll(guards)
	}
	mustVote(t, guards, 1, "ahead of")
}

// S58, S5b: only what others have written shows that a clock was set, since our own
// handshakes were answered late. Holders renew soon, as after any loss; also if a vote
// finds it between two looks.
func TestS58_a_clock_that_was_set_by_what_others_have_written_is_a_loss(t *testing.T) {
	for _, by := range []string{"a look", "a vote"} {
		f := apart(t, 3)
		f.settledClient(t)
		guards := f.client(careful, "")
		for _, g := range guards {
			g.edit = slowRequest(1400 * ms)
		}
		lookAll(guards)
		mustVote(t, guards, -1, "")
		f.pass(50 * ms)
		f[1].offset += 900 * ms // and what was granted since then ends early
		for _, g := range guards {
			g.edit = nil
		}
		for _, i := range []int{1, 0, 2} {
			if v := guards[i].look(); v.Lost || v.Rest > 0 {
				t.Fatalf("master %d is judged before the others were read well: %+v", i, v)
			}
		}

		if by == "a vote" {
			mustVote(t, guards, 1, "ahead of what other clients have written")
		}
		if v := guards[1].look(); !v.Lost || v.Rest == 0 {
			t.Errorf("by %s: rest %v, told as a loss %v", by, v.Rest, v.Lost)
		}
		if v := guards[1].look(); v.Lost {
			t.Errorf("by %s: told twice", by)
		}
	}
}

// Two of five are too few to know a clock by, though they agree.
func TestS58_a_newcomer_waits_for_a_quorum_of_clocks(t *testing.T) {
	f := apart(t, 5)
	f.settledClient(t)
	guards := f.client(careful, "")
	lookAll(guards[:2])
	for i, g := range guards[:2] {
		if g.Admit(wire.OpAcquire) == nil {
			t.Errorf("master %d may vote", i)
		}
	}
	lookAll(guards[2:])
	mustVote(t, guards, -1, "")
}

// A client that may not read what the others write was away, and knows the clocks from before:
// that they are far apart keeps it out no second time.
func TestClockGuard_a_client_that_was_away_bears_clocks_that_are_apart(t *testing.T) {
	f := apart(t, 3)
	guards := f.client(careful, "")
	for _, g := range guards {
		g.edit = func(e *Evidence) { e.Secret = true }
	}
	lookAll(guards)
	f.watched(guards, hold+time.Second)
	mustVote(t, guards, -1, "")
	f.pass(5 * time.Second)
	lookAll(guards)
	mustVote(t, guards, -1, "")
}

// S48: where others have written nothing, a clock is compared with theirs until it was read
// well.
func TestS48_a_clock_that_was_read_badly_is_compared_with_the_others_again(t *testing.T) {
	f := apartBy(t, 3, 0)
	f[1].offset += 2 * time.Second
	guards := f.client(careful, "")
	guards[1].edit = slowReply(1400 * ms)
	lookAll(guards)
	mustVote(t, guards, -1, "")
	guards[1].edit = nil
	f.pass(50 * ms)
	lookAll(guards)
	mustVote(t, guards, 1, "ahead of those of most masters")
}
