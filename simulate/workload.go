package simulate

import (
	"context"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/view"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Process is code that runs on a simulated client. It is ordinary blocking code: the world
// stops it wherever it waits, and continues it when the awaited event has happened. Only its
// own code may call the methods of a Process.
type Process struct{ p *promises.Caller }

// Clock is the clock of one simulated host.
type Clock = world.Clock

// Storage is what a lock protects.
type Storage = promises.Storage

// Timeline is one recorded run of a schedule, to be written as text or as a page.
type Timeline = view.Timeline

// own makes a workload of users one of the simulation.
func own(workload func(*Process, *redlock.Client)) func(*promises.Caller, *redlock.Client) {
	if workload == nil {
		return nil
	}
	return func(p *promises.Caller, c *redlock.Client) { workload(&Process{p}, c) }
}

// Name returns the name of the process, as the timeline shows it.
func (p *Process) Name() string { return p.p.Name() }

// Clock returns the clock of the client that the process runs on.
func (p *Process) Clock() *Clock { return p.p.Clock() }

// Wait waits until ready delivers or is closed, and returns nil, or until ctx ends, and
// returns its error.
func (p *Process) Wait(ctx context.Context, ready <-chan struct{}) error { return p.p.Wait(ctx, ready) }

// Sleep waits for d on the client's clock and returns nil, or until ctx ends, and
// returns its error.
func (p *Process) Sleep(ctx context.Context, d time.Duration) error { return p.p.Sleep(ctx, d) }

// Client returns the number of the client that the process runs on, from 0.
func (p *Process) Client() int { return p.p.Client.Index }

// Over reports whether the faults of the schedule are over. The workload should end
// then.
func (p *Process) Over() bool { return p.p.Scene.Healed }

// Storage returns the resource that the lock protects.
func (p *Process) Storage() *Storage { return p.p.Scene.Storage(plan.LockName) }

// Holding tells the checks that the client relies on a lease from now on, until it calls
// letGo, or crashes.
func (p *Process) Holding(l *redlock.Lease) (letGo func()) { return p.p.Holding(l) }

// Fail reports a violation of the kind Custom: a promise that the workload itself checks
// is broken.
func (p *Process) Fail(format string, args ...any) { p.p.Fail(format, args...) }
