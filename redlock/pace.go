package redlock

import "github.com/quorumlock/quorumlock/drift"

// pace bounds how many asks of a client's waiters are undecided at the same time. The
// asks above the bound are sent in order, each when an earlier one has been decided.
//
// Without a bound, thousands of waiters that ask masters which stood still for a moment
// keep the masters too busy to answer in time. Then no ask finds a quorum, all are
// repeated, and that never ends (L46). So the bound falls with each ask that finds no
// quorum, and rises with each ask that does.
//
// The mutex of the queues guards it.
type pace struct {
	queues *queues
	open   int  // asks that are not decided
	limit  int  // of these
	line   line // waiters that may not ask yet
	timer  drift.Timer
}

const (
	fewestOpen = 16   // asks: so many never have to wait
	mostOpen   = 1024 // asks
	mostAtOnce = 256  // asks that one callback sends
)

// may reports whether a waiter may ask now. If not, it asks when its turn comes.
func (p *pace) may(w *waiter) bool {
	if p.open >= p.limit {
		p.line.waiters = append(p.line.waiters, w)
		return false
	}
	p.open++
	return true
}

// decided notes that an ask was decided, and has the next waiters ask.
func (p *pace) decided(answered bool) {
	p.queues.mu.Lock()
	p.open--
	if answered {
		p.limit = min(p.limit+1, mostOpen)
	} else {
		p.limit = max(p.limit/2, fewestOpen)
	}
	p.queues.mu.Unlock()
	p.Fire()
}

// Fire has waiters ask that may, and goes on after a rest if these are too many.
func (p *pace) Fire() {
	n, c := 0, p.queues.client
	p.line.goOn(p.queues, event{kind: paceAllows}, func() bool {
		if n++; n > mostAtOnce && p.open < p.limit {
			c.timers.Set(&p.timer, c.jitter(c.opt.retryInterval), p)
		}
		return n <= mostAtOnce && p.open < p.limit
	})
}
