package redlock

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

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

func (f *fencing) recalls() string { return strings.TrimPrefix(f.key, f.client.opt.prefix) }

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
