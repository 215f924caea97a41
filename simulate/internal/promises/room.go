package promises

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// This file checks that a dead client keeps no caller waiting where others hold a part of the
// lock (L40). A caller that wants free permits, or wants to read beside readers, must get in if
// no living caller waits before it. The check goes by the keys and connections of the masters,
// and by the calls that wait.

// cramped reports callers that have waited for too long although there is room for them. Too
// long is more than the longest pause of a waiter and two attempts with silent masters: less
// than the registration of a dead waiter lasts, unless TTLs are short.
func (k *checker) cramped(w *want) {
	now := k.scene.World.Now
	if !k.hasRoom(w) {
		w.room = -1
		return
	}
	if w.room < 0 {
		w.room = now
	}
	if d := now - max(w.room, w.process.Host.Resumed); d > k.rest()+2*k.attempt() && !w.told {
		w.told = true
		k.Report(tally.Violation{
			Kind:    tally.FreeAndWanted,
			What:    fmt.Sprintf("%s has waited for %q for %v, where there is room for it, and nobody before it is alive", w.process.Name(), w.names[0], plan.Short(d)),
			Clients: []int{w.process.Client.Index},
		})
	}
}

// hasRoom reports whether a quorum of masters has room for a caller that waits.
func (k *checker) hasRoom(w *want) bool {
	c, kind := w.process.Client, k.scene.Config.Lock
	shares := kind == plan.ReadWriteLock && w.reads || kind.IsSemaphore() && len(k.Resizes) == 0
	if !shares || c.Host.Down || c.Host.Hangs() || w.ctx.Err() != nil || k.scene.Config.Deaf > 0 || !k.fitsBesides(w) {
		return false
	}
	var roomy quorum.Set
	slots := make([]int, w.permits) // by number: at how many of the masters it is free
	for i, m := range c.Masters {
		if l := c.Links[i]; l.Well() && l.Owing() == 0 && k.roomAt(m, w) {
			roomy |= quorum.Only(i)
			m.CountFree(w.names[0], slots)
		}
	}
	same := 0
	for _, free := range slots {
		if free == roomy.Len() {
			same++
		}
	}
	return roomy.Len() >= quorum.Size(len(c.Links)) && (kind == plan.ReadWriteLock || same >= w.wanted)
}

// fitsBesides reports whether the held leases leave room for a caller, and all other waiters
// came later or are readers beside a reader.
func (k *checker) fitsBesides(w *want) bool {
	name := w.names[0]
	for _, o := range k.wants {
		later := w.reads && o.reads || !w.reads && o.began > w.began+k.Trips() && o.process.Client != w.process.Client
		if o != w && o.wants(name) && (!later || o.process.Host.Hangs()) {
			return false
		}
	}
	held := 0
	for _, cl := range k.Claims {
		if !cl.about(name) || !cl.occupies() {
			continue
		}
		if held += cl.Permits; w.reads && !cl.shared() {
			return false
		}
	}
	return held+w.wanted <= w.permits || w.reads
}

// roomAt reports whether a master stores no writer, or no other number of permits than the
// caller knows, and has only dead clients queued before the caller.
func (k *checker) roomAt(m *fleet.Master, w *want) bool {
	name := w.names[0]
	if w.reads {
		return m.Keys.Find(name) == nil && k.firstAlive(m, w, "redlock:queue:"+name) && k.firstAlive(m, w, "redlock:intent:"+name)
	}
	size := m.Permits(name)
	return (size == 0 || size == w.permits) && k.firstAlive(m, w, "redlock:permitqueue:"+name)
}

// firstAlive reports whether a master has no living waiter queued before the caller's client. A
// client that has the lock does not wait. To the master, a process that has died is dead when
// the master has learned of the end of its connections.
func (k *checker) firstAlive(m *fleet.Master, w *want, queue string) bool {
	c, own, waiting := w.process.Client, 0, 0
	for _, q := range m.Keys.Members(queue) {
		who := masters.OwnerOf(q.Member)
		if who == c.Me() {
			own++
			continue
		}
		if k.holdsAs(q.Member) {
			continue
		}
		alive := who.Client < 0 || !k.scene.Clients[who.Client].Host.Down && k.scene.Clients[who.Client].Me() == who
		if own == 0 && (alive || m.Listens(wire.WaitChannel("", q.Member[:strings.LastIndexByte(q.Member, '/')]))) {
			return false
		}
	}
	for _, o := range k.wants {
		if o.process.Client == c && o.wants(w.names[0]) {
			waiting++
		}
	}
	return own <= waiting // one more has not left the queue yet
}

// holdsAs reports whether a waiter shares the lock with others by now.
func (k *checker) holdsAs(waiter string) bool {
	return slices.ContainsFunc(k.Claims, func(cl *Claim) bool {
		theirs, _ := masters.SplitValue(cl.Value)
		return theirs == waiter && cl.shared() && !cl.Ended
	})
}

// A TryLock of a fair lock must not return ErrTaken while the lock has no
// holder and no living waiter (L42b).

// attempt is a TryLock that must get the lock, unless another call begins meanwhile.
type attempt struct {
	name  string
	free  quorum.Set // the masters that had it free when the call began
	calls int        // checker.calls then
}

// Attempts begins to watch a TryLock. It returns nil if that may be refused.
func (k *checker) Attempts(p *Caller, a plan.Action) *attempt {
	t, name := k.scene, a.LockNames()[0]
	k.Ledger.Book(name).pauses.passed = true
	if !t.Config.Lock.IsFair() || slices.ContainsFunc(k.Claims, func(cl *Claim) bool { return cl.occupies() && cl.about(name) }) {
		return nil
	}
	for _, c := range t.Clients {
		if slices.ContainsFunc(c.Host.Procs, func(o *world.Routine) bool { return o != p.Routine && o.Calling }) {
			return nil
		}
		if c != p.Client && slices.ContainsFunc(c.Wires, func(w *fleet.Cable) bool { return w.Busy > t.World.Now }) {
			return nil // a late command may take the lock, and a late release give it back
		}
	}
	return &attempt{name, k.unheld(p, name), k.Calls}
}

// unheld returns the masters that the caller reaches, and that have the lock free and no living
// waiter queued.
func (k *checker) unheld(p *Caller, name string) (free quorum.Set) {
	w := &want{process: p, names: []string{name}}
	for i, m := range p.Client.Masters {
		if l := p.Client.Links[i]; l.Well() && l.Owing() == 0 && m.Keys.Find(name) == nil && k.firstAlive(m, w, "redlock:queue:"+name) {
			free |= quorum.Only(i)
		}
	}
	return free
}

// Refused looks at how the TryLock ended.
func (k *checker) Refused(p *Caller, a *attempt, err error) {
	if a == nil || k.Calls != a.calls || !errors.Is(err, redlock.ErrTaken) || p.Client.Closing || p.Host.Rests() {
		return
	}
	if n := (a.free & k.unheld(p, a.name)).Len(); n >= quorum.Size(len(p.Client.Links)) {
		k.Report(tally.Violation{
			Kind:    tally.FreeAndWanted,
			What:    fmt.Sprintf("%s was told that %q is taken, and %d masters had it free, with nobody who is alive in the queue: %v", p.Name(), a.name, n, err),
			Clients: []int{p.Client.Index},
		})
	}
}
