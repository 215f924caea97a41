package promises

import (
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// Ledger is what the masters have promised: who stores which lock for how long,
// and what a fault made them forget that they must still not give to others. It
// is read from the masters' keys after every command, and knows nothing of how
// clients acquire or wait.
type ledger struct {
	masters int
	books   []*book
}

// Book is one lock at every master, or the share that one waiter has of it: a reader's, or
// permits.
type book struct {
	name   string
	waiter string // empty: the lock itself
	at     []shelf
	InUse  int // uses by redlock.Do, whose leases the checks do not see

	// The findings after the last event, if a caller wanted the lock.
	looked uint64     // checker.looks when the lock was looked at
	taken  bool       // a client relies on the lock
	free   quorum.Set // the masters that could grant it, unless it is taken
	left   quorum.Set // those of them that leave it to callers that do not queue
	pauses pauses
}

// shelf is one lock at one master.
type shelf struct {
	promise
	which  string        // the permits, also of a value that is gone
	until  int64         // as the master stores it: its wall clock in milliseconds; 0: no expiry
	since  time.Duration // since when the value has been here without a break
	astray bool          // the key is here by a fault: a snapshot brought it back, or a command from a connection that was closed
	lost   []promise
}

// promise is that a value is kept until it ends, or that at least no other is
// granted before.
type promise struct {
	value   string // empty: the lock is free here
	owner   masters.Owner
	ends    time.Duration // true time
	guarded bool          // of a lost promise: the guards must protect it
}

// Book returns the book of a lock, and opens it if it is new.
func (lg *ledger) Book(name string) *book {
	for _, b := range lg.books {
		if b.name == name && b.waiter == "" {
			return b
		}
	}
	b := &book{name: name, at: make([]shelf, lg.masters)}
	lg.books = append(lg.books, b)
	return b
}

// of returns the books by which masters keep a claim to a lock. The share of a writer that
// reads by now may still be the lock.
func (lg *ledger) of(cl *Claim, name string) (books []*book) {
	waiter, _ := masters.SplitValue(cl.Value)
	for _, b := range lg.books {
		if b.name == name && (b.waiter == "" && cl.Permits == 0 || b.waiter == waiter && !cl.stored()) {
			books = append(books, b)
		}
	}
	return books
}

// rivals reports whether a claim is to one of these permits, or writes where these are none but a
// reader.
func (lg *ledger) rivals(cl *Claim, which string) bool {
	if which == "" {
		return !cl.shared()
	}
	var own []string
	for _, name := range cl.Names {
		for _, b := range lg.of(cl, name) {
			own = append(own, strings.Split(b.agreed(cl.Value), ",")...)
		}
	}
	return slices.ContainsFunc(strings.Split(which, ","), func(permit string) bool { return slices.Contains(own, permit) })
}

// agreed returns the permits that the most masters store by that value.
func (b *book) agreed(value string) (which string) {
	most := 0
	for _, s := range b.at {
		if n := b.storing(value, s.which); n > most {
			which, most = s.which, n
		}
	}
	return which
}

// clearly reports whether more masters store these permits by that value than any others. A fault may have
// taken those which decided what permits the lease has.
func (b *book) clearly(value, which string) bool {
	return !slices.ContainsFunc(b.at, func(s shelf) bool {
		return s.which != which && b.storing(value, s.which) >= b.storing(value, which)
	})
}

// storing is how many masters store these permits by that value.
func (b *book) storing(value, which string) (n int) {
	for _, s := range b.at {
		if s.value == value && s.which == which {
			n++
		}
	}
	return n
}

// used reports whether a master stores the share, or has promised it and forgotten it.
func (b *book) used(now time.Duration) bool {
	return slices.ContainsFunc(b.at, func(s shelf) bool {
		return s.value != "" || slices.ContainsFunc(s.lost, func(p promise) bool { return p.ends > now })
	})
}

// Names returns the locks in the order in which they were first taken.
func (lg *ledger) Names() []string {
	var names []string
	for _, b := range lg.books {
		if b.waiter == "" {
			names = append(names, b.name)
		}
	}
	return names
}

// lose notes that a fault made a master forget its promise.
func (s *shelf) lose(now time.Duration, guarded bool) {
	if s.value == "" || s.ends <= now || s.owner.Client < 0 {
		return
	}
	p := s.promise
	p.guarded = guarded
	s.lost = append(s.lost, p)
}

// put notes what a master stores now.
func (s *shelf) put(e *masters.Entry, which string, now time.Duration, left time.Duration) {
	if e == nil {
		s.promise, s.until, s.astray = promise{}, 0, false
		return
	}
	s.which = which
	if e.Value != s.value || s.value == "" {
		s.promise = promise{value: e.Value, owner: masters.OwnerOf(e.Value)}
		s.since, s.astray = now, false
	}
	s.until = e.Until
	s.ends = now + promised(left)
}

// promised is for how long, in true time, a lease may last of which a master
// stores the key for d: if the master's clock is right and the holder's is as
// slow as the assumptions allow.
func promised(d time.Duration) time.Duration {
	return latest(time.Duration(float64(d) * (1 - drift.DefaultFactor)))
}

// latest is how long, in true time, it may take a holder's clock to count d.
func latest(d time.Duration) time.Duration {
	return time.Duration(float64(d) / (1 - drift.DefaultFactor/2))
}

// worst is how much time a master's clock may count while a holder's counts d.
func worst(d time.Duration) time.Duration {
	return time.Duration(float64(d) / (1 - drift.DefaultFactor))
}

// Readers and the holders of permits share a lock. The ledger has a book for the share of each
// waiter, so that all checks of what masters store see the share as they see a lock.

// at returns what a master stores of a book.
func (k *checker) at(m *fleet.Master, b *book) (e *masters.Entry, which string) {
	if b.waiter == "" {
		return m.Keys.Find(b.name), ""
	}
	return m.Share(k.scene.Config.Lock, b.name, b.waiter)
}

// sharesOf returns the books of all shares that a command may have changed at a master, and
// opens one for a new share.
func (k *checker) sharesOf(m *fleet.Master, cmd *wire.Command) (books []*book) {
	kind := k.scene.Config.Lock
	if kind != plan.ReadWriteLock && !kind.IsSemaphore() || len(cmd.Keys) == 0 || len(cmd.Args) == 0 {
		return nil
	}
	name, lg := strings.TrimPrefix(cmd.Keys[0], "redlock:slots:"), &k.Ledger
	waiter, _ := masters.SplitValue(cmd.Args[0])
	lg.books = slices.DeleteFunc(lg.books, func(b *book) bool { return b.waiter != "" && !b.used(k.scene.World.Now) })
	for _, b := range lg.books {
		if b.name == name && b.waiter != "" {
			books = append(books, b)
		}
	}
	if slices.ContainsFunc(books, func(b *book) bool { return b.waiter == waiter }) {
		return books
	}
	b := &book{name: name, waiter: waiter, at: make([]shelf, lg.masters)}
	if e, _ := k.at(m, b); e != nil && waiter != "" {
		lg.books, books = append(lg.books, b), append(books, b)
	}
	return books
}

// sharedAt reports whether a master stores a share, or has given its permits to others.
func (k *checker) sharedAt(m *fleet.Master, cl *Claim, name string) bool {
	return slices.ContainsFunc(k.Ledger.of(cl, name), func(b *book) bool {
		e, _ := k.at(m, b)
		return e != nil || b.waiter != "" && cl.Permits > 0 && slices.ContainsFunc(strings.Split(b.agreed(cl.Value), ","), func(slot string) bool {
			return m.OwnerOf(name, slot) != ""
		})
	})
}
