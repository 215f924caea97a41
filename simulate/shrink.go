package simulate

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/naive"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/view"
)

// Shrink returns a schedule that breaks the same promise with as little as possible.
// Usually none of its faults and actions can be left out; the search is bounded.
func (r *Report) Shrink(f Failure) (*plan.Schedule, error) {
	if err := r.Config.Check(); err != nil {
		return nil, err
	}
	sh := &shrinker{kind: f.Violations[0].Kind, workload: r.workload}
	if want := r.Breaks; want != "" && slices.ContainsFunc(f.Violations, func(v tally.Violation) bool { return v.Kind == want }) {
		sh.kind = want
	}
	return sh.shrink(plan.Draw(&r.Config, f.Seed))
}

// Search runs the schedule with the given number of seeds, each with its own network
// and dice, until it breaks a promise of that kind. It returns the schedule that does,
// shrunk, or nil if none does.
func Search(s *plan.Schedule, kind tally.ViolationKind, seeds int) (*plan.Schedule, error) {
	sh := &shrinker{kind: kind}
	for seed := range uint64(seeds) {
		c := s.Clone()
		c.Seed = seed
		found := sh.breaks(c)
		if sh.events = 0; sh.err != nil {
			return nil, sh.err
		}
		if found {
			return sh.shrink(c)
		}
	}
	return nil, nil
}

// shrinker takes a schedule apart by delta debugging.
type shrinker struct {
	kind     tally.ViolationKind
	workload func(*promises.Caller, *redlock.Client)
	unhealed bool // the promise breaks while there are faults: the recovery need not run
	events   int  // of all runs together
	err      error
}

// maxEvents bounds the work to some twenty seconds. The schedule is then smaller, if not
// minimal. The number of runs would be no measure: a few hundred runs of a schedule of a
// minute with many faults take that long.
const maxEvents = 8_000_000

// throws is how often network and clients get other dice before a schedule counts as
// harmless. With one try, faults and actions would stay only because the run is a
// little different without them.
const throws = 6

// fails reports whether the schedule breaks the promise, and with which dice.
func (sh *shrinker) fails(s *plan.Schedule) (*plan.Schedule, bool) {
	for i := range uint64(throws) {
		c := *s
		c.Dice += i
		if sh.breaks(&c) {
			return &c, true
		}
	}
	return nil, false
}

func (sh *shrinker) breaks(s *plan.Schedule) bool {
	if sh.err != nil || sh.events >= maxEvents {
		return false
	}
	r, err := run(s, options{workload: sh.workload, stopOn: sh.kind, unhealed: sh.unhealed})
	if err != nil {
		sh.err = err
		return false
	}
	sh.events += int(r.stats.Events)
	return slices.ContainsFunc(r.violations, func(v tally.Violation) bool { return v.Kind == sh.kind })
}

func (sh *shrinker) shrink(s *plan.Schedule) (*plan.Schedule, error) {
	s = sh.cut(sh.pin(s))
	// With round numbers, more may turn out to be superfluous.
	s = sh.remove(sh.round(sh.remove(s)))
	return s, sh.err
}

// cut ends the schedule soon after the promise breaks, if it breaks while there are
// faults.
func (sh *shrinker) cut(s *plan.Schedule) *plan.Schedule {
	r, err := run(s, options{workload: sh.workload, stopOn: sh.kind})
	if err != nil {
		sh.err = err
		return s
	}
	for _, v := range r.violations {
		if v.Kind != sh.kind || v.At >= s.Config.Duration {
			continue
		}
		own := *s.Config
		own.Duration = min(own.Duration, v.At.Truncate(time.Second)+2*time.Second)
		c := s.Clone()
		c.Config = &own
		sh.unhealed = true
		if sh.breaks(c) {
			return c
		}
		sh.unhealed = false
	}
	return s
}

// remove takes away faults and actions until none can be spared.
func (sh *shrinker) remove(s *plan.Schedule) *plan.Schedule {
	for before := -1; before != s.Size(); {
		before = s.Size()
		s = sh.actions(sh.faults(s))
	}
	return s
}

