// Package drift is the lock's idea of time: how long a lease is good for, how
// much time has really passed, and one timer for any number of deadlines.
//
// Everything here reads time through an injected clock.Clock, so that the same
// code runs in production, under clock.NewMock and in the simulator.
//
// It is for package redlock, and may change at any time.
package drift

import (
	"fmt"
	"math"
	"time"
)

// DefaultFactor is the share of a TTL by which two clocks may run apart while
// the TTL passes. It is the value of the Redlock specification.
const DefaultFactor = 0.01

// expiryPrecision covers what the factor cannot for small TTLs: Redis expires
// with a precision of one millisecond, and the client rounds to milliseconds.
const expiryPrecision = 2 * time.Millisecond

// Allowance returns how much of ttl is given up because the node's clock may
// run faster than ours: ttl*factor + 2ms.
func Allowance(ttl time.Duration, factor float64) time.Duration {
	return time.Duration(math.Ceil(float64(ttl)*factor)) + expiryPrecision
}

// Budget returns how long a lease of the given ttl may be relied on where no clock
// is set, counted from the instant before the first command was sent:
// ttl - Allowance(ttl, factor). It is never negative. Where the clock guard is on, a
// lease gives up UnnoticedBy as well: see clocks.go.
//
// The instant before the first send is the safe side: no node can have started
// its TTL earlier, so no node's key ends before the budget is used up.
func Budget(ttl time.Duration, factor float64) time.Duration {
	return max(0, ttl-Allowance(ttl, factor))
}

// CheckFactor refuses a drift factor that is not a share of a TTL.
func CheckFactor(factor float64) error {
	if math.IsNaN(factor) || factor < 0 || factor >= 1 {
		return fmt.Errorf("drift factor %v: must be at least 0 and less than 1", factor)
	}
	return nil
}
