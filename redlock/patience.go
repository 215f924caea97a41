package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

// patience decides how long to wait between the attempts of one Lock, by how
// the attempts before have failed.
type patience struct {
	splits int // votes that were split
	misses int // attempts in a row that found no quorum
}

const (
	// splitPause is the first pause after a split vote, about two round trips.
	splitPause = time.Millisecond
	// maxMisses bounds how much longer the pauses get while no quorum answers.
	maxMisses = 10
)

// wait returns when another attempt makes sense, or with ctx's error.
func (p *patience) wait(ctx context.Context, w *waiter, failed *Error) error {
	c := w.room.lobby.client
	interval := c.opt.retryInterval
	if failed.Err == ErrNoQuorum {
		// Masters that are too slow to answer in time must not be kept so by
		// our questions, so there are ever fewer of them.
		p.misses++
		return w.rest(ctx, c.jitter(interval*time.Duration(min(p.misses, maxMisses))))
	}
	p.misses = 0
	if failed.contested() {
		// Nobody may have won. Whoever gets through the gate tries again soon,
		// and ever less soon, so that one of the contenders wins (L2).
		p.splits++
		return w.wait(ctx, c.jitter(min(interval, splitPause<<min(p.splits, 6))))
	}
	return w.wait(ctx, w.pause(c.jitter(interval), failed.freeIn))
}

// contested reports whether the vote was split: we were refused by some and
// granted by others, which a lock that is simply held does not do for long.
func (e *Error) contested() bool {
	if e.Err != ErrTaken {
		return false
	}
	for _, v := range e.Votes {
		if v.Vote == quorum.Granted {
			return true
		}
	}
	return false
}
