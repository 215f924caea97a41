package chaos

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// Hold is a lease under observation: from the first to the last moment at
// which it is known to be valid.
type Hold struct {
	caller *Caller
	lease  *redlock.Lease
	since  time.Duration // it was wanted
	locks  []string      // that it is for: several of a Multi
	over   chan struct{} // closed when the lease is given up
	done   sync.WaitGroup

	mu    sync.Mutex
	until time.Duration // the end of its validity, as last seen
	part  string        // of its life: a writer's that became a reader is another span
}

const (
	// lookInterval is how often a lease is looked at.
	lookInterval = time.Millisecond
	// noteInterval is how often that is written down: what a process that is
	// killed has not written is not known.
	noteInterval = 20 * time.Millisecond
)

// hold begins to observe a lease that was wanted since an instant. Weight is how
// much of its locks it takes.
func (c *Caller) hold(lease *redlock.Lease, since time.Duration, weight int, locks ...string) *Hold {
	h := &Hold{caller: c, lease: lease, since: since, locks: locks, over: make(chan struct{})}
	h.begin(weight)
	h.done.Go(h.watch)
	return h
}

// begin notes that the lease is valid from now on.
func (h *Hold) begin(weight int) {
	h.look()
	if at := now(); h.look() {
		h.note(Event{At: at, Kind: Held, Since: h.since, Weight: weight, Token: h.lease.Token()})
	}
}

// downgrade makes a writer a reader, of the given weight.
func (h *Hold) downgrade(ctx context.Context, m *redlock.RWMutex, weight int) {
	h.note(h.end())
	h.mu.Lock()
	h.part = " downgraded"
	h.mu.Unlock()
	if m.Downgrade(ctx, h.lease) == nil {
		h.begin(weight)
	}
}

// look reports whether the lease is valid, and remembers until when.
func (h *Hold) look() bool {
	until := h.lease.Until()
	if until.IsZero() {
		return false
	}
	// The clock is read last: a pause in between makes the end later, and no
	// announcement late that was in time.
	left := time.Until(until)
	end := now() + left
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = end
	return true
}

// watch looks at the lease until it ends or is given up. It also notes when it was not
// run: one thread can stand still while that of watchForStalls is run.
func (h *Hold) watch() {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	last := now() // when its end was certainly not announced
	for noted := last; ; {
		idle := now()
		select {
		case <-h.over:
			return
		case <-h.lease.Done():
			h.ended(last, now())
			return
		case <-ticker.C:
			at := now()
			if at-idle >= stall {
				h.caller.note(Event{At: idle, Kind: Stalled, Until: at})
			}
			if h.lease.Context().Err() != nil {
				h.ended(last, at)
				return
			}
			last = at
			if h.look() && at-noted >= noteInterval {
				noted = at
				h.note(Event{At: at, Kind: Valid})
			}
		}
	}
}

// ended notes a loss that was announced between two instants. They are far apart
// where this goroutine was not run, which says nothing of the announcing goroutine.
func (h *Hold) ended(after, at time.Duration) {
	cause := context.Cause(h.lease.Context())
	if errors.Is(cause, redlock.ErrUnlocked) || errors.Is(cause, redlock.ErrClosed) {
		return
	}
	h.mu.Lock()
	until := h.until
	h.mu.Unlock()
	h.note(Event{At: at, Kind: Lost, Since: after, Until: until, Text: cause.Error()})
}

// valid reports whether the lease is valid.
func (h *Hold) valid() bool { return h.lease.Valid() }

// leave gives the lease up. Most callers' contexts end before they do.
func (h *Hold) leave() {
	e := h.end()
	close(h.over)
	h.done.Wait()
	h.note(e)
	ended, end := context.WithCancel(context.Background())
	end()
	err := h.lease.Unlock(ended)
	h.caller.note(Event{At: now(), Kind: Unlocked, Text: reason(err)})
}

// end is what to note when the lease is relied on no more.
func (h *Hold) end() Event {
	e := Event{At: now(), Kind: Left}
	if h.look() {
		e.Until = e.At // valid later, so valid then
	}
	return e
}

// note writes down what happened to the lease, once for each of its locks.
func (h *Hold) note(e Event) {
	h.mu.Lock()
	id := h.lease.Value() + h.part
	h.mu.Unlock()
	for _, lock := range h.locks {
		e.Lock, e.Lease = lock, id
		if len(h.locks) > 1 {
			e.Lease += " " + lock
		}
		h.caller.note(e)
	}
}

// update changes a register as one who relies on the lock: a careful user, who
// looks again before it writes.
func (h *Hold) update(register string, pause time.Duration) error {
	return h.change(register, pause, h.valid)
}

// updateFenced is update as one who never looks at the lease, and relies on the
// storage to refuse it when it has been overtaken: errStale.
func (h *Hold) updateFenced(register string, pause time.Duration) error {
	return h.change(register, pause, func() bool { return true })
}

// change reads a register, and writes it anew after a pause if its user still
// wants to.
func (h *Hold) change(register string, pause time.Duration, still func() bool) error {
	c, token := h.caller, h.lease.Token()
	u := Update{Register: register, ID: c.nextID(), From: now()}
	before := h.valid()
	var err error
	if u.Saw, err = c.storage.read(register, token); err == nil {
		time.Sleep(pause)
		if !still() {
			return nil
		}
		err = c.storage.write(register, u.ID, u.Saw, token)
	}
	u.To, u.Covered = now(), before && h.valid()
	switch {
	case errors.Is(err, errStale):
		c.note(Event{At: u.To, Kind: Refused})
		return err
	case err != nil:
		return err
	}
	c.note(Event{At: u.To, Kind: Updated, Update: &u})
	return nil
}

// reason is what an error comes down to.
func reason(err error) string {
	for _, known := range []error{
		redlock.ErrTaken, redlock.ErrNoQuorum, redlock.ErrLost, redlock.ErrExpired, redlock.ErrNotHeld, redlock.ErrClosed,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return "too late"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return err.Error()
}
