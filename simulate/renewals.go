package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// What renewals owe to who holds a lease: it ends when it says, it is renewed only if
// that was asked for, and what a master has lost comes back.

// putOff looks at a lease whose end was put off, and at what stands at the masters then.
func (k *checker) putOff(cl *claim, until time.Time) {
	if !until.After(cl.until) || cl.until.IsZero() {
		return
	}
	if cl.uneven == cl.client.host.clock.uneven { // or its clock may have put it off
		cl.rises++
	}
	// A lease that was handed over is extended once, if what it was given is short.
	if !cl.renews && !cl.asked && cl.rises == 2 {
		k.report(Violation{
			Kind:    Custom,
			What:    fmt.Sprintf("the lease of %q of %s is renewed, which nobody asked for", cl.names[0], cl.client.host.name),
			Clients: []int{cl.client.index},
		})
	}
	k.repaired(cl)
}

// gapsAllowed is how many renewals in a row may leave a master without the key. The next
// renewal repairs.
const gapsAllowed = 3

// repaired looks whether every master has the key of a lease that is renewed, where
// nothing was wrong for long.
func (k *checker) repaired(cl *claim) {
	if !cl.renews || cl.value == "" || !cl.stored() || cl.client.host.hangs() || !k.calm(cl.client) {
		cl.gaps = 0
		return
	}
	without := 0
	for _, m := range cl.client.masters {
		if !k.has(m, cl) {
			without++
		}
	}
	if without == 0 {
		cl.gaps = 0
		return
	}
	if cl.gaps++; cl.gaps != gapsAllowed+1 {
		return
	}
	k.report(Violation{
		Kind: Unrepaired,
		What: fmt.Sprintf("%s has renewed its lease of %q %d times, and %d of %d masters have no key of it, though nothing is wrong",
			cl.client.host.name, cl.names[0], cl.gaps, without, len(cl.client.masters)),
		Clients: []int{cl.client.index},
	})
}

// has reports whether a master stores a lease. A master that was free when the lease
// began may have given the lock to a waiter, which keeps a minority as long as it waits.
func (k *checker) has(m *master, cl *claim) bool {
	for _, name := range cl.names {
		e := m.keys.find(name)
		if e == nil || e.value != cl.value && !k.waitsFor(ownerOf(e.value), name) {
			return false
		}
	}
	return true
}

func (k *checker) waitsFor(o owner, name string) bool {
	return slices.ContainsFunc(k.wants, func(w *want) bool {
		return w.process.client.index == o.client && slices.Contains(w.names, name)
	})
}

// lead is how long before its end the end of a lease may be announced.
const lead = 20*time.Millisecond + punctual

// early looks at a lease that is over before its time: it cannot have expired.
func (k *checker) early(cl *claim) {
	lease, ok := cl.hold.(interface{ Err() error })
	left := cl.until.Sub(cl.client.host.clock.Now())
	if !ok || cl.until.IsZero() || left <= lead || cl.steps != cl.client.host.clock.uneven || !errors.Is(lease.Err(), redlock.ErrExpired) {
		return
	}
	k.report(Violation{
		Kind:    Custom,
		What:    fmt.Sprintf("the lease of %q of %s had %v left, and says that it has expired", cl.names[0], cl.client.host.name, short(left)),
		Clients: []int{cl.client.index},
	})
}
