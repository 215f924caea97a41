// Package seam is where the coordinator touches the outside world, beside the
// clock and the nodes: what the simulator replaces, and what only it may
// switch off. It is internal so that no user can weaken a lock.
package seam

import (
	"context"
	"time"
)

// Seams are the coordinator's injected parts. A nil field is as in production.
type Seams struct {
	// Wait is the only place where a caller blocks: it returns nil when ready
	// delivers or is closed, and ctx's error when ctx ends first.
	Wait func(ctx context.Context, ready <-chan struct{}) error
	// Random returns 64 random bits, for ids and jitter. It is called by one
	// goroutine at a time.
	Random func() uint64
	// Number numbers the acquisitions of a client; nil: from one on, each with a number of
	// its own (S20).
	Number func() uint64
	// Quorum is how many of so many nodes must grant; nil: a majority (S16).
	Quorum func(nodes int) int
	// Budget is how long a lease of ttl may be relied on; nil: with the drift allowance
	// taken off (S10).
	Budget func(ttl time.Duration) time.Duration
	// Rest is for how long nobody uses a client before it rests; zero: 10 s.
	Rest time.Duration
	// Steps, if set, may stop a caller that is about to lock a mutex or has unlocked
	// one.
	Steps *Steps
	// Unsafe switches protections off, to show what each of them prevents.
	Unsafe Unsafe
	// Guarded: nodes that are given to NewClient heed the options about guards.
	Guarded bool
}

// Unsafe holds the switches of protections that cannot be taken away from outside. The
// zero value has all protections.
type Unsafe struct {
	EarlyElapsed bool // elapsed time read before the votes are in (S6)
	LongTimeout  bool // a node timeout at or above the TTL
}

// Select is the Wait of production.
func Select(ctx context.Context, ready <-chan struct{}) error {
	if ctx.Done() == nil {
		<-ready // ctx never ends
		return nil
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
