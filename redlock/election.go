package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// ErrNoLeader: no process leads, as far as a majority of the masters knows.
var ErrNoLeader = errors.New("no leader")

// Election makes one of many processes the leader, and tells all of them which one. It
// is a fenced lock whose holder publishes a value, such as its address. An Election is
// safe for concurrent use.
type Election struct {
	client *Client
	groups *Groups       // of the client; nil: it has all names
	mutex  *Mutex        // that the leader holds
	opts   []MutexOption // of the mutex
	keys   wire.Leadership
	led    atomic.Pointer[Lease] // the last one by which this handle led
}

// Leader is the process that leads. Its token is that of its Lease, which is higher than
// that of every leader before. Until the first renewal it may be lower. It is higher only where
// masters have lost their memory while it led.
// Observe yields a new leader with a higher token than the one before.
type Leader struct {
	Value     string        // its latest value: see Proclaim
	Client    string        // its client id
	Token     uint64        // its fencing token
	Number    int64         // increases with each proclamation; 0: the campaign's value
	Remaining time.Duration // until its lease ends, unless renewed
	Since     time.Time     // when it asked to lead, by its clock; zero: unknown
}

// Election returns the election of that name. Every operation reports options that are
// out of range, before it sends anything.
func (c *Client) Election(name string, opts ...LockOption) *Election {
	all := []MutexOption{Fenced()}
	for _, opt := range opts {
		all = append(all, opt)
	}
	return &Election{client: c, mutex: c.Mutex(name, all...), opts: all, keys: wire.LeadershipOf(c.opt.prefix, name)}
}

// Campaign waits until this process leads, or ctx ends, and publishes value from then
// on, at most 1024 bytes of UTF-8. Run the leader's work with the lease's context,
// which ends before another process can lead. Unlock resigns.
func (e *Election) Campaign(ctx context.Context, value string) (*Lease, error) {
	name := e.mutex.lock.name
	m := e.client.Mutex(name, append(slices.Clip(e.opts), Metadata(value))...)
	lease, err := e.groups.during(ctx, e.client, []string{name}, m.Lock)
	if err == nil {
		e.led.Store(lease)
		for _, master := range e.client.members.Nodes() {
			master.Do(e.keys.Announce(), nobodyAsks)
		}
	}
	return lease, err
}

// Proclaim has the leader publish another value. It returns ErrNotHeld, ErrLost or
// ErrExpired when the lease has ended, and ErrNoQuorum when too few masters answered:
// then others may or may not hear of the value.
func (e *Election) Proclaim(ctx context.Context, lease *Lease, value string) error {
	if err := e.leads("Proclaim", lease); err != nil {
		return err
	}
	if len(value) > maxMetadata {
		return fmt.Errorf("redlock: Proclaim: %d bytes: must be at most %d", len(value), maxMetadata)
	}
	if !utf8.ValidString(value) {
		return fmt.Errorf("redlock: Proclaim(%q): must be UTF-8", value)
	}
	for {
		again, err := e.proclaim(ctx, lease, value)
		if !again {
			return err
		}
	}
}

// leads returns nil if this client leads by the lease.
func (e *Election) leads(op string, lease *Lease) error {
	if lease == nil || lease.lock.client != e.client || lease.Name() != e.mutex.lock.name || !lease.ofElection() {
		return fmt.Errorf("redlock: %s: Election %q: %w: the lease is not of this election", op, e.mutex.lock.name, ErrNotHeld)
	}
	if err := lease.Err(); err != nil {
		return lease.lock.failed(strings.ToLower(op), err, nil)
	}
	return nil
}

// ofElection reports whether the lease is of such a lock as an election's.
func (l *Lease) ofElection() bool {
	_, fenced := l.claim.(*fencing)
	return fenced && l.lock.opt.atLeast == nil
}

