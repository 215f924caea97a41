package redlock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/quorumlock/quorumlock/redlock"
)

// term is one run of the function that leads. It lasts until the test ends it.
type term struct {
	ctx context.Context
	end chan error
}

// runFor returns the terms of a process in an election, and then what Run returns.
func runFor(ctx context.Context, e *redlock.Election) (<-chan term, <-chan error) {
	terms, result := make(chan term), make(chan error, 1)
	go func() {
		result <- e.Run(ctx, "me", func(ctx context.Context) error {
			own := term{ctx, make(chan error)}
			select {
			case terms <- own:
				return <-own.end
			case <-ctx.Done(): // the test is over
				return nil
			}
		})
	}()
	return terms, result
}

func mustLead(t *testing.T, leads, other *redlock.Election) {
	t.Helper()
	if !leads.IsLeader() || other.IsLeader() {
		t.Errorf("leads: %v, the other: %v", leads.IsLeader(), other.IsLeader())
	}
}

// The lease is renewed until the work has ended, also when the caller's context has ended.
// No other process leads beside the work.
func TestReal_Run_leads_until_its_work_has_ended(t *testing.T) {
	t.Parallel()
	ms, log := startMasters(t, 3), &diary{}
	boss, rival := ms.client(t, redlock.WithObserver(log.observe)).Election("boss"), ms.client(t).Election("boss")
	stops, stop := context.WithCancel(ctx)
	terms, result := runFor(stops, boss)
	own := arrival(t, "the term", terms)
	next, _ := runFor(t.Context(), rival)

	stop()
	<-own.ctx.Done()
	eventually(t, "a TTL passes", func() bool { return log.count(redlock.LeaseRenewed) > 3 })
	mustLead(t, boss, rival)
	own.end <- nil

	mustBe(t, arrival(t, "the result", result), context.Canceled)
	other := arrival(t, "the rival's term", next)
	mustLead(t, rival, boss)
	other.end <- nil
}

// Who has lost leadership campaigns again, and the error of its work does not matter.
func TestReal_Run_campaigns_again_after_a_loss(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	c := ms.client(t)
	boss := c.Election("boss")
	terms, _ := runFor(t.Context(), boss)
	first := arrival(t, "the first term", terms)

	if _, err := c.ForceUnlock(ctx, "boss"); err != nil {
		t.Fatal(err)
	}
	<-first.ctx.Done()
	if boss.IsLeader() {
		t.Error("it leads although it has lost its lease")
	}
	first.end <- first.ctx.Err()

	arrival(t, "the second term", terms).end <- nil
	arrival(t, "the third term", terms).end <- nil
}

// An error of its work ends Run, and another process leads.
func TestReal_Run_resigns_and_returns_the_error_of_its_work(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	broken := errors.New("broken")
	boss, rival := ms.client(t).Election("boss"), ms.client(t).Election("boss")
	terms, result := runFor(t.Context(), boss)
	own := arrival(t, "the term", terms)
	next, _ := runFor(t.Context(), rival)

	own.end <- broken

	mustBe(t, arrival(t, "the result", result), broken)
	arrival(t, "the rival's term", next).end <- nil
}
