package simulate

import (
	"testing"
	"time"
)

// silentHold is a lease that was valid until its end and never says that it is
// over.
type silentHold struct {
	clock *Clock
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

func holdUntil(end time.Duration) (*trial, *client) {
	tr := &trial{world: newWorld(), config: &Config{Nodes: 1}}
	tr.check = newChecker(tr)
	tr.world.after = tr.check.look
	c := &client{host: newHost(tr.world, clientIDs+1, "client 1")}
	tr.clients = []*client{c}
	for at := 100 * time.Millisecond; at < 3*time.Second; at += 100 * time.Millisecond {
		tr.world.at(at, nil, action(func() {}))
	}
	tr.check.grant(c, silentHold{c.host.clock, epoch.Add(end)}, stake{names: []string{lockName}})
	return tr, c
}

func never() bool { return false }

func TestA_loss_that_is_never_announced_is_late(t *testing.T) {
	// Given a lease whose context never ends, and no event of its own client.
	tr, _ := holdUntil(time.Second)
	// When its validity is over.
	tr.world.run(2*time.Second, never)
	// Then that is told once.
	if v := tr.check.violations; len(v) != 1 || v[0].Kind != LateLoss {
		t.Errorf("violations %v, want one late loss", v)
	}
}

func TestA_client_that_stands_still_cannot_be_told_of_a_loss(t *testing.T) {
	// Given a client that stands still when its lease ends.
	tr, c := holdUntil(time.Second)
	tr.world.at(500*time.Millisecond, nil, action(c.host.pause))
	tr.world.run(2*time.Second, never)
	if v := tr.check.violations; len(v) != 0 {
		t.Errorf("violations %v while it stood still", v)
	}
	// When it goes on and is not told.
	tr.world.at(2*time.Second, nil, action(c.host.resume))
	tr.world.run(3*time.Second, never)
	// Then it is late.
	if v := tr.check.violations; len(v) != 1 || v[0].Kind != LateLoss {
		t.Errorf("violations %v, want one late loss", v)
	}
}

func TestA_lease_that_has_ended_is_not_returned(t *testing.T) {
	tr, _ := holdUntil(0)
	if v := tr.check.violations; len(v) != 1 || v[0].Kind != EndedLease {
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
	tr.check.violations, tr.check.claims = nil, nil
	h := phoenix{silentHold{c.host.clock, epoch.Add(time.Second)}}
	tr.check.grant(c, h, stake{names: []string{lockName}})
	tr.world.at(500*time.Millisecond, nil, action(c.host.pause))
	// When it is valid again later.
	tr.world.run(2*time.Second, never)
	// Then that is told.
	if v := tr.check.violations; len(v) == 0 || v[0].Kind != Revived {
		t.Errorf("violations %v, want a lease that has revived", v)
	}
}
