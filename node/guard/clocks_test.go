package guard

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
)

// careful is a guard as redlock.Dial makes it.
var careful = Config{Hold: hold, ClockTolerance: drift.Tolerance}

// slowReply makes a look whose answer is late by d; slowRequest one whose question is.
func slowReply(d time.Duration) func(*Evidence) {
	return func(e *Evidence) { e.Took, e.Time = d, e.Time.Add(-d) }
}

func slowRequest(d time.Duration) func(*Evidence) {
	return func(e *Evidence) { e.Took = d }
}

// S47: what the guard does not notice is less than what every lease gives up.
func TestS47_what_stays_unnoticed_is_given_up_of_every_lease(t *testing.T) {
	for _, ttl := range []time.Duration{100 * time.Millisecond, time.Second, hold} {
		for _, factor := range []float64{drift.DefaultFactor, 0.001, 0.02, 0.1} {
			w := newWorld(t, day)
			config := careful
			config.DriftFactor = factor
			g := w.guard(config)
			g.watch(3 * time.Second)
			w.pass(HeardWithin - time.Millisecond) // nobody has looked for as long as a vote allows
			given := drift.Allowance(ttl, factor) + drift.UnnoticedBy(factor)
			if given >= ttl {
				continue // no lease
			}

			w.pass(ttl - given)
			w.offset += given + time.Millisecond // a key that was set just before ends now

			if g.TimelyVote(w.time(), w.clock.mono) {
				t.Errorf("TTL %v, factor %v: a vote counts while the lease is valid whose key has ended", ttl, factor)
			}
			g.wantRest(hold+HeardWithin, "ahead of ours")
		}
	}
}

// S47: a clock that is slewed forward by more than the drift factor is noticed before a
// lease could be hurt.
func TestS47_slewing_beyond_the_drift_factor_is_noticed(t *testing.T) {
	for _, rate := range []float64{0.0125, 0.05, 0.083} {
		w := newWorld(t, day)
		g := w.guard(careful)
		g.watch(3 * time.Second)
		gained := time.Duration(0)
		for range int(hold / time.Second) {
			w.pass(time.Second)
			w.offset += time.Duration(rate * float64(time.Second))
			gained += time.Duration(rate * float64(time.Second))
			if !g.TimelyVote(w.time(), w.clock.mono) {
				break
			}
		}
		if given := drift.Allowance(hold, drift.DefaultFactor) + drift.Unnoticed; gained >= given {
			t.Errorf("rate %v: not noticed before it had gained %v, and a lease gives up %v", rate, gained, given)
		}
	}
}

// S48: a reading that took long says little, and the next one makes up for it.
func TestS48_a_slow_reading_hides_no_step(t *testing.T) {
	for name, slow := range map[string]func(time.Duration) func(*Evidence){"reply": slowReply, "request": slowRequest} {
		for _, first := range []bool{true, false} {
			w := newWorld(t, day)
			g := w.guard(careful)
			if !first {
				g.watch(3 * time.Second)
				w.pass(time.Second)
			}
			w.pass(1500 * time.Millisecond)
			g.edit = slow(1500 * time.Millisecond)
			g.look()
			g.edit = nil
			g.watch(3 * time.Second)

			w.offset += 30 * time.Millisecond
			if g.Timely(w.time()) {
				t.Errorf("slow %s, first %v: a step by 30 ms is not noticed by a message", name, first)
			}
			g.wantRest(hold+HeardWithin, "ahead of ours")
		}
	}
}

// S48: nor does a slow reading that shows one step hide the next.
func TestS48_a_slow_reading_of_a_step_hides_no_other(t *testing.T) {
	w := newWorld(t, day)
	g := w.guard(careful)
	g.watch(3 * time.Second)
	w.offset += 65 * time.Millisecond
	w.pass(100 * time.Millisecond)
	g.edit = slowRequest(100 * time.Millisecond)
	g.wantRest(hold+HeardWithin, "ahead of ours")
	g.edit = nil
	w.offset += 100 * time.Millisecond
	w.pass(time.Second)
	g.wantRest(hold+HeardWithin, "ahead of ours") // anew
}

