// Package naive has locks as they are commonly written, for the simulator to break.
package naive

import (
	"context"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
)

// The ladder.
var (
	V1 = &plan.Rung{Name: "V1", About: "SETNX, DEL", Flaw: "The lock has no end of its own: a holder that crashes keeps it for ever."}
	V2 = &plan.Rung{Name: "V2", About: "SETNX, then EXPIRE", Flaw: "A holder that crashes between the two commands keeps the lock for ever."}
	V3 = &plan.Rung{Name: "V3", About: "SET NX EX, DEL", Flaw: "DEL deletes whatever is there: also the lock of the next holder, when the work took longer than the TTL."}
	V4 = &plan.Rung{Name: "V4", About: "SET NX EX with a unique value, GET, then DEL", Flaw: "Between GET and DEL the key can expire and become somebody else's."}
	// V4b deletes by a script that compares.
	V4b = &plan.Rung{Name: "V4b", About: "SET NX EX with a unique value, compare-and-delete", Flaw: "Nobody tells a holder that its TTL is over while it works."}
	V5  = &plan.Rung{Name: "V5", About: "as V4b, with a watchdog that renews at a third of the TTL", Flaw: "A holder that locks again waits for itself.", Nested: true}
	V6  = &plan.Rung{Name: "V6", About: "as V5, and re-entrant by a hold count in a hash", Flaw: "One master, and a replica that lags behind when it takes over: the lock is forgotten.", Nested: true}
	// R0 is Redlock as commonly written.
	R0 = &plan.Rung{Name: "R0", About: "Redlock one master after the other, value reused, extend re-creates", Flaw: "It takes the word of a master that has forgotten its locks, trusts clocks that stop with the machine, uses one value again and again, and re-creates what it finds gone."}
)

// Locks has how each naive lock is taken.
var Locks = map[*plan.Rung]func(p *promises.Caller, ctx context.Context, name string) (promises.Holding, error){
	V1:  lockV1,
	V2:  lockV2,
	V3:  lockV3,
	V4:  lockV4,
	V4b: lockV4b,
	V5:  lockV5,
	V6:  lockV6,
	R0:  lockR0,
}

// pollInterval is how often the naive locks try.
const pollInterval = 100 * time.Millisecond

// tied is a naive lock that is held. Its holder believes so until it gives it back,
// whatever happens; only R0 looks at the time.
type tied struct {
	p      *promises.Caller
	since  time.Duration
	until  time.Duration // monotonic; zero: no end
	done   chan struct{}
	ended  bool
	extend func() error
	unlock func()
}

