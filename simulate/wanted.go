package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// This file checks that a lock is soon taken if it is free at a quorum of masters,
// and somebody waits for it who can reach them.

// want is a caller that waits for a lock.
type want struct {
	process *Process
	ctx     context.Context
	names   []string
	permits int // how many the semaphore has, as far as the caller knows
	wanted  int // how many of them it wants
	reads   bool
	books   []*book // those of names, as far as they were looked at
	began   time.Duration
	over    bool
	free    time.Duration // since when the lock could be taken; negative: it cannot
	room    time.Duration // since when there is room for it beside others; negative: there is none
	told    bool          // a violation was reported

	overtaken map[*Process]int // how often, by those who came later

	hopeless time.Duration // since when its masters have told it that no quorum has so many permits; zero: they have not
	outdated time.Duration // since when every master has another number of permits; zero: not so
}

// wanting adds a caller that waits, until over is called.
func (k *checker) wanting(p *Process, ctx context.Context, a Action) (over func()) {
	w := &want{process: p, ctx: ctx, names: a.names(), reads: a.Read, began: k.trial.world.now, free: -1, room: -1}
	w.permits = p.client.permitsOf(w.names[0])
	w.wanted = min(max(1, a.Permits), w.permits)
	k.wants = append(k.wants, w)
	return func() {
		w.over = true
		for i, o := range k.wants {
			if o == w {
				k.wants = append(k.wants[:i], k.wants[i+1:]...)
				return
			}
		}
	}
}

func (w *want) wants(name string) bool { return slices.Contains(w.names, name) }

// taken notes that somebody has got a lock, however briefly: it has not been free
// without a break.
func (k *checker) taken(cl *claim) {
	for _, w := range k.wants {
		if slices.ContainsFunc(w.names, cl.about) {
			w.free = -1
		}
	}
}

// wanted reports locks that have been free and wanted for too long.
func (k *checker) wanted() {
	now := k.trial.world.now
	k.looks++
	for _, w := range k.wants {
		if k.trial.config.resizes {
			k.outdates(w)
			k.despairs(w)
		}
		k.cramped(w)
		if !k.available(w) {
			w.free = -1
			continue
		}
		if w.free < 0 {
			w.free = now
		}
		if d := now - w.free; d > k.soon(w) && !w.told {
			w.told = true
			k.report(Violation{
				Kind:    FreeAndWanted,
				What:    fmt.Sprintf("%q has been free for %v while %s waits for it", w.names[0], short(d), w.process.name),
				Clients: []int{w.process.client.index},
			})
		}
	}
}

// outdates looks at a caller that waits for permits of a semaphore which has another
// number of them: it is told so.
func (k *checker) outdates(w *want) {
	now, name := k.trial.world.now, w.names[0]
	for _, m := range k.trial.masters {
		if size := m.permits(name); size == 0 || size == w.permits {
			w.outdated = 0
			return
		}
	}
	c, well := w.process.client, 0
	for _, l := range c.links {
		if l.well() {
			well++
		}
	}
	if w.outdated == 0 || c.host.down || c.host.hangs() || well < quorum.Size(len(c.links)) {
		w.outdated = now
	}
	since, limit := max(w.outdated, c.host.resumed), k.trips() // nobody may have looked while all stood still
	if since <= k.settled(c) || k.trial.config.deaf > 0 {
		limit = k.rest() + 2*k.attempt() + k.trial.config.TTL/3
	}
	if late := now - since; late > limit && !w.told {
		w.told = true
		k.report(Violation{
			Kind:    FreeAndWanted,
			What:    fmt.Sprintf("%s waits for one of %d permits of %q, and no master has had so many for %v", w.process.name, w.permits, name, short(late)),
			Clients: []int{w.process.client.index},
		})
	}
}

// available reports whether the caller that waits for a lock could take it.
func (k *checker) available(w *want) bool {
	free := ^quorum.Set(0)
	for i, name := range w.names {
		if i == len(w.books) {
			w.books = append(w.books, k.ledger.book(name))
		}
		b := w.books[i]
		if b.looked != k.looks {
			k.lookAt(b)
		}
		if b.taken {
			return false
		}
		free &= b.free
	}
	if k.trial.config.resizes {
		free &= k.know(w.names[0], w.permits)
	}
	c := w.process.client
	if c.host.down || c.host.hangs() || free.Len() < quorum.Size(len(c.links)) {
		return false
	}
	if k.trial.config.Lock.tells() && slices.ContainsFunc(k.wants, func(o *want) bool { return o.process.host.hangs() && slices.ContainsFunc(w.names, o.wants) }) {
		return false // it may be the turn of a waiter that was told so, and hangs
	}
	if c.looked != k.looks {
		c.looked, c.well, c.ill = k.looks, 0, 0
	}
	for i, l := range c.links {
		switch {
		case !(free &^ c.well &^ c.ill).Has(i):
		case l.well():
			c.well |= quorum.Only(i)
		default:
			c.ill |= quorum.Only(i)
		}
	}
	if (free & c.well).Len() >= quorum.Size(len(c.links)) {
		return w.ctx.Err() == nil
	}
	if slices.ContainsFunc(c.links, connection.held) {
		c.held = k.trial.world.now
	}
	return false
}

