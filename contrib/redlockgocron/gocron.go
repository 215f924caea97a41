// Package redlockgocron has several gocron schedulers run each job once, with locks of redlock:
// job by job with a Locker, or all jobs in one process with an Elector.
package redlockgocron

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/redlock"
)

// Locker is a gocron.Locker. It is safe for concurrent use.
type Locker struct {
	client  *redlock.Client
	period  time.Duration
	options []redlock.MutexOption
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a locker for gocron.WithDistributedLocker. However short a job is, no
// scheduler that begins it in the first nine tenths of period after another runs it again. So
// period is more than the schedulers' clocks differ by, and less than the time between two
// runs; its bounds are those of redlock.AtLeast. The lock is named as the job: give each job a
// name (gocron.WithName) that no other lock has, or the client a prefix (redlock.WithKeyPrefix).
//
// gocron keeps the error of a lock to itself: to see those that are not redlock.ErrTaken, add the
// event listener gocron.AfterLockError. Nor does it tell a job that its lock is lost; where it
// must not go on then, add redlock.StopWithin to the options.
func NewLocker(client *redlock.Client, period time.Duration, options ...redlock.MutexOption) *Locker {
	return &Locker{client, period, append([]redlock.MutexOption{redlock.AtLeast(period)}, options...)}
}

// Lock is called by gocron before it runs a job. It waits for up to a tenth of the period: of
// schedulers that begin at the same moment, one has the lock then, and the others are refused. A
// single attempt of each might be refused to all of them.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, l.period/10)
	defer cancel()
	lease, err := l.client.Mutex(job, l.options...).Lock(ctx)
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// Elector is a gocron.Elector. It is safe for concurrent use.
type Elector struct {
	election *redlock.Election
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an elector for gocron.WithDistributedElector. It leads only while Run
// runs.
func NewElector(election *redlock.Election) *Elector { return &Elector{election} }

// Run campaigns, and leads whenever it can, until ctx ends; others then see value, for example
// this host's name. Call it in a goroutine beside the scheduler, and end ctx when the scheduler
// has shut down. It returns the error of redlock.Election.Run.
func (e *Elector) Run(ctx context.Context, value string) error {
	return e.election.Run(ctx, value, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
}

// IsLeader is called by gocron before it runs a job, and runs none after an error. A job that
// runs when leadership ends goes on.
func (e *Elector) IsLeader(context.Context) error {
	if !e.election.IsLeader() {
		return fmt.Errorf("redlockgocron: this process does not lead: %w", redlock.ErrNotHeld)
	}
	return nil
}
