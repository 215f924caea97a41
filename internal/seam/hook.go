package seam

import (
	"time"

	"github.com/benbjohnson/clock"
)

// The doors into packages redlock and node that only packages of this module can
// open. They are set when those are initialised, and say any where they mean
// their types, which cannot be named here.
var (
	// Option returns the redlock.Option that replaces the seams of a client.
	Option func(Seams) any
	// InGroup returns the redlock.Option WithGroup and WithSpread for a client of nodes that the caller
	// has made, of masters that share a *guard.Group.
	InGroup func(name string, masters any) any
	// NewClient returns the *redlock.Client of nodes that the caller has made, a []node.Node, with
	// options, a []redlock.Option. The client owns the nodes: Close closes them. It fails, and leaves
	// the nodes alone, if an option is out of range or a node is nil or listed twice. Options about
	// connections and guards belong to Dial: these nodes bring their own. See Seams.Guarded.
	NewClient func(nodes, opts any) (any, error)
	// HoldsOf returns how often a *redlock.Lease is held: once, and once more for every nested
	// Lock that was not unlocked; zero once it has ended.
	HoldsOf func(lease any) int
	// IsShared reports whether others may hold the lock of a *redlock.Lease at the same time,
	// for reading.
	IsShared func(lease any) bool
	// SettingsOf tells how a *redlock.Client was configured.
	SettingsOf func(client any) Settings
	// GiveBack has a *redlock.Client give back the Cached locks that nobody uses.
	GiveBack func(client any)
	// UsageOf tells what a *redlock.Client keeps in memory.
	UsageOf func(client any) Usage
	// AnswersOnly reports whether the votes of a *redlock.Error are answers to a question:
	// there was nothing to be granted.
	AnswersOnly func(failed any) bool
	// OpenMaster is node.Open on other threads: it takes a node.Config and
	// returns a *node.Master.
	OpenMaster func(addr string, config any, on Threads) (any, error)
)

// Usage counts what a client keeps in memory for work under way. All counts are zero when
// no work is under way and no call was made for a few seconds.
type Usage struct {
	Timers int // that are set
	Rounds int // in use; counted only if the client has Steps
	Leases int // on the list that Close would end
	Scopes int // of functions that Do runs under them
	Queues int // of callers that wait for a lock
	Known  int // waiters that are registered at the masters, or whose lease is not released yet
	Gone   int // departed waiters that are being withdrawn
}

// Settings are what the masters of redlocktest must know of their client.
type Settings struct {
	Clock        clock.Clock
	RestartGuard time.Duration // zero: off
	Prefix       string        // of every key
}
