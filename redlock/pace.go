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
	queues  *queues
	open    int       // asks that are not decided
	limit   int       // of these; zero: mostOpen
	waiting []*waiter // that may not ask yet
	sending bool      // a call of next sends what may be sent
	timer   drift.Timer
}

const (
	fewestOpen  = 16   // asks: so many never have to wait
	mostOpen    = 1024 // asks
	mostAtOnce  = 256  // asks that one callback sends
	mostRepeats = 16   // asks that are repeated at one master; see ear
)

// may reports whether a waiter may ask now. If not, it asks when its turn comes.
func (p *pace) may(w *waiter) bool {
	if p.open < p.bound() {
		p.open++
		return true
	}
	if !w.paced {
		w.paced = true
		p.waiting = append(p.waiting, w)
	}
	return false
}

func (p *pace) bound() int {
	if p.limit == 0 {
		return mostOpen
	}
	return p.limit
}

// decided notes that an ask was decided, and has the next waiters ask.
func (p *pace) decided(answered bool) {
	p.queues.mu.Lock()
	p.open--
	if answered {
		p.limit = min(p.bound()+1, mostOpen)
	} else {
		p.limit = max(p.bound()/2, fewestOpen)
	}
	p.queues.mu.Unlock()
	p.next()
}

// next has waiters ask that may. One call does so at a time: where no master is connected
// an ask is decided while it is sent.
func (p *pace) next() {
	mu := &p.queues.mu
	mu.Lock()
	if p.sending || len(p.waiting) == 0 {
		mu.Unlock()
		return
	}
	p.sending = true
	for n := 0; n < mostAtOnce && len(p.waiting) > 0 && p.open < p.bound(); n++ {
		w := p.waiting[0]
		p.waiting, w.paced = p.waiting[1:], false
		mu.Unlock()
		w.askAgain()
		mu.Lock()
	}
	p.sending = false
	rest := len(p.waiting) > 0 && p.open < p.bound()
	mu.Unlock()
	if rest {
		c := p.queues.client
		c.timers.Set(&p.timer, c.jitter(c.opt.retryInterval), p)
	}
}

// Fire goes on after a rest.
func (p *pace) Fire() { p.next() }
