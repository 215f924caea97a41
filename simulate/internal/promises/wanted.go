package promises

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// This file checks that a lock is soon taken if it is free at a quorum of masters, and a caller
// that can reach them waits for it.

// want is a caller that waits for a lock.
type want struct {
	process *Caller
	ctx     context.Context
	names   []string
	permits int // how many the semaphore has, as far as the caller knows
	wanted  int // how many of them it wants
	reads   bool
	books   []*book // the books of names, as far as they were looked at
	began   time.Duration
	over    bool
	pause   time.Duration // since when it is left to callers that do not queue; negative: it is not
	free    time.Duration // since when the lock could be taken; negative: it cannot
	room    time.Duration // since when it has room beside others; negative: no room
	told    bool          // a violation was reported

	overtaken map[*Caller]int // how often later callers have overtaken it

	hopeless time.Duration // since when its masters have told it that no quorum has so many permits; zero: they have not
	outdated time.Duration // since when every master has another number of permits; zero: not so
}

// Wanting adds a caller that waits, until over is called.
func (k *checker) Wanting(p *Caller, ctx context.Context, a plan.Action) (over func()) {
	if k.scene.Apart() {
		return func() {}
	}
	w := &want{process: p, ctx: ctx, names: a.LockNames(), reads: a.Read, began: k.scene.World.Now, free: -1, room: -1, pause: -1}
	w.permits = p.Client.PermitsOf(w.names[0])
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

// taken notes that a client has got a lock, however briefly: the lock has not been free without
// a break.
func (k *checker) taken(cl *Claim) {
	for _, w := range k.wants {
		if slices.ContainsFunc(w.names, cl.about) {
			w.free = -1
		}
	}
}

// wanted reports locks that have been free and wanted for too long.
func (k *checker) wanted() {
	now := k.scene.World.Now
	k.looks++
	for _, w := range k.wants {
		if k.scene.Config.Resizes {
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
			k.Report(tally.Violation{
				Kind:    tally.FreeAndWanted,
				What:    fmt.Sprintf("%q has been free for %v while %s waits for it", w.names[0], plan.Short(d), w.process.Name()),
				Clients: []int{w.process.Client.Index},
			})
		}
	}
}

// outdates checks that a caller that waits for permits is notified if the semaphore has a
// different number of permits.
func (k *checker) outdates(w *want) {
	now, name := k.scene.World.Now, w.names[0]
	for _, m := range k.scene.Masters {
		if size := m.Permits(name); size == 0 || size == w.permits {
			w.outdated = 0
			return
		}
	}
	c, well := w.process.Client, 0
	for _, l := range c.Links {
		if l.Well() {
			well++
		}
	}
	if w.outdated == 0 || c.Host.Down || c.Host.Hangs() || well < quorum.Size(len(c.Links)) {
		w.outdated = now
	}
	since, limit := max(w.outdated, c.Host.Resumed), k.Trips() // no client may have looked while all stood still
	if since <= k.settled(c) || k.scene.Config.Deaf > 0 {
		limit = k.rest() + 2*k.attempt() + k.scene.Config.TTL/3
	}
	if late := now - since; late > limit && !w.told {
		w.told = true
		k.Report(tally.Violation{
			Kind:    tally.FreeAndWanted,
			What:    fmt.Sprintf("%s waits for one of %d permits of %q, and no master has had so many for %v", w.process.Name(), w.permits, name, plan.Short(late)),
			Clients: []int{w.process.Client.Index},
		})
	}
}

// available reports whether the caller that waits for a lock could take it.
func (k *checker) available(w *want) bool {
	free, left, pause := ^quorum.Set(0), quorum.Set(0), w.pause
	w.pause = -1
	for i, name := range w.names {
		if i == len(w.books) {
			w.books = append(w.books, k.Ledger.Book(name))
		}
		b := w.books[i]
		if b.looked != k.looks {
			k.lookAt(b)
		}
		if b.taken {
			return false
		}
		free, left = free&b.free, left|b.left
	}
	if k.scene.Config.Resizes {
		free &= k.know(w.names[0], w.permits)
	}
	c := w.process.Client
	if c.Host.Down || c.Host.Hangs() || free.Len() < quorum.Size(len(c.Links)) {
		return false
	}
	if k.scene.Config.Lock.Tells() && slices.ContainsFunc(k.wants, func(o *want) bool { return o.process.Host.Hangs() && slices.ContainsFunc(w.names, o.wants) }) {
		return false // it may be the turn of a waiter that was told so, and hangs
	}
	if c.looked != k.looks {
		c.looked, c.well, c.ill = k.looks, 0, 0
	}
	for i, l := range c.Links {
		switch {
		case !(free &^ c.well &^ c.ill).Has(i):
		case l.Well():
			c.well |= quorum.Only(i)
		default:
			c.ill |= quorum.Only(i)
		}
	}
	switch need := quorum.Size(len(c.Links)); {
	case (free & c.well &^ left).Len() >= need:
		return w.ctx.Err() == nil
	case (free & c.well).Len() >= need:
		w.pause = pause
		k.pausing(w)
		return false
	}
	if slices.ContainsFunc(c.Links, fleet.Connection.Held) {
		c.held = k.scene.World.Now
	}
	return false
}

// lookAt notes whether a lock is taken. If it is not, it notes the masters that do not
// store it, or store it for an attempt whose client is there to finish it.
func (k *checker) lookAt(b *book) {
	b.looked, b.free, b.left = k.looks, 0, 0
	b.taken = b.InUse > 0 || slices.ContainsFunc(k.Claims, func(cl *Claim) bool { return cl.occupies() && cl.about(b.name) })
	if b.taken {
		return
	}
	for i, m := range k.scene.Masters {
		if k.free(b, i) && !m.Shared(k.scene.Config.Lock, b.name) {
			b.free |= quorum.Only(i)
			if m.Yields(b.name) {
				b.left |= quorum.Only(i)
			}
		}
	}
}

func (k *checker) free(b *book, i int) bool {
	s := &b.at[i]
	if s.value == "" || k.scene.Masters[i].Left(s.until) < 0 {
		return true
	}
	if s.owner.Client < 0 || s.astray || s.ends <= k.scene.World.Now {
		return false // if s.ends has passed, a clock that was set back keeps the key
	}
	c := k.scene.Clients[s.owner.Client]
	// A client that owes the master a release sends it only with the next heartbeat: the
	// master has refused it.
	return c.Host.Life == s.owner.Life && !c.Host.Down && !c.Host.Hangs() && c.Links[i].Well() && c.Links[i].Owing() == 0
}

// soon is how long a lock may be free and wanted. If nothing went wrong recently, that is a few
// round trips. Otherwise it is the longest pause of a waiter, an attempt that meets only silent
// masters, and an attempt that succeeds. Meanwhile another waiter may have kept a minority.
//
// This is all that the checks know about how callers wait.
func (k *checker) soon(w *want) time.Duration {
	cfg := k.scene.Config
	rest, attempt := k.rest(), k.attempt()
	calm := k.calm(w)
	switch {
	case cfg.Deaf > 0:
		// It takes a while to know that no master will notify us; a registration may end meanwhile.
		return 2*rest + 4*attempt + cfg.TTL + 6*time.Second
	case w.free <= calm && cfg.Lock.Tells():
		// A waiter that was notified of its turn, and hangs, keeps its place until its registration
		// ends. Where the lock is handed over, it is not free meanwhile.
		return rest + 2*attempt + cfg.TTL
	case cfg.Polling:
		return rest + 2*attempt + LongestPoll
	case w.free <= calm || cfg.Lock.IsMulti():
		// Several locks are not handed over: a waiter with a minority gives it back with its
		// next ask, which may be its longest pause away.
		return rest + 2*attempt + cfg.TTL/3
	}
	return k.Trips()
}

// calm is since when nothing is wrong. A client that lets no master vote passes no turn on.
func (k *checker) calm(w *want) time.Duration {
	return max(k.settled(w.process.Client), k.scene.World.Rough+k.scene.longestHold()+looks)
}

// Trips is how long a lock takes to change hands, or a call to be answered, where
// nothing is wrong. A split vote takes an attempt, three asks and the pauses between
// them; a message takes up to twice the base latency.
func (k *checker) Trips() time.Duration { return 40*k.scene.Latency.Base + 10*time.Millisecond }

// rest is the longest pause of a waiter: after many attempts without a quorum, or when
// a message is lost.
func (k *checker) rest() time.Duration {
	return max(10*k.scene.Config.RetryInterval, k.scene.Config.TTL/3)
}

// attempt is how long one takes that meets only silent masters.
func (k *checker) attempt() time.Duration {
	return time.Duration(k.scene.Config.Nodes+2)*k.scene.Config.NodeTimeout + k.Trips()
}

// settled is until when disturbances have consequences for a client. The key of a client
// that crashed, or that was given a lock while it hung, stays until its TTL is over, and
// a waiter that found no quorum pauses. It also pauses after the end of quarantines that
// had left it no quorum.
func (k *checker) settled(c *Client) time.Duration {
	after := k.rest() + k.attempt()
	return max(k.scene.World.Rough+max(2*k.scene.Config.TTL+time.Second, after), c.held+after)
}

// LongestPoll is how seldom a waiter asks that polls.
const LongestPoll = 100 * time.Millisecond

// pauses is the time for which a lock was left to callers that do not queue, while others wait for it.
type pauses struct {
	looked time.Duration // when that was last so
	all    time.Duration
	passed bool // a caller that does not queue has asked for the lock
	told   bool
	by     *Client       // who has begun the last one
	until  time.Duration // its end
}

// leaves notes that a client leaves a lock to callers that do not queue.
func (k *checker) leaves(by *Client, cmd *wire.Command) {
	if cmd.Script == wire.ScriptYield {
		p := &k.Ledger.Book(cmd.Keys[0]).pauses
		p.by, p.until = by, k.scene.World.Now+milliseconds(cmd.Args[1])
	}
}

// open reports whether a call began in a pause, so that it found the lock free whoever waits. A
// client that has begun the pause itself knows that others wait, and must queue behind them (L74).
func (p *pauses) open(cl *Claim) bool { return p.by != cl.Client && cl.began < p.until }

// longestPause is how long a lock is left at a time.
const longestPause = 250 * time.Millisecond

// pausing looks at a lock that a caller could take, if the masters did not leave it to callers that
// do not queue. Such a pause is short. All pauses together are 1 % of the time, and at most as much
// for what masters are apart, until a caller was seen that does not queue.
func (k *checker) pausing(w *want) {
	now, p := k.scene.World.Now, &w.books[0].pauses
	if w.pause < 0 {
		w.pause = now
	}
	if w.pause <= k.calm(w) {
		return // masters whose clocks stand still leave it for longer
	}
	p.all += max(0, now-max(p.looked, w.pause)) // other callers may have counted it
	p.looked = now
	one, all, complaint := now-w.pause, p.all, ""
	switch {
	case one > longestPause+k.Trips():
		complaint = fmt.Sprintf("%q is left to callers that do not queue for %v", w.names[0], plan.Short(one))
	case all > now/50+20*time.Millisecond && !p.passed:
		complaint = fmt.Sprintf("%q was left to callers that do not queue for %v, and none was seen", w.names[0], plan.Short(all))
	}
	if complaint != "" && !p.told {
		p.told = true
		k.Report(tally.Violation{Kind: tally.FreeAndWanted, What: complaint, Clients: []int{w.process.Client.Index}})
	}
}
