package simulate

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// GCPercent is what to set with debug.SetGCPercent for simulations. A schedule makes
// much garbage and keeps little: to collect it as early as by default takes a third of
// the time. Some schedules keep hundreds of megabytes, so set debug.SetMemoryLimit as
// well.
const GCPercent = 1600

// Run runs workload on every client, in as many schedules as cfg says, and checks the
// promises of the lock all the while. A nil workload is the built-in one: lock, read a
// number from the storage, work, write it back, unlock, until the faults of the
// schedule are over. Then everything is healed, and every client must get the lock once
// more.
//
// The workload is ordinary blocking code, but only functions of redlock and of the Process may
// block: no channels, no sync.WaitGroup, no package time. It must end soon after Process.Over
// reports true. It starts again when its client has crashed. Workloads of one schedule run on
// one goroutine, workloads of different schedules on several goroutines in parallel.
//
// A process that does little else should set the garbage collector to GCPercent.
//
// Run returns an error only if cfg or its options are wrong. Broken promises are in the
// Report.
func Run(cfg Config, workload func(p *Process, c *redlock.Client)) (*Report, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if workload != nil {
		plan.SetDefault(&cfg.Lock, plan.PlainLock) // it makes its own
	}
	r := &Report{Config: cfg, Stats: tally.New(), Hash: world.HashOffset, workload: own(workload)}
	began := time.Now() // for the speed in the report; no run reads it
	workers := cfg.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if err := r.campaign(max(1, min(workers, cfg.Seeds))); err != nil {
		return nil, err
	}
	r.Took = time.Since(began)
	return r, nil
}

// Report is what a simulation found.
type Report struct {
	Config plan.Config
	Stats  *tally.Stats
	// Failures has the first schedules with a violation, at most 100, by seed.
	Failures []Failure
	// Hash is over everything that happened in every schedule. Two runs of one
	// Config on any machine of the same architecture have the same.
	Hash uint64
	Took time.Duration // real time
	// Breaks, if set, is the kind of violation that Shrink, Replay and Telling prefer
	// if a schedule has several.
	Breaks tally.ViolationKind

	workload func(*promises.Caller, *redlock.Client)
}

// Failure is a schedule in which a promise was broken.
type Failure struct {
	Seed       uint64            `json:"seed"`
	Violations []tally.Violation `json:"violations"`
}

// maxFailures bounds how many failures a Report keeps.
const maxFailures = 100

// Safe reports whether no promise was broken.
func (r *Report) Safe() bool { return r.Stats.Unsafe == 0 }

// Telling returns the first failure with a violation of the kind Breaks, or else the
// first one. There must be one.
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

// campaign runs the schedules. Workers take batches as they come. Their results are added in the order of the seeds, so that the report does
// not depend on which worker was first.
func (r *Report) campaign(workers int) error {
	batches := (r.Config.Seeds + batch - 1) / batch
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
				slots[i] <- r.some(i*batch, min((i+1)*batch, r.Config.Seeds))
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
			return nil
		}
		if part.err != nil {
			return part.err
		}
		r.add(part)
		if r.Config.Progress != nil {
			r.Config.Progress(r.Stats.Schedules)
		}
		if r.Config.FailFast && !r.Safe() {
			return nil
		}
	}
	return nil
}

// some runs one batch.
func (r *Report) some(from, to int) *part {
	p := &part{Stats: tally.New(), hash: world.HashOffset}
	for i := from; i < to; i++ {
		f := Failure{Seed: r.Config.Seed + uint64(i)}
		res, err := watch(plan.Draw(&r.Config, f.Seed), options{workload: r.workload}, standstill)
		if err != nil {
			p.err = fmt.Errorf("simulate: %w", err)
			return p
		}
		p.Stats.Add(res.stats)
		p.hash = (p.hash ^ res.hash) * world.HashPrime
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

// part is the result of a batch.
type part struct {
	*tally.Stats
	hash     uint64
	failures []Failure
	err      error
}

func (r *Report) add(p *part) {
	r.Stats.Add(p.Stats)
	r.Hash = (r.Hash ^ p.hash) * world.HashPrime
	r.Failures = append(r.Failures, p.failures...)
	if len(r.Failures) > maxFailures {
		r.Failures = r.Failures[:maxFailures]
	}
}
