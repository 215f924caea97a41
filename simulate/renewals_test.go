package simulate

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
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
			tr.check.violations, tr.check.claims = nil, nil
			h := movedHold{&silentHold{cl.host.clock, epoch.Add(time.Second)}, nil}
			c.stake.names = []string{lockName}
			tr.check.grant(cl, h, c.stake).asked = c.asked
			for i := range c.rises {
				tr.world.at(time.Duration(i+1)*100*time.Millisecond, cl.host, action(func() { h.end = h.end.Add(100 * time.Millisecond) }))
			}
			tr.world.run(800*time.Millisecond, never)
			if v := tr.check.violations; len(v) != c.want {
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
			tr.check.violations, tr.check.claims = nil, nil
			h := movedHold{&silentHold{cl.host.clock, epoch.Add(time.Second)}, c.err}
			tr.check.grant(cl, h, stake{names: []string{lockName}})
			tr.world.at(time.Second-c.left, cl.host, action(func() { h.end = epoch }))
			tr.world.run(time.Second-c.left, never)
			if v := tr.check.violations; len(v) != c.want {
				t.Errorf("violations %v, want %d", v, c.want)
			}
		})
	}
}
