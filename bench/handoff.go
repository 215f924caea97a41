package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/quorumlock/quorumlock/internal/monitor"
)

// Contention is how many clients want one lock, and for how long.
type Contention struct {
	Clients int           // each with connections of its own
	Section time.Duration // held
	Think   time.Duration // not wanted after that
}

// What a hand-off reports beside latencies, which are gaps here: from the
// moment that the holder calls Unlock, while another client waits, until another
// Lock has returned.
const (
	Switches   Metric = "switches"   // share of acquisitions by another client than the one before
	Fairness   Metric = "fairness"   // Jain's index: 1 if all got it equally often, 1/n if only one did
	Violations Metric = "violations" // times that two clients had it
	WaitP99    Metric = "wait_p99_us"
)

// Handoff passes one lock from client to client.
func Handoff(name, title string, c Contention) Workload {
	return Workload{
		Name: name, Title: title,
		Run: func(ctx context.Context, t *Trial) error { return t.handoff(ctx, c) },
	}
}

// counted is the part of a hand-off's length for which servers report every
// command. That is done separately, because it costs them time.
const counted = 3

func (t *Trial) handoff(ctx context.Context, c Contention) error {
	before := runtime.NumGoroutine()
	clients := make([]Client, 0, c.Clients)
	defer func() {
		for _, client := range clients {
			client.Close()
		}
	}()
	for range c.Clients {
		client, err := t.Subject.Open(ctx, t.URLs())
		if err != nil {
			return err
		}
		clients = append(clients, client)
	}

	a := newArena(c)
	a.enter(ctx, clients, t.Prefix+"one")
	time.Sleep(t.Length / 10)
	runtime.GC()
	a.reset()
	pinged := t.pinging()
	from := t.read()
	time.Sleep(t.Length)
	to := t.read()
	pinged()
	seen := a.look()
	t.report(seen, from, to)
	t.countCommands(a)
	if err := a.close(); err != nil {
		return err
	}
	t.Set(Violations, float64(a.violations.Load()))
	for _, client := range clients {
		client.Close()
	}
	clients = nil
	t.Set(Leaked, float64(settleGoroutines(before, time.Second)))
	return t.countKeysLeft([]string{t.Prefix + "one"})
}

func (t *Trial) report(seen sight, from, to meter) {
	t.cost(from, to, seen.acquisitions)
	t.latencies("", seen.gaps)
	t.Set(WaitP99, micros(time.Duration(seen.waits.ValueAtQuantile(99))))
	t.Set(Fairness, jain(seen.shares))
	if seen.acquisitions > 0 {
		t.Set(Switches, float64(seen.switches)/float64(seen.acquisitions))
	}
	t.failed(seen.failed, seen.err)
}

// countCommands has the servers report their commands while the hand-off
// goes on.
func (t *Trial) countCommands(a *arena) {
	if len(t.Masters) == 0 {
		return
	}
	var urls []string // not those through lines
	for _, m := range t.Masters {
		urls = append(urls, m.URL())
	}
	m, err := monitor.Watch("", urls...)
	if err != nil {
		t.Note("commands not counted: %v", err)
		return
	}
	defer m.Close()
	acquisitions, commands := a.acquisitions(), m.Count()
	time.Sleep(t.Length / counted)
	acquisitions, commands = a.acquisitions()-acquisitions, m.Count()-commands
	if acquisitions > 0 {
		t.Set(Commands, float64(commands)/float64(acquisitions))
	}
}

// arena is where clients contend for one lock.
type arena struct {
	contention Contention
	over       atomic.Bool
	all        sync.WaitGroup
	giveUp     context.CancelFunc
	holders    atomic.Int32
	violations atomic.Int32
	waiting    atomic.Int32

	mu       sync.Mutex
	sight    sight
	last     int       // who had it last
	released time.Time // zero: without a waiter
}

// sight is the record of an arena since reset.
type sight struct {
	acquisitions, switches, failed int64
	shares                         []float64
	gaps, waits                    *hdrhistogram.Histogram
	err                            error
}

func newArena(c Contention) *arena {
	a := &arena{contention: c, last: -1}
	a.reset()
	return a
}

func (a *arena) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sight = sight{shares: make([]float64, a.contention.Clients), gaps: newHistogram(), waits: newHistogram()}
}

// look returns a copy of the record.
func (a *arena) look() sight {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sight
	s.shares = append([]float64(nil), s.shares...)
	s.gaps, s.waits = newHistogram(), newHistogram()
	s.gaps.Merge(a.sight.gaps)
	s.waits.Merge(a.sight.waits)
	return s
}

func (a *arena) acquisitions() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sight.acquisitions
}

// enter has the clients contend until close.
func (a *arena) enter(ctx context.Context, clients []Client, name string) {
	ctx, a.giveUp = context.WithCancel(ctx)
	for i, client := range clients {
		mutex := client.Mutex(name)
		a.all.Go(func() {
			for !a.over.Load() && ctx.Err() == nil {
				a.turn(ctx, i, mutex)
				time.Sleep(a.contention.Think)
			}
		})
	}
}

// turn is one acquisition by client i.
func (a *arena) turn(ctx context.Context, i int, mutex Mutex) {
	began := time.Now()
	a.waiting.Add(1)
	lease, err := mutex.Lock(ctx)
	a.waiting.Add(-1)
	if err != nil {
		a.mu.Lock()
		a.sight.failed++
		a.sight.err = err
		a.mu.Unlock()
		return
	}
	a.took(i, began)
	if a.holders.Add(1) != 1 {
		a.violations.Add(1)
	}
	time.Sleep(a.contention.Section)
	a.holders.Add(-1)
	a.releases()
	if err := lease.Unlock(ctx); err != nil {
		a.mu.Lock()
		a.sight.failed++
		a.sight.err = err
		a.mu.Unlock()
	}
}

func (a *arena) took(i int, began time.Time) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.sight
	if !a.released.IsZero() {
		record(s.gaps, now.Sub(a.released))
	}
	record(s.waits, now.Sub(began))
	s.acquisitions++
	s.shares[i]++
	if i != a.last {
		s.switches++
	}
	a.last = i
}

func (a *arena) releases() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.released = time.Time{}
	if a.waiting.Load() > 0 {
		a.released = time.Now()
	}
}

// close lets all waiters have a last turn. A waiter that does not get it within a
// while is cancelled.
func (a *arena) close() error {
	a.over.Store(true)
	ended := make(chan struct{})
	go func() {
		a.all.Wait()
		close(ended)
	}()
	defer a.giveUp()
	select {
	case <-ended:
		return nil
	case <-time.After(5 * time.Second):
	}
	a.giveUp()
	select {
	case <-ended:
		return fmt.Errorf("a waiter %w within 5 s of the last release", errStuck)
	case <-time.After(5 * time.Second):
		return fmt.Errorf("a waiter %w, although its context had ended", errStuck)
	}
}

// jain is Jain's fairness index.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}