// S48: the step comes right after the slow reading, and nobody has looked since.
func TestS48_a_step_by_more_than_the_slow_reading_took_is_noticed_at_once(t *testing.T) {
	for name, slow := range map[string]func(time.Duration) func(*Evidence){"reply": slowReply, "request": slowRequest} {
		w := newWorld(t, day)
		g := w.guard(careful)
		w.pass(1500 * time.Millisecond)
		g.edit = slow(1500 * time.Millisecond)
		g.look()
		g.edit = nil
		w.offset += 3500 * time.Millisecond
		if g.TimelyVote(w.time(), w.clock.mono) {
			t.Errorf("slow %s: a step by 3.5 s is not noticed", name)
		}
	}
}

// R1: delay, load and pauses are never taken for a step.
func TestClockGuard_is_never_misled_by_delay(t *testing.T) {
	w := newWorld(t, day)
	g := w.guard(careful)
	delays := []time.Duration{0, time.Second, 10 * time.Millisecond, 3 * time.Second, 0, 0, 50 * time.Millisecond, 40 * time.Second, 0}
	for i, d := range delays {
		for j, slow := range []func(time.Duration) func(*Evidence){slowReply, slowRequest} {
			w.pass(time.Second + d)
			g.edit = slow(d)
			if v := g.look(); v.Rest > 0 {
				t.Fatalf("delay %d of %v (%d): %s", i, d, j, v.Reason)
			}
			if !g.TimelyVote(w.time(), w.clock.mono) || !g.TimelyVote(w.time().Add(-d), w.clock.mono-d) {
				t.Fatalf("delay %d of %v (%d): a vote does not count", i, d, j)
			}
		}
	}
	g.edit = nil
	w.pass(24 * time.Hour) // nobody looked, and the clocks are as good as NTP keeps them
	w.offset += 24 * time.Hour / 2001
	g.wantRest(0, "")
}

// L37: keys only live longer where a clock is set back or runs slowly.
func TestL37_a_clock_that_falls_behind_keeps_nobody_out(t *testing.T) {
	for name, fall := range map[string]func(w *world, second int){
		"set back once":   func(w *world, second int) { w.offset -= time.Duration(2-min(2, second)) * 1100 * time.Millisecond },
		"set back always": func(w *world, _ int) { w.offset -= 2 * time.Second },
		"slow by 8 %":     func(w *world, _ int) { w.offset -= 80 * time.Millisecond },
	} {
		w := newWorld(t, day)
		g := w.guard(careful)
		g.look()
		for second := range 100 {
			w.pass(time.Second)
			fall(w, second)
			if v := g.look(); v.Rest > 0 || !g.TimelyVote(w.time(), w.clock.mono) {
				t.Fatalf("%s: %v (%s)", name, v.Rest, v.Reason)
			}
		}
	}
}

// Forward again is a step like any other: keys that were set meanwhile end early.
func TestS47_a_clock_that_was_set_back_and_forward_again_is_kept_out(t *testing.T) {
	w := newWorld(t, day)
	g := w.guard(careful)
	g.watch(3 * time.Second)
	w.offset -= 2 * time.Second
	g.watch(time.Second)
	w.offset += 2 * time.Second
	if g.TimelyVote(w.time(), w.clock.mono) {
		t.Error("a vote counts after the clock was set forward again")
	}
	g.wantRest(hold+HeardWithin, "ahead of ours")
}

// L37: the guard goes by the drift factor that the client was given.
func TestL37_the_guard_goes_by_the_clients_drift_factor(t *testing.T) {
	for factor, out := range map[float64]bool{0.1: false, 0: true} {
		w := newWorld(t, day)
		config := careful
		config.DriftFactor = factor
		g := w.guard(config)
		was := false
		for range 60 {
			w.pass(time.Second)
			w.offset += 50 * time.Millisecond
			was = was || g.look().Rest > 0
		}
		if was != out {
			t.Errorf("factor %v, a master that is 5 %% fast: quarantined %v", factor, was)
		}
	}
}

// S48: two masters are compared again when readings are better than at first.
func TestS48_new_client_compares_the_masters_again(t *testing.T) {
	for _, late := range []time.Duration{time.Second, 3 * time.Second} { // without and with a gap behind it
		f := newFleet(t, 3)
		f.pass(time.Minute)
		f[1].offset += 3500 * time.Millisecond
		guards := f.client(careful, "")
		for _, g := range guards {
			g.edit = slowReply(late)
		}
		lookAll(guards)
		for _, g := range guards {
			g.edit = nil
		}
		lookAll(guards)
		for i, g := range guards {
			err := g.Admit(wire.OpAcquire)
			if i != 1 && err != nil || i == 1 && (!errors.Is(err, ErrQuarantined) || !strings.Contains(err.Error(), "ahead of those of most masters")) {
				t.Errorf("late by %v: master %d: %v", late, i, err)
			}
		}
	}
}

