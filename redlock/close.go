package redlock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// Close ends every lease of this client with ErrClosed as the cause. Operations under
// way finish; callers that wait for a lock get ErrClosed. Then Close releases
// everything at the nodes and closes them, side by side.
//
// Close waits for nodes that confirm, however many leases there are. A node that may
// store something of this client and does not confirm is waited for up to three
// seconds, but no longer than the TTL: it may hang, or the client may be reconnecting to
// it. The error, ErrUndelivered, names the releases that are not confirmed by then; their
// keys end with their TTL. Close does not wait for a node that was not asked for
// anything. Before all that, Close waits for work under a lock with StopWithin, for up to its
// grace. A stop that has not returned is then waited for like a node that does not confirm: as long
// as it runs the lock is not released. But a stop that runs when Close is called is not waited for,
// because it may be the caller. The time is that of WithClock: a mocked clock must be moved on
// where a node does not confirm.
//
// Every further Close waits for the first one, and returns the same. A stop that runs when a further Close is
// called is not waited for any longer, because it may be the caller.
func (c *Client) Close() error { return closeAll(c)[0] }

// closeAll closes clients side by side: all leases are ended before work is waited for, and released before a
// master is waited for that hangs.
func closeAll(clients ...*Client) []error {
	ours, errs := make([]bool, len(clients)), make([]error, len(clients)) // whether this call closes it, or waits for another one
	working := make([][]*Lease, len(clients))
	for i, c := range clients {
		working[i], ours[i] = c.beginClose()
	}
	for i, c := range clients {
		if ours[i] {
			c.endWork(working[i])
		}
	}
	for i, c := range clients {
		if ours[i] {
			c.seams.Wait(context.Background(), c.farewell.over)
			c.collect()
		}
	}
	for i, c := range clients {
		if ours[i] {
			c.endClose()
		} else {
			c.seams.Wait(context.Background(), c.farewell.ended)
		}
		errs[i] = c.farewell.result
	}
	return errs
}

// endClose closes the nodes when they are owed nothing more.
func (c *Client) endClose() {
	left := c.farewell.creditor.Load().await()
	c.timers.Close()
	c.farewell.result = errors.Join(left, node.CloseAll(c.members.Nodes()))
	close(c.farewell.ended)
}

// beginClose ends all leases, and begins to release them, but not those under which work goes on: these it
// returns. It reports false if another Close has begun.
func (c *Client) beginClose() (working []*Lease, ours bool) {
	for _, l := range c.leases() {
		l.mayClose()
	}
	c.paid()
	c.enter() // until endWork
	c.mu.Lock()
	if c.closed.Swap(true) {
		c.mu.Unlock()
		c.leave()
		return nil, false
	}
	c.mu.Unlock()
	leases := c.leases()
	// This comes before the leases are released, or they would be handed to our own
	// waiters.
	c.queues.Close()
	c.wakeFollowers()
	c.wakeRoused()
	for _, l := range leases {
		if l.end(ErrClosed) { // or it has ended, but its release may not have been given yet
			l.observeEnd(LeaseReleased, nil)
		}
	}
	releases := make([]*wire.Command, 0, len(leases))
	for _, l := range leases {
		if l.withholds() {
			working = append(working, l)
			continue
		}
		releases = append(releases, l.releaseCommand())
	}
	c.farewell.begin(c, releases)
	return working, true
}

// endWork waits until the work under leases has ended, or stop is called. Who ends the work releases the lease.
func (c *Client) endWork(working []*Lease) {
	for _, l := range working {
		l.awaitWork()
	}
	c.leave()
}

// farewell is what a client must do before its nodes may be closed: every operation
// under way must have given its last command, and every node must have answered the
// releases of all leases.
//
// Invariant: no operation begins after the client was closed, so that no node is given
// anything once the farewell is over, but the release of a lease whose stop returns then.
type farewell struct {
	calls atomic.Int64  // operations under way
	over  chan struct{} // closed when all is done, or no node answers any more
	once  sync.Once     // closes over

	creditor atomic.Pointer[creditor] // once Close waits for owed releases

	result error         // of Close
	ended  chan struct{} // closed when the result is known

	client *Client
	timer  drift.Timer
	mu     seam.Mutex
	parts  int  // that are not done
	idle   bool // all operations have finished
	heard  bool // a node has answered since the last check
	silent int  // checks in a row without an answer
}

