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
	// SettingsOf tells how a *redlock.Client was configured.
	SettingsOf func(client any) Settings
	// OpenMaster is node.Open on other threads: it takes a node.Config and
	// returns a *node.Master.
	OpenMaster func(addr string, config any, on Threads) (any, error)
)

// Settings are what the masters of redlocktest must know of their client.
type Settings struct {
	Clock        clock.Clock
	RestartGuard time.Duration // zero: off
	Prefix       string        // of every key
}