// S48: a look may be judged long after its answer has come, on a machine with much to do.
func TestS48_a_look_that_is_judged_late_is_no_step(t *testing.T) {
	w := newWorld(t, day)
	g := w.guard(careful)
	g.watch(3 * time.Second)
	e := g.evidence()
	w.pass(300 * time.Millisecond)
	g.Look(e)
	if !g.TimelyVote(w.time(), w.clock.mono) {
		t.Error("a vote does not count")
	}
	g.wantRest(0, "")
}

// S47: a client whose own clock is slow counts its leases too long. Most masters tell it.
func TestS47_a_client_whose_own_clock_is_slow_acquires_nothing(t *testing.T) {
	for rate, out := range map[float64]bool{0.95: true, 0.985: true, 0.992: false, 1: false, 1.05: false} {
		f := newFleet(t, 3)
		f[1].offset = day
		guards := f.client(careful, "")
		slower := false
		for range 40 {
			// Masters' clocks gain what ours loses; one master has gone.
			f.pass(time.Second)
			for _, w := range f {
				w.offset += time.Duration((1/rate - 1) * float64(time.Second))
			}
			for _, g := range guards[1:] {
				g.edit = slowReply(time.Millisecond)
				v := g.look()
				slower = slower || v.Slow
			}
		}
		err := guards[2].Admit(wire.OpAcquire)
		if slow := err != nil && strings.Contains(err.Error(), "our own clock is slow"); slow != out {
			t.Errorf("rate %v: %v, want slow %v", rate, err, out)
		}
		pace := guards[0].group.Pace()
		if want := max(1, 1/rate); pace > want || pace < want-0.002 || slower != (rate < 0.99) && rate != 0.992 {
			t.Errorf("rate %v: pace %v, want at most %v; told so %v", rate, pace, want, slower)
		}
	}
}

// S47: leases end by the pace, and their timers are set anew when a verdict says that our
// clock is slower than it seemed. A pace that rose without that would end a lease before
// its context.
func TestS47_no_pace_rises_that_is_not_told(t *testing.T) {
	for slow := 0.0; slow <= 0.02; slow += 0.0006 {
		f := newFleet(t, 3)
		guards := f.client(careful, "")
		pace := 1.0
		for second := range 40 {
			f.pass(time.Second)
			for i, w := range f {
				w.offset += time.Duration(slow * float64(1+second/20) * float64(time.Second))
				v, before := guards[i].Look(guards[i].evidence()), pace
				guards[i].write(v)
				if pace = guards[i].group.AtLeast(); pace > before && !v.Slow {
					t.Fatalf("our clock is slow by %.2f %%, second %d: the pace rose from %v to %v, and no verdict said so", 100*slow, second, before, pace)
				}
			}
		}
		if factor := careful.Factor(); pace == 1 && slow > factor/4 {
			t.Errorf("our clock is slow by %.2f %%, and leases do not end earlier", 100*slow)
		}
	}
}

// A suspend in which our monotonic clock stood still is over, and says nothing of its rate.
func TestS47_a_suspend_does_not_make_our_own_clock_slow(t *testing.T) {
	f := newFleet(t, 3)
	guards := f.client(careful, "")
	for second := range 4 {
		f.pass(time.Second)
		if second == 1 {
			for _, w := range f {
				w.offset += 400 * time.Millisecond
			}
		}
		lookAll(guards)
		if pace := guards[0].group.AtLeast(); pace != 1 {
			t.Errorf("second %d: pace %v", second, pace)
		}
	}
	for range int(hold / time.Second) {
		f.pass(time.Second)
		lookAll(guards)
	}
	for i, g := range guards {
		if err := g.Admit(wire.OpAcquire); err != nil {
			t.Errorf("master %d, a hold later: %v", i, err)
		}
	}
}

// One master whose clock runs wild says nothing of ours.
func TestS47_one_fast_master_does_not_make_our_own_clock_slow(t *testing.T) {
	f := newFleet(t, 3)
	guards := f.client(careful, "")
	for range 40 {
		f.pass(time.Second)
		f[0].offset += time.Second
		lookAll(guards)
	}
	if pace := guards[0].group.Pace(); pace != 1 {
		t.Errorf("pace %v", pace)
	}
	for i, g := range guards {
		if err := g.Admit(wire.OpAcquire); i > 0 && err != nil || i == 0 && err == nil {
			t.Errorf("master %d: %v", i, err)
		}
	}
}