func newTied(p *promises.Caller) *tied {
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
func ask(p *promises.Caller, i int, name string, keys []string, args ...string) (any, error) {
	return Send(p, i, &wire.Command{Op: wire.OpAcquire, Name: name, Keys: keys, Args: args})
}

func Send(p *promises.Caller, i int, cmd *wire.Command) (any, error) {
	ready := make(chan struct{})
	var got wire.Reply
	p.Client.Links[i].Do(cmd, func(r wire.Reply) { got = r; close(ready) })
	p.Wait(context.Background(), ready)
	if got.Err != nil {
		return nil, got.Err
	}
	return got.Value, nil
}

// untilTrue calls try until it succeeds or ctx ends.
func untilTrue(p *promises.Caller, ctx context.Context, try func() bool) error {
	for !try() {
		if err := p.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
	return nil
}

// surely sends a command again and again until it is answered.
func surely(p *promises.Caller, i int, cmd *wire.Command) any {
	for {
		v, err := Send(p, i, cmd)
		if err == nil {
			return v
		}
		p.Sleep(context.Background(), pollInterval)
	}
}

func del(key string) *wire.Command {
	return &wire.Command{Op: wire.OpAcquire, Name: "DEL", Keys: []string{key}}
}

func ttl(p *promises.Caller) time.Duration { return p.Scene.Config.TTL }

func lockV1(p *promises.Caller, ctx context.Context, key string) (promises.Holding, error) {
	err := untilTrue(p, ctx, func() bool {
		v, _ := ask(p, 0, "SETNX", []string{key}, "1")
		return v == int64(1)
	})
	h := newTied(p)
	h.unlock = func() { surely(p, 0, del(key)) }
	return h, err
}

func lockV2(p *promises.Caller, ctx context.Context, key string) (promises.Holding, error) {
	h, err := lockV1(p, ctx, key)
	if err == nil {
		ask(p, 0, "PEXPIRE", []string{key}, strconv.FormatInt(ttl(p).Milliseconds(), 10))
	}
	return h, err
}

func lockV3(p *promises.Caller, ctx context.Context, key string) (promises.Holding, error) {
	h, err := lockUnique(p, ctx, key, "1")
	if err == nil {
		h.unlock = func() { surely(p, 0, del(key)) }
	}
	return h, err
}

// lockUnique takes the lock with a value and a TTL.
func lockUnique(p *promises.Caller, ctx context.Context, key, value string) (*tied, error) {
	cmd := wire.Acquire(key, value, ttl(p))
	err := untilTrue(p, ctx, func() bool {
		v, _ := Send(p, 0, cmd)
		return v == "OK"
	})
	return newTied(p), err
}

func unique(p *promises.Caller) string { return strconv.FormatUint(p.Client.Dice.Bits(), 36) }

func lockV4(p *promises.Caller, ctx context.Context, key string) (promises.Holding, error) {
	value := unique(p)
	h, err := lockUnique(p, ctx, key, value)
	if err == nil {
		h.unlock = func() {
			get := &wire.Command{Op: wire.OpRead, Name: "GET", Keys: []string{key}}
			if v, _ := surely(p, 0, get).([]byte); string(v) == value {
				surely(p, 0, del(key))
			}
		}
	}
	return h, err
}

func lockV4b(p *promises.Caller, ctx context.Context, key string) (promises.Holding, error) {
	value := unique(p)
	h, err := lockUnique(p, ctx, key, value)
	if err == nil {
		h.unlock = func() { surely(p, 0, wire.Release(key, wire.QueueOf("", key), value, ttl(p))) }
	}
	return h, err
}

func lockV5(p *promises.Caller, ctx context.Context, key string) (promises.Holding, error) {
	value := unique(p)
	h, err := lockUnique(p, ctx, key, value)
	if err == nil {
		h.unlock = func() { surely(p, 0, wire.Release(key, wire.QueueOf("", key), value, ttl(p))) }
		h.guard(wire.Extend(key, value, ttl(p)))
	}
	return h, err
}

// guard is the watchdog. It renews, and does not look at the answer.
func (h *tied) guard(renew *wire.Command) {
	h.p.Clock().Later(h.p.Scene.Config.TTL/3, func() {
		if !h.ended {
			h.p.Client.Links[0].Do(renew, func(wire.Reply) {})
			h.guard(renew)
		}
	})
}

func lockV6(p *promises.Caller, ctx context.Context, key string) (promises.Holding, error) {
	// The name of the thread: the same for every call of one client's life.
	value := p.Host.Name + "/" + strconv.Itoa(int(p.Host.Life))
	ms := strconv.FormatInt(ttl(p).Milliseconds(), 10)
	script := func(s *wire.Script) *wire.Command {
		return &wire.Command{Op: wire.OpAcquire, Script: s, Keys: []string{key}, Args: []string{value, ms}}
	}
	err := untilTrue(p, ctx, func() bool {
		v, _ := Send(p, 0, script(masters.ScriptEnter))
		return v == int64(-3)
	})
	h := newTied(p)
	if err == nil {
		h.unlock = func() { surely(p, 0, script(masters.ScriptLeave)) }
		h.guard(script(masters.ScriptStay))
	}
	return h, err
}

// lockR0 asks one master after the other and waits for each. It retries with the
// same value, does not look at the time when it extends, and re-creates keys that
// are gone.
func lockR0(p *promises.Caller, ctx context.Context, key string) (promises.Holding, error) {
	c := p.Client
	value := p.Host.Name
	need := len(c.Masters)/2 + 1
	everywhere := func(cmd *wire.Command, good any) (n int) {
		for i := range c.Masters {
			if v, _ := Send(p, i, cmd); v == good {
				n++
			}
		}
		return n
	}
	release := func() { everywhere(wire.Release(key, wire.QueueOf("", key), value, ttl(p)), int64(1)) }
	h := newTied(p)
	err := untilTrue(p, ctx, func() bool {
		start := p.Clock().Monotonic()
		n := everywhere(wire.Acquire(key, value, ttl(p)), "OK")
		h.until = start + ttl(p)
		if n >= need && p.Clock().Monotonic() < h.until {
			return true
		}
		release()
		return false
	})
	h.unlock = release
	h.extend = func() error {
		start := p.Clock().Monotonic()
		n := everywhere(wire.Extend(key, value, ttl(p)), int64(1))
		if n < need {
			n += everywhere(wire.Acquire(key, value, ttl(p)), "OK")
		}
		if n >= need {
			h.until = start + ttl(p)
		}
		return nil
	}
	return h, err
}