// pin fixes every action to the instant at which it began, so that the remaining actions do not
// move when others are taken out.
func (sh *shrinker) pin(s *plan.Schedule) *plan.Schedule {
	tr := view.NewTrace()
	if _, err := run(s, options{workload: sh.workload, trace: tr}); err != nil {
		sh.err = err
		return s
	}
	c := s.Clone()
	for i, list := range c.Actions {
		if i >= len(tr.Began) {
			c.Actions[i] = nil
			continue
		}
		c.Actions[i] = list[:len(tr.Began[i])]
		for j, at := range tr.Began[i] {
			c.Actions[i][j].At, c.Actions[i][j].Think = at, 0
		}
	}
	if c, ok := sh.fails(c); ok {
		return c
	}
	return s
}

func (sh *shrinker) faults(s *plan.Schedule) *plan.Schedule {
	return sh.minimal(s, len(s.Faults), (*plan.Schedule).WithFaults)
}

func (sh *shrinker) actions(s *plan.Schedule) *plan.Schedule {
	return sh.minimal(s, s.Size()-len(s.Faults), func(s *plan.Schedule, keep []int) *plan.Schedule {
		c := s.Clone()
		n := 0
		for i, list := range s.Actions {
			c.Actions[i] = nil
			for _, a := range list {
				if len(keep) > 0 && keep[0] == n {
					c.Actions[i] = append(c.Actions[i], a)
					keep = keep[1:]
				}
				n++
			}
		}
		return c
	})
}

// minimal takes away as many of the n parts of a schedule as it can. only returns a
// schedule with just the given parts.
func (sh *shrinker) minimal(s *plan.Schedule, n int, only func(s *plan.Schedule, keep []int) *plan.Schedule) *plan.Schedule {
	dice := s.Dice
	keep := minimal(n, func(keep []int) bool {
		c := only(s, keep)
		c.Dice = dice
		c, ok := sh.fails(c)
		if ok {
			dice = c.Dice
		}
		return ok
	})
	s = only(s, keep)
	s.Dice = dice
	return s
}

// minimal returns a subset of 0..n-1 that still fails, and of which none can be spared
// (Zeller's ddmin).
func minimal(n int, fails func(keep []int) bool) []int {
	keep := make([]int, n)
	for i := range keep {
		keep[i] = i
	}
	for parts := 2; len(keep) > 0; {
		parts = min(parts, len(keep))
		smaller, ok := without(keep, parts, fails)
		switch {
		case ok:
			keep = smaller
			parts = max(2, parts-1)
		case parts == len(keep):
			return keep
		default:
			parts *= 2
		}
	}
	return keep
}

// without splits keep into parts, and leaves out the first without which it still fails.
func without(keep []int, parts int, fails func([]int) bool) ([]int, bool) {
	for i := range parts {
		from, to := i*len(keep)/parts, (i+1)*len(keep)/parts
		rest := slices.Concat(keep[:from], keep[to:])
		if fails(rest) {
			return rest, true
		}
	}
	return nil, false
}

// round rounds times where the schedule still fails. To a reader, a round number says
// that the exact one does not matter.
func (sh *shrinker) round(s *plan.Schedule) *plan.Schedule {
	for i := range s.Faults {
		for _, field := range []func(*plan.Fault) *time.Duration{
			func(f *plan.Fault) *time.Duration { return &f.At },
			func(f *plan.Fault) *time.Duration { return &f.For },
			func(f *plan.Fault) *time.Duration { return &f.Size },
		} {
			for _, unit := range []time.Duration{time.Second, 100 * time.Millisecond, 10 * time.Millisecond, time.Millisecond} {
				c := s.Clone()
				d := field(&c.Faults[i])
				rounded := d.Round(unit)
				if rounded == *d {
					break
				}
				*d = rounded
				if rounded > 0 && sh.breaks(c) {
					s = c
					break
				}
			}
		}
	}
	return s
}

// Replay runs a schedule once more and records it.
func (r *Report) Replay(s *plan.Schedule) (*view.Timeline, error) {
	tr := view.NewTrace()
	res, err := run(s, options{workload: r.workload, trace: tr})
	if err != nil {
		return nil, err
	}
	tl := view.NewTimeline(s, tr, res.violations, res.hash, r.Breaks)
	if rung := s.Config.Rung; rung != nil {
		tl.Because(rung.Flaw, rung == naive.R0)
	}
	return tl, nil
}

// ReplaySeed runs the schedule of a seed once more and records it.
func (r *Report) ReplaySeed(seed uint64) (*view.Timeline, error) {
	return r.Replay(plan.Draw(&r.Config, seed))
}