// S59: a clock that goes back and comes forward before the others have looked ends keys
// early. The votes of its master do not count until they have.
func TestS59_a_master_whose_clock_was_set_back_gives_no_votes_for_a_moment(t *testing.T) {
	for name, notice := range map[string]func(g *watched) bool{
		"by a look": func(g *watched) bool { g.look(); return true },
		"by a vote": func(g *watched) bool { return !g.TimelyVote(g.w.time(), g.w.clock.mono) && g.look().Rest > 0 },
	} {
		f := newFleet(t, 3)
		guards := f.client(careful, "")
		for range 3 {
			f.pass(time.Second)
			lookAll(guards)
		}
		f[1].offset -= 100 * time.Millisecond
		if !notice(guards[1]) {
			t.Errorf("%s: it was not noticed", name)
		}
		for i, g := range guards {
			err := g.Admit(wire.OpAcquire)
			if out := i == 1; out != (err != nil) || out != g.Young() || out && !strings.Contains(err.Error(), "set back by") {
				t.Errorf("%s, master %d: %v, extensions do not count %v", name, i, err, g.Young())
			}
		}
		for range 3 {
			f.pass(time.Second)
			lookAll(guards)
		}
		if err := guards[1].Admit(wire.OpAcquire); err != nil || guards[1].Young() {
			t.Errorf("%s, three seconds later: %v", name, err)
		}
	}
}

// S59, L37: if most clocks seem to be set back, ours was set or runs fast.
func TestS59_masters_that_were_all_set_back_keep_nobody_out(t *testing.T) {
	f := newFleet(t, 3)
	guards := f.client(careful, "")
	for second := range 100 {
		f.pass(time.Second)
		for _, w := range f {
			w.offset -= 50 * time.Millisecond
		}
		lookAll(guards)
		lookAll(guards)
		for i, g := range guards {
			if err := g.Admit(wire.OpAcquire); err != nil || !g.TimelyVote(g.w.time(), g.w.clock.mono) {
				t.Fatalf("second %d, master %d: %v", second, i, err)
			}
		}
	}
}

// All clocks are set back, and a new client, which still compares them, has looked at all masters
// but one since: that one seems to be ahead of the others.
func TestL37_a_master_that_was_not_looked_at_since_all_were_set_back_is_not_ahead(t *testing.T) {
	f := newFleet(t, 3)
	guards := f.client(careful, "")
	for _, g := range guards {
		g.edit = func(e *Evidence) { e.Offsets = "" } // nothing is written of the clocks yet
	}
	lookAll(guards)
	f.pass(time.Second)
	for _, w := range f {
		w.offset -= 30 * time.Second
	}
	lookAll(guards[:2])
	guards[2].Admit(wire.OpAcquire) // which compares it
	lookAll(guards)
	for i, g := range guards {
		if err := g.Admit(wire.OpAcquire); err != nil {
			t.Errorf("master %d: %v", i, err)
		}
	}
}

// Delay, load and pauses are never taken for a step in either direction, whichever master
// they are of and whichever half of the way they are on.
func TestClockGuard_is_never_misled_by_delay_among_several_masters(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	late := func() time.Duration { return time.Duration(math.Pow(10, 4+6*dice.Float64())) } // 10 us to 10 s
	f := newFleet(t, 5)
	guards := f.client(careful, "")
	for i := range f {
		f[i].offset = time.Duration(i) * 100 * time.Millisecond
	}
	lookAll(guards)
	for n := range 20_000 {
		g := guards[dice.IntN(len(guards))]
		asked := f[0].clock.mono
		f.pass(late())
		read := g.w.time()
		f.pass(late())
		if dice.IntN(2) == 0 {
			if !g.Timely(read) || !g.time.overlooked(asked) && !g.TimelyVote(read, asked) {
				t.Fatalf("vote %d does not count", n)
			}
			continue
		}
		e := g.evidence()
		e.Time, e.Took = read, f[0].clock.mono-asked
		e.Sent = g.Now().Earlier(e.Took)
		f.pass(late())
		if v := g.Look(e); v.Rest > 0 {
			t.Fatalf("look %d: %s", n, v.Reason)
		}
	}
}

