package redlock

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// Adopt takes up again the lease of a holder that ended without releasing it: a
// process that wrote Lease.Value down before it crashed goes on where it was. Adopt
// extends value at a majority of the masters and does nothing else. Use a handle with
// the same name and options as the original holder's.
//
// It fails with ErrTaken when another client has the lock, with ErrNotHeld when a
// majority no longer stores value, and with ErrNoQuorum when too few masters
// answered: then it can be tried again, until the TTL has passed. A fenced lease keeps
// its token; Adopt also returns ErrNoQuorum if no majority knows that token.
//
// The value may be another library's: then it is extended, and deleted in the end, but no
// other value is. The value is all it takes to hold the lock. So the first holder must have ended:
// nothing keeps two that use the same value apart.
func (m *Mutex) Adopt(ctx context.Context, value string) (*Lease, error) {
	return m.lock.adopt(ctx, value)
}

// Adopt takes up again the lease of a writer that ended; see Mutex.Adopt. A writer
// that called Downgrade, with whatever result, wrote for the last time: see RAdopt.
func (m *RWMutex) Adopt(ctx context.Context, value string) (*Lease, error) {
	if m.write.err == nil && value != "" && !values.IsWriter(value) {
		return nil, fmt.Errorf("redlock: Adopt: value %.300q: is a reader's, see RAdopt", value)
	}
	return m.write.adopt(ctx, value)
}

// RAdopt takes up again the lease of a reader that ended; see Mutex.Adopt. It
// downgrades the value of a writer.
func (m *RWMutex) RAdopt(ctx context.Context, value string) (*Lease, error) {
	if err := m.read.ownValue(value); err != nil {
		return nil, err
	}
	return m.read.adopt(ctx, value)
}

// Adopt takes up again the permits of a holder that ended, however many they were; see
// Mutex.Adopt. It fails with ErrPermits when the semaphore has another number of
// permits than this handle says. A fenced lease gets a new token, which is higher:
// only the first holder knew the old one, since others count beside it.
func (s *Semaphore) Adopt(ctx context.Context, value string) (*Lease, error) {
	if err := s.lock.ownValue(value); err != nil {
		return nil, err
	}
	return s.lock.adopt(ctx, value)
}

// Adopt has a leader that restarted go on to lead, with the same token; see
// Mutex.Adopt.
func (e *Election) Adopt(ctx context.Context, value string) (*Lease, error) {
	lease, err := e.mutex.Adopt(ctx, value)
	if err == nil {
		e.led.Store(lease)
	}
	return lease, err
}

// ownValue refuses the value of another library, which has neither readers nor permits
// here.
func (l *lock) ownValue(value string) error {
	if client, _, _ := values.Parse(value); l.err == nil && value != "" && client == "" {
		return fmt.Errorf("redlock: Adopt: value %.300q: is of another library", value)
	}
	return nil
}

func (l *lock) adopt(ctx context.Context, value string) (*Lease, error) {
	k := call{ctx: ctx, since: l.client.watch.Now(), attempts: 1}
	lease, err := l.takeUp(&k, value)
	l.observeCall(&k, lease, err)
	return lease, err
}

func (l *lock) takeUp(k *call, value string) (*Lease, error) {
	if value == "" {
		return nil, fmt.Errorf("redlock: Adopt: value: must not be empty")
	}
	if err := l.check(k.ctx, "adopt"); err != nil {
		return nil, err
	}
	defer l.client.leave()
	if !l.client.enter() {
		return nil, l.fail("adopt", ErrClosed, nil)
	}
	cl := l.kind.claim()
	if r, ok := cl.(recalling); ok {
		if err := l.recall(k.ctx, r, value); err != nil {
			return nil, err
		}
	}
	start := l.client.watch.Now()
	r := l.client.members.Ask(quorum.Question{Command: cl.extend(value, l.opt.ttl), Judge: cl, Since: start})
	defer r.Free()
	if err := l.client.seams.Wait(k.ctx, r.Ready()); err != nil {
		return nil, l.fail("adopt", ended(k.ctx), r)
	}
	switch {
	case r.Outcome() != quorum.Won:
		return nil, l.fail("adopt", l.closedOr(whyNotAdopted(r)), r)
	case l.tooOld(start, l.client.watch.Now()):
		return nil, l.fail("adopt", ErrExpired, r)
	}
	if f, ok := cl.(interface{ fencingToken() uint64 }); ok && l.opt.fenced && f.fencingToken() == 0 {
		return nil, l.fail("adopt", errUnknownToken, r)
	}
	k.votes = l.votes(r.Ballots(nil))
	lease, err := l.lease(k.ctx, cl, value, start, l.client.watch.Now())
	if err != nil {
		return nil, l.failed("adopt", err, nil)
	}
	return lease, nil
}

