package work

import (
	"context"
	"errors"
	"strconv"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// requesting has holders of locks of any kind asked to let go, in a tenth of the schedules. It has
// dice of its own. Elections have handing.
type requesting struct {
	dice *world.Dice // nil: not drawn
	sent []*wish
}

func newRequesting(s *plan.Schedule) *requesting {
	cfg, dice := s.Config, world.NewDice(s.Seed, "requests")
	if !cfg.Swarm || cfg.Usual || cfg.Script != nil || cfg.Rung != nil || !dice.Chance(100) {
		return &requesting{}
	}
	return &requesting{dice: dice}
}

// asks has a caller ask the holder of the lock that it wants, now and then.
func (t *Work) asks(p *promises.Caller, a plan.Action) {
	r := t.requests
	if r.dice == nil || !r.dice.Chance(300) {
		return
	}
	w := &wish{reason: strconv.Itoa(len(r.sent))}
	r.sent = append(r.sent, w)
	err := t.Ask(p, "RequestRelease", 3*t.Config.NodeTimeout, func() error {
		return p.Client.API.RequestRelease(context.Background(), a.LockNames()[0], w.reason)
	})
	w.over = t.World.Now
	if err != nil && !errors.Is(err, redlock.ErrNotHeld) && !errors.Is(err, redlock.ErrNoQuorum) && !errors.Is(err, redlock.ErrClosed) {
		p.Fail("%s asked the holder of %q to let go, and was told: %v", p.Name(), a.LockNames()[0], err)
	}
}

// listens has most holders listen for requests.
func (t *Work) listens(p *promises.Caller, h *grip) {
	if lease, ok := h.Holding.(*redlock.Lease); ok && t.requests.dice != nil && t.requests.dice.Chance(700) {
		p.Client.Listens[lease.Value()] = true
		h.asked = lease.Requested()
	}
}

// heeds reports whether a request has come and the holder complies. The request must not have
// been over when the holder began to lock, unless the lock stays in its process.
func (t *Work) heeds(p *promises.Caller, h *grip) bool {
	select {
	case r := <-h.asked:
		number, _ := strconv.Atoi(r.Reason)
		w := t.requests.sent[number]
		p.Check(tally.RequestForHolder, w.over == 0 || h.began <= w.over || masters.IsCached(h.claim.Value), "%s got request %q, which was for an earlier holder", p.Name(), r.Reason)
		return t.requests.dice.Chance(500)
	default:
		return false
	}
}
