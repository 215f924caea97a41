package fleet

import (
	"math"
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// Members returns the members of a sorted set whose time is not over.
func (m *Master) Members(set string) (list []string) {
	for _, q := range m.Keys.Members(set) {
		if q.Score > m.Keys.Millis() {
			list = append(list, q.Member)
		}
	}
	return list
}

// OwnerOf returns the waiter that has a permit.
func (m *Master) OwnerOf(lock, slot string) string {
	if e := m.Keys.Find("redlock:owners:" + lock); e != nil {
		return e.Texts[slot]
	}
	return ""
}

// Permits returns the number of permits that a master has stored for a semaphore; zero if it
// has stored none.
func (m *Master) Permits(name string) int {
	size, _ := m.Keys.Size(masters.PermitKeys{Limit: "redlock:permits:" + name})
	return size
}

// CountFree counts the slots of a semaphore that are free at the master.
func (m *Master) CountFree(name string, slots []int) {
	in := m.Keys.Members("redlock:slots:" + name)
	for slot := range slots {
		taken := func(q masters.Queued) bool {
			return q.Score > m.Keys.Millis() && slices.Equal(wire.Slots(q.Member).Numbers(), []int{slot})
		}
		if !slices.ContainsFunc(in, taken) {
			slots[slot]++
		}
	}
}

// Shared reports whether the master stores readers or permits of a lock.
func (m *Master) Shared(kind plan.LockKind, name string) bool {
	switch {
	case kind == plan.ReadWriteLock:
		return m.shares("redlock:readers:" + name)
	case kind.IsSemaphore():
		return m.shares("redlock:slots:" + name)
	}
	return false
}

// Yields reports whether the lock is left to callers that do not queue.
func (m *Master) Yields(name string) bool { return m.Keys.Yields(name) }

// Share returns what a waiter has of a lock, as a reader or by permits: as if it were a key of
// its own, which ends when the share does. It returns nil if the waiter has nothing. which lists
// the permits.
func (m *Master) Share(kind plan.LockKind, name, waiter string) (e *masters.Entry, which string) {
	if kind == plan.ReadWriteLock {
		values := m.Keys.Find("redlock:reading:" + name)
		until, reads := m.Keys.Score("redlock:readers:"+name, waiter)
		if !reads || values == nil {
			return nil, ""
		}
		return &masters.Entry{Value: values.Texts[waiter], Until: until}, ""
	}
	which, value, has := m.Keys.SlotsOf(masters.PermitKeys{Held: "redlock:held:" + name}, waiter)
	if !has {
		return nil, ""
	}
	e = &masters.Entry{Value: value, Until: math.MaxInt64}
	for slot := range strings.SplitSeq(which, ",") {
		until, taken := m.Keys.Score("redlock:slots:"+name, slot)
		if !taken || m.OwnerOf(name, slot) != waiter {
			return nil, ""
		}
		e.Until = min(e.Until, until)
	}
	return e, which
}

// shares reports whether a set of readers or permits has a member that is not over.
func (m *Master) shares(set string) bool {
	in := m.Keys.Members(set)
	return len(in) > 0 && in[len(in)-1].Score > m.Keys.Millis()
}
