package redlock

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// AtLeast keeps the lock from all clients for d, however early it is unlocked: a short job that
// every instance starts at the same minute runs once. An Unlock before that ends the lease, but
// leaves the lock at the masters for the rest. So do Close, a loss, and the crash of the holder,
// whose lock lasts for the TTL or d, whichever is longer. Waiters learn when the lock ends. The
// error of a TryLock says for how long at most the lock is kept: Error.Remaining.
//
// d counts from when the masters had granted the lock and were asked to keep it, before Lock
// returns, which takes one round trip more. Each master measures d by its own clock, and no
// clock of a client matters: less than d may pass only by as much as the masters' clocks run
// fast. ForceUnlock frees the lock earlier. A lease that was adopted keeps the end that the first
// holder asked for. Of nested calls the option of the first Lock counts, and the last Unlock; see
// Reentrant.
//
// d is more than the node timeout, and at most the restart guard: a master that lost its memory
// must not grant the lock meanwhile. The restart guard is the client's TTL, unless
// WithRestartGuard makes it longer. d is at most MaxHold. Clients without AtLeast on the same lock
// respect it.
func AtLeast(d time.Duration) MutexOption {
	return atLeastOption{change: func(o *lockOptions) { o.atLeast = &d }}
}

// atLeastOption fits a Mutex but not a Multi: the masters keep one string key.
type atLeastOption struct {
	change
	fitsMutex
}

// To keep a lock is to store, beside its key, for which value the key stays, and until when by
// the master's own clock (keep.lua). A release of that value then does not delete the key: it
// has the key end at that instant, and changes its value, so that the lock has no holder
// (release.lua).
//
// Invariant: when Lock returns, a majority of the masters keeps the lock for the value, and each
// of them, unless it loses its memory, has the key until d has passed on its clock: extensions
// never shorten a TTL, and every release of a lease goes through keeping. No command that is
// late changes a lock that stays after its release: no holder has its value. A master that lost
// its memory does not vote for the restart guard, which is at least d. Every other
// majority has one of the masters that keep the lock.

// keepable is a claim to a lock that the masters can keep.
type keepable interface {
	keep(value string, d time.Duration) *wire.Command
	left() *wire.Command
}

func (e *exclusive) keep(value string, d time.Duration) *wire.Command {
	return wire.Keep(e.key, e.queue, value, d)
}

func (e *exclusive) left() *wire.Command { return wire.Left(e.key) }

// keeps has a majority keep the lock that the claim won, for a lock with AtLeast.
func (l *lock) keeps(ctx context.Context, cl claim, value string) (asked bool, _ *Error) {
	k, ok := cl.(keepable)
	if !ok {
		return false, nil
	}
	_, failed := l.askMore(ctx, cl, quorum.Question{Command: k.keep(value, *l.opt.atLeast), Since: l.client.watch.Now()})
	return true, failed
}

// keeping makes the release of a lease leave the lock where it is kept. Only the masters know for
// how long, and a majority does. A client does not tell a master that does not, as after a repair:
// its release may arrive late, or be that of an adopted lease, and would start d again (L56).
func (l *lock) keeping(release *wire.Command) *wire.Command {
	if l.opt.atLeast == nil {
		return release
	}
	return release.Keeping()
}

// keepingNothing makes the release of an attempt that came to nothing delete the key, also where
// a master keeps the lock for it already.
func (l *lock) keepingNothing(release *wire.Command) *wire.Command {
	if l.opt.atLeast == nil {
		return release
	}
	return release.KeepingNothing()
}

// lasting is for how long the key of the lock may stay that was stored with this TTL.
func (l *lock) lasting(ttl time.Duration) time.Duration {
	if l.opt.atLeast == nil {
		return ttl
	}
	return max(ttl, *l.opt.atLeast)
}

// remaining asks the masters when a lock that they have refused us will be free at a majority, if
// its holder neither extends nor releases it. It is zero if that is not known.
func (l *lock) remaining(ctx context.Context, cl claim, failed *Error) time.Duration {
	k, ok := cl.(keepable)
	if !ok || l.opt.atLeast == nil || reason(failed) != ErrTaken {
		return 0
	}
	c := l.client
	r := c.members.Ask(quorum.Question{Command: k.left(), Judge: answering{}, Since: c.watch.Now()})
	defer r.Free()
	if c.seams.Wait(ctx, r.Ready()) != nil || r.Outcome() != quorum.Won {
		return 0
	}
	var lefts []time.Duration
	for _, b := range r.Ballots(nil) {
		if left, ok := wire.LeftOf(b.Reply); ok && b.Vote == quorum.Granted && left >= 0 {
			lefts = append(lefts, left)
		}
	}
	if len(lefts) < c.members.Need() {
		return 0
	}
	slices.Sort(lefts)
	return lefts[c.members.Need()-1]
}

// answering counts every answer to Left as granted.
type answering struct{}

// Judge implements quorum.Judge.
func (answering) Judge(_ wire.Op, r wire.Reply) quorum.Vote {
	_, ok := wire.LeftOf(r)
	return taken(ok, false)
}
