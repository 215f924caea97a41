package promises

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// Stake is what a caller asks for: which locks, and how much of a semaphore.
type stake struct {
	Names   []string
	Permits int // 0: all of it, or with other readers
	Limit   int // how many there are
	renews  bool
	grace   time.Duration // of StopWithin: by so much the lease ends before the validity
	Adopted bool          // it was given before
	process *Caller
	tried   bool // it did not wait

	began time.Duration
	Above map[string]uint64 // the highest fencing token of each lock before the call
	Line  *lineup           // who waited then
}

// Stake begins a call for an action.
func (t *Scene) Stake(p *Caller, a plan.Action) stake {
	c := p.Client
	s := stake{Names: a.LockNames(), renews: a.Renew, grace: a.Grace, process: p, tried: a.How == plan.ByTryLock, began: t.World.Now}
	if t.Config.Lock.IsSemaphore() {
		s.Limit = c.PermitsOf(s.Names[0])
		s.Permits = min(max(1, a.Permits), s.Limit)
	}
	if t.Config.Lock.IsFenced() {
		s.Above = t.Check.tokens.highest(t, s.Names)
	}
	if t.Config.Lock.IsFair() {
		s.Line = t.Check.queueUp(s.Names[0])
	}
	return s
}

// about reports whether the claim is to a lock.
func (cl *Claim) about(name string) bool {
	for _, n := range cl.Names {
		if n == name {
			return true
		}
	}
	return false
}

// shared reports whether others may hold the lock at the same time, as readers.
func (cl *Claim) shared() bool {
	l, ok := cl.Hold.(*redlock.Lease)
	return ok && seam.IsShared(l) && !cl.Writes
}

// stored reports whether the masters store the claim as a lock of its own, which
// the ledger knows: not what readers hold, nor permits.
func (cl *Claim) stored() bool { return cl.Permits == 0 && !cl.shared() }

// collides reports whether two claims must not be valid at the same time.
func (cl *Claim) collides(other *Claim) bool {
	return cl.Permits == 0 && slices.ContainsFunc(cl.Names, other.about) && !(cl.shared() && other.shared())
}

// crowd reports a semaphore with more permits out than there are.
func (k *checker) crowd() {
	for i, cl := range k.Claims {
		if cl.clashed || !cl.usesPermits() {
			continue
		}
		name, out, limit := cl.Names[0], cl.Permits, cl.Limit
		for _, other := range k.Claims[:i] {
			if other.Names[0] == name && other.usesPermits() {
				out += other.Permits
				limit = max(limit, other.Limit) // that was so before or after a Resize
			}
		}
		if out > limit {
			cl.clashed = true
			k.clashed()
			k.Report(tally.Violation{
				Kind:    tally.Overlap,
				What:    fmt.Sprintf("%s is one too many: %d of %d permits of %q are valid", cl.Client.Host.Name, out, limit, name),
				Clients: []int{cl.Client.Index},
			})
		}
	}
}

// usesPermits reports whether the claim is to permits that no other client may have yet.
func (cl *Claim) usesPermits() bool {
	return cl.Permits > 0 && !(cl.Ended && cl.told) && cl.Hold.Valid()
}

// Check makes a check of a workload's own.
func (p *Caller) Check(c tally.KindCheck, ok bool, format string, args ...any) {
	p.Scene.Stats.Checked(c, ok)
	if !ok {
		p.Fail(format, args...)
	}
}

// ofHolders is the check that the holders of a lock of this kind are compatible. It counts once
// for each holder, and goes on until the holder no longer has the lock.
func (k *checker) ofHolders() (tally.KindCheck, bool) {
	switch kind := k.scene.Config.Lock; {
	case kind.IsSemaphore():
		return tally.PermitsFit, true
	case kind.IsMulti():
		return tally.WholeSets, true
	case kind == plan.ReadWriteLock:
		return tally.WriterAlone, true
	}
	return "", false
}

// clashed notes that the check of the holders of a lock failed.
func (k *checker) clashed() {
	if c, ok := k.ofHolders(); ok {
		k.scene.Stats.Failed[c]++
	}
}
