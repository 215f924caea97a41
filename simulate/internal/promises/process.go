package promises

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Caller is code that runs on a simulated client. It is ordinary blocking code: the world stops
// it wherever it waits, and continues it when the awaited event has happened. Only its own code
// may call the methods of a Process.
type Caller struct {
	*world.Routine
	Scene  *Scene
	Client *Client
	Number int // the place of its actions in the schedule
}

// Wait waits until ready delivers or is closed, and returns nil, or until ctx ends, and
// returns its error.
func (p *Caller) Wait(ctx context.Context, ready <-chan struct{}) error {
	err := p.Routine.Wait(ctx, ready)
	p.gotOn()
	return err
}

// Sleep waits for d on the client's clock and returns nil, or until ctx ends, and
// returns its error.
func (p *Caller) Sleep(ctx context.Context, d time.Duration) error {
	err := p.Routine.Sleep(ctx, d)
	p.gotOn()
	return err
}

// GotOn notes that the workload makes progress.
func (p *Caller) gotOn() { p.Client.GotOn = p.Host.World.Now }

// During waits for d, or until done is closed, and reports whether it was.
func (p *Caller) During(done <-chan struct{}, d time.Duration) bool {
	return p.Sleep(until{context.Background(), done}, d) != nil
}

// until is a context that ends with a channel.
type until struct {
	context.Context
	done <-chan struct{}
}

func (u until) Done() <-chan struct{} { return u.done }

func (u until) Err() error {
	select {
	case <-u.done:
		return context.Canceled
	default:
		return nil
	}
}

// Holding tells the checks that the client relies on a lease from now on, until it calls
// letGo, or crashes.
func (p *Caller) Holding(l *redlock.Lease) (letGo func()) { return p.HoldingSome(l, 0, 0) }

// HoldingSome is Holding, for a lease of some of the permits that there are.
func (p *Caller) HoldingSome(l *redlock.Lease, permits, of int) (letGo func()) {
	p.Scene.Stats.Acquisitions++
	s := stake{Names: strings.Split(l.Name(), ","), Permits: permits, Limit: of, renews: p.Scene.Config.Lock == plan.Election}
	if l.Token() != 0 {
		s.Above = map[string]uint64{} // it is not known when the call began
	}
	cl := p.Scene.Check.Grant(p.Client, l, s)
	cl.Calls() // the workload may call anything
	return func() { p.Scene.Check.Leave(cl) }
}

// Fail reports a violation of the kind Custom: a promise that the workload itself checks
// is broken.
func (p *Caller) Fail(format string, args ...any) {
	p.Scene.Check.Report(tally.Violation{Kind: tally.Custom, What: fmt.Sprintf(format, args...), Clients: []int{p.Client.Index}})
}

// Storage is the resource that the lock protects: a number that is read,
// changed and written back, and that reports every write whose reader did not
// know the latest state.
type Storage struct {
	scene   *Scene
	version int
	token   uint64
}

// Read returns the version to be given to Write.
func (s *Storage) Read() int { return s.version }

// Fence makes the storage refuse writes with a token lower than this one: the writes of earlier
// holders.
func (s *Storage) Fence(token uint64) { s.token = max(s.token, token) }

// Write stores an update of the given version, and reports whether the storage accepted it. A
// write with a fencing token lower than an earlier token is refused; a token of zero counts as
// no token. A write that is accepted although the version is not the latest has undone another
// client's update.
func (s *Storage) Write(version int, token uint64) bool {
	if token != 0 && token < s.token {
		return false
	}
	s.token = max(s.token, token)
	if version != s.version {
		s.scene.Check.Report(tally.Violation{Kind: tally.LostUpdate, What: "a write undid an update that its writer had not seen"})
	}
	s.version++
	return true
}

// Storage returns the storage that a lock protects.
func (t *Scene) Storage(lock string) *Storage {
	s := t.storages[lock]
	if s == nil {
		s = &Storage{scene: t}
		t.storages[lock] = s
	}
	return s
}

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