// Clocks that are slewed within the drift factor keep nobody out, in ten minutes of looks
// and votes.
func TestClockGuard_bears_slewing_within_the_drift_factor(t *testing.T) {
	for _, rate := range []float64{0.0005, -0.0005, 0.01, -0.01} {
		f := newFleet(t, 3)
		guards := f.client(careful, "")
		lookAll(guards)
		for ms := 0; ms < 600_000; ms += 50 {
			f.pass(50 * time.Millisecond)
			f[1].offset += time.Duration(rate * float64(50*time.Millisecond))
			for i, g := range guards {
				if ms%1000 == 0 && g.look().Rest > 0 || !g.TimelyVote(g.w.time(), g.w.clock.mono) || g.Admit(wire.OpAcquire) != nil {
					t.Fatalf("rate %v, after %d ms: master %d is kept out: %v", rate, ms, i, g.Admit(wire.OpAcquire))
				}
			}
		}
	}
}

// S60: a client that is new does not know yet how its own clock runs. Its leases count by
// the slowest clock that it may have, however late the masters answer, and also if one of
// them is not there.
func TestS60_a_client_that_is_new_counts_by_the_slowest_clock_that_it_may_have(t *testing.T) {
	for _, c := range []struct {
		rate  float64       // of our own clock
		every time.Duration // between looks, by our own clock
		late  time.Duration // by which answers are
		known int           // after so many looks the rate is known; zero: our clock is slow
	}{
		{1, time.Second, time.Millisecond, 2},
		{1, 50 * time.Millisecond, 5 * time.Millisecond, 3},
		{0.992, 10 * time.Millisecond, time.Millisecond, 0},
		{0.95, 50 * time.Millisecond, 0, 0},
		{0.94, 100 * time.Millisecond, 2 * time.Millisecond, 0},
		{0.1, 10 * time.Millisecond, time.Millisecond, 0},
	} {
		f := newFleet(t, 3)
		guards := f.client(careful, "")
		known := 0
		for i := range 6 {
			f.pass(c.every)
			for _, w := range f {
				w.offset += time.Duration((1/c.rate - 1) * float64(c.every))
			}
			for _, g := range guards[1:] {
				late := c.late * time.Duration(i%2)
				g.edit = func(e *Evidence) { e.Took, e.Sent = late, e.Sent.Earlier(late) }
				g.look()
			}
			pace := guards[0].group.Pace()
			if pace*1.01 < 1/c.rate-1e-6 {
				t.Errorf("%+v: pace %v after %d looks", c, pace, i+1)
			}
			if pace == 1 && known == 0 {
				known = i + 1
			}
		}
		if known != c.known {
			t.Errorf("%+v: known after %d looks", c, known)
		}
	}
}

// S60: a client that cannot read the clocks of most masters, or does not watch them, has
// leases all the same.
func TestS60_masters_that_do_not_tell_their_clock_shorten_no_lease(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		tell   int // so many masters tell their clock
	}{"one of three": {careful, 1}, "none": {careful, 0}, "no restart guard": {Config{ClockTolerance: drift.Tolerance}, 3}} {
		f := newFleet(t, 3)
		guards := f.client(c.config, "")
		for _, g := range guards[c.tell:] {
			g.edit = func(e *Evidence) { e.Time = time.Time{} }
		}
		for look := range 2 {
			lookAll(guards)
			f.pass(time.Second)
			if pace := guards[0].group.Pace(); pace != 1 && (look > 0 || c.tell != 1) {
				t.Errorf("%s: pace %v", name, pace)
			}
		}
	}
}

// S60: what is known of our own clock stays known. A master that is read later, and slowly, makes
// no lease shorter: its holder would not be told.
func TestS60_a_master_that_is_read_later_shortens_no_lease(t *testing.T) {
	f := newFleet(t, 3)
	guards := f.client(careful, "")
	for range 2 {
		guards[0].look()
		f.pass(time.Second)
	}
	if pace := guards[0].group.Pace(); pace != 1 {
		t.Fatalf("pace %v", pace)
	}
	for _, g := range guards[1:] {
		for range 2 {
			g.look()
			f.pass(100 * ms)
			g.edit = slowRequest(50 * ms)
		}
	}
	if pace := guards[0].group.Pace(); pace != 1 {
		t.Errorf("pace %v by masters that were read slowly", pace)
	}
}
