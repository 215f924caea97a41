package redlock

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/redlock/internal/waiting"
)

// An option of a lock fits some kinds of lock. The others do not accept it: they have
// another type of option.
type (
	// LockOption configures a lock of any kind.
	LockOption interface {
		MutexOption
		MultiOption
		RWMutexOption
		SemaphoreOption
	}

	// MutexOption configures a Mutex: a LockOption, AtLeast, Cached, Fair, Fenced or
	// Reentrant.
	MutexOption interface {
		lockOption
		mutex()
	}

	// MultiOption configures a Multi: a LockOption, Fenced or Reentrant.
	MultiOption interface {
		lockOption
		multi()
	}

	// RWMutexOption configures an RWMutex: a LockOption or Reentrant.
	RWMutexOption interface {
		lockOption
		rwMutex()
	}

	// SemaphoreOption configures a Semaphore: a LockOption or Fenced.
	SemaphoreOption interface {
		lockOption
		semaphore()
	}
)

type lockOption interface{ apply(*lockOptions) }

type lockOptions struct {
	ttl       time.Duration
	maxHold   time.Duration
	atLeast   *time.Duration // nil: none
	stop      *stopping      // nil: work is not stopped
	metadata  *string        // nil: neither text nor the time is stored
	noRenew   bool
	reentrant bool
	fenced    bool
	fair      bool
	poll      *waiting.Polling // nil: waiters queue
	cached    *time.Duration   // for how long it is kept unused, zero: the TTL; nil: it is not Cached
	err       error            // an option that is none
}

// TTL sets how long this lock outlives a crashed holder. It has the bounds of WithTTL, and is
// at most the client's restart guard.
func TTL(d time.Duration) LockOption {
	return everyLock{change: func(o *lockOptions) { o.ttl = d }}
}

// NoRenew leaves it to Lease.Extend, and to RWMutex.Downgrade, which extends, to lengthen
// the lease; otherwise it is renewed every third of its TTL. Nothing else lengthens it, so a
// lease that was waited for may end up to a third of its TTL earlier than the lease of a free
// lock.
func NoRenew() LockOption {
	return everyLock{change: func(o *lockOptions) { o.noRenew = true }}
}

// Polling has waiters try again after min, and then less and less often, up to every
// max, both jittered, instead of queueing at the masters. They store nothing there and
// need no subscription, but get the lock later and in no order. Both at least 1ms.
func Polling(min, max time.Duration) LockOption {
	return everyLock{change: func(o *lockOptions) { o.poll = &waiting.Polling{Min: min, Max: max} }}
}

// MaxHold ends a lease, and its key, no later than d after it was asked for: a holder
// that is alive but stuck does not keep the lock (L6). Renewals ask for less
// and less, and Lease.Extend for no more than the rest of d. The lease may end earlier than
// that by what clocks may drift in a TTL; see WithDriftFactor. At least the TTL. Default:
// without end.
func MaxHold(d time.Duration) LockOption {
	return everyLock{change: func(o *lockOptions) { o.maxHold = d }}
}

// Metadata is stored with the lock and shown by Client.Inspect: what the holder is
// doing, say. At most 1024 bytes of UTF-8. The time by the client's clock is stored
// with it, and shown as Holder.Since; Metadata("") stores only the time.
func Metadata(s string) LockOption {
	return everyLock{change: func(o *lockOptions) { o.metadata = &s }}
}

var errNilOption = errors.New("nil option")

func applyAll[O lockOption](lo *lockOptions, opts []O) {
	for _, opt := range opts {
		if any(opt) == nil {
			lo.err = errNilOption
			continue
		}
		opt.apply(lo)
	}
}

// forever is longer than any lease is held: the MaxHold of a lock without one.
const forever = time.Duration(math.MaxInt64)

// lock returns a lock of this client without options.
func (c *Client) lock(name string, k kind) lock { return lockWith[LockOption](c, name, k, nil) }

