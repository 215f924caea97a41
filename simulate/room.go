package simulate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// This file checks that who has died keeps nobody waiting where others hold a part of the
// lock: a caller that wants permits which are free, or to read beside readers, and before
// which nobody waits who is alive, gets in (L40). It goes by what the masters store, by whose
// connections they have, and by who waits.

// cramped reports callers that have waited for too long although there is room for them.
// That is as long as a waiter pauses at most, and may meet silent masters meanwhile: less
// than the registration of a dead waiter lasts, unless TTLs are short.
func (k *checker) cramped(w *want) {
	now := k.trial.world.now
	if !k.hasRoom(w) {
		w.room = -1
		return
	}
	if w.room < 0 {
		w.room = now
	}
	if d := now - max(w.room, w.process.host.resumed); d > k.rest()+2*k.attempt() && !w.told {
		w.told = true
		k.report(Violation{
			Kind:    FreeAndWanted,
			What:    fmt.Sprintf("%s has waited for %q for %v, where there is room for it, and nobody before it is alive", w.process.name, w.names[0], short(d)),
			Clients: []int{w.process.client.index},
		})
	}
}

// hasRoom reports whether a quorum of masters has room for a caller that waits.
func (k *checker) hasRoom(w *want) bool {
	c, kind := w.process.client, k.trial.config.Lock
	shares := kind == ReadWriteLock && w.reads || kind.IsSemaphore() && len(k.resizes) == 0
	if !shares || c.host.down || c.host.hangs() || w.ctx.Err() != nil || k.trial.config.deaf > 0 || !k.fitsBesides(w) {
		return false
	}
	var roomy quorum.Set
	slots := make([]int, w.permits) // by number: at how many of the masters it is free
	for i, m := range c.masters {
		if l := c.links[i]; l.well() && l.owed() == 0 && k.roomAt(m, w) {
			roomy |= quorum.Only(i)
			m.countFree(w.names[0], slots)
		}
	}
	same := 0
	for _, free := range slots {
		if free == roomy.Len() {
			same++
		}
	}
	return roomy.Len() >= quorum.Size(len(c.links)) && (kind == ReadWriteLock || same >= w.wanted)
}

// fitsBesides reports whether what is held leaves room for a caller, and nobody else waits
// but readers beside a reader, and those who came later.
func (k *checker) fitsBesides(w *want) bool {
	name := w.names[0]
	for _, o := range k.wants {
		later := w.reads && o.reads || !w.reads && o.began > w.began+k.trips() && o.process.client != w.process.client
		if o != w && o.wants(name) && (!later || o.process.host.hangs()) {
			return false
		}
	}
	held := 0
	for _, cl := range k.claims {
		if !cl.about(name) || cl.ended {
			continue
		}
		if held += cl.permits; w.reads && !cl.shared() {
			return false
		}
	}
	return held+w.wanted <= w.permits || w.reads
}

// roomAt reports whether a master stores no writer, or as many permits as the caller
// believes, and has nobody queued before the caller but the dead.
func (k *checker) roomAt(m *master, w *want) bool {
	name := w.names[0]
	if w.reads {
		return m.keys.Find(name) == nil && k.firstAlive(m, w, "redlock:queue:"+name) && k.firstAlive(m, w, "redlock:intent:"+name)
	}
	size := m.permits(name)
	return (size == 0 || size == w.permits) && k.firstAlive(m, w, "redlock:permitqueue:"+name)
}

// firstAlive reports whether none who is alive and waits is queued at a master before the
// caller's client: who has the lock does not wait. A process that has died is dead to the master when that has learned of the end of
// its connections.
func (k *checker) firstAlive(m *master, w *want, queue string) bool {
	c, own, waiting := w.process.client, 0, 0
	for _, q := range m.keys.Members(queue) {
		who := masters.OwnerOf(q.Member)
		if who == c.me() {
			own++
			continue
		}
		if k.holdsAs(q.Member) {
			continue
		}
		alive := who.Client < 0 || !k.trial.clients[who.Client].host.down && k.trial.clients[who.Client].me() == who
		if own == 0 && (alive || m.listens(wire.WaitChannel("", q.Member[:strings.LastIndexByte(q.Member, '/')]))) {
			return false
		}
	}
	for _, o := range k.wants {
		if o.process.client == c && o.wants(w.names[0]) {
			waiting++
		}
	}
	return own <= waiting // one more has not left the queue yet
}

// holdsAs reports whether a waiter shares the lock with others by now.
func (k *checker) holdsAs(waiter string) bool {
	return slices.ContainsFunc(k.claims, func(cl *claim) bool {
		theirs, _ := masters.SplitValue(cl.value)
		return theirs == waiter && cl.shared() && !cl.ended
	})
}

// countFree counts the slots of a semaphore that are free at the master.
func (m *master) countFree(name string, slots []int) {
	in := m.keys.Members("redlock:slots:" + name)
	for slot := range slots {
		taken := func(q masters.Queued) bool {
			return q.Score > m.keys.Millis() && slices.Equal(wire.Slots(q.Member).Numbers(), []int{slot})
		}
		if !slices.ContainsFunc(in, taken) {
			slots[slot]++
		}
	}
}