// proclaim asks every master once. It reports whether to ask again: a master has a higher
// number, from a process whose clock was ahead and whose lease this process has adopted,
// and would notify no observer (L50). The next number is above that.
func (e *Election) proclaim(ctx context.Context, lease *Lease, value string) (again bool, _ error) {
	c, l := e.client, lease.lock
	number := c.nextNumber()
	cmd := e.keys.Proclaim(lease.value, strconv.FormatInt(number, 10), value, latchLife)
	r := c.members.Ask(quorum.Question{Command: cmd, Judge: sayings{}})
	defer r.Free()
	if err := c.seams.Wait(ctx, r.Ready()); err != nil {
		return false, l.fail("proclaim", ended(ctx), r)
	}
	for _, b := range r.Ballots(nil) {
		if _, said, ok := wire.ProclaimedOf(b.Reply); ok && said > number {
			c.raiseNumber(said)
			again = true
		}
	}
	switch {
	case again:
		return true, nil
	case r.Outcome() == quorum.Won:
		return false, nil
	case r.Tally().Conclusive():
		return false, l.fail("proclaim", ErrLost, r)
	}
	return false, l.fail("proclaim", l.closedOr(ErrNoQuorum), r)
}

// sayings judges the replies to a proclamation.
type sayings struct{}

// Judge implements quorum.Judge.
func (sayings) Judge(_ wire.Op, r wire.Reply) quorum.Vote {
	state, _, ok := wire.ProclaimedOf(r)
	return taken(ok && state == wire.Ours, ok)
}

// nextNumber is above the numbers of all that this client has proclaimed, whichever
// handle it used and however its clock was set.
func (c *Client) nextNumber() int64 {
	for {
		last := c.proclaimed.Load()
		next := max(last+1, c.clock.Now().UnixMicro())
		if c.proclaimed.CompareAndSwap(last, next) {
			return next
		}
	}
}

// raiseNumber has the next number be above said.
func (c *Client) raiseNumber(said int64) {
	for {
		last := c.proclaimed.Load()
		if last >= said || c.proclaimed.CompareAndSwap(last, said) {
			return
		}
	}
}

// Leader returns the current leader, or ErrNoLeader. The answer is about a moment that
// has passed.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	leader, _, err := e.look(ctx, term{})
	return leader, err
}

// term is the time for which one lease leads, as it was last seen.
type term struct {
	lease string
	token uint64
}

// Observe yields the leader, and again whenever the leader changes or publishes
// another value: in order, each once, until ctx ends, the client is closed, the name has moved to another
// group (see Groups) or the loop is left. It may pass over what lasts for less than a look.
//
//	for leader := range election.Observe(ctx) {
func (e *Election) Observe(ctx context.Context) iter.Seq[Leader] {
	return func(yield func(Leader) bool) {
		n := e.client.follow(e.keys.Channel, e.client.opt.ttl/3)
		defer n.end()
		var last Leader
		var of string
		for {
			leader, lease, err := e.look(ctx, term{of, last.Token})
			newer := cmp.Or(cmp.Compare(leader.Token, last.Token), cmp.Compare(leader.Number, last.Number)) > 0
			if err == nil && newer {
				same := lease == of && leader.Number == last.Number // but for its token, which has risen since
				last, of = leader, lease
				if !same && !yield(leader) {
					return
				}
			}
			if errors.Is(err, ErrMoved) || n.wait(ctx) != nil {
				return
			}
		}
	}
}

// look asks who leads. It also returns the value of the leader's lease.
//
// The masters of a new lease may have different counters until its token is decided, which
// takes less than a node timeout. They may also differ as long as the lease lasts, because
// one of them granted late (L53). So where they do, look asks twice, and then believes the
// lowest that is above the token of the term before.
func (e *Election) look(ctx context.Context, before term) (Leader, string, error) {
	first, lease, settled, err := e.survey(ctx, before)
	if err != nil || settled {
		return first, lease, err
	}
	if err := e.client.pause(ctx, e.client.opt.nodeTimeout); err != nil {
		return Leader{}, "", e.mutex.lock.fail("leader", err, nil)
	}
	again, same, settled, err := e.survey(ctx, before)
	if err == nil && !settled && same != lease {
		return Leader{}, "", e.mutex.lock.fail("leader", ErrNoQuorum, nil) // a new lease meanwhile
	}
	return again, same, err
}