// lockWith returns a lock of this client with the given options. Its err is set if they
// are invalid.
func lockWith[O lockOption](c *Client, name string, k kind, opts []O) lock {
	lo := lockOptions{ttl: c.opt.ttl, maxHold: forever}
	applyAll(&lo, opts)
	l := lock{client: c, kind: k, name: name, opt: lo, err: c.opt.checkLock(name, lo)}
	l.values = values.Maker{Self: c.self, Metadata: lo.metadata, Clock: c.clock}
	if lo.fenced {
		l.values.Mark = values.Fenced
	}
	return l
}

// reserved begins the keys that are not locks: the restart guard's marker, and the
// queues of waiters.
const reserved = "redlock:"

// checkLock refuses lock options that cannot work under the client's.
func (o *options) checkLock(name string, lo lockOptions) error {
	switch {
	case name == "":
		return fmt.Errorf("redlock: lock name: must not be empty")
	case strings.HasPrefix(name, reserved):
		return fmt.Errorf("redlock: lock name %.300q: must not begin with %q", name, reserved)
	case strings.Contains(o.prefix+name, reserved):
		return fmt.Errorf("redlock: lock name %.300q: must not have %q in it, nor get it from the prefix %.300q: that is for the keys of the library", name, reserved, o.prefix)
	case len(name) > maxName:
		return fmt.Errorf("redlock: lock name %.60q...: %d bytes: must be at most %d", name, len(name), maxName)
	}
	if err := o.checkTTL("TTL", lo.ttl); err != nil {
		return err
	}
	if lo.atLeast != nil {
		if err := o.checkTTL("AtLeast", *lo.atLeast); err != nil {
			return err
		}
	}
	if err := lo.stop.check(o, lo.ttl); err != nil {
		return err
	}
	if err := lo.checkCached(); err != nil {
		return err
	}
	switch {
	case lo.err != nil:
		return fmt.Errorf("redlock: lock %q: %w", name, lo.err)
	case lo.poll != nil && (lo.poll.Min < time.Millisecond || lo.poll.Max < lo.poll.Min):
		return fmt.Errorf("redlock: Polling(%v, %v): must be at least 1ms, and the second no less than the first", lo.poll.Min, lo.poll.Max)
	case lo.poll != nil && lo.fair:
		return fmt.Errorf("redlock: Fair with Polling: those who poll are in no order")
	case lo.maxHold < lo.ttl:
		return fmt.Errorf("redlock: MaxHold(%v): must be at least the TTL %v", lo.maxHold, lo.ttl)
	case lo.atLeast != nil && *lo.atLeast > lo.maxHold:
		return fmt.Errorf("redlock: AtLeast(%v): must be at most MaxHold, %v", *lo.atLeast, lo.maxHold)
	case lo.metadata != nil && len(*lo.metadata) > maxMetadata:
		return fmt.Errorf("redlock: Metadata: %d bytes: must be at most %d", len(*lo.metadata), maxMetadata)
	case lo.metadata != nil && !utf8.ValidString(*lo.metadata):
		return fmt.Errorf("redlock: Metadata(%.300q): must be UTF-8", *lo.metadata)
	}
	return nil
}

// What the options are made of: a change, and a mark for every kind of lock that it fits.
type (
	change func(*lockOptions)

	fitsMutex     struct{}
	fitsMulti     struct{}
	fitsRWMutex   struct{}
	fitsSemaphore struct{}

	everyLock struct {
		change
		fitsMutex
		fitsMulti
		fitsRWMutex
		fitsSemaphore
	}
	fairOption struct {
		change
		fitsMutex
	}
	fencedOption struct {
		change
		fitsMutex
		fitsMulti
		fitsSemaphore
	}
	reentrantOption struct {
		change
		fitsMutex
		fitsMulti
		fitsRWMutex
	}
)

func (c change) apply(o *lockOptions) { c(o) }

func (fitsMutex) mutex()         {}
func (fitsMulti) multi()         {}
func (fitsRWMutex) rwMutex()     {}
func (fitsSemaphore) semaphore() {}
