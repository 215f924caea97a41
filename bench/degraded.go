package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

// The states of the masters in a Degraded trial; the metrics of each are named
// after it, as in "two hung/p50_us".
const (
	Healthy   = "healthy"
	OneHung   = "one hung"
	TwoHung   = "two hung"
	OneKilled = "one killed"
)

// States are all of them, in order.
var States = []string{Healthy, OneHung, TwoHung, OneKilled}

// What Degraded reports for each state.
const (
	P50Ratio  Metric = "p50_ratio" // to healthy in the same trial
	P99Ratio  Metric = "p99_ratio"
	LeftAfter Metric = "goroutines_after" // more than when healthy, once all is well again
	Stuck     Metric = "stuck"            // 1 if a call took longer than stuckAfter
)

// lingering is how long goroutines may stay when all masters are well again. A
// connection for subscriptions is kept for some seconds after its last user.
const lingering = 10 * time.Second

// recovery is how long clients have to connect again to masters that hung, before
// another is killed. Otherwise three of five would be missing.
const recovery = time.Second

// stuckAfter is how long a call may take before it counts as stuck.
const stuckAfter = 3 * time.Second

// Degraded takes and releases free locks while masters hang and die. They hang for
// longer than it takes to give a connection up, so both the hanging connection and
// the attempts to reconnect are measured.
func Degraded(callers int) Workload {
	return Workload{
		Name: DegradedOf(callers), Title: "lock and unlock with masters hung and killed, " + howMany(callers),
		Run: func(ctx context.Context, t *Trial) error { return t.degraded(ctx, callers) },
	}
}

// DegradedOf is the name of Degraded(callers).
func DegradedOf(callers int) string { return "degraded/" + strconv.Itoa(callers) }

func (t *Trial) degraded(ctx context.Context, callers int) error {
	masters, err := t.breakable()
	if err != nil {
		t.Note("%v", err)
		return nil
	}
	before := runtime.NumGoroutine()
	crew, err := t.hire(ctx, callers)
	if err != nil {
		return err
	}
	crew.times(ctx, 10*warmUp)
	runtime.GC()
	calm := steadyGoroutines()
	var d damage
	for _, step := range []struct {
		state  string
		break_ func()
	}{
		{Healthy, func() {}},
		{OneHung, func() { d.stop(masters[0]) }},
		{TwoHung, func() { d.stop(masters[1]) }},
		{OneKilled, func() { d.heal(); time.Sleep(recovery); d.kill(masters[2]) }},
	} {
		step.break_()
		err := t.state(ctx, step.state, crew, &d)
		if err != nil {
			d.heal()
			return errors.Join(err, t.dismiss(crew, before))
		}
	}
	d.heal()
	t.Set(LeftAfter, float64(settleGoroutines(calm, lingering)))
	for _, state := range States[1:] {
		t.compare(state)
	}
	return t.dismiss(crew, before)
}

// state measures pairs in one state of the masters. A call that does not return ends
// the trial, because users of that library would still be waiting.
func (t *Trial) state(ctx context.Context, name string, c *crew, d *damage) error {
	c.reset()
	var over atomic.Bool
	wait := c.start(ctx, &over)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wait()
	}()
	time.Sleep(t.Length)
	over.Store(true)
	select {
	case <-ended:
	case <-time.After(stuckAfter):
		t.Set(named(name, Stuck), 1)
		t.Note("%s: a call had not returned after %v", name, stuckAfter)
		d.heal()
		return unstick(ended)
	}
	t.latencies(name, c.latency())
	t.Set(named(name, PerSecond), float64(c.pairs())/t.Length.Seconds())
	failed, last := c.failures()
	t.Set(named(name, Failures), float64(failed))
	if failed > 0 {
		t.Note("%s: %s failed, the last with: %v", name, operations(failed), last)
	}
	return nil
}

// unstick waits for a call that was stuck, now that the masters are well again:
// it writes into the trial's histogram.
func unstick(ended <-chan struct{}) error {
	select {
	case <-ended:
		return errGivenUp
	case <-time.After(10 * time.Second):
		return fmt.Errorf("%w, and the call %w for 10 s after the masters were well again", errGivenUp, errStuck)
	}
}

// errGivenUp ends a trial early.
var errGivenUp = errors.New("the other states were not tried")

// damage lists the broken masters.
type damage struct {
	stopped []Breakable
	killed  []Breakable
}

func (d *damage) stop(m Breakable) {
	m.Stop()
	d.stopped = append(d.stopped, m)
}

func (d *damage) kill(m Breakable) {
	m.Kill()
	d.killed = append(d.killed, m)
}

func (d *damage) heal() {
	for _, m := range d.stopped {
		m.Continue()
	}
	for _, m := range d.killed {
		m.Restart()
	}
	*d = damage{}
}

func (t *Trial) compare(state string) {
	for _, m := range []struct{ of, ratio Metric }{{P50, P50Ratio}, {P99, P99Ratio}} {
		healthy := t.values[named(Healthy, m.of)]
		now, ok := t.values[named(state, m.of)]
		if ok && healthy > 0 {
			t.Set(named(state, m.ratio), now/healthy)
		}
	}
}