// survey asks every master once. It reports whether a majority agree on the token.
func (e *Election) survey(ctx context.Context, before term) (_ Leader, lease string, settled bool, _ error) {
	c, l := e.client, &e.mutex.lock
	if err := l.check(ctx, "leader"); err != nil {
		return Leader{}, "", false, err
	}
	r := c.members.Survey(e.keys.Leader(), nil)
	defer r.Free()
	if err := c.seams.Wait(ctx, r.Ready()); err != nil {
		return Leader{}, "", false, l.fail("leader", ended(ctx), r)
	}
	leader, lease, settled, err := elected(r.Ballots(nil), before)
	if err != nil {
		return Leader{}, "", false, l.fail("leader", l.closedOr(err), r)
	}
	return leader, lease, settled, nil
}

// pause waits for d.
func (c *Client) pause(ctx context.Context, d time.Duration) error {
	defer c.leave()
	if !c.enter() {
		return ErrClosed
	}
	p := &moment{over: make(chan struct{}, 1)}
	c.timers.Set(&p.timer, d, p)
	defer c.timers.Cancel(&p.timer)
	if err := c.seams.Wait(ctx, p.over); err != nil {
		return ended(ctx)
	}
	return nil
}

type moment struct {
	timer drift.Timer
	over  chan struct{}
}

// Fire implements drift.Handler.
func (p *moment) Fire() { p.over <- struct{}{} }

// elected finds the leader, which holds the lock at a majority, and the last value
// that one of them has of it. It also returns the value of its lease, and whether a
// majority agree on its token.
func elected(ballots []quorum.Ballot, before term) (_ Leader, lease string, settled bool, _ error) {
	need := quorum.Size(len(ballots))
	var answers []wire.Leading
	for _, b := range ballots {
		if a, ok := wire.LeadingOf(b.Reply); ok {
			answers = append(answers, a)
		}
	}
	if len(answers) < need {
		return Leader{}, "", false, ErrNoQuorum
	}
	for _, candidate := range answers {
		value := candidate.Value
		its := slices.DeleteFunc(slices.Clone(answers), func(a wire.Leading) bool { return a.Value != value })
		if value == "" || len(its) < need {
			continue
		}
		leader := Leader{Remaining: remaining(its, need)}
		leader.Client, leader.Value, leader.Since = values.Parse(value)
		for _, a := range its {
			if a.Number > leader.Number {
				leader.Number, leader.Value = a.Number, a.Says
			}
		}
		leader.Token, settled = committed(its, need, before)
		return leader, value, settled, nil
	}
	return Leader{}, "", false, ErrNoLeader
}

// remaining is how long a majority keeps the lock.
func remaining(answers []wire.Leading, need int) time.Duration {
	slices.SortFunc(answers, func(a, b wire.Leading) int { return cmp.Compare(b.Left, a.Left) })
	return answers[need-1].Left
}

// committed returns the counter of a majority, which is the leader's token, or else the
// lowest counter of the masters that store its lease. If another lease led before, the lowest
// above the token of that one, if there is one: a master that granted late may still have the
// counter of the term before (L69).
//
// Invariant: it is not above the leader's token, and equals it once a renewal has reached
// them all. The token was raised at a majority before the lease began, so at one of these
// masters at least, and no other client is granted anything there, unless that master loses
// its memory. A master that granted late may have a higher counter, and keeps it.
func committed(answers []wire.Leading, need int, before term) (token uint64, settled bool) {
	counters := make([]uint64, len(answers))
	for i, a := range answers {
		counters[i] = a.Counter
	}
	if token := agreed(counters, need); token != 0 {
		return token, true
	}
	slices.Sort(counters)
	higher := slices.IndexFunc(counters, func(counter uint64) bool { return counter > before.token })
	if higher < 0 || answers[0].Value == before.lease {
		return counters[0], false
	}
	return counters[higher], false
}
