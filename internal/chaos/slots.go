package chaos

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate"
)

// slots is a semaphore with fencing tokens. Its holders never look at their lease, and
// write to the register of their first permit, which refuses those before them.
var slots = &Workload{
	Name:      "slots",
	Callers:   2,
	Locks:     []string{"slots"},
	Registers: []string{"slots/0", "slots/1", "slots/2"},
	Capacity:  3,
	Simulated: simulate.FencedSemaphoreLock,
	Turn: func(ctx context.Context, c *Caller) error {
		h := c.takePermits(ctx, redlock.Fenced())
		if h == nil {
			return nil
		}
		defer h.leave()
		return h.work(ctx, c.upTo(c.ttl/4), fmt.Sprintf("%s/%d", h.locks[0], firstSlot(h.lease.Token())))
	},
	Check: func(h *History, lock string) []Finding {
		findings := append(h.misnumbered(lock), h.sharedSlots(lock)...)
		for slot := range 3 {
			findings = append(findings, h.brokenChain(fmt.Sprintf("%s/%d", lock, slot))...)
		}
		return findings
	},
}

// firstSlot is the first permit of a lease, which its token tells.
func firstSlot(token uint64) uint64 { return token % wire.MaxPermits }

// misnumbered finds tokens that two leases have. It also finds tokens that are not
// above those of all leases that were returned before they were asked for.
func (h *History) misnumbered(lock string) (findings []Finding) {
	wrong := func(s *Span, text string, args ...any) {
		findings = append(findings, Finding{
			Check: FallingToken, At: s.From, Lock: lock,
			Text: fmt.Sprintf("%s has the token %d, ", s.Lease, s.Token) + fmt.Sprintf(text, args...),
		})
	}
	returned := h.of(lock) // by when they certainly were
	wanted := slices.Clone(returned)
	slices.SortFunc(wanted, func(a, b *Span) int { return cmp.Compare(a.Since, b.Since) })
	byToken := map[uint64]*Span{0: {Lease: "one without a token"}}
	next, highest := 0, &Span{}
	for _, s := range wanted {
		if other := byToken[s.Token]; other != nil {
			wrong(s, "as has %s", other.Lease)
		}
		byToken[s.Token] = s
		for ; next < len(returned) && returned[next].From <= s.Since; next++ {
			if returned[next].Token > highest.Token {
				highest = returned[next]
			}
		}
		if s.Token < highest.Token {
			wrong(s, "and %s was returned with %d before it was wanted", highest.Lease, highest.Token)
		}
	}
	return findings
}

// sharedSlots finds two leases that had the same first permit at the same time, or one after
// the other with a token that does not rise.
func (h *History) sharedSlots(lock string) (findings []Finding) {
	last := map[uint64]*Span{} // by slot, the span that ended last
	for _, s := range h.of(lock) {
		slot := firstSlot(s.Token)
		before := last[slot]
		if before == nil || s.To > before.To {
			last[slot] = s
		}
		if before == nil {
			continue
		}
		f := Finding{At: s.From, Lock: lock}
		switch {
		case s.From < s.To && s.From < before.To:
			f.Check, f.Text = Overlap, fmt.Sprintf("permit %d held twice: %s", slot, h.describe([]*Span{before, s}, 2, 1))
		case s.Token <= before.Token:
			f.Check = FallingToken
			f.Text = fmt.Sprintf("%s has permit %d with the token %d, and %s had it before with %d", s.Lease, slot, s.Token, before.Lease, before.Token)
		default:
			continue
		}
		findings = append(findings, f)
	}
	return findings
}
