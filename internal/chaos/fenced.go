package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate"
)

// fenced is used by holders that never look at their lease. The storage checks
// their tokens, so that every write saw the one before it: also those of processes
// that stood still past the end of their lease (S7, S8).
var fenced = relying("fenced", simulate.FencedLock, 1, redlock.Fenced())

// queued is both fair and fenced: tickets and tokens come from the same question.
var queued = inOrderOfArrival(relying("queued", simulate.FairFencedLock, 8, redlock.Fair(), redlock.Fenced()))

// relying is a workload whose holders rely on their tokens, for a part of the TTL.
func relying(name string, kind simulate.LockKind, part time.Duration, opts ...redlock.MutexOption) *Workload {
	return tokened(name, kind, func(ctx context.Context, c *Caller) error {
		h := c.Lock(ctx, name, append([]redlock.MutexOption{c.lockOption()}, opts...)...)
		if h == nil {
			return nil
		}
		defer h.leave()
		return h.work(ctx, c.upTo(c.ttl/part), name)
	})
}

func tokened(name string, kind simulate.LockKind, turn func(context.Context, *Caller) error) *Workload {
	return &Workload{Name: name, Callers: 1, Locks: []string{name}, Capacity: 1, Simulated: kind, Turn: turn, Check: (*History).misfenced}
}

// elected is led by one at a time, who publishes values and works by its token.
var elected = tokened("elected", simulate.FencedLock, func(ctx context.Context, c *Caller) error {
	election := c.client.Election("elected", c.lockOption())
	campaign := func(ctx context.Context) (*redlock.Lease, error) { return election.Campaign(ctx, c.id) }
	h := c.take(ctx, "elected", 1, campaign, campaign)
	if h == nil {
		return nil
	}
	defer h.leave()
	election.Proclaim(ctx, h.lease, c.nextID()) // or not: the masters may be away
	return h.work(ctx, c.upTo(c.ttl/2), "elected")
})

// work updates registers for a time, in turns, until one of them refuses.
func (h *Hold) work(ctx context.Context, length time.Duration, registers ...string) error {
	for end := now() + length; now() < end && ctx.Err() == nil; {
		for _, register := range registers {
			err := h.updateFenced(register, h.caller.upTo(50*time.Millisecond))
			if errors.Is(err, errStale) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// misfenced finds what must not be where holders rely on their tokens.
func (h *History) misfenced(lock string) []Finding {
	return append(h.brokenChain(lock), h.fallingTokens(lock)...)
}

// brokenChain finds every write that did not see the one before it.
func (h *History) brokenChain(register string) (findings []Finding) {
	writes, err := h.storage.all(register)
	if err != nil {
		return []Finding{{Check: LostUpdate, At: h.start, Lock: register, Text: err.Error()}}
	}
	before := ""
	for _, w := range writes {
		if w.saw != before {
			findings = append(findings, Finding{
				Check: LostUpdate, At: h.start, Lock: register,
				Text: fmt.Sprintf("%s was written over %q, and had seen %q", w.id, before, w.saw),
			})
		}
		before = w.id
	}
	return findings
}

// fallingTokens finds leases whose token is not above the token of every lease
// before.
func (h *History) fallingTokens(lock string) (findings []Finding) {
	highest := uint64(0)
	for _, s := range h.of(lock) {
		if s.Token <= highest {
			findings = append(findings, Finding{
				Check: FallingToken, At: s.From, Lock: lock,
				Text: fmt.Sprintf("%s has the token %d, and %d was held before", s.Lease, s.Token, highest),
			})
		}
		highest = max(highest, s.Token)
	}
	return findings
}
