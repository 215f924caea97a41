package simulate

import (
	"context"

	"github.com/quorumlock/quorumlock/redlock"
)

// A process that crashed while it held a lock, and had written the value down, takes
// the lease up again when it is back.

// estate is what a caller held, as it was written down.
type estate struct {
	action  Action
	permits int // fewer than the action says, if there were no more
	value   string
	token   uint64
}

// writeDown notes a lease until its caller gives it back, or makes something else of it:
// what it then asked for may still arrive after its end.
func (t *trial) writeDown(p *Process, h *grip, a Action) {
	if lease, ok := h.holding.(*redlock.Lease); ok && t.config.adopts {
		t.estates[p.caller] = estate{a, h.claim.permits, lease.Value(), lease.Token()}
	}
}

func (t *trial) strikeOut(p *Process) { delete(t.estates, p.caller) }

// adopt goes on with what the caller held when it crashed.
func (t *trial) adopt(p *Process) {
	e, ok := t.estates[p.caller]
	t.strikeOut(p)
	if !ok || t.healed {
		return
	}
	take := t.config.adopter(p.client.api, e.action, p.client.permitsOf(e.action.names()[0]))
	s := t.stake(p.client, e.action)
	s.adopted, s.permits = true, e.permits
	if s.line != nil {
		t.check.over(s.line)
		s.line = nil // it does not queue
	}
	var lease *redlock.Lease
	var err error
	p.call(func() { lease, err = take(context.Background(), e.value) })
	t.note(p, err)
	if err != nil {
		return
	}
	t.stats.adopted++
	if !t.config.Lock.isSemaphore() {
		s.above = nil // it has its token still
		if lease.Token() != e.token {
			p.Fail("%s had the token %d, and has %d since it adopted its lease", p.name, e.token, lease.Token())
		}
	}
	h := &grip{lease, t.check.grant(p.client, lease, s)}
	t.use(p, h, Action{
		Hold: e.action.Hold / 2, Renew: e.action.Renew, TTL: e.action.TTL,
		Lock: e.action.Lock, Names: e.action.Names, Read: e.action.Read, Permits: e.action.Permits,
	})
}

// adopter returns how a lease of an action is adopted.
func (cfg *Config) adopter(c *redlock.Client, a Action, permits int) func(context.Context, string) (*redlock.Lease, error) {
	name := a.names()[0]
	switch {
	case cfg.Lock == ReadWriteLock && a.Read:
		return c.RWMutex(name, cfg.lockOptions(a)...).RAdopt
	case cfg.Lock == ReadWriteLock:
		return c.RWMutex(name, cfg.lockOptions(a)...).Adopt
	case cfg.Lock.isSemaphore():
		return c.Semaphore(name, permits, cfg.lockOptions(a)...).Adopt
	}
	return cfg.mutex(c, a).Adopt
}
