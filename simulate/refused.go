package simulate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// This file checks that a TryLock of a fair lock is not told that the lock is taken while
// nobody holds it and nobody who is alive waits for it (L42b).

// attempt is a TryLock that must get the lock, unless somebody else calls meanwhile.
type attempt struct {
	name  string
	free  quorum.Set // the masters that had it free when the call began
	calls int        // checker.calls then
}

// attempts begins to watch a TryLock. It returns nil if that may be refused.
func (k *checker) attempts(p *Process, a Action) *attempt {
	t, name := k.trial, a.names()[0]
	if !t.config.Lock.IsFair() || slices.ContainsFunc(k.claims, func(cl *claim) bool { return !cl.ended && cl.about(name) }) {
		return nil
	}
	for _, c := range t.clients {
		if slices.ContainsFunc(c.host.procs, func(o *Process) bool { return o != p && o.calling }) {
			return nil
		}
		if c != p.client && slices.ContainsFunc(c.wires, func(w *cable) bool { return w.busy > t.world.now }) {
			return nil // a late command may take the lock, and a late release give it back
		}
	}
	return &attempt{name, k.unheld(p, name), k.calls}
}

// unheld returns the masters that the caller reaches, have the lock free, and nobody queued
// who is alive.
func (k *checker) unheld(p *Process, name string) (free quorum.Set) {
	w := &want{process: p, names: []string{name}}
	for i, m := range p.client.masters {
		if l := p.client.links[i]; l.well() && l.owed() == 0 && m.keys.Find(name) == nil && k.firstAlive(m, w, "redlock:queue:"+name) {
			free |= quorum.Only(i)
		}
	}
	return free
}

// refused looks at how the TryLock ended.
func (k *checker) refused(p *Process, a *attempt, err error) {
	if a == nil || k.calls != a.calls || !errors.Is(err, redlock.ErrTaken) || p.client.closing || p.host.rests() {
		return
	}
	if n := (a.free & k.unheld(p, a.name)).Len(); n >= quorum.Size(len(p.client.links)) {
		k.report(Violation{
			Kind:    FreeAndWanted,
			What:    fmt.Sprintf("%s was told that %q is taken, and %d masters had it free, with nobody who is alive in the queue: %v", p.name, a.name, n, err),
			Clients: []int{p.client.index},
		})
	}
}
