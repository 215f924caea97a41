package simulate

import (
	"fmt"
	"slices"
	"time"
)

// stake is what a caller asks for: which locks, and how much of a semaphore.
type stake struct {
	names   []string
	permits int // 0: all of it, or with other readers
	limit   int // how many there are
	renews  bool
	adopted bool // it was given before
	process *Process
	tried   bool // it did not wait

	began time.Duration
	above map[string]uint64 // the highest fencing token of each lock before the call
	line  *lineup           // who waited then
}

// stake begins a call for an action.
func (t *trial) stake(p *Process, a Action) stake {
	c := p.client
	s := stake{names: a.names(), renews: a.Renew, process: p, tried: a.How == ByTryLock, began: t.world.now}
	if t.config.Lock.IsSemaphore() {
		s.limit = c.permitsOf(s.names[0])
		s.permits = min(max(1, a.Permits), s.limit)
	}
	if t.config.Lock.IsFenced() {
		s.above = t.check.tokens.highest(t, s.names)
	}
	if t.config.Lock.IsFair() {
		s.line = t.check.queueUp(s.names[0])
	}
	return s
}

// about reports whether the claim is to a lock.
func (cl *claim) about(name string) bool {
	for _, n := range cl.names {
		if n == name {
			return true
		}
	}
	return false
}

// shared reports whether others may hold the lock at the same time, as readers.
func (cl *claim) shared() bool {
	l, ok := cl.hold.(interface{ Shared() bool })
	return ok && l.Shared()
}

// stored reports whether the masters store the claim as a lock of its own, which
// the ledger knows: not what readers hold, nor permits.
func (cl *claim) stored() bool { return cl.permits == 0 && !cl.shared() }

// collides reports whether two claims must not be valid at the same time.
func (cl *claim) collides(other *claim) bool {
	return cl.permits == 0 && slices.ContainsFunc(cl.names, other.about) && !(cl.shared() && other.shared())
}

// crowd reports a semaphore with more permits out than there are.
func (k *checker) crowd() {
	for i, cl := range k.claims {
		if cl.clashed || !cl.usesPermits() {
			continue
		}
		name, out, limit := cl.names[0], cl.permits, cl.limit
		for _, other := range k.claims[:i] {
			if other.names[0] == name && other.usesPermits() {
				out += other.permits
				limit = max(limit, other.limit) // that was so before or after a Resize
			}
		}
		if out > limit {
			cl.clashed = true
			k.clashed()
			k.report(Violation{
				Kind:    Overlap,
				What:    fmt.Sprintf("%s is one too many: %d of %d permits of %q are valid", cl.client.host.name, out, limit, name),
				Clients: []int{cl.client.index},
			})
		}
	}
}

// usesPermits reports whether the claim is to permits, which nobody else may have
// yet.
func (cl *claim) usesPermits() bool {
	return cl.permits > 0 && !(cl.ended && cl.told) && cl.hold.Valid()
}
