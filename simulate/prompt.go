package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// A call that does not wait for a lock returns as soon as its masters have answered,
// or had the time to, and finds a quorum where nothing is wrong.

// question is such a call.
type question struct {
	process  *Process
	name     string
	patience time.Duration // how long it waits for silent masters
	began    time.Duration
	own      time.Duration // by the client's monotonic clock
	uneven   int           // of that clock
	calm     bool          // nothing was wrong when it began
}

// ask runs a call that waits so long for silent masters.
func (t *trial) ask(p *Process, name string, patience time.Duration, f func() error) (err error) {
	if t.config.rung != nil {
		p.call(func() { err = f() })
		return err
	}
	q := question{p, name, patience, t.world.now, p.Clock().Monotonic(), p.host.clock.uneven, t.check.calm(p.client)}
	p.call(func() { err = f() })
	t.check.answered(&q, err)
	return err
}

// answered looks at how long the call took, and what it says.
func (k *checker) answered(q *question, err error) {
	h := q.process.host
	if q.process.client.closing && q.name != "Close" {
		return // it ends with the client
	}
	if h.rests() || h.clock.uneven != q.uneven {
		return // its own code was stopped, or its clock was set
	}
	calm := q.calm && k.calm(q.process.client)
	limit := k.trips()
	if !calm {
		limit += q.patience * 5 / 4
	}
	took := q.process.Clock().Monotonic() - q.own
	if h.resumed >= q.began {
		took, limit = k.trial.world.now-h.resumed, limit+q.patience/2 // what it had waited before counts for nothing
	}
	if took > limit {
		k.blame(q, LateAnswer, fmt.Sprintf("%s of %s took %v, and its masters at most %v", q.name, q.process.name, short(took), short(limit)))
	}
	if calm && h.resumed < q.began && errors.Is(err, redlock.ErrNoQuorum) && !errors.Is(err, context.DeadlineExceeded) {
		k.blame(q, Unfounded, fmt.Sprintf("%s of %s found no quorum, and nothing was wrong: %v", q.name, q.process.name, err))
	}
}

func (k *checker) blame(q *question, kind ViolationKind, what string) {
	k.report(Violation{Kind: kind, What: what, Clients: []int{q.process.client.index}})
}

// calm reports whether nothing is wrong between a client and its masters, and nothing
// was that still has consequences.
func (k *checker) calm(c *client) bool {
	if k.trial.world.now <= k.settled(c) {
		return false
	}
	for _, l := range c.links {
		if !l.well() {
			return false
		}
	}
	return true
}
