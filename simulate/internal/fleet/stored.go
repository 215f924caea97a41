package fleet

import (
	"slices"

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

// shares reports whether a set of readers or permits has a member that is not over.
func (m *Master) shares(set string) bool {
	in := m.Keys.Members(set)
	return len(in) > 0 && in[len(in)-1].Score > m.Keys.Millis()
}
