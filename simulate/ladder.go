package simulate

import (
	"context"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// rung is one step of the ladder of naive locks that people write again and again.
// Each mends the defect of the one before and has another. They run on the same
// masters and network as the library, to show that the simulator finds what is
// wrong with each.
type rung struct {
	name   string
	about  string
	flaw   string // why it fails
	nested bool   // its own client may lock again while it holds the lock
	lock   func(p *Process, ctx context.Context, name string) (holding, error)
}

// The ladder.
var (
	rungV1 = &rung{name: "V1", about: "SETNX, DEL", flaw: "The lock has no end of its own: a holder that crashes keeps it for ever.", lock: lockV1}
	rungV2 = &rung{name: "V2", about: "SETNX, then EXPIRE", flaw: "A holder that crashes between the two commands keeps the lock for ever.", lock: lockV2}
	rungV3 = &rung{name: "V3", about: "SET NX EX, DEL", flaw: "DEL deletes whatever is there: also the lock of the next holder, when the work took longer than the TTL.", lock: lockV3}
	rungV4 = &rung{name: "V4", about: "SET NX EX with a unique value, GET, then DEL", flaw: "Between GET and DEL the key can expire and become somebody else's.", lock: lockV4}
	// rungV4b deletes by a script that compares.
	rungV4b = &rung{name: "V4b", about: "SET NX EX with a unique value, compare-and-delete", flaw: "Nobody tells a holder that its TTL is over while it works.", lock: lockV4b}
	rungV5  = &rung{name: "V5", about: "as V4b, with a watchdog that renews at a third of the TTL", flaw: "A holder that locks again waits for itself.", lock: lockV5, nested: true}
	rungV6  = &rung{name: "V6", about: "as V5, and re-entrant by a hold count in a hash", flaw: "One master, and a replica that lags behind when it takes over: the lock is forgotten.", lock: lockV6, nested: true}
	// rungR0 is Redlock as it is commonly written.
	rungR0 = &rung{name: "R0", about: "Redlock one master after the other, value reused, extend re-creates", flaw: "It takes the word of a master that has forgotten its locks, trusts clocks that stop with the machine, uses one value again and again, and re-creates what it finds gone.", lock: lockR0}
)

// pollInterval is how often the naive locks try.
const pollInterval = 100 * time.Millisecond

// tied is a naive lock that is held. Its holder believes so until it gives it back,
// whatever happens; only R0 looks at the time.
type tied struct {
	p      *Process
	since  time.Duration
	until  time.Duration // monotonic; zero: no end
	done   chan struct{}
	ended  bool
	extend func() error
	unlock func()
}

func newTied(p *Process) *tied {
	return &tied{p: p, since: p.Clock().Monotonic(), done: make(chan struct{})}
}

func (h *tied) Valid() bool { return !h.Until().IsZero() }

func (h *tied) Until() time.Time {
	now := h.p.Clock().Monotonic()
	switch {
	case h.ended || h.until != 0 && now >= h.until:
		return time.Time{}
	case h.until == 0:
		return h.p.Clock().Now().Add(time.Hour)
	}
	return h.p.Clock().Now().Add(h.until - now)
}

func (h *tied) Done() <-chan struct{} { return h.done }
func (h *tied) Token() uint64         { return 0 }

func (h *tied) Extend(context.Context, time.Duration) error {
	if h.extend == nil {
		return nil
	}
	return h.extend()
}

func (h *tied) Unlock(context.Context) error {
	if !h.ended {
		h.ended = true
		close(h.done)
		h.unlock()
	}
	return nil
}

// ask puts a command to a master and waits for the answer, as naive clients do.
func (p *Process) ask(i int, name string, keys []string, args ...string) (any, error) {
	return p.send(i, &wire.Command{Op: wire.OpAcquire, Name: name, Keys: keys, Args: args})
}

func (p *Process) send(i int, cmd *wire.Command) (any, error) {
	ready := make(chan struct{})
	var got wire.Reply
	p.client.links[i].Do(cmd, func(r wire.Reply) { got = r; close(ready) })
	p.Wait(context.Background(), ready)
	if got.Err != nil {
		return nil, got.Err
	}
	return got.Value, nil
}

// untilTrue calls try until it succeeds or ctx ends.
func untilTrue(p *Process, ctx context.Context, try func() bool) error {
	for !try() {
		if err := p.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
	return nil
}

// surely sends a command again and again until it is answered.
func (p *Process) surely(i int, cmd *wire.Command) any {
	for {
		v, err := p.send(i, cmd)
		if err == nil {
			return v
		}
		p.Sleep(context.Background(), pollInterval)
	}
}

func del(key string) *wire.Command {
	return &wire.Command{Op: wire.OpAcquire, Name: "DEL", Keys: []string{key}}
}

func (p *Process) ttl() time.Duration { return p.trial.config.TTL }

func lockV1(p *Process, ctx context.Context, key string) (holding, error) {
	err := untilTrue(p, ctx, func() bool {
		v, _ := p.ask(0, "SETNX", []string{key}, "1")
		return v == int64(1)
	})
	h := newTied(p)
	h.unlock = func() { p.surely(0, del(key)) }
	return h, err
}

func lockV2(p *Process, ctx context.Context, key string) (holding, error) {
	h, err := lockV1(p, ctx, key)
	if err == nil {
		p.ask(0, "PEXPIRE", []string{key}, strconv.FormatInt(p.ttl().Milliseconds(), 10))
	}
	return h, err
}

func lockV3(p *Process, ctx context.Context, key string) (holding, error) {
	h, err := lockUnique(p, ctx, key, "1")
	if err == nil {
		h.unlock = func() { p.surely(0, del(key)) }
	}
	return h, err
}

// lockUnique takes the lock with a value and a TTL.
func lockUnique(p *Process, ctx context.Context, key, value string) (*tied, error) {
	cmd := wire.Acquire(key, value, p.ttl())
	err := untilTrue(p, ctx, func() bool {
		v, _ := p.send(0, cmd)
		return v == "OK"
	})
	return newTied(p), err
}

func (p *Process) unique() string { return strconv.FormatUint(p.client.dice.bits(), 36) }

func lockV4(p *Process, ctx context.Context, key string) (holding, error) {
	value := p.unique()
	h, err := lockUnique(p, ctx, key, value)
	if err == nil {
		h.unlock = func() {
			get := &wire.Command{Op: wire.OpRead, Name: "GET", Keys: []string{key}}
			if v, _ := p.surely(0, get).([]byte); string(v) == value {
				p.surely(0, del(key))
			}
		}
	}
	return h, err
}

func lockV4b(p *Process, ctx context.Context, key string) (holding, error) {
	value := p.unique()
	h, err := lockUnique(p, ctx, key, value)
	if err == nil {
		h.unlock = func() { p.surely(0, wire.Release(key, wire.QueueOf("", key), value, p.ttl())) }
	}
	return h, err
}

func lockV5(p *Process, ctx context.Context, key string) (holding, error) {
	value := p.unique()
	h, err := lockUnique(p, ctx, key, value)
	if err == nil {
		h.unlock = func() { p.surely(0, wire.Release(key, wire.QueueOf("", key), value, p.ttl())) }
		h.guard(wire.Extend(key, value, p.ttl()))
	}
	return h, err
}

// guard is the watchdog. It renews, and does not look at the answer.
func (h *tied) guard(renew *wire.Command) {
	h.p.Clock().after(h.p.ttl()/3, func() {
		if !h.ended {
			h.p.client.links[0].Do(renew, func(wire.Reply) {})
			h.guard(renew)
		}
	})
}

func lockV6(p *Process, ctx context.Context, key string) (holding, error) {
	// The name of the thread: the same for every call of one client's life.
	value := p.host.name + "/" + strconv.Itoa(int(p.host.life))
	ms := strconv.FormatInt(p.ttl().Milliseconds(), 10)
	script := func(s *wire.Script) *wire.Command {
		return &wire.Command{Op: wire.OpAcquire, Script: s, Keys: []string{key}, Args: []string{value, ms}}
	}
	err := untilTrue(p, ctx, func() bool {
		v, _ := p.send(0, script(masters.ScriptEnter))
		return v == int64(-3)
	})
	h := newTied(p)
	if err == nil {
		h.unlock = func() { p.surely(0, script(masters.ScriptLeave)) }
		h.guard(script(masters.ScriptStay))
	}
	return h, err
}

// lockR0 asks one master after the other and waits for each. It retries with the
// same value, does not look at the time when it extends, and re-creates keys that
// are gone.
func lockR0(p *Process, ctx context.Context, key string) (holding, error) {
	c := p.client
	value := p.host.name
	need := len(c.masters)/2 + 1
	everywhere := func(cmd *wire.Command, good any) (n int) {
		for i := range c.masters {
			if v, _ := p.send(i, cmd); v == good {
				n++
			}
		}
		return n
	}
	release := func() { everywhere(wire.Release(key, wire.QueueOf("", key), value, p.ttl()), int64(1)) }
	h := newTied(p)
	err := untilTrue(p, ctx, func() bool {
		start := p.Clock().Monotonic()
		n := everywhere(wire.Acquire(key, value, p.ttl()), "OK")
		h.until = start + p.ttl()
		if n >= need && p.Clock().Monotonic() < h.until {
			return true
		}
		release()
		return false
	})
	h.unlock = release
	h.extend = func() error {
		start := p.Clock().Monotonic()
		n := everywhere(wire.Extend(key, value, p.ttl()), int64(1))
		if n < need {
			n += everywhere(wire.Acquire(key, value, p.ttl()), "OK")
		}
		if n >= need {
			h.until = start + p.ttl()
		}
		return nil
	}
	return h, err
}
