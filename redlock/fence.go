package redlock

import (
	"errors"
	"fmt"
	"sync"
)

// ErrStale: the resource has seen a higher token.
var ErrStale = errors.New("stale fencing token")

// Fence is the resource's side of fencing, for a resource in this process. It
// remembers the highest token of each resource and refuses lower ones, so that a
// holder that was paused beyond the end of its lease can do no harm (S7, S8). The zero
// value is ready. A Fence is safe for concurrent use.
//
// A resource such as a database or a Redis key keeps its token itself: see the
// examples. The check and the write must be one step there.
type Fence struct {
	mu      sync.Mutex
	highest map[string]uint64
}

// Check accepts a token that is at least as high as every token before, and otherwise
// returns ErrStale. Zero is not a token, and is refused.
func (f *Fence) Check(resource string, token uint64) error {
	if token == 0 {
		return fmt.Errorf("redlock: fence %q: %w: 0 is no token", resource, ErrStale)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if highest := f.highest[resource]; token < highest {
		return fmt.Errorf("redlock: fence %q: %w: token %d, and %d was seen", resource, ErrStale, token, highest)
	}
	if f.highest == nil {
		f.highest = make(map[string]uint64)
	}
	f.highest[resource] = token
	return nil
}
