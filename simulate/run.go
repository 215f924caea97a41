package simulate

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// GCPercent is the setting of debug.SetGCPercent that suits simulations: a
// schedule makes much garbage and keeps little, and collecting it as early as
// usual takes a third of the time. Some schedules keep hundreds of megabytes, so
// set a limit (debug.SetMemoryLimit) with it.
const GCPercent = 1600

// Run runs workload on every client, in as many schedules as cfg says, and
// checks the promises of the lock all the while. A nil workload is the built-in
// one: lock, read a number from the storage, work, write it back, unlock, until
// the schedule is over; then everything is healed, and every client must get
// the lock once more.
//
// The workload is ordinary blocking code, in which nothing may block but the
// functions of redlock and of the Process: no channels, no sync.WaitGroup, no
// package time. It must come to its end soon after Process.Over reports true,
// and starts again when its client has crashed. Workloads of
// different schedules run on several goroutines at once, those of one schedule
// on one.
//
// A process that does little else should set the garbage collector to GCPercent.
//
// Run fails only when cfg or its options are wrong; broken promises are in the
// Report.
func Run(cfg Config, workload func(p *Process, c *redlock.Client)) (*Report, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	r := &Report{Config: cfg, Stats: newStats(), Hash: hashOffset, workload: workload}
	began := time.Now() // for the speed in the report; no run reads it
	workers := cfg.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if err := r.campaigns(max(1, min(workers, cfg.Seeds))); err != nil {
		return nil, err
	}
	r.Took = time.Since(began)
	return r, nil
}

// Report is what a simulation found.
type Report struct {
	Config Config
	Stats  *Stats
	// Failures are the first schedules with a violation, by seed.
	Failures []Failure
	// Hash is over everything that happened in every schedule. Two runs of one
	// Config on any machine of the same architecture have the same.
	Hash uint64
	Took time.Duration // real time
	// Breaks, if set, is the promise that Shrink and Replay look for among the
	// violations of a schedule.
	Breaks ViolationKind

	// Coverage is what a guided run has reached; nil: it was none.
	Coverage *Coverage

	workload func(*Process, *redlock.Client)
	guide    *guide // of a guided run
}

// Failure is a schedule in which a promise was broken.
type Failure struct {
	Seed       uint64      `json:"seed"`             // of a guided run: its number after that of the first
	Mutant     bool        `json:"mutant,omitempty"` // Seed alone does not make it
	Violations []Violation `json:"violations"`

	schedule *Schedule // of a guided run
}

// Schedule returns the schedule if it takes more than its seed to have it again, else nil.
func (f Failure) Schedule() *Schedule { return f.schedule }

// maxFailures bounds how many failures a Report keeps.
const maxFailures = 100

// Safe reports whether no promise was broken.
func (r *Report) Safe() bool { return r.Stats.Unsafe == 0 }

// Telling returns the first failure that breaks the promise that is looked for,
// or the first one.
func (r *Report) Telling() Failure {
	for _, f := range r.Failures {
		for _, v := range f.Violations {
			if v.Kind == r.Breaks {
				return f
			}
		}
	}
	return r.Failures[0]
}

// batch is how many schedules a worker takes at a time.
const batch = 16

// campaigns runs all schedules, if they are guided one generation after the other.
func (r *Report) campaigns(workers int) error {
	if !r.Config.Guided {
		_, err := r.campaign(workers, 0, r.Config.Seeds)
		return err
	}
	r.guide = newGuide(&r.Config)
	r.Coverage = &r.guide.Coverage
	for from := 0; from < r.Config.Seeds; from += generation {
		r.guide.begin()
		goOn, err := r.campaign(workers, from, min(from+generation, r.Config.Seeds))
		if !goOn || err != nil {
			return err
		}
	}
	return nil
}

// campaign runs schedules and reports whether more are wanted. Workers take batches as
// they come; the results are added in the order of the seeds, so that the report does
// not depend on who was first.
func (r *Report) campaign(workers, from, to int) (goOn bool, err error) {
	batches := (to - from + batch - 1) / batch
	slots := make([]chan *part, batches)
	for i := range slots {
		slots[i] = make(chan *part, 1)
	}
	next := make(chan int)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				first := from + i*batch
				slots[i] <- r.some(first, min(first+batch, to))
			}
		})
	}
	wg.Go(func() {
		defer close(next)
		for i := range batches {
			select {
			case next <- i:
			case <-stop:
				return
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	for _, slot := range slots {
		var part *part
		select {
		case part = <-slot:
		case <-r.Config.Interrupt:
			return false, nil
		}
		if part.err != nil {
			return false, part.err
		}
		r.add(part)
		if r.Config.Progress != nil {
			r.Config.Progress(r.Stats.Schedules)
		}
		if r.Config.FailFast && !r.Safe() {
			return false, nil
		}
	}
	return true, nil
}

// some runs one batch.
func (r *Report) some(from, to int) *part {
	p := &part{Stats: newStats(), hash: hashOffset}
	for i := from; i < to; i++ {
		f := Failure{Seed: r.Config.Seed + uint64(i)}
		s := r.drawn(&f, i)
		res, err := s.run(options{workload: r.workload, cover: r.guide != nil})
		if err != nil {
			p.err = fmt.Errorf("simulate: %w", err)
			return p
		}
		if r.guide != nil {
			p.visits = append(p.visits, visit{s, f.Mutant, i < len(r.Config.Corpus), res.reached})
		}
		p.Stats.add(res.stats)
		p.hash = (p.hash ^ res.hash) * hashPrime
		if len(res.violations) > 0 && len(p.failures) < maxFailures {
			f.Violations = res.violations
			p.failures = append(p.failures, f)
		}
		if r.Config.FailFast && len(res.violations) > 0 {
			return p
		}
	}
	return p
}

// drawn returns the schedule of a number, and notes what it takes to have it again.
func (r *Report) drawn(f *Failure, number int) *Schedule {
	if r.guide == nil {
		return draw(&r.Config, f.Seed)
	}
	s, isMutant := r.guide.schedule(number)
	if f.Mutant = isMutant; isMutant || number < len(r.Config.Corpus) {
		f.schedule = s
	}
	return s
}

// part is the result of a batch.
type part struct {
	*Stats
	hash     uint64
	failures []Failure
	visits   []visit // of a guided run
	err      error
}

func (r *Report) add(p *part) {
	r.Stats.add(p.Stats)
	r.Hash = (r.Hash ^ p.hash) * hashPrime
	for _, v := range p.visits {
		r.guide.take(v)
	}
	r.Failures = append(r.Failures, p.failures...)
	if len(r.Failures) > maxFailures {
		r.Failures = r.Failures[:maxFailures]
	}
}
