package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate"
)

// nested is locked again by its holder, up to three times. It is held until the last
// Unlock, so that the whole of the outer hold excludes all other clients.
var nested = &Workload{
	Name:      "nested",
	Callers:   1,
	Locks:     []string{"nested"},
	Capacity:  1,
	Simulated: simulate.PlainLock,
	Turn: func(ctx context.Context, c *Caller) error {
		name := c.anyLock()
		opts := []redlock.MutexOption{c.lockOption(), redlock.Reentrant()}
		h := c.Lock(ctx, name, opts...)
		if h == nil {
			return nil
		}
		defer func() {
			h.leave()
			h.counted(0)
		}()
		return h.again(c.client.Mutex(name, opts...), 2, 2+c.rand.IntN(3))
	},
	Check: func(h *History, lock string) []Finding {
		return append(h.lostUpdates(lock), h.misnested(lock)...)
	},
}

// again locks a lock that is held once more. It is then held depth times, and again
// goes on until it is held deepest times. Every hold updates the register.
func (h *Hold) again(m *redlock.Mutex, depth, deepest int) error {
	lease, err := m.Lock(h.lease.Context())
	switch {
	case err != nil && h.lease.Err() != nil:
		return nil // it was lost
	case err != nil:
		return fmt.Errorf("locked again by its holder: %w", err)
	case lease != h.lease:
		lease.Unlock(context.Background())
		if h.lease.Err() != nil {
			return nil // it was lost, and had anew
		}
		return fmt.Errorf("locked again by its holder: another lease, %s and not %s", lease.Value(), h.lease.Value())
	}
	h.counted(depth)
	err = h.update(h.locks[0], h.caller.upTo(5*time.Millisecond))
	if err == nil && depth < deepest {
		err = h.again(m, depth+1, deepest)
	}
	if err := lease.Unlock(context.Background()); err != nil && h.lease.Err() == nil {
		return fmt.Errorf("unlocked, and held before that as well: %w", err)
	}
	h.counted(depth - 1)
	if err != nil {
		return err
	}
	return h.update(h.locks[0], h.caller.upTo(5*time.Millisecond))
}

// counted notes how often the lease is to be held, and how often it says that it is.
func (h *Hold) counted(depth int) {
	e := Event{At: now(), Kind: Counted, Depth: depth, Count: seam.HoldsOf(h.lease)}
	if err := h.lease.Err(); err != nil {
		e.Text = reason(err)
	}
	h.note(e)
}

// nest is what a lease said of how often it was held.
type nest struct {
	lock, lease  string
	at           time.Duration
	depth, count int
	ended        string // why the lease had ended, or empty
}

// misnested finds leases that an Unlock in between ended, leases that the last Unlock
// did not end, and leases that miscount. A lost lease has no holds, whatever its
// depth.
func (h *History) misnested(lock string) (findings []Finding) {
	for _, n := range h.nests {
		lost := n.ended == redlock.ErrLost.Error() || n.ended == redlock.ErrExpired.Error()
		if n.lock != lock || n.count == n.depth || n.count == 0 && lost {
			continue
		}
		findings = append(findings, Finding{
			Check: Nesting, At: n.at, Lock: lock,
			Text: fmt.Sprintf("%s is held %d times and says %d (%s)", n.lease, n.depth, n.count, n.ended),
		})
	}
	return findings
}
