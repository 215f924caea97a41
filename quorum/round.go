package quorum

import (
	"sync"
	"sync/atomic"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
)

// Round is one question put to the nodes, and their votes.
//
// It is decided exactly once: by the vote that makes the outcome certain, or by
// the node timeout. Votes that arrive later do not change the outcome, but
// they are kept, and told to the Watcher.
type Round struct {
	panel *Panel
	done  []func(node.Reply) // one for each node, made once and used in every life of this Round
	ready chan struct{}

	mu      sync.Mutex
	judge   Judge
	watcher Watcher
	op      node.Op
	started drift.Instant
	alarm   drift.Alarm
	tally   Tally
	ballots []Ballot
	decided bool
	waited  bool         // once more, after a node timeout that came late itself
	holders atomic.Int32 // answers under way, and the owner: the round is reused at zero
}

func newRound(p *Panel) *Round {
	r := &Round{
		panel:   p,
		ready:   make(chan struct{}, 1),
		done:    make([]func(node.Reply), len(p.nodes)),
		ballots: make([]Ballot, len(p.nodes)),
	}
	for i := range r.done {
		r.done[i] = func(reply node.Reply) { r.answer(i, reply) }
	}
	return r
}

// Ballot is one node's vote with the reply it was read from.
type Ballot struct {
	Vote  Vote
	Reply node.Reply
	Late  bool // it came after the decision
}

// Judge reads a reply as a vote. It is asked only for replies without an error.
type Judge func(node.Reply) Vote

// Watcher is told what happens to a round, on the goroutine where it happened
// and outside every mutex of the round. It must not block.
type Watcher interface {
	// Decided is called once.
	Decided(r *Round)
	// Late is called for every vote that arrives after the decision.
	Late(r *Round, i int, b Ballot)
}

// Ready delivers once when a round without a Watcher is decided.
func (r *Round) Ready() <-chan struct{} { return r.ready }

// Tally returns the votes counted so far. The count ends with the decision;
// votes that arrive later are in the ballots only.
func (r *Round) Tally() Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally
}

// Outcome returns what the round decided: Won, Lost, or Open before that.
func (r *Round) Outcome() Outcome { return r.Tally().Outcome() }

// Ballot returns the ballot of node i.
func (r *Round) Ballot(i int) Ballot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ballots[i]
}

// Again returns q as it is put once more, to those that refused. Grants count.
// Whoever failed or has not answered yet is left out: it may have stored what q
// asks for, and would refuse it now, as if there were nothing to release.
//
// Who is who is read in one instant: a vote that arrives in the middle would be
// in neither set, and that node be asked again.
func (r *Round) Again(q Question) Question {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.Granted, q.Absent, q.Since = 0, 0, drift.Instant{}
	for i, b := range r.ballots {
		switch b.Vote {
		case Refused:
		case Granted:
			q.Granted |= Only(i)
		default:
			q.Absent |= Only(i)
		}
	}
	return q
}

// Ballots appends every node's ballot to dst, in the order of the nodes.
func (r *Round) Ballots(dst []Ballot) []Ballot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(dst, r.ballots...)
}

// Free gives back a round without a watcher, decided or not. The owner calls it
// once and does not touch the round again; answers that are still under way
// find their way.
func (r *Round) Free() { r.drop() }

// conclude decides a round that the grants given before have decided.
func (r *Round) conclude() {
	r.mu.Lock()
	if r.decided || r.tally.Outcome() == Open {
		r.mu.Unlock()
		return
	}
	r.decide()
}

// Ring is the node timeout. Nodes without an answer count as failed, unless the
// timeout comes late itself: then we are the ones who were slow, and the
// answers may be here, not read yet. They get one more moment.
func (r *Round) Ring() {
	p := r.panel
	grace := p.timeout / 4
	r.mu.Lock()
	now := p.watch.Now()
	passed := now.Sub(r.started)
	switch {
	case r.decided:
		r.mu.Unlock()
		return
	case passed < p.timeout:
		// The alarm of an earlier life of this round, or of a clock that was set
		// forward and back again.
		p.agenda.SetFrom(&r.alarm, r.started, p.timeout, r)
		r.mu.Unlock()
		return
	case !r.waited && passed > p.timeout+grace:
		r.waited = true
		p.agenda.SetFrom(&r.alarm, now, grace, r)
		r.mu.Unlock()
		return
	}
	for i := range r.ballots {
		if b := &r.ballots[i]; b.Vote == Pending {
			b.Vote = Failed
			r.tally.Count(Failed)
			b.Reply.Err = &node.Error{Node: p.nodes[i].Addr(), Op: r.op, Err: node.ErrTimeout}
		}
	}
	r.decide()
}

// answer takes node i's reply.
func (r *Round) answer(i int, reply node.Reply) {
	defer r.drop()
	b := Ballot{Vote: Failed, Reply: reply}
	if reply.Err == nil {
		b.Vote = r.judge(reply)
	}
	r.mu.Lock()
	b.Late = r.decided
	r.ballots[i] = b
	if !r.decided {
		r.tally.Count(b.Vote)
		if r.tally.Outcome() != Open {
			r.decide()
			return
		}
		r.mu.Unlock()
		return
	}
	w := r.watcher
	r.mu.Unlock()
	if w != nil {
		w.Late(r, i, b)
	}
}

// decide ends the vote. It is called with the mutex held and releases it.
func (r *Round) decide() {
	r.decided = true
	w := r.watcher
	r.mu.Unlock()
	r.panel.agenda.Cancel(&r.alarm)
	if w == nil {
		r.ready <- struct{}{}
		return
	}
	w.Decided(r)
	r.drop() // nobody else owns a watched round
}

// drop ends one holder's interest and reuses the round after the last.
func (r *Round) drop() {
	if r.holders.Add(-1) == 0 {
		r.panel.rounds.Put(r)
	}
}
