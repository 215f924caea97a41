package quorum

import (
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// Round is one question put to the nodes, and their votes.
//
// It is decided exactly once: by the vote that makes the outcome certain, or by
// its timeout. Votes that arrive later do not change the outcome, but they are
// kept, and told to the Watcher.
//
// Rounds are reused: the time from one question to the next is a life of the Round.
//
// Invariant: a round gets its next owner only after its last user has let go of it. Its
// users are the owner, every answer that is still to come, and the timer from when it is
// set until it is cancelled or has fired to the end.
type Round struct {
	members *Members
	done    []func(wire.Reply) // one for each node, made once and used in every life of this Round
	ready   chan struct{}
	users   atomic.Int32

	// Set for a whole life of the round, before any node is asked.
	judge   Judge
	watcher Watcher
	op      wire.Op
	started drift.Instant
	timeout time.Duration

	// Invariant: the poll is open exactly as long as the timer is set or firing
	// and ready has not been told.
	mu     seam.Mutex
	poll   poll
	timer  drift.Timer
	waited bool // it has waited once more, after a timeout that came late itself
}

func newRound(m *Members) *Round {
	r := &Round{
		members: m,
		ready:   make(chan struct{}, 1),
		done:    make([]func(wire.Reply), len(m.nodes)),
		poll:    poll{ballots: make([]Ballot, len(m.nodes))},
	}
	r.mu.In(m.steps)
	for i := range r.done {
		r.done[i] = func(reply wire.Reply) { r.answer(i, reply) }
	}
	return r
}

// Judge reads a reply as a vote.
type Judge interface {
	// Judge reads the reply to a command for op. It is asked only for replies
	// without an error. It returns Failed for a reply that does not answer the
	// question. It must not block.
	Judge(op wire.Op, r wire.Reply) Vote
}

// Watcher follows a round. Its methods run on the goroutine of the vote or of
// the timeout, outside every mutex of the round. They must not block.
type Watcher interface {
	// Decided is called once.
	Decided(r *Round)
	// Late is called for every vote that arrives after the decision, possibly
	// while Decided is running.
	Late(r *Round, i int, b Ballot)
}

// VoteWatcher is a Watcher that is told of the votes before the decision, too.
type VoteWatcher interface {
	Watcher
	// Voted is called for every vote that does not decide the round.
	Voted(r *Round, i int)
}

// Ready delivers once when a round without a Watcher is decided.
func (r *Round) Ready() <-chan struct{} { return r.ready }

// Tally returns the votes counted so far. The count ends with the decision;
// votes that arrive later are in the ballots only.
func (r *Round) Tally() Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.poll.tally
}

// Outcome returns what the round decided: Won, Lost, or Open before that.
func (r *Round) Outcome() Outcome { return r.Tally().Outcome() }

// Ballot returns the ballot of node i.
func (r *Round) Ballot(i int) Ballot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.poll.ballots[i]
}

// Ballots appends every node's ballot to dst, in the order of the nodes.
func (r *Round) Ballots(dst []Ballot) []Ballot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(dst, r.poll.ballots...)
}

// Free gives back a round without a watcher, decided or not. The owner calls it
// once and does not touch the round again; answers may still be under way. There may be
// no round.
func (r *Round) Free() {
	if r != nil {
		r.drop()
	}
}

// begin starts the round's next life. All of it is in place before the first
// node is asked, because a node may answer before Do returns, and the timeout
// may come before the last is asked.
func (r *Round) begin(q Question, t Tally) {
	m := r.members
	r.judge, r.watcher, r.op = q.Judge, q.Watcher, q.Command.Op
	r.started, r.timeout = q.Since, q.Timeout
	if r.started == (drift.Instant{}) {
		r.started = m.watch.Now()
	}
	if r.timeout == 0 {
		r.timeout = m.timeout
	}
	if len(r.ready) > 0 {
		<-r.ready // decided after its owner had stopped waiting
	}
	r.mu.Lock()
	r.waited = false
	asked := r.poll.open(t, q.Granted, q.Absent)
	r.users.Store(int32(asked) + 1) // and the owner
	decided := r.poll.decided
	if decided {
		r.stop()
	} else {
		r.users.Add(1)
		m.timers.SetFrom(&r.timer, r.started, r.look(0), r)
	}
	r.mu.Unlock()
	if decided {
		r.tell()
	}
}

