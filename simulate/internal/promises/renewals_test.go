package promises

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// movedHold is a lease whose end moves, and which says why it is over.
type movedHold struct {
	*silentHold
	err error
}

func (h movedHold) Err() error { return h.err }

func TestA_lease_is_put_off_only_if_that_was_asked_for(t *testing.T) {
	for _, c := range []struct {
		why   string
		stake stake
		asked bool
		rises int
		want  int
	}{
		{"renewed by itself", stake{renews: true}, false, 3, 0},
		{"extended by its owner", stake{}, true, 3, 0},
		{"renewed once, and must not be", stake{}, false, 1, 1},
		{"renewed, and must not be", stake{}, false, 3, 1},
	} {
		t.Run(c.why, func(t *testing.T) {
			tr, cl := holdUntil(0)
			tr.Check.Violations, tr.Check.Claims = nil, nil
			h := movedHold{&silentHold{cl.Host.Clock, world.Epoch.Add(time.Second)}, nil}
			c.stake.Names = []string{plan.LockName}
			tr.Check.Grant(cl, h, c.stake).Asked = c.asked
			for i := range c.rises {
				tr.World.At(time.Duration(i+1)*100*time.Millisecond, cl.Host, world.Action(func() { h.end = h.end.Add(100 * time.Millisecond) }))
			}
			tr.World.Run(800*time.Millisecond, never)
			if v := tr.Check.Violations; len(v) != c.want {
				t.Errorf("violations %v, want %d", v, c.want)
			}
		})
	}
}

func TestA_lease_that_is_over_early_has_not_expired(t *testing.T) {
	for _, c := range []struct {
		why  string
		err  error
		left time.Duration
		want int
	}{
		{"lost", redlock.ErrLost, 500 * time.Millisecond, 0},
		{"expired, and announced in time", redlock.ErrExpired, 10 * time.Millisecond, 0},
		{"said to have expired", redlock.ErrExpired, 500 * time.Millisecond, 1},
	} {
		t.Run(c.why, func(t *testing.T) {
			tr, cl := holdUntil(0)
			tr.Check.Violations, tr.Check.Claims = nil, nil
			h := movedHold{&silentHold{cl.Host.Clock, world.Epoch.Add(time.Second)}, c.err}
			tr.Check.Grant(cl, h, stake{Names: []string{plan.LockName}})
			tr.World.At(time.Second-c.left, cl.Host, world.Action(func() { h.end = world.Epoch }))
			tr.World.Run(time.Second-c.left, never)
			if v := tr.Check.Violations; len(v) != c.want {
				t.Errorf("violations %v, want %d", v, c.want)
			}
		})
	}
}
