package simulate

import (
	"errors"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// What the masters have answered decides a question, and the client does what follows
// from it at once. The replies are counted here once more, as they are handed to the
// library.

// replies counts what the masters of a client have replied to one question.
type replies struct {
	masters                  int
	granted, refused, failed int
	decided                  bool
	at                       time.Duration // when it was decided
}

// count adds a reply, unless the question is decided. It reports whether this reply
// decides.
func (q *replies) count(vote quorum.Vote, now time.Duration) (decides bool) {
	if q.decided {
		return false
	}
	switch vote {
	case quorum.Granted:
		q.granted++
	case quorum.Refused:
		q.refused++
	default:
		q.failed++
	}
	size, pending := quorum.Size(q.masters), q.masters-q.granted-q.refused-q.failed
	if q.granted >= size || q.granted+pending < size {
		q.decided, q.at = true, now
	}
	return q.decided
}

// verdict is what a question that was lost says. Masters that are silent to the end have
// failed, those that were not waited for have not.
func (q *replies) verdict() error {
	might := q.masters - q.failed
	if !q.decided {
		might = q.granted + q.refused
	}
	if might < quorum.Size(q.masters) {
		return redlock.ErrNoQuorum
	}
	return redlock.ErrTaken
}

// try is a TryLock that is under way.
type try struct {
	replies
	key, value string
	began      time.Duration
}

// tries begins to watch a TryLock. It returns nil if that cannot be watched: where code
// is stopped in the middle, nothing follows at once, and of other kinds of locks not
// every reply can be read here.
func (t *trial) tries(p *Process, a Action) *try {
	kind := t.config.Lock
	if kind != PlainLock && kind != ReentrantLock || p.client.preemption.every > 0 || p.client.trying != nil {
		return nil
	}
	y := &try{replies: replies{masters: len(p.client.masters)}, key: a.names()[0], began: t.world.now}
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
	if late := t.world.now - max(y.at, p.host.resumed); y.decided && late > 0 {
		t.check.report(Violation{
			Kind:    LateAnswer,
			What:    p.name + " was told how its TryLock ended " + short(late).String() + " after its masters had decided that",
			Clients: []int{p.client.index},
		})
	}
	if !errors.Is(err, redlock.ErrTaken) && !errors.Is(err, redlock.ErrNoQuorum) {
		return
	}
	if want := y.verdict(); !errors.Is(err, want) {
		p.Fail("%s: of %d masters %d had granted and %d had refused, and TryLock says: %v", p.name, y.masters, y.granted, y.refused, err)
	}
}

// ungrip is an Unlock that is under way.
type ungrip struct {
	replies
	value string
	heard quorum.Set // what a master answers to a release that is sent once more does not count
	gone  int        // masters that did not have it any more
}

// unlocks begins to watch an Unlock. It returns nil if that cannot be watched.
func (t *trial) unlocks(p *Process, cl *claim) *ungrip {
	c := p.client
	if cl.value == "" || c.preemption.every > 0 || c.unlocking != nil || !cl.hold.Valid() {
		return nil
	}
	c.unlocking = &ungrip{replies: replies{masters: len(c.masters)}, value: cl.value}
	return c.unlocking
}

// ungripped looks at how an Unlock ended: with the reply that decides it, and with
// ErrLost if a quorum did not have the lease any more although it cannot have expired.
func (t *trial) ungripped(p *Process, cl *claim, y *ungrip, err error) {
	if y == nil {
		return
	}
	p.client.unlocking = nil
	if !y.decided || p.client.closing || p.host.rests() {
		return
	}
	if late := t.world.now - max(y.at, p.host.resumed); late > 0 {
		t.check.report(Violation{
			Kind:    LateAnswer,
			What:    p.name + " was told how its Unlock ended " + short(late).String() + " after its masters had decided that",
			Clients: []int{p.client.index},
		})
	}
	if y.gone >= quorum.Size(y.masters) && cl.lasts() && !errors.Is(err, redlock.ErrLost) {
		p.Fail("%s has unlocked a lease that %d of %d masters did not have any more, and Unlock says: %v", p.name, y.gone, y.masters, err)
	}
}

// extension is the last renewal of a lease that was sent.
type extension struct {
	replies
	cmd    *node.Command
	until  time.Time // it is worth, by the client's clock
	uneven int       // of that clock
	lacks  quorum.Set
	mended quorum.Set
	valid  bool          // the lease was, when this was decided
	left   time.Duration // of its validity then
}

// sends notes what a client asks its masters.
func (c *client) sends(master int, cmd *node.Command) {
	switch cmd.Op {
	case node.OpAcquire:
		if y := c.trying; y != nil && y.value == "" && y.key == cmd.Keys[0] {
			y.value = cmd.Args[0]
		}
	case node.OpRepair:
		if cl := c.claimOf(cmd.Args[0]); cl != nil {
			cl.mended |= quorum.Only(master)
		}
		if x := c.handles; x != nil && x.granted < quorum.Size(x.masters) {
			c.blame("a key is put back although no quorum has extended the lease, which hides that another client held the lock")
		}
	case node.OpExtend:
		if cl := c.claimOf(cmd.Args[0]); cl != nil && cl.extension.cmd != cmd && !c.config.Lock.isSemaphore() {
			cl.extend(cmd)
		}
	}
}

// extend notes a renewal.
func (cl *claim) extend(cmd *node.Command) {
	clock := cl.client.host.clock
	ms, _ := strconv.Atoi(cmd.Args[1])
	ttl := time.Duration(ms) * time.Millisecond
	cl.extension = extension{
		replies: replies{masters: len(cl.client.masters)},
		cmd:     cmd, until: clock.Now().Add(drift.Budget(ttl, drift.DefaultFactor)), uneven: clock.uneven,
	}
}

// hand gives the library a reply.
func (c *client) hand(master int, cmd *node.Command, done func(node.Reply), r node.Reply) {
	if cmd == nil {
		done(r)
		return
	}
	c.hears(master, cmd, r)
	done(r)
	c.handles = nil
	c.heard(cmd)
}

// hears counts a reply before the library has it.
func (c *client) hears(master int, cmd *node.Command, r node.Reply) {
	now := c.world.now
	if r.Err != nil && cmd.Op == node.OpExtend && errors.Is(r.Err, node.ErrSilent) {
		c.blame("a master that does not answer is not asked to extend what is held")
	}
	switch cmd.Op {
	case node.OpAcquire:
		if y := c.trying; y != nil && y.value == cmd.Args[0] {
			y.count(grants(r), now)
		}
	case node.OpRelease:
		if y := c.unlocking; y != nil && y.value == cmd.Args[0] && !y.decided && !y.heard.Has(master) {
			y.heard |= quorum.Only(master)
			vote := quorum.Failed
			if r.Err == nil {
				vote = quorum.Granted
			}
			if r.Err == nil && r.Value != int64(1) {
				y.gone++
			}
			y.count(vote, now)
		}
	case node.OpExtend:
		cl := c.claimOf(cmd.Args[0])
		if cl == nil || cl.extension.cmd != cmd {
			return
		}
		x := &cl.extension
		if x.count(extends(r), now) {
			x.valid, x.left = cl.hold.Valid(), cl.until.Sub(c.host.clock.Now())
		}
		c.handles = x
		if r.Err == nil && r.Value == int64(0) {
			x.lacks |= quorum.Only(master)
		}
	}
}

// grants reads the reply to the acquire of a plain lock.
func grants(r node.Reply) quorum.Vote {
	switch {
	case r.Err != nil:
		return quorum.Failed
	case r.Value == "OK":
		return quorum.Granted
	case r.Value == nil:
		return quorum.Refused
	}
	return quorum.Failed
}

// extends reads the reply to a renewal.
func extends(r node.Reply) quorum.Vote {
	switch {
	case r.Err != nil:
		return quorum.Failed
	case r.Value == int64(1) && !r.Young:
		return quorum.Granted
	case r.Value == int64(0) || r.Value == int64(-1):
		return quorum.Refused
	}
	return quorum.Failed
}

// heard looks at what the library has made of a reply to a renewal: a lease that a
// quorum has extended while it was valid lasts as long as that is worth, and the masters
// that lack its key are sent it.
func (c *client) heard(cmd *node.Command) {
	if cmd.Op != node.OpExtend || c.closing || c.preemption.every > 0 {
		return
	}
	cl := c.claimOf(cmd.Args[0])
	if cl == nil || cl.extension.cmd != cmd {
		return
	}
	x := &cl.extension
	if !x.decided || !x.valid || x.uneven != c.host.clock.uneven {
		return
	}
	if x.refused > x.masters-quorum.Size(x.masters) && cl.hold.Valid() {
		c.blame("so many masters have said that they do not have a lease that no quorum has it, and it is valid")
	}
	if x.granted < quorum.Size(x.masters) {
		return
	}
	renewed := "a lease of " + strconv.Quote(cl.names[0]) + " is renewed"
	if until := cl.hold.Until(); x.at == c.world.now && len(c.config.Options) == 0 && until.Before(x.until.Add(-punctual)) {
		c.blame(renewed + " at a quorum of masters, and does not last as long as they keep it")
	}
	if missing := x.lacks &^ x.mended; missing != 0 && cl.hold.Valid() {
		x.mended |= missing
		c.blame(renewed + ", and a master that said it has no key is not sent it")
	}
}

// dropped looks at a lease that has expired although it is renewed: if its last renewal
// found no quorum, and there was time for another, that was tried.
func (k *checker) dropped(cl *claim) {
	x, c := &cl.extension, cl.client
	lease, ok := cl.hold.(interface{ Err() error })
	if !ok || !cl.renews || !x.decided || x.granted >= quorum.Size(x.masters) || x.left < worthATry || c.preemption.every > 0 ||
		c.host.resumed >= x.at || x.uneven != c.host.clock.uneven || !errors.Is(lease.Err(), redlock.ErrExpired) {
		return
	}
	c.blame("a renewal found no quorum " + short(x.left).String() + " before the end of the lease, and was not tried again")
}

// worthATry is how much of a validity must be left for another renewal to be tried: it
// comes when half of that is over, at the latest.
const worthATry = 100 * time.Millisecond

// blame reports what the client did wrong.
func (c *client) blame(what string) {
	c.check.report(Violation{Kind: Custom, What: c.host.name + ": " + what, Clients: []int{c.index}})
}

// claimOf returns the hold of a client that masters store by that value, or nil.
func (c *client) claimOf(value string) *claim {
	for _, cl := range c.check.claims {
		if cl.client == c && cl.value == value {
			return cl
		}
	}
	return nil
}
