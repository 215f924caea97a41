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
	y := &try{replies: replies{masters: len(p.client.masters)}, key: a.names()[0]}
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
	gone  int        // masters that did not have it any more
}

// unlocks begins to watch an Unlock. It returns nil if that cannot be watched.
func (t *trial) unlocks(p *Process, cl *claim) *unlocking {
	c := p.client
	if cl.value == "" || c.preemption.every > 0 || c.unlocking != nil || !cl.hold.Valid() {
		return nil
	}
	c.unlocking = &unlocking{replies: replies{masters: len(c.masters)}, value: cl.value}
	return c.unlocking
}

// unlockEnds looks at how an Unlock ended: with the reply that decides it, and with
// ErrLost if a quorum did not have the lease any more although it cannot have expired.
func (t *trial) unlockEnds(p *Process, cl *claim, y *unlocking, err error) {
	if y == nil {
		return
	}
	p.client.unlocking = nil
	if !y.decided || p.client.closing || p.host.rests() {
		return
	}
	t.promptly(p, "Unlock", &y.replies)
	if y.gone >= quorum.Size(y.masters) && cl.lasts() && !errors.Is(err, redlock.ErrLost) {
		p.Fail("%s has unlocked a lease that %d of %d masters did not have any more, and Unlock says: %v", p.name, y.gone, y.masters, err)
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
