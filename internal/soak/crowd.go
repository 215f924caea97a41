package soak

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/monitor"
	"github.com/quorumlock/quorumlock/redlock"
)

// crowd is a number of callers who want one lock while it is held.
type crowd struct {
	clients, callers int // callers of each client
	idle             time.Duration
}

func (c crowd) all() int { return c.clients * c.callers }

// crowd has all callers wait and be served in turn, twice. The first time opens the
// connections for waiting, so the second is measured.
func (t *trial) crowd(ctx context.Context, c crowd) error {
	t.sample("before")
	clients, err := t.dialAll(ctx, c.clients)
	defer closeAll(clients)
	if err != nil {
		return err
	}
	count, err := monitor.Watch("", t.addrs...)
	if err != nil {
		return err
	}
	defer count.Close()
	if err := t.serve(ctx, clients, c, func() {}); err != nil {
		return err
	}
	once := t.sample("served once")
	alone := t.rate(ctx, c.idle, count, "connected")
	var before int64
	err = t.serve(ctx, clients, c, func() {
		t.sample("waiting")
		waiting := t.rate(ctx, c.idle, count, "waiting")
		t.figure("commands at all masters", "%.0f/s connected, %.0f/s waiting", alone, waiting)
		t.figure("a client is connected", "for %.2f/s at each master", alone/float64(c.clients*masters))
		t.figure("and waits", "for %.2f/s more at all masters together", (waiting-alone)/float64(c.clients))
		before = count.Count()
	})
	if err != nil {
		return err
	}
	t.figure("commands for each", "%.1f", float64(count.Count()-before)/float64(c.all()))
	twice := t.sample("served twice")
	t.flat(once, twice)
	t.noKeys(twice)
	closeAll(clients)
	t.sample("closed")
	return nil
}

// serve has all callers wait for a slow holder, and be served.
func (t *trial) serve(ctx context.Context, clients []*redlock.Client, c crowd, waiting func()) error {
	holder, err := clients[0].Mutex("crowded").Lock(ctx)
	if err != nil {
		return err
	}
	line := startLine(ctx, clients, c)
	wait(ctx, 2*time.Second) // for the last to have asked once
	waiting()
	begin := time.Now()
	if err := holder.Unlock(ctx); err != nil {
		return err
	}
	if err := line.await(ctx, t.progress); err != nil {
		return err
	}
	t.figure("served", "%d in %v, at most %d places out of order", c.all(), time.Since(begin).Round(time.Millisecond), line.disorder())
	if n := line.together.Load(); n > 0 {
		t.found("%d times somebody else was inside", n)
	}
	settle(ctx)
	return nil
}

// settle waits until the client is at rest: until the number of
// goroutines has not changed for a while.
func settle(ctx context.Context) {
	const still, patience = time.Second, 15 * time.Second
	n, since := runtime.NumGoroutine(), time.Now()
	for begin := since; time.Since(since) < still && time.Since(begin) < patience && ctx.Err() == nil; wait(ctx, 50*time.Millisecond) {
		if now := runtime.NumGoroutine(); now != n {
			n, since = now, time.Now()
		}
	}
}

// rate returns how many commands a second come while nothing happens.
func (t *trial) rate(ctx context.Context, length time.Duration, count *monitor.Monitor, what string) float64 {
	from, begin := count.Count(), time.Now()
	for time.Since(begin) < length && ctx.Err() == nil {
		t.progress(float64(time.Since(begin))/float64(length), what)
		wait(ctx, min(length, 250*time.Millisecond))
	}
	return float64(count.Count()-from) / time.Since(begin).Seconds()
}

func (t *trial) dialAll(ctx context.Context, n int) (clients []*redlock.Client, err error) {
	for range n {
		client, err := redlock.Dial(ctx, t.addrs, redlock.WithNodeTimeout(keepTimeout), redlock.WithLogger(slog.New(slog.DiscardHandler)),
			redlock.WithRestartGuard(0))
		if err != nil {
			return clients, err
		}
		clients = append(clients, client)
	}
	return clients, nil
}

func closeAll(clients []*redlock.Client) {
	for _, c := range clients {
		c.Close()
	}
}

// line is the waiters, in the order of their arrival.
type line struct {
	size     int
	all      sync.WaitGroup
	inside   atomic.Int64
	together atomic.Int64 // times that two were inside

	mu     sync.Mutex
	served []int // by the order in which they came
	failed []error
}

// startLine has one caller after the other begin to wait.
func startLine(ctx context.Context, clients []*redlock.Client, c crowd) *line {
	l := &line{size: c.all()}
	for place := range l.size {
		m := clients[place%c.clients].Mutex("crowded")
		l.all.Go(func() { l.waitFor(ctx, m, place) })
		time.Sleep(200 * time.Microsecond) // so that the order in which they came is known
	}
	return l
}

func (l *line) waitFor(ctx context.Context, m *redlock.Mutex, place int) {
	lease, err := m.Lock(ctx)
	if err != nil {
		l.mu.Lock()
		l.failed = append(l.failed, err)
		l.mu.Unlock()
		return
	}
	if l.inside.Add(1) > 1 {
		l.together.Add(1)
	}
	l.mu.Lock()
	l.served = append(l.served, place)
	l.mu.Unlock()
	l.inside.Add(-1)
	lease.Unlock(ctx)
}

// await returns when all were served.
func (l *line) await(ctx context.Context, progress func(float64, string)) error {
	done := make(chan struct{})
	go func() {
		l.all.Wait()
		close(done)
	}()
	for {
		l.mu.Lock()
		share := float64(len(l.served)) / float64(l.size)
		l.mu.Unlock()
		progress(share, "serving")
		select {
		case <-done:
			return errors.Join(l.failed...)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// disorder is how far anybody was served from the place in which they came.
func (l *line) disorder() (most int) {
	for i, place := range l.served {
		most = max(most, max(i-place, place-i))
	}
	return most
}
