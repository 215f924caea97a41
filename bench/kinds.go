package bench

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// KindNames are the kinds of locks that are measured, in the order of the table.
var KindNames = []string{"mutex", "fenced", "re-entrant", "fair", "read", "write", "semaphore", "multi of 3", "latch", "election"}

// manyCallers is how many use locks of a kind at the same time.
const manyCallers = 64

// rate is the part of a trial with many callers.
const rate = "64 callers"

// How many permits a semaphore has, and for how many a latch waits: more than come.
const (
	permitsHere = 5
	latchHere   = 1 << 40
)

// Kinds are workloads, one for each kind of lock: with this library on a number of
// masters, and Redisson's way on one, where it has one.
func Kinds(e Effort, m *Masters) (all []Workload) {
	p := paces[e]
	for _, kind := range KindNames {
		var opts []redlock.Option
		if m.slow {
			opts = append(opts, redlock.WithNodeTimeout(time.Second))
		}
		subjects := []Subject{ofKind(kind, min(m.Len(), 5), opts...)}
		if theirs, ok := Redisson(kind, manyCallers); ok {
			subjects = append(subjects, theirs)
		}
		all = append(all, Kind(kind).With(min(p.rounds, 3), p.pairs, subjects...))
	}
	return all
}

// Kind takes and gives back free locks of one kind: one caller, for the latency, and
// many, each with a lock of its own, for the throughput.
func Kind(kind string) Workload {
	return Workload{Name: "kinds/" + kind, Title: kind, Run: func(ctx context.Context, t *Trial) error { return t.kind(ctx) }}
}

func (t *Trial) kind(ctx context.Context) error {
	defer t.forget()
	if err := t.pairsOf(ctx, 1, ""); err != nil {
		return err
	}
	faults := map[Metric]float64{}
	for _, m := range []Metric{Failures, Leftover, Leaked} {
		faults[m] = t.values[m]
	}
	err := t.pairsOf(ctx, manyCallers, rate)
	for m, n := range faults {
		t.Set(m, n+t.values[m])
	}
	return err
}

// forget deletes what the kinds keep for longer than a lock: counters and counts.
func (t *Trial) forget() {
	if t.Subject.Keys == nil {
		return
	}
	var all []string
	for i := range manyCallers {
		gone, stay := t.Subject.Keys(t.Prefix + strconv.Itoa(i))
		all = slices.Concat(all, gone, stay)
	}
	t.remove(all)
}

// ofKind is this library with locks of a kind.
func ofKind(kind string, nodes int, opts ...redlock.Option) Subject {
	s := Redlock(nodes, opts...)
	open := s.Open
	s.Open = func(ctx context.Context, urls []string) (Client, error) {
		c, err := open(ctx, urls)
		if err != nil {
			return nil, err
		}
		return kindClient{c.(redlockClient), ourKinds[kind]}, nil
	}
	s.Keys = func(name string) (gone, stay []string) { return ourKeys(kind, name) }
	return s
}

// ourKeys are the keys of a lock, as redissonKeys.
func ourKeys(kind, name string) (gone, stay []string) {
	key := func(what string) string { return "redlock:" + what + ":" + name }
	if kind == "multi of 3" {
		return parts(name), nil
	}
	for _, what := range []string{"queue", "wait", "readers", "reading", "intent", "slots", "owners", "held", "permitqueue", "permitwait", "kept"} {
		gone = append(gone, key(what))
	}
	return append(gone, name), []string{key("token"), key("permits"), key("leader"), "redlock:latch::" + name, "redlock:arrivals::" + name, "redlock:digest::" + name}
}

type kindClient struct {
	redlockClient
	kind func(*redlock.Client, string) Mutex
}

func (c kindClient) Mutex(name string) Mutex { return c.kind(c.Client, name) }

// taking is a lock of any kind.
type taking func(context.Context) (*redlock.Lease, error)

func (lock taking) Lock(ctx context.Context) (Lease, error) {
	l, err := lock(ctx)
	if err != nil {
		return nil, err
	}
	return redlockLease{l}, nil
}

// ourKinds makes a lock of each kind for one caller.
var ourKinds = map[string]func(*redlock.Client, string) Mutex{
	"mutex":      func(c *redlock.Client, name string) Mutex { return taking(c.Mutex(name).Lock) },
	"fenced":     func(c *redlock.Client, name string) Mutex { return taking(c.Mutex(name, redlock.Fenced()).Lock) },
	"re-entrant": func(c *redlock.Client, name string) Mutex { return twice{c.Mutex(name, redlock.Reentrant())} },
	"fair":       func(c *redlock.Client, name string) Mutex { return taking(c.Mutex(name, redlock.Fair()).Lock) },
	"read":       func(c *redlock.Client, name string) Mutex { return taking(c.RWMutex(name).RLock) },
	"write":      func(c *redlock.Client, name string) Mutex { return taking(c.RWMutex(name).Lock) },
	"semaphore": func(c *redlock.Client, name string) Mutex {
		s := c.Semaphore(name, permitsHere)
		return taking(func(ctx context.Context) (*redlock.Lease, error) { return s.Acquire(ctx, 1) })
	},
	"multi of 3": func(c *redlock.Client, name string) Mutex { return taking(c.Multi(parts(name)).Lock) },
	"latch":      func(c *redlock.Client, name string) Mutex { return arriving{c.Latch(name, wire.MaxArrivals)} },
	"election": func(c *redlock.Client, name string) Mutex {
		e := c.Election(name)
		return taking(func(ctx context.Context) (*redlock.Lease, error) { return e.Campaign(ctx, "10.0.0.7:8080") })
	},
}

// twice locks once more inside, as who calls itself does.
type twice struct{ m *redlock.Mutex }

func (m twice) Lock(ctx context.Context) (Lease, error) {
	outer, err := m.m.Lock(ctx)
	if err != nil {
		return nil, err
	}
	inner, err := m.m.Lock(outer.Context())
	if err != nil {
		return nil, err
	}
	return twiceHeld{redlockLease{outer}, inner}, nil
}

type twiceHeld struct {
	redlockLease
	inner *redlock.Lease
}

func (l twiceHeld) Unlock(ctx context.Context) error {
	if err := l.inner.Unlock(ctx); err != nil {
		return err
	}
	return l.redlockLease.Unlock(ctx)
}

// arriving reports an arrival, and then counts the arrivals.
type arriving struct{ l *redlock.Latch }

func (a arriving) Lock(ctx context.Context) (Lease, error) { return a, a.l.Arrive(ctx, "shard-17") }
func (a arriving) Unlock(ctx context.Context) error {
	_, err := a.l.Count(ctx)
	return err
}
