package promises

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// Unlock must not say that a lease was lost if a quorum of masters still had the lease when
// Unlock was called. A master that has the value at that time says so in its answer, unless the
// value ends or is forgotten meanwhile. Any other deletion comes from the same client.
//
// If a renewal has found the lease lost before, only the masters count that have had the value
// ever since the lease began: no renewal can have found the value missing there. A master that
// has the value when Unlock is called may have got it back after its answer: by a repair that
// an earlier renewal has sent, or by an ask on a connection that was given up, which queued the
// value behind the next holder. Such a value is worthless (S19), and the lease was lost
// nonetheless.

// kept is what a master stores for a lease when that is unlocked.
type kept struct {
	master *fleet.Master
	untils []int64       // of each lock
	since  time.Duration // since when without a break
	lapses int
}

// Keepers returns the masters that store all that a claim is about.
func (k *checker) Keepers(cl *Claim) []kept {
	if cl.Value == "" || !cl.stored() {
		return nil
	}
	var all []kept
	for _, m := range k.scene.Masters {
		at := kept{master: m, lapses: m.Lapses}
		for _, name := range cl.Names {
			if e := m.Keys.Find(name); e != nil && e.Value == cl.Value {
				at.untils = append(at.untils, e.Until)
				at.since = max(at.since, k.Ledger.Book(name).at[m.Index].since)
			}
		}
		if len(at.untils) == len(cl.Names) {
			all = append(all, at)
		}
	}
	return all
}

// still reports whether the master can have forgotten nothing of it by now.
func (at *kept) still() bool {
	for _, until := range at.untils {
		if at.master.Left(until) <= 0 {
			return false
		}
	}
	return at.master.Lapses == at.lapses
}

// lasts reports whether the validity that was seen last is not over, and no clock that
// was set says so.
func (cl *Claim) lasts() bool {
	return cl.until.After(cl.Client.Host.Clock.Now()) && cl.steps == cl.Client.Host.Clock.Uneven
}

// ExpiredMeanwhile reports a lease that was valid when Unlock was called and expired before the
// masters answered, although Unlock says that it was lost: an expiry is not a loss.
func (k *checker) ExpiredMeanwhile(cl *Claim) {
	c := cl.Client
	if cl.Value == "" || c.Preemption.Every > 0 || c.Closing || c.Host.Rests() || cl.steps != c.Host.Clock.Uneven || cl.until.Add(cl.grace).After(c.Host.Clock.Now()) {
		return
	}
	c.Blame(fmt.Sprintf("a lease of %q expired before its masters answered, and Unlock says that it was lost", cl.Names[0]))
}

// letGo reports an Unlock that said that the lease was released, if no master had it, or
// so many kept it all the time that no quorum can have released it.
func (k *checker) letGo(cl *Claim, keepers []kept, somewhere bool) {
	if !HasEnded(cl.Hold) || masters.IsCached(cl.Value) {
		return // one hold of several, or the lock stays in its process
	}
	if !somewhere && cl.Value != "" && cl.stored() && cl.lasts() {
		k.Report(tally.Violation{
			Kind:    tally.FalseRelease,
			What:    fmt.Sprintf("%s was told by Unlock that %q was released, which no master had", cl.Client.Host.Name, cl.Names[0]),
			Clients: []int{cl.Client.Index},
		})
	}
	var keep []kept
	for _, at := range k.Keepers(cl) {
		if slices.ContainsFunc(keepers, func(before kept) bool {
			return before.master == at.master && before.lapses == at.lapses && before.since == at.since && before.still()
		}) {
			keep = append(keep, at)
		}
	}
	masters := len(cl.Client.Masters)
	if len(keep) <= masters-quorum.Size(masters) {
		return
	}
	k.Report(tally.Violation{
		Kind: tally.FalseRelease,
		What: fmt.Sprintf("%s was told by Unlock that %q was released, and %d of %d masters kept it",
			cl.Client.Host.Name, cl.Names[0], len(keep), masters),
		Clients: []int{cl.Client.Index},
	})
}

// heldAlone reports an Unlock that said that the lease was released, although another client
// got the lock after the lease had begun and before Unlock was called.
func (k *checker) heldAlone(cl *Claim) {
	if cl.followed == nil || !HasEnded(cl.Hold) {
		return
	}
	k.Report(tally.Violation{
		Kind: tally.FalseRelease,
		What: fmt.Sprintf("%s was told by Unlock that %q was released, and %s had got it before that",
			cl.Client.Host.Name, cl.Names[0], cl.followed.Host.Name),
		Clients: []int{cl.Client.Index, cl.followed.Index},
	})
}

// Anywhere reports whether a master has the value of a lease, or of another ask of the
// same waiter, which a release takes for its own.
func (k *checker) Anywhere(cl *Claim) bool {
	waiter, _ := masters.SplitValue(cl.Value)
	return slices.ContainsFunc(cl.Client.Masters, func(m *fleet.Master) bool {
		e := m.Keys.Find(cl.Names[0])
		if e == nil {
			return false
		}
		other, _ := masters.SplitValue(e.Value)
		return other == waiter
	})
}

// Unlocked looks at how an Unlock ended, by who kept the lease when it was called, and
// whether any master had it.
func (k *checker) Unlocked(cl *Claim, keepers []kept, somewhere bool, err error) {
	if err == nil {
		k.letGo(cl, keepers, somewhere)
		k.heldAlone(cl)
	}
	if !errors.Is(err, redlock.ErrLost) {
		return
	}
	before := errors.Is(cl.Hold.(interface{ Err() error }).Err(), redlock.ErrLost)
	n := 0
	for _, at := range keepers {
		if at.still() && (!before || at.since <= cl.Since) {
			n++
		}
	}
	if n < quorum.Size(len(cl.Client.Masters)) {
		return
	}
	k.Report(tally.Violation{
		Kind: tally.FalseLoss,
		What: fmt.Sprintf("%s was told by Unlock that it had lost %q, which %d of %d masters kept when it was called",
			cl.Client.Host.Name, cl.Names[0], n, len(cl.Client.Masters)),
		Clients: []int{cl.Client.Index},
	})
}
