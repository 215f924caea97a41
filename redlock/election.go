package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// ErrNoLeader: no process leads, as far as a majority of the masters knows.
var ErrNoLeader = errors.New("no leader")

// Election makes one of many processes the leader, and tells all of them which one. It
// is a fenced lock whose holder publishes a value, such as its address. An Election is
// a handle without state, and safe for concurrent use.
type Election struct {
	client *Client
	mutex  *Mutex        // that the leader holds
	opts   []MutexOption // of the mutex
	keys   wire.Leadership
}

// Leader is the process that leads. Its token is that of its Lease, which is higher than
// that of every leader before. Until the first renewal it may be lower; it is never higher.
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
	return &Election{c, c.Mutex(name, all...), all, wire.LeadershipOf(c.opt.prefix, name)}
}

// Campaign waits until this process leads, or ctx ends, and publishes value from then
// on, at most 1024 bytes of UTF-8. Run the leader's work with the lease's context,
// which ends before another process can lead. Unlock resigns.
func (e *Election) Campaign(ctx context.Context, value string) (*Lease, error) {
	lease, err := e.client.Mutex(e.mutex.Name(), append(slices.Clip(e.opts), Metadata(value))...).Lock(ctx)
	if err == nil {
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
	c := e.client
	if lease == nil || lease.lock.client != c || lease.Name() != e.mutex.Name() || lease.Token() == 0 {
		return fmt.Errorf("redlock: Proclaim: Election %q: %w: the lease is not of this election", e.mutex.Name(), ErrNotHeld)
	}
	l := lease.lock
	if lease.Err() != nil {
		return l.failed("proclaim", lease.Err(), nil)
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
	leader, _, err := e.look(ctx)
	return leader, err
}

// Observe yields the leader, and again whenever the leader changes or publishes
// another value: in order, each once, until ctx ends, the client is closed or the loop
// is left. It may pass over what lasts for less than a look.
//
//	for leader := range election.Observe(ctx) {
func (e *Election) Observe(ctx context.Context) iter.Seq[Leader] {
	return func(yield func(Leader) bool) {
		n := e.client.follow(e.keys.Channel, e.client.opt.ttl/3)
		defer n.end()
		var last Leader
		var of string
		for {
			leader, lease, err := e.look(ctx)
			newer := cmp.Or(cmp.Compare(leader.Token, last.Token), cmp.Compare(leader.Number, last.Number)) > 0
			if err == nil && newer {
				same := lease == of && leader.Number == last.Number // but for its token, which has risen since
				last, of = leader, lease
				if !same && !yield(leader) {
					return
				}
			}
			if n.wait(ctx) != nil {
				return
			}
		}
	}
}
