package promises

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// A client that is in no call, holds no lease, is connected to a master and owes
// it nothing has no key there. That is looked for all the time: a key that stays
// for a TTL and then goes is gone when a schedule ends.

// leftovers looks for keys of a client that should have none.
func (k *checker) leftovers(c *Client) {
	if !c.mayHaveKeys || !c.Idle() {
		return
	}
	c.mayHaveKeys = false
	me := c.Me()
	for _, b := range k.Ledger.books {
		for i := range c.Links {
			s := &b.at[i]
			if s.owner != me || s.value == "" || s.astray || k.scene.World.Now >= s.ends {
				continue
			}
			if !c.Links[i].Settled() || k.rests(c, s.value) {
				c.mayHaveKeys = true
				continue
			}
			s.astray = true // told once
			k.Report(tally.Violation{
				Kind: tally.Leftover,
				What: fmt.Sprintf("%s still has a key of %s, which holds nothing, is connected and owes it nothing",
					k.scene.Masters[i].Host.Name, c.Host.Name),
				Clients: []int{c.Index},
			})
		}
	}
}

// rests reports whether a client may keep what it has used, because it is cached.
func (k *checker) rests(c *Client, value string) bool {
	longest := k.scene.Config.TTL * 3 / 2           // its clock may be slow
	until := max(c.letGoOn+longest, c.Host.Resumed) // it may have stood still when the time was over
	return masters.IsCached(value) && k.scene.World.Now < until+k.attempt()
}

// Unpaid looks for releases that were not delivered although all has been well
// for a while.
func (k *checker) Unpaid() {
	for _, c := range k.scene.Clients {
		if c.IsStranger() {
			continue // no master accepts its commands; its keys expire
		}
		for _, l := range c.Links {
			if n := l.Owing(); n > 0 {
				k.Report(tally.Violation{
					Kind:    tally.Leftover,
					What:    fmt.Sprintf("%s has not delivered %d releases to %s although all is well again", c.Host.Name, n, l.Addr()),
					Clients: []int{c.Index},
				})
			}
		}
	}
}

// count keeps the number of leases that the client holds.
func (c *Client) count(e redlock.Event) {
	switch e.Kind {
	case redlock.LockAcquired:
		c.Leases++
		delete(c.over, e.Value) // a cached lock is held again
		c.GotOn = c.World.Now
	case redlock.LeaseReleased, redlock.LeaseLost:
		c.Leases--
		c.letGoOn = c.World.Now
	}
}

// Remains reports what masters keep of a client that has closed, and was born then,
// unless a fault has put it where it is.
func (k *checker) Remains(me masters.Owner, born time.Duration) {
	for _, m := range k.scene.Masters {
		for _, key := range slices.Sorted(maps.Keys(m.Keys.Keys)) {
			if e := m.Keys.Find(key); e != nil && (k.stores(m, key, e, me, born) || !displaced(m, born) && k.queues(m, key, e, me)) {
				k.Report(tally.Violation{
					Kind:    tally.Leftover,
					What:    fmt.Sprintf("%s still has %q of %s, which has closed", m.Host.Name, key, plan.ClientName(me.Client)),
					Clients: []int{me.Client},
				})
			}
		}
	}
}

// displaced reports whether a fault may have put there what a client that was born then has left. By a clock that
// is wrong it may stay for longer than its release is owed.
func displaced(m *fleet.Master, born time.Duration) bool {
	return max(m.Lapsed, m.Host.Clock.WrongUntil()) >= born
}

// stores reports whether a key is a client's, which was born then. Nobody keeps books of what is no lock.
func (k *checker) stores(m *fleet.Master, key string, e *masters.Entry, me masters.Owner, born time.Duration) bool {
	waiter, _ := masters.SplitValue(e.Value)
	astray := displaced(m, born) || k.strays[stray{m.Index, waiter}]
	if masters.IsLock(key) && !k.scene.Apart() {
		s := &k.Ledger.Book(key).at[m.Index]
		astray = s.astray || s.value == e.Value && k.scene.World.Now >= s.ends
	}
	return masters.OwnerOf(e.Value) == me && !astray
}

// queues reports whether a key is a queue in which a client waits.
func (k *checker) queues(m *fleet.Master, key string, e *masters.Entry, me masters.Owner) bool {
	return slices.ContainsFunc(e.Queue, func(q masters.Queued) bool {
		return strings.HasPrefix(q.Member, me.ID()+"/") && !k.strays[stray{m.Index, q.Member}] && !m.Keys.Over(key, q.Member)
	})
}

// rounds looks for rounds that go on although the client has no work, and all that it
// has asked was answered.
func (k *checker) rounds(c *Client) {
	if c.Asked == c.counted || c.Preemption.Every > 0 || c.Closing || c.API == nil || !c.Idle() {
		return
	}
	for _, l := range c.Links {
		if !l.Settled() {
			return
		}
	}
	c.counted = c.Asked
	for _, api := range c.APIs {
		if u := seam.UsageOf(api); u.Rounds > 0 {
			c.Blame(fmt.Sprintf("it has nothing to do, all that it asked was answered, and %d rounds go on", u.Rounds))
		}
	}
}

// An idle client keeps nothing of its past work in memory: a process that runs for a year makes
// a billion rounds.

// Forgetful is after how long a client without work has forgotten all of it: the queue
// of a lock that was contended stays for up to two seconds, and its timer may be stopped
// in the middle twice.
func (t *Scene) Forgetful() time.Duration {
	d := 3 * time.Second
	if p := t.Schedule.Preemption(); p.Every > 0 {
		d += 2 * p.Long
	}
	return d
}

// Usage looks for what clients keep in memory although all work was done long ago.
func (k *checker) Usage() {
	for _, c := range k.scene.Clients {
		if c.API == nil || c.Host.Down || c.Host.Rests() || c.IsStranger() || len(c.Host.Procs) > 0 {
			continue
		}
		for _, api := range c.APIs {
			if u := seam.UsageOf(api); u != (seam.Usage{}) {
				k.Report(tally.Violation{
					Kind:    tally.Leftover,
					What:    fmt.Sprintf("%s has had nothing to do for %v, and still has %+v in memory", c.Host.Name, k.scene.Forgetful(), u),
					Clients: []int{c.Index},
				})
			}
		}
	}
}
