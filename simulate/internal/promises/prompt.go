package promises

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// A call that does not wait for a lock returns as soon as its masters have answered,
// or had the time to, and finds a quorum where nothing is wrong.

// question is such a call.
type question struct {
	process  *Caller
	name     string
	patience time.Duration // how long it waits for silent masters
	began    time.Duration
	own      time.Duration // by the client's monotonic clock
	uneven   int           // of that clock
	calm     bool          // nothing was wrong when it began
}

// Ask runs a call that waits so long for silent masters.
func (t *Scene) Ask(p *Caller, name string, patience time.Duration, f func() error) (err error) {
	if t.Config.Rung != nil {
		p.Call(func() { err = f() })
		return err
	}
	q := question{p, name, patience, t.World.Now, p.Clock().Monotonic(), p.Host.Clock.Uneven, t.Check.Calm(p.Client)}
	p.Call(func() { err = f() })
	t.Check.answered(&q, err)
	return err
}

// answered checks how long the call took, and its error.
func (k *checker) answered(q *question, err error) {
	h := q.process.Host
	if q.process.Client.Closing && q.name != "Close" {
		return // it ends with the client
	}
	if h.Rests() || h.Clock.Uneven != q.uneven {
		return // its own code was stopped, or its clock was set
	}
	calm := q.calm && k.Calm(q.process.Client)
	limit := k.Trips()
	if !calm {
		limit += q.patience * 5 / 4
	}
	if q.name == "TryLock" && k.scene.Config.Lock == plan.CachedLock {
		limit += k.scene.Config.NodeTimeout * 5 / 4 // in which another process may give the lock back
	}
	took := q.process.Clock().Monotonic() - q.own
	if h.Resumed >= q.began {
		took, limit = k.scene.World.Now-h.Resumed, limit+q.patience/2 // its wait before that does not count
	}
	if took > limit {
		k.blame(q, tally.LateAnswer, fmt.Sprintf("%s of %s took %v, and its masters at most %v", q.name, q.process.Name(), plan.Short(took), plan.Short(limit)))
	}
	if calm && h.Resumed < q.began && errors.Is(err, redlock.ErrNoQuorum) && !errors.Is(err, context.DeadlineExceeded) {
		k.blame(q, tally.Unfounded, fmt.Sprintf("%s of %s found no quorum, and nothing was wrong: %v", q.name, q.process.Name(), err))
	}
}

func (k *checker) blame(q *question, kind tally.ViolationKind, what string) {
	k.Report(tally.Violation{Kind: kind, What: what, Clients: []int{q.process.Client.Index}})
}

// Calm reports whether nothing is wrong between a client and its masters, and nothing
// was that still has consequences.
func (k *checker) Calm(c *Client) bool {
	if k.scene.World.Now <= k.settled(c) {
		return false
	}
	for _, l := range c.Links {
		if !l.Well() {
			return false
		}
	}
	return true
}

// Votes checks an error and the votes that it lists. An error has a reason, and so has each failed
// vote. An error must
// not say that no quorum was found if a quorum granted, if refusals alone decided, or if the
// call did not wait for a quorum.
func (t *Scene) Votes(p *Caller, err error) {
	var e *redlock.Error
	if !errors.As(err, &e) {
		return
	}
	if e.Err == nil {
		p.Fail("%s was told no reason: %v", p.Name(), err)
	}
	if len(e.Votes) == 0 {
		return
	}
	said := map[quorum.Vote]int{}
	for _, v := range e.Votes {
		if v.Vote == quorum.Failed && v.Err == nil {
			p.Fail("%s: %s failed, and nothing says why: %v", p.Name(), v.Node, err)
		}
		if !v.Late {
			said[v.Vote]++
		}
	}
	if t.Config.Lock.IsSemaphore() || !errors.Is(err, redlock.ErrNoQuorum) {
		return
	}
	for _, vote := range []quorum.Vote{quorum.Granted, quorum.Pending, quorum.Refused} {
		size := quorum.Size(len(e.Votes))
		if vote == quorum.Refused {
			size = len(e.Votes) - size + 1 // so many make a quorum of grants impossible
		}
		if said[vote] >= size {
			p.Fail("%s was told that there is no quorum, and %d %s: %v", p.Name(), said[vote], vote, err)
		}
	}
}
