package redlock

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// ErrNoLeader: no process leads, as far as a majority of the masters knows.
var ErrNoLeader = errors.New("no leader")

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

// news wakes one caller whenever something may have changed at a master: when a
// message says so, when messages may have been missed, and every now and then.
type news struct {
	client *Client
	every  time.Duration
	ready  chan struct{} // holds one wake-up
	timer  drift.Timer

	mu          seam.Mutex
	unsubscribe []func()
	heard       int // messages
	until       int // the message that wakes the caller, counted from one
}

// follow listens to a channel at every master, until end is called.
func (c *Client) follow(channel string, every time.Duration) *news {
	n := &news{client: c, every: every, ready: make(chan struct{}, 1)}
	n.mu.In(c.seams.Steps)
	c.mu.Lock()
	c.followers = append(c.followers, n)
	c.mu.Unlock()
	for _, master := range c.members.Nodes() {
		cancel := master.Subscribe(channel, n)
		n.mu.Lock()
		n.unsubscribe = append(n.unsubscribe, cancel)
		n.mu.Unlock()
	}
	return n
}

// wait returns when there is news, ctx ends or the client is closed.
func (n *news) wait(ctx context.Context) error {
	if n.client.closed.Load() {
		return ErrClosed // messages have stopped
	}
	n.client.timers.Set(&n.timer, n.client.jitter(n.every), n)
	if err := n.client.seams.Wait(ctx, n.ready); err != nil {
		return ended(ctx)
	}
	if n.client.closed.Load() {
		return ErrClosed
	}
	return nil
}

// listen has no message wake the caller until expect is called. It returns how many have
// been heard.
func (n *news) listen() (heard int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.until = math.MaxInt
	return n.heard
}

// expect has messages wake the caller when so many have been heard.
func (n *news) expect(heard int) {
	n.mu.Lock()
	n.until = heard
	wake := n.heard >= n.until
	n.mu.Unlock()
	if wake {
		n.wake()
	}
}

// Heard wakes the caller if it does not expect more messages. A message without text
// stands for any number of changes.
func (n *news) Heard(message string) {
	n.mu.Lock()
	n.heard++
	wake := n.heard >= n.until || message == ""
	n.mu.Unlock()
	if wake {
		n.wake()
	}
}

// Doubted, Missed and Fire wake the caller.
func (n *news) Doubted(string) { n.wake() }
func (n *news) Missed()        { n.wake() }
func (n *news) Fire()          { n.wake() }

func (n *news) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.ready) == 0 {
		n.ready <- struct{}{}
	}
}

func (n *news) end() {
	c := n.client
	c.timers.Cancel(&n.timer)
	c.mu.Lock()
	c.followers = slices.DeleteFunc(c.followers, func(f *news) bool { return f == n })
	c.mu.Unlock()
	n.mu.Lock()
	unsubscribe := n.unsubscribe
	n.unsubscribe = nil
	n.mu.Unlock()
	for _, cancel := range unsubscribe {
		cancel()
	}
}

// wakeFollowers ends every wait for news, because the client was closed.
func (c *Client) wakeFollowers() {
	c.mu.Lock()
	for _, latch := range slices.Sorted(maps.Keys(c.lookouts)) {
		for _, w := range c.lookouts[latch].waiters {
			w.notify()
		}
	}
	followers := slices.Clone(c.followers)
	c.mu.Unlock()
	for _, n := range followers {
		n.wake()
	}
}