// errUnknownToken: a majority has the value, but more masters must answer before a
// majority of them has reported the token.
var errUnknownToken = fmt.Errorf("%w knows the fencing token", ErrNoQuorum)

// whyNotAdopted distinguishes a lock of another client from a lock that has ended.
func whyNotAdopted(r *quorum.Round) error {
	if !r.Tally().Conclusive() {
		return ErrNoQuorum
	}
	for _, b := range r.Ballots(nil) {
		if state, ok := wire.KeyStateOf(b.Reply); ok && state == wire.Theirs {
			return ErrTaken
		}
	}
	return ErrNotHeld
}

// recalling is a claim that has more than its value. The masters know the rest.
type recalling interface {
	claim
	// recalls returns the name to ask them about; empty: nothing need be asked.
	recalls() string
	// recall reads the claim to the value from the answers of a majority, which may not
	// know the value. The value is extended next.
	recall(h *Holder, value string) error
}

func (l *lock) recall(ctx context.Context, cl recalling, value string) error {
	name := cl.recalls()
	if name == "" {
		return nil
	}
	h, err := l.client.Inspect(ctx, name)
	if err == nil {
		err = cl.recall(&h, value)
	}
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok { // it says what the masters answered
		return &Error{Op: "adopt", Name: l.name, Err: l.closedOr(e.Err), Votes: e.Votes, onlyAsked: true}
	}
	return l.failed("adopt", l.closedOr(err), nil)
}

func (f *fencing) recalls() string { return f.name }

func (s *several) recalls() string {
	if !s.fenced {
		return ""
	}
	return s.names[0] // the counters of all of them stepped to the token
}

// recall finds the token out: the counter of a majority of the masters that store
// the value. A counter moves only with a grant, or by our own raise, so that it
// stays the lease's as long as its value is there.
func (k *tokens) recall(h *Holder, value string) error {
	if h.Value == value {
		k.token.Store(h.counter)
	}
	return nil
}

func (p *permit) recalls() string { return p.of }

// recall finds out which slots the value has: the slots that a majority gave it.
func (p *permit) recall(h *Holder, value string) error {
	if h.Permits > 0 && h.Permits != p.total {
		return p.otherNumber(strconv.Itoa(h.Permits))
	}
	for _, s := range h.Shares {
		if s.Value == value && len(s.Slots) > 0 && h.Permits > 0 {
			slots := wire.SlotsOf(s.Slots)
			p.slots.Store(&slots)
			p.order.Store(h.resized(p.total))
			return nil
		}
	}
	if h.mayHold(value) {
		return ErrNoQuorum
	}
	return ErrNotHeld
}

// recall also counts anew, as every master does that extends the lease. Whatever was
// counted for the same slots before was counted at one of the masters that answered,
// so the new count is higher; and a claim that begins when the lease is adopted finds
// it at a majority.
func (f *fencedPermit) recall(h *Holder, value string) error {
	if err := f.permit.recall(h, value); err != nil {
		return err
	}
	for _, v := range h.Nodes {
		f.highest = max(f.highest, v.seen.Counter)
	}
	token := f.highest + 1
	if f.highest == 0 {
		token = f.proposal() // the counters are lost
	}
	f.token.Store(token)
	return nil
}

// resized returns by which Resize there are so many permits, as far as any master
// knows.
func (h *Holder) resized(permits int) (order int64) {
	for _, v := range h.Nodes {
		if v.seen.Permits == permits {
			order = max(order, v.seen.Order)
		}
	}
	return order
}

// mayHold reports whether so many masters have a share of that value, or did not
// answer, that a majority might know it.
func (h *Holder) mayHold(value string) bool {
	n := 0
	for _, v := range h.Nodes {
		if v.Err != nil || slices.ContainsFunc(v.Shares, func(s Share) bool { return s.Value == value }) {
			n++
		}
	}
	return n >= quorum.Size(len(h.Nodes))
}
