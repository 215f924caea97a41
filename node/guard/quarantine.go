package guard

import (
	"errors"
	"fmt"
	"time"
)

// Why a master may not vote. Compare with errors.Is.
var (
	// ErrQuarantined: the node may have forgotten leases that still run, and
	// must not grant until they have ended (restart guard, clock guard).
	ErrQuarantined = errors.New("quarantined")
	// ErrSameNode: the same server is configured twice.
	ErrSameNode = errors.New("same server as another node")
)

// Quarantine is why a master must not grant.
func Quarantine(rest time.Duration, reason string) error {
	return fmt.Errorf("%w for another %v: %s", ErrQuarantined, rest.Round(time.Millisecond), reason)
}