// silentChecks is how many checks may find no answer: for a node timeout, and a little more. A
// client that was held up itself counts that as one check, so it does not blame the nodes for it.
const silentChecks = 5

// enter begins an operation that Close waits for, unless the client is closed. The
// caller calls leave in both cases.
func (c *Client) enter() (open bool) {
	c.farewell.calls.Add(1)
	return !c.closed.Load()
}

func (c *Client) leave() {
	if c.farewell.calls.Add(-1) == 0 && c.closed.Load() {
		c.farewell.lastLeft()
	}
}

// lastLeft may come more than once: operations that find the client closed come
// and go.
func (f *farewell) lastLeft() {
	f.mu.Lock()
	before := f.idle
	f.idle = true
	f.mu.Unlock()
	if !before {
		f.done()
	}
}

// begin has every node run the releases of what the leases left. It is not over before all operations are.
func (f *farewell) begin(c *Client, releases []*wire.Command) {
	nodes := c.members.Nodes()
	f.mu.Lock()
	f.client, f.parts = c, 1+len(nodes) // the operations are one part
	f.mu.Unlock()
	f.checkLater()
	for _, n := range nodes {
		s := &sweep{farewell: f, node: n, releases: releases}
		s.mu.In(c.seams.Steps)
		s.goOn()
	}
}

// done ends one part.
func (f *farewell) done() {
	f.mu.Lock()
	f.parts--
	last := f.parts == 0
	f.mu.Unlock()
	if last {
		f.end()
	}
}

func (f *farewell) end() { f.once.Do(func() { close(f.over) }) }

func (f *farewell) hear() {
	f.mu.Lock()
	f.heard = true
	f.mu.Unlock()
}

func (f *farewell) checkLater() {
	f.client.timers.Set(&f.timer, f.client.opt.nodeTimeout/(silentChecks-1), f)
}

// Fire gives up when no node has answered for too long. It does not give up operations under way: each
// ends by itself, and may still have a key to release.
func (f *farewell) Fire() {
	f.mu.Lock()
	f.silent++
	if f.heard || !f.idle {
		f.heard, f.silent = false, 0
	}
	unanswered := f.silent >= silentChecks
	f.mu.Unlock()
	if unanswered {
		f.end()
		return
	}
	f.checkLater()
}

// sweep gives one node a list of releases, no faster than it keeps up: a node refuses
// most of a hundred thousand releases that arrive together.
type sweep struct {
	*farewell
	node     node.Node
	releases []*wire.Command

	mu     seam.Mutex
	given  int  // how many of the releases
	open   int  // how many were not answered yet
	giving bool // a goroutine is giving
	over   bool
}

// window is how many releases of a sweep may be unanswered.
const window = 1024

func (s *sweep) goOn() {
	s.mu.Lock()
	if s.giving {
		s.mu.Unlock()
		return
	}
	s.giving = true
	for s.given < len(s.releases) && s.open < window {
		cmd := s.releases[s.given]
		s.given++
		s.open++
		s.mu.Unlock()
		s.node.Do(cmd, s.answered)
		s.mu.Lock()
	}
	s.giving = false
	through := s.given == len(s.releases) && s.open == 0 && !s.over
	s.over = s.over || through
	s.mu.Unlock()
	if through {
		s.done()
	}
}

// answered goes on when half of the window is free, so that the next releases can
// share a write.
func (s *sweep) answered(r wire.Reply) {
	if r.Err == nil {
		s.hear() // a node that fails late must not have the others waited for longer
	}
	s.mu.Lock()
	s.open--
	wait := s.open > window/2 || s.open > 0 && s.given == len(s.releases)
	s.mu.Unlock()
	if !wait {
		s.goOn()
	}
}
