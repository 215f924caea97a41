package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// ClientConfig is the first input of a client's process.
type ClientConfig struct {
	ID          string // also what its values begin with
	Journal     string // a file's name
	Masters     []string
	Storage     string
	TTL         time.Duration
	NodeTimeout time.Duration
	Unguarded   bool
	Workloads   []string
	Seed        uint64
}

// Caller is one of several users of a client. A workload's Turn
// gets one.
type Caller struct {
	client   *redlock.Client
	workload *Workload
	storage  *storage
	journal  *Journal
	rand     *rand.Rand
	ttl      time.Duration
	masters  []string
	id       string
	updates  int
}

// ServeClient is a client's process: it reads its ClientConfig from in, uses
// locks until in ends, gives everything up and returns.
func ServeClient(in io.Reader, log io.Writer) error {
	decoder := json.NewDecoder(in)
	var config ClientConfig
	if err := decoder.Decode(&config); err != nil {
		return fmt.Errorf("chaos: the client's configuration: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, in)
		end()
	}()
	return config.serve(ctx, log)
}

func (config *ClientConfig) serve(ctx context.Context, log io.Writer) error {
	journal, err := openJournal(config.Journal)
	if err != nil {
		return err
	}
	var pulse sync.WaitGroup
	closed, end := context.WithCancel(context.Background()) // later than ctx: the last leases end in between
	pulse.Go(func() { watchForStalls(closed, journal) })
	defer pulse.Wait()
	defer end()

	client, err := config.dial(ctx, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		return nil // it was told to end before the masters could be reached
	}
	storage := openStorage(config.Storage)
	defer storage.pool.Close()
	var callers sync.WaitGroup
	for _, name := range config.Workloads {
		w, err := workloadNamed(name)
		if err != nil {
			return err
		}
		for i := range w.Callers {
			c := &Caller{
				client: client, workload: w, storage: storage, journal: journal, ttl: config.TTL, masters: config.Masters,
				id:   fmt.Sprintf("%s.%s%d", config.ID, name, i),
				rand: rand.New(rand.NewPCG(config.Seed, streamOf(fmt.Sprint(config.ID, name, i)))),
			}
			callers.Go(func() { c.run(ctx) })
		}
	}
	callers.Wait()
	journal.write(Event{Kind: Closed, Text: reason(client.Close()), At: now()})
	return nil
}

// dial tries until the masters can be reached or ctx ends.
func (config *ClientConfig) dial(ctx context.Context, log *slog.Logger) (*redlock.Client, error) {
	opts := []redlock.Option{
		redlock.WithTTL(config.TTL), redlock.WithNodeTimeout(config.NodeTimeout),
		redlock.WithClientID(config.ID), redlock.WithLogger(log),
	}
	if config.Unguarded {
		opts = append(opts, redlock.WithRestartGuard(0))
	}
	for {
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		client, err := redlock.Dial(limited, config.Masters, opts...)
		cancel()
		if err == nil || ctx.Err() != nil {
			return client, err
		}
		log.Info("dial", "err", err)
		sleep(ctx, 50*time.Millisecond)
	}
}

// run takes turns until ctx ends.
func (c *Caller) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.workload.Turn(ctx, c); err != nil {
			c.note(Event{At: now(), Kind: Broken, Text: err.Error()})
		}
		sleep(ctx, c.upTo(20*time.Millisecond))
	}
}

// Lock takes a mutex. It returns nil if it did not get it.
func (c *Caller) Lock(ctx context.Context, name string, opts ...redlock.MutexOption) *Hold {
	m := c.client.Mutex(name, opts...)
	return c.take(ctx, name, 1, m.Lock, m.TryLock)
}

// locking is a way to take a lock.
type locking func(context.Context) (*redlock.Lease, error)

// take takes so much of a lock, most of the time by waiting for it. It returns
// nil if it did not get it.
func (c *Caller) take(ctx context.Context, lock string, weight int, wait, try locking) *Hold {
	return c.takeAll(ctx, []string{lock}, weight, wait, try)
}

// takeAll is take for several locks together.
func (c *Caller) takeAll(ctx context.Context, locks []string, weight int, wait, try locking) *Hold {
	since := now()
	limited, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	how, waits := wait, true
	if c.rand.IntN(8) == 0 {
		how, waits = try, false
	}
	lease, err := how(limited)
	if err != nil {
		if waits && limited.Err() == nil {
			c.note(Event{At: now(), Kind: Broken, Text: "it did not wait any longer: " + err.Error()})
		}
		for _, lock := range locks {
			c.failed(lock, since, err)
		}
		return nil
	}
	return c.hold(lease, since, weight, locks...)
}

// failed notes that a lock was not acquired.
func (c *Caller) failed(lock string, since time.Duration, err error) {
	c.note(Event{At: now(), Kind: Failed, Lock: lock, Since: since, Text: reason(err)})
}

// lockOption is now and then that of a lock that is short, or not renewed.
func (c *Caller) lockOption() redlock.LockOption {
	switch c.rand.IntN(6) {
	case 0:
		return redlock.TTL(c.ttl / 2)
	case 1:
		return redlock.NoRenew()
	}
	return redlock.TTL(c.ttl)
}

// patience is short now and then, so that contexts end at any moment of an
// attempt and of a wait.
func (c *Caller) patience() time.Duration {
	if c.rand.IntN(4) == 0 {
		return c.upTo(20 * time.Millisecond)
	}
	return c.ttl + c.upTo(4*c.ttl)
}

func (c *Caller) upTo(d time.Duration) time.Duration {
	return time.Duration(c.rand.Int64N(int64(d)))
}

func (c *Caller) nextID() string {
	c.updates++
	return fmt.Sprintf("%s.%d", c.id, c.updates)
}

func (c *Caller) note(e Event) {
	e.Workload = c.workload.Name
	c.journal.write(e)
}

// Who does not run cannot announce anything. A process is watched by one of
// its own: a pause of this length is written down.
const (
	pulseInterval = 2 * time.Millisecond
	stall         = 8 * time.Millisecond
)

func watchForStalls(ctx context.Context, journal *Journal) {
	for last := now(); ctx.Err() == nil; {
		time.Sleep(pulseInterval)
		at := now()
		if at-last >= stall {
			journal.write(Event{At: last, Kind: Stalled, Until: at})
		}
		last = at
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