// answer takes node i's reply.
func (r *Round) answer(i int, reply wire.Reply) {
	defer r.drop()
	b := r.read(i, reply)
	if r.members.timed && answered(reply) {
		b.After = r.members.watch.Since(r.started)
	}
	r.mu.Lock()
	late, decides := r.poll.cast(i, &b)
	if decides {
		r.stop()
	}
	r.mu.Unlock()
	switch {
	case decides:
		r.tell()
	case late && r.watcher != nil:
		r.watcher.Late(r, i, b)
	case !late:
		if w, ok := r.watcher.(VoteWatcher); ok {
			w.Voted(r, i)
		}
	}
}

// read makes a ballot of a reply.
func (r *Round) read(i int, reply wire.Reply) Ballot {
	if reply.Err != nil {
		return Ballot{Vote: Failed, Reply: reply}
	}
	v := r.judge.Judge(r.op, reply)
	switch {
	case v == Failed && reply.Young:
		reply.Err = r.failure(i, node.ErrYoung)
	case v == Failed:
		reply.Err = r.failure(i, &wire.ReplyError{Value: reply.Value})
	}
	return Ballot{Vote: v, Reply: reply}
}

// Answered reports whether the master itself said something, if only no.
func (b *Ballot) Answered() bool { return answered(b.Reply) }

func answered(reply wire.Reply) bool {
	if reply.Err == nil {
		return true
	}
	switch reply.Err.Err.(type) {
	case *wire.ServerError, *wire.ReplyError:
		return true
	}
	return false
}

// Fire is the round's timeout. Nodes without an answer count as failed.
func (r *Round) Fire() {
	r.mu.Lock()
	if r.poll.decided {
		r.mu.Unlock()
		r.drop()
		return
	}
	if r.waitsOn() {
		r.mu.Unlock()
		return // the timer is set again, and still a user
	}
	r.poll.close(func(i int) *wire.Error { return r.failure(i, node.ErrTimeout) })
	r.stop()
	r.mu.Unlock()
	r.tell()
	r.drop()
}

// look returns when to look whether the round ends before its timeout, from the start of the round: at
// half of the timeout, then at half of the rest, and so on, but not before the node timeout.
func (r *Round) look(passed time.Duration) time.Duration {
	rest := r.timeout - passed
	if rest <= r.members.timeout {
		return r.timeout
	}
	return max(r.members.timeout, passed+rest/2)
}

// waitsOn sets the timer again unless the round ends here. It ends before its timeout if a
// quorum has answered: asked again, a node that failed and is back may grant, while those
// that have not answered may hang for long (L82).
//
// A timer that fired too early, as after a clock was set forward and back, is set again; so
// is one that fired too late: then this client was slow, and the answers may be here, but
// not read yet. They get a quarter of the node timeout, once. The mutex is held.
func (r *Round) waitsOn() bool {
	m := r.members
	now, grace := m.watch.Now(), m.timeout/4
	passed := now.Sub(r.started)
	switch {
	case passed < r.timeout && passed >= r.look(0) && r.poll.tally.Answered():
		return false
	case passed < r.timeout:
		m.timers.SetFrom(&r.timer, r.started, r.look(passed), r)
	case !r.waited && passed > r.timeout+grace:
		r.waited = true
		m.timers.SetFrom(&r.timer, now, grace, r)
	default:
		return false
	}
	return true
}

// stop ends the waiting for votes. It is one step with the decision, so that
// nothing of this life is left to happen in the next one. The mutex is held, and
// the caller is a user of the round.
func (r *Round) stop() {
	if r.members.timers.Cancel(&r.timer) {
		r.users.Add(-1)
	}
	if r.watcher == nil {
		r.ready <- struct{}{}
	}
}

// tell lets the watcher know of the decision. A watched round has no other owner, so
// the owner's part in it ends here.
func (r *Round) tell() {
	if r.watcher == nil {
		return
	}
	r.watcher.Decided(r)
	r.drop()
}

func (r *Round) failure(i int, err error) *wire.Error {
	return &wire.Error{Node: r.members.nodes[i].Addr(), Op: r.op, Err: err}
}

// drop is called when one user lets go of the round. After the last one the round may be
// reused.
func (r *Round) drop() {
	if r.users.Add(-1) == 0 {
		if r.members.steps != nil {
			r.members.inUse--
		}
		r.members.rounds.Put(r)
	}
}
