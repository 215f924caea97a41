package redlock

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock/internal/waiting"
)

// Semaphore is a number of permits. Never more are held than there are, also when
// masters fail. A permit is a lease: it is renewed, its loss is announced, and it ends
// with a crashed holder. A Semaphore is a handle without state, like Mutex, and safe
// for concurrent use.
//
// Waiters are served in the order of their arrival, as each master knows it: a waiter
// for many permits is not passed by waiters for one.
type Semaphore struct {
	lock    lock
	name    string
	permits int
	home    func(n int) *home // see lock.home
}

// Semaphore returns the semaphore of that name with so many permits, at most 4096. All
// clients must agree on the number; Resize changes it. Every operation reports options and
// numbers that are out of range, before it sends anything.
func (c *Client) Semaphore(name string, permits int, opts ...SemaphoreOption) *Semaphore {
	s := &Semaphore{lock: lockWith(c, name, kind{}, opts), name: name, permits: permits}
	s.lock.kind = s.shape(1).kind()
	if err := checkPermits("Semaphore", permits); err != nil {
		s.lock.err = err
	}
	return s
}

func checkPermits(field string, n int) error {
	if n < 1 || n > wire.MaxPermits {
		return fmt.Errorf("redlock: %s: %d permits: must be between 1 and %d", field, n, wire.MaxPermits)
	}
	return nil
}

// Acquire waits until it holds n permits, all or none, or ctx ends; see
// Mutex.Lock. n may be 2048 at most. It fails with ErrPermits when the semaphore has another
// number of permits than this handle says, also if that changes while it waits.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Lease, error) {
	return s.of(n).acquire(ctx)
}

// TryAcquire makes one attempt; see Mutex.TryLock. It is refused while others wait.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Lease, error) { return s.of(n).try(ctx) }

// of returns the lock that n permits are.
func (s *Semaphore) of(n int) *lock {
	if n == 1 && s.home == nil {
		return &s.lock
	}
	l := s.lock
	l.kind = s.shape(n).kind()
	if s.home != nil {
		l.home = s.home(n)
	}
	switch {
	case l.err != nil:
	case n < 1 || n > s.permits:
		l.err = fmt.Errorf("redlock: Semaphore %q: Acquire(%d): must be between 1 and its %d permits", s.name, n, s.permits)
	case n > wire.MaxAcquire:
		l.err = fmt.Errorf("redlock: Semaphore %q: Acquire(%d): must be between 1 and %d permits for one lease", s.name, n, wire.MaxAcquire)
	}
	return &l
}

// shape is how n permits are taken.
func (s *Semaphore) shape(n int) *semaphore {
	c := s.lock.client
	start := fnv.New32a()
	start.Write([]byte(c.self)) // every client begins elsewhere, so that few meet
	return &semaphore{
		of: s.name, keys: wire.PermitsOf(c.opt.prefix, s.name), n: n, total: s.permits,
		start:  int(start.Sum32() % uint32(max(1, s.permits))),
		fenced: s.lock.opt.fenced, client: c,
	}
}

// Available returns how many permits are free at a majority of the masters. It is
// about a moment that has passed.
func (s *Semaphore) Available(ctx context.Context) (int, error) {
	if s.lock.err != nil {
		return 0, s.lock.err
	}
	h, err := s.lock.client.Inspect(ctx, s.name)
	if err != nil {
		return 0, err
	}
	return h.free(s.permits, quorum.Size(len(h.Nodes))), nil
}

// Resize changes the number of permits for all clients. Permits that are held stay
// with their holders. If there are fewer permits from now on, no client gets another
// permit until enough of the held permits were given back. This handle keeps the old
// number, so make a new one; waiters with such a handle are notified, and fail with
// ErrPermits. Resize also fails with ErrPermits if the semaphore has a different number of
// permits than this handle. After ErrNoQuorum some masters have the new number and some
// the old one, and perhaps no client gets a permit: call it again. The same may happen
// when masters that have the new number lose their memory while others were away.
//
// Resizes are ordered: the last one counts at every master that hears of it, in
// whichever order it hears of them. A master that was away learns of it from the next
// client that gets or renews permits, or from another call.
func (s *Semaphore) Resize(ctx context.Context, permits int) error {
	l := &s.lock
	if err := checkPermits("Resize", permits); err != nil {
		return err
	}
	if err := l.check(ctx, "resize"); err != nil {
		return err
	}
	order, err := s.nextResize(ctx, permits)
	if err != nil {
		return err
	}
	k := s.shape(1)
	r := l.client.members.Ask(quorum.Question{Command: k.keys.Resize(permits, order), Judge: done{}})
	defer r.Free()
	if err := l.client.seams.Wait(ctx, r.Ready()); err != nil {
		return l.fail("resize", ended(ctx), r)
	}
	if r.Outcome() != quorum.Won {
		return l.fail("resize", l.closedOr(waiting.WhyLost(k.claim(), r)), r)
	}
	return l.refused(ctx, "resize") // the name may have moved meanwhile
}

// nextResize returns the order of a Resize to so many permits: above that of every
// Resize that any master has reported, which includes every successful Resize, and
// usually above that of the unreported ones.
func (s *Semaphore) nextResize(ctx context.Context, permits int) (int64, error) {
	c := s.lock.client
	h, err := c.Inspect(ctx, s.name)
	if err != nil {
		return 0, err
	}
	if h.Permits != 0 && h.Permits != s.permits && h.Permits != permits {
		why := fmt.Errorf("%w: the masters have %d, this handle %d", ErrPermits, h.Permits, s.permits)
		return 0, s.lock.failed("resize", why, nil)
	}
	order := c.clock.Now().UnixMicro()
	for _, v := range h.Nodes {
		order = max(order, v.seen.Order+1)
	}
	return order, nil
}

// limit returns the limit below which all slots must be that are given to a client
// now. It is the number of permits; after a Resize to fewer, that less the slots from
// there on that any master knows to be taken.
//
// Invariant: no more permits are held than there are, or than there were at the Resize
// (S39). Whatever is held from before it is at a majority, and so at one master that
// answered us; and slots that were given since are below the highest limit of any claim.
func (p *permit) limit(ballots []quorum.Ballot) int {
	taken := map[int]bool{}
	above := 0
	for _, b := range ballots {
		for _, slot := range report(b) {
			if !taken[slot] && slot >= p.total {
				above++
			}
			taken[slot] = true
		}
	}
	limit := p.total
	for limit > 0 && limit+above > p.total {
		if limit--; taken[limit] {
			above++
		}
	}
	return limit
}

// report reads which slots others have at a master that knows of a Resize.
func report(b quorum.Ballot) []int {
	g := permitGrant(b)
	if g.Taken() == "" {
		return nil
	}
	mine := map[int]bool{}
	for _, slot := range g.Slots().Numbers() {
		mine[slot] = true
	}
	return slices.DeleteFunc(g.Taken().Numbers(), func(slot int) bool { return mine[slot] })
}
