package promises

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// silentHold is a lease that was valid until its end and never says that it is
// over.
type silentHold struct {
	clock *world.Clock
	end   time.Time
}

func (h silentHold) Valid() bool { return h.clock.Now().Before(h.end) }

func (h silentHold) Until() time.Time {
	if !h.Valid() {
		return time.Time{}
	}
	return h.end
}

func (silentHold) Done() <-chan struct{} { return nil }

func holdUntil(end time.Duration) (*Scene, *Client) {
	tr := &Scene{World: world.New(), Left: func(*Claim) {}, Config: &plan.Config{Nodes: 1}}
	tr.Check = newChecker(tr)
	tr.World.Observe = tr.Check.Look
	c := &Client{Client: &fleet.Client{Host: world.NewHost(tr.World, fleet.ClientIDs+1, "client 1")}}
	tr.Clients = []*Client{c}
	for at := 100 * time.Millisecond; at < 3*time.Second; at += 100 * time.Millisecond {
		tr.World.At(at, nil, world.Action(func() {}))
	}
	tr.Check.Grant(c, silentHold{c.Host.Clock, world.Epoch.Add(end)}, stake{Names: []string{plan.LockName}})
	return tr, c
}

func never() bool { return false }

func TestA_loss_that_is_never_announced_is_late(t *testing.T) {
	// Given a lease whose context never ends, and no event of its own client.
	tr, _ := holdUntil(time.Second)
	// When its validity is over.
	tr.World.Run(2*time.Second, never)
	// Then that is told once.
	if v := tr.Check.Violations; len(v) != 1 || v[0].Kind != tally.LateLoss {
		t.Errorf("violations %v, want one late loss", v)
	}
}

func TestA_client_that_stands_still_cannot_be_told_of_a_loss(t *testing.T) {
	// Given a client that stands still when its lease ends.
	tr, c := holdUntil(time.Second)
	tr.World.At(500*time.Millisecond, nil, world.Action(c.Host.Pause))
	tr.World.Run(2*time.Second, never)
	if v := tr.Check.Violations; len(v) != 0 {
		t.Errorf("violations %v while it stood still", v)
	}
	// When it goes on and is not told.
	tr.World.At(2*time.Second, nil, world.Action(c.Host.Resume))
	tr.World.Run(3*time.Second, never)
	// Then it is late.
	if v := tr.Check.Violations; len(v) != 1 || v[0].Kind != tally.LateLoss {
		t.Errorf("violations %v, want one late loss", v)
	}
}

func TestA_lease_that_has_ended_is_not_returned(t *testing.T) {
	tr, _ := holdUntil(0)
	if v := tr.Check.Violations; len(v) != 1 || v[0].Kind != tally.EndedLease {
		t.Errorf("violations %v, want one ended lease", v)
	}
}

// A hold that comes back to life, as no lease may.
type phoenix struct{ silentHold }

func (h phoenix) Valid() bool {
	now := h.clock.Now()
	return now.Before(h.end) || now.After(h.end.Add(500*time.Millisecond))
}

func TestA_lease_that_has_ended_is_not_valid_again(t *testing.T) {
	// Given a lease that ends after a second, unseen by an owner who stands still.
	tr, c := holdUntil(0)
	tr.Check.Violations, tr.Check.Claims = nil, nil
	h := phoenix{silentHold{c.Host.Clock, world.Epoch.Add(time.Second)}}
	tr.Check.Grant(c, h, stake{Names: []string{plan.LockName}})
	tr.World.At(500*time.Millisecond, nil, world.Action(c.Host.Pause))
	// When it is valid again later.
	tr.World.Run(2*time.Second, never)
	// Then that is told.
	if v := tr.Check.Violations; len(v) == 0 || v[0].Kind != tally.Revived {
		t.Errorf("violations %v, want a lease that has revived", v)
	}
}
