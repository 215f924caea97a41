// Package defaults has the values of the options of package redlock that a client does not set, for
// the commands, the simulator and the benchmarks. The comments of the options say them to users.
package defaults

import (
	"time"

	"github.com/quorumlock/quorumlock/drift"
)

const (
	TTL           = 30 * time.Second       // of redlock.WithTTL
	NodeTimeout   = 50 * time.Millisecond  // of redlock.WithNodeTimeout
	RetryInterval = 100 * time.Millisecond // of redlock.WithRetryInterval
	ClockGuard    = drift.Unnoticed        // of redlock.WithClockGuard
)
