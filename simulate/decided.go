package simulate

import (
	"errors"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// A call ends with the reply that decides it, and says what the replies say.

// try is a TryLock that is under way.
type try struct {
	replies
	key, value string
}

// tries begins to watch a TryLock. It returns nil if that cannot be watched: where code
// is stopped in the middle, nothing follows at once, and of other kinds of locks not
// every reply can be read here.
func (t *trial) tries(p *Process, a Action) *try {
	kind := t.config.Lock
	if kind != PlainLock && kind != ReentrantLock || p.client.preemption.every > 0 || p.client.trying != nil {
		return nil
	}
	y := &try{replies: p.client.ask(), key: a.names()[0]}
	p.client.trying = y
	return y
}

// tried looks at how a TryLock ended.
func (t *trial) tried(p *Process, y *try, err error) {
	if y == nil {
		return
	}
	p.client.trying = nil
	if p.client.closing || y.value == "" || p.host.rests() {
		return
	}
	t.promptly(p, "TryLock", &y.replies)
	t.patiently(p, "TryLock", &y.replies, err)
	if !errors.Is(err, redlock.ErrTaken) && !errors.Is(err, redlock.ErrNoQuorum) {
		return
	}
	if want := y.verdict(); !errors.Is(err, want) {
		p.Fail("%s: of %d masters %d had granted and %d had refused, and TryLock says: %v", p.name, y.masters, y.granted, y.refused, err)
	}
}

// unlocking is an Unlock that is under way.
type unlocking struct {
	replies
	value string
	heard quorum.Set // what a master answers to a release that is sent once more does not count
}

// unlocks begins to watch an Unlock. It returns nil if that cannot be watched.
func (t *trial) unlocks(p *Process, cl *claim) *unlocking {
	c := p.client
	if cl.value == "" || c.preemption.every > 0 || c.unlocking != nil || !cl.hold.Valid() {
		return nil
	}
	c.unlocking = &unlocking{replies: c.ask(), value: cl.value}
	return c.unlocking
}

// unlockEnds looks at how an Unlock ended: with the reply that decides it, and with
// ErrLost if a quorum did not have the lease any more although it cannot have expired.
func (t *trial) unlockEnds(p *Process, cl *claim, y *unlocking, err error) {
	if y == nil {
		return
	}
	p.client.unlocking = nil
	if p.client.closing || p.host.rests() {
		return
	}
	t.patiently(p, "Unlock", &y.replies, err)
	if over := !cl.until.After(p.Clock().Now()); over && cl.steps == p.host.clock.uneven && errors.Is(err, redlock.ErrLost) {
		p.Fail("%s has unlocked a lease that expired before its masters answered, and Unlock says: %v", p.name, err)
	}
	if !y.decided {
		return
	}
	t.promptly(p, "Unlock", &y.replies)
	if y.masters-y.refused < y.need() && cl.lasts() && !errors.Is(err, redlock.ErrLost) {
		p.Fail("%s has unlocked a lease that %d of %d masters did not have any more, and Unlock says: %v", p.name, y.refused, y.masters, err)
	}
}

// patiently reports a call that was given up before its time, or that gave the answers
// which came during a pause of its process no moment.
func (t *trial) patiently(p *Process, call string, q *replies, err error) {
	h, timeout, grace := p.host, t.config.nodeTimeout, t.config.nodeTimeout/4
	if q.decided || !errors.Is(err, redlock.ErrNoQuorum) && !errors.Is(err, redlock.ErrTaken) {
		return
	}
	passed := q.passed(h)
	if passed < timeout-punctual {
		p.Fail("%s was told after %v that its masters are silent, which have %v to answer: %s says: %v", p.name, passed, timeout, call, err)
	}
	if passed > timeout+grace+punctual && h.resumes == q.resumes+1 && t.world.now-h.resumed < grace/4 {
		p.Fail("%s stood still, and was told at once that its masters are silent, whose answers may be there: %s says: %v", p.name, call, err)
	}
}

// promptly reports a call that ends later than its masters have decided.
func (t *trial) promptly(p *Process, call string, q *replies) {
	late := t.world.now - max(q.at, p.host.resumed)
	if !q.decided || late <= 0 {
		return
	}
	t.check.report(Violation{
		Kind:    LateAnswer,
		What:    p.name + " was told how its " + call + " ended " + short(late).String() + " after its masters had decided that",
		Clients: []int{p.client.index},
	})
}
