package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// ErrNoLeader: no process leads, as far as a majority of the masters knows.
var ErrNoLeader = errors.New("no leader")

// Election makes one of many processes the leader, and tells all of them which one. It
// is a fenced lock whose holder publishes a value, such as its address. An Election is
// a handle without state, and safe for concurrent use.
type Election struct {
	client *Client
	name   string
	opts   []LockOption
	keys   node.Leadership
	number *atomic.Int64 // of what was proclaimed last
}

// Leader is the process that leads. Its token is higher than that of every leader
// before. Just after the election it may be lower than the token of the leader's own
// Lease, which is the one that fences what the leader writes.
type Leader struct {
	Value     string        // what it says
	Client    string        // its client id
	Token     uint64        // its fencing token
	Number    int64         // counts what it has said; 0: what it campaigned with
	Remaining time.Duration // until its lease ends, unless renewed
	Since     time.Time     // when it asked to lead, by its clock; zero: unknown
}

// Election returns the election of that name. Every operation reports options that are
// out of range, before it sends anything.
func (c *Client) Election(name string, opts ...LockOption) *Election {
	return &Election{
		client: c, name: name, opts: append(slices.Clip(opts), Fenced()),
		keys: node.LeadershipOf(c.opt.prefix, name), number: new(atomic.Int64),
	}
}

// Campaign waits until this process leads, or ctx ends, and publishes value from then
// on, at most 1024 bytes of UTF-8. Run the leader's work with the lease's context,
// which ends before another process can lead. Unlock resigns.
func (e *Election) Campaign(ctx context.Context, value string) (*Lease, error) {
	lease, err := e.client.Mutex(e.name, append(slices.Clip(e.opts), Metadata(value))...).Lock(ctx)
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
	if lease == nil || lease.lock.client != c || lease.Name() != e.name || lease.Token() == 0 {
		return fmt.Errorf("redlock: Proclaim: Election %q: %w: the lease is not of this election", e.name, ErrNotHeld)
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
	number := strconv.FormatInt(e.nextNumber(), 10)
	cmd := e.keys.Proclaim(lease.value, number, value, latchLife)
	r := c.members.Ask(quorum.Question{Command: cmd, Judge: one{}})
	defer r.Free()
	if err := c.seams.Wait(ctx, r.Ready()); err != nil {
		return l.fail("proclaim", ended(ctx), r)
	}
	switch {
	case r.Outcome() == quorum.Won:
		return nil
	case r.Tally().Conclusive():
		return l.fail("proclaim", ErrLost, r)
	}
	return l.fail("proclaim", l.closedOr(ErrNoQuorum), r)
}

// nextNumber is above every number before, of this process and of its predecessors.
func (e *Election) nextNumber() int64 {
	for {
		last := e.number.Load()
		next := max(last+1, e.client.clock.Now().UnixMicro())
		if e.number.CompareAndSwap(last, next) {
			return next
		}
	}
}

// Leader returns the current leader, or ErrNoLeader. The answer is about a moment that
// has passed.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	c := e.client
	m := c.Mutex(e.name, e.opts...)
	if err := m.lock.check(ctx, "leader"); err != nil {
		return Leader{}, err
	}
	r := c.members.Survey(e.keys.Leader())
	defer r.Free()
	if err := c.seams.Wait(ctx, r.Ready()); err != nil {
		return Leader{}, m.lock.fail("leader", ended(ctx), r)
	}
	leader, err := elected(r.Ballots(nil))
	if err != nil {
		return Leader{}, m.lock.fail("leader", m.lock.closedOr(err), r)
	}
	return leader, nil
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
		for {
			leader, err := e.Leader(ctx)
			newer := cmp.Or(cmp.Compare(leader.Token, last.Token), cmp.Compare(leader.Number, last.Number)) > 0
			if err == nil && newer {
				last = leader
				if !yield(leader) {
					return
				}
			}
			if n.wait(ctx) != nil {
				return
			}
		}
	}
}
