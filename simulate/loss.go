package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// Unlock must not say that a lease was lost which a quorum of masters still had
// when it was called. A master that has the value then answers so, unless the value
// ends or is forgotten meanwhile: whoever else deletes it is of the same client.
//
// If a renewal has found the lease lost before, those masters count that have had
// the value ever since the lease began. Only they cannot have answered a renewal
// otherwise. One that has the value when Unlock is called may have got it back after
// it had answered: by a repair that an earlier renewal has sent, or by an ask on a
// connection that was given up, which queued the value behind the next holder. Such
// a value is worth nothing any more (S19), and the loss was none the less.

// kept is what a master stores for a lease when that is unlocked.
type kept struct {
	master *master
	untils []int64       // of each lock
	since  time.Duration // since when without a break
	lapses int
}

// keepers returns the masters that store all that a claim is about.
func (k *checker) keepers(cl *claim) []kept {
	if cl.value == "" || !cl.stored() {
		return nil
	}
	var all []kept
	for _, m := range k.trial.masters {
		at := kept{master: m, lapses: m.lapses}
		for _, name := range cl.names {
			if e := m.keys.Find(name); e != nil && e.Value == cl.value {
				at.untils = append(at.untils, e.Until)
				at.since = max(at.since, k.ledger.book(name).at[m.index].since)
			}
		}
		if len(at.untils) == len(cl.names) {
			all = append(all, at)
		}
	}
	return all
}

// still reports whether the master can have forgotten nothing of it by now.
func (at *kept) still() bool {
	for _, until := range at.untils {
		if at.master.left(until) <= 0 {
			return false
		}
	}
	return at.master.lapses == at.lapses
}

// lasts reports whether the validity that was seen last is not over, and no clock that
// was set says so.
func (cl *claim) lasts() bool {
	return cl.until.After(cl.client.host.clock.Now()) && cl.steps == cl.client.host.clock.uneven
}

// expiredMeanwhile looks at a lease that was valid when Unlock was called, which says that
// it was lost: it cannot have expired meanwhile, which is no loss.
func (k *checker) expiredMeanwhile(cl *claim) {
	c := cl.client
	if cl.value == "" || c.preemption.every > 0 || c.closing || c.host.rests() || cl.steps != c.host.clock.uneven || cl.until.After(c.host.clock.Now()) {
		return
	}
	c.blame(fmt.Sprintf("a lease of %q expired before its masters answered, and Unlock says that it was lost", cl.names[0]))
}

// letGo reports an Unlock that said that the lease was released, if no master had it, or
// so many kept it all the time that no quorum can have released it.
func (k *checker) letGo(cl *claim, keepers []kept, somewhere bool) {
	if !hasEnded(cl.hold) {
		return // one hold of several
	}
	if !somewhere && cl.value != "" && cl.stored() && cl.lasts() {
		k.report(Violation{
			Kind:    FalseRelease,
			What:    fmt.Sprintf("%s was told by Unlock that %q was released, which no master had", cl.client.host.name, cl.names[0]),
			Clients: []int{cl.client.index},
		})
	}
	var keep []kept
	for _, at := range k.keepers(cl) {
		if slices.ContainsFunc(keepers, func(before kept) bool {
			return before.master == at.master && before.lapses == at.lapses && before.since == at.since && before.still()
		}) {
			keep = append(keep, at)
		}
	}
	masters := len(cl.client.masters)
	if len(keep) <= masters-quorum.Size(masters) {
		return
	}
	k.report(Violation{
		Kind: FalseRelease,
		What: fmt.Sprintf("%s was told by Unlock that %q was released, and %d of %d masters kept it",
			cl.client.host.name, cl.names[0], len(keep), masters),
		Clients: []int{cl.client.index},
	})
}

// heldAlone reports an Unlock that said that the lease was released although somebody else
// has got the lock since it began, before Unlock was called.
func (k *checker) heldAlone(cl *claim) {
	if cl.followed == nil || !hasEnded(cl.hold) {
		return
	}
	k.report(Violation{
		Kind: FalseRelease,
		What: fmt.Sprintf("%s was told by Unlock that %q was released, and %s had got it before that",
			cl.client.host.name, cl.names[0], cl.followed.host.name),
		Clients: []int{cl.client.index, cl.followed.index},
	})
}

// anywhere reports whether a master has the value of a lease, or of another ask of the
// same waiter, which a release takes for its own.
func (k *checker) anywhere(cl *claim) bool {
	waiter, _ := masters.SplitValue(cl.value)
	return slices.ContainsFunc(cl.client.masters, func(m *master) bool {
		e := m.keys.Find(cl.names[0])
		if e == nil {
			return false
		}
		other, _ := masters.SplitValue(e.Value)
		return other == waiter
	})
}

// unlocked looks at how an Unlock ended, by who kept the lease when it was called, and
// whether any master had it.
func (k *checker) unlocked(cl *claim, keepers []kept, somewhere bool, err error) {
	if err == nil {
		k.letGo(cl, keepers, somewhere)
		k.heldAlone(cl)
	}
	if !errors.Is(err, redlock.ErrLost) {
		return
	}
	before := errors.Is(cl.hold.(interface{ Err() error }).Err(), redlock.ErrLost)
	n := 0
	for _, at := range keepers {
		if at.still() && (!before || at.since <= cl.since) {
			n++
		}
	}
	if n < quorum.Size(len(cl.client.masters)) {
		return
	}
	k.report(Violation{
		Kind: FalseLoss,
		What: fmt.Sprintf("%s was told by Unlock that it had lost %q, which %d of %d masters kept when it was called",
			cl.client.host.name, cl.names[0], n, len(cl.client.masters)),
		Clients: []int{cl.client.index},
	})
}