// lookAt notes whether a lock is taken. If it is not, it notes the masters that do not
// store it, or store it for an attempt whose client is there to finish it.
func (k *checker) lookAt(b *book) {
	b.looked, b.free = k.looks, 0
	b.taken = b.inUse > 0 || slices.ContainsFunc(k.claims, func(cl *claim) bool { return !cl.ended && cl.about(b.name) })
	if b.taken {
		return
	}
	for i, m := range k.trial.masters {
		if k.free(b, i) && !m.shared(k.trial.config.Lock, b.name) {
			b.free |= quorum.Only(i)
		}
	}
}

// shared reports whether the master stores readers or permits of a lock.
func (m *master) shared(kind LockKind, name string) bool {
	switch {
	case kind == ReadWriteLock:
		return m.shares("redlock:readers:" + name)
	case kind.IsSemaphore():
		return m.shares("redlock:slots:" + name)
	}
	return false
}

// shares reports whether a set of readers or permits has a member that is not over.
func (m *master) shares(set string) bool {
	in := m.keys.Members(set)
	return len(in) > 0 && in[len(in)-1].Score > m.keys.Millis()
}

func (k *checker) free(b *book, i int) bool {
	s := &b.at[i]
	if s.value == "" || k.trial.masters[i].left(s.until) < 0 {
		return true
	}
	if s.owner.Client < 0 || s.astray || s.ends <= k.trial.world.now {
		return false // if s.ends has passed, a clock that was set back keeps the key
	}
	c := k.trial.clients[s.owner.Client]
	// A client that owes the master a release sends it only with the next heartbeat: the
	// master has refused it.
	return c.host.life == s.owner.Life && !c.host.down && !c.host.hangs() && c.links[i].well() && c.links[i].owed() == 0
}

// well implements connection. A silent crash of the master leaves its connections as
// they are. They belong to its former life, and the client learns that from its next
// heartbeat.
func (l *link) well() bool {
	h, w := l.master.host, l.wire
	return l.greeted && l.conn.life == h.life && !h.down && !h.stopped() && l.master.refuses == nil &&
		w.cut[outward] == 0 && w.cut[inward] == 0 && w.slow == 0 &&
		l.conn.out.last <= l.world.now+2*w.latency.base && l.conn.in.last <= l.world.now+2*w.latency.base &&
		!l.held()
}

func (l *link) held() bool { return l.guard.Admit(wire.OpAcquire) != nil }

// soon is how long a lock that is free and wanted may stay so. Where nothing went wrong
// lately that is a few round trips. Elsewhere it is the longest pause of a waiter, an
// attempt that meets only silent masters, and one that succeeds; and meanwhile another
// waiter may have kept a minority.
//
// This is all that the checks know about how callers wait.
func (k *checker) soon(w *want) time.Duration {
	cfg := k.trial.config
	rest, attempt := k.rest(), k.attempt()
	calm := k.settled(w.process.client)
	switch {
	case w.free <= calm && cfg.Lock.tells():
		// A waiter that was told that it is its turn, and hangs, keeps its place until its
		// registration ends. Where the lock is handed over, it is not free meanwhile.
		return rest + 2*attempt + cfg.TTL
	case cfg.deaf > 0:
		// It takes a while to know that nobody will tell us; a registration may end meanwhile.
		return 2*rest + 4*attempt + cfg.TTL + 6*time.Second
	case cfg.polling:
		return rest + 2*attempt + longestPoll
	case w.free <= calm || cfg.Lock.IsMulti():
		// Several locks are not handed over: a waiter with a minority gives it back with its
		// next ask, which may be its longest pause away.
		return rest + 2*attempt + cfg.TTL/3
	}
	return k.trips()
}

// trips is how long a lock takes to change hands, or a call to be answered, where
// nothing is wrong. A split vote takes an attempt, three asks and the pauses between
// them; a message takes up to twice the base latency.
func (k *checker) trips() time.Duration { return 40*k.trial.latency.base + 10*time.Millisecond }

// rest is the longest pause of a waiter: after many attempts without a quorum, or when
// a message is lost.
func (k *checker) rest() time.Duration {
	return max(10*k.trial.config.retryInterval, k.trial.config.TTL/3)
}

// attempt is how long one takes that meets only silent masters.
func (k *checker) attempt() time.Duration {
	return time.Duration(k.trial.config.Nodes+2)*k.trial.config.nodeTimeout + k.trips()
}

// settled is until when disturbances have consequences for a client. The key of a client
// that crashed, or that was given a lock while it hung, stays until its TTL is over, and
// a waiter that found no quorum pauses. It also pauses after the end of quarantines that
// had left it no quorum.
func (k *checker) settled(c *client) time.Duration {
	after := k.rest() + k.attempt()
	return max(k.trial.world.rough+max(2*k.trial.config.TTL+time.Second, after), c.held+after)
}
