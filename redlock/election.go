package redlock

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

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
	lease, err := e.groups.during(ctx, "lock", e.client, []string{name}, m.Lock)
	if err == nil {
		e.led.Store(lease)
		for _, master := range e.client.members.Nodes() {
			master.Do(e.keys.Announce(), nobodyAsks)
		}
	}
	return lease, err
}

// Run has this process lead whenever it can: it campaigns with value, runs lead, resigns
// when lead has returned, and campaigns again. It returns when ctx has ended, or when lead
// returns an error while this process leads.
//
// The context given to lead is derived from ctx, and also ends when leadership is lost. The
// lease is renewed until lead has returned, whatever happens to ctx: no other process leads
// beside work that still winds down. So lead must return soon after its context has ended; see
// StopWithin.
// If leadership was lost, Run ignores the error of lead and campaigns again.
func (e *Election) Run(ctx context.Context, value string, lead func(ctx context.Context) error) error {
	for {
		lease, err := e.Campaign(ctx, value)
		if err != nil {
			return err
		}
		var failed error
		lost := false
		lease.run(ctx, func(ctx context.Context) error {
			failed = lead(ctx)
			lost = lease.Err() != nil
			return nil
		})
		switch {
		case failed != nil && !lost:
			return failed
		case ctx.Err() != nil:
			return ended(ctx)
		}
	}
}

// IsLeader reports whether this process leads by a lease of this handle, and the lease is
// valid. It asks no master.
func (e *Election) IsLeader() bool {
	lease := e.led.Load()
	return lease != nil && lease.Valid()
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
		return fmt.Errorf("redlock: Proclaim(%.300q): must be UTF-8", value)
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

// Transfer resigns, and hands leadership to the waiting client of that id, whatever its place in
// the queue: see WithClientID. If several campaigns of it wait, the first leads.
//
// Transfer first looks for the client in the queue. It returns ErrNotQueued, with the clients that
// wait, if it is not among the first thousand, ErrNested if nested calls hold the lease, too (see
// Reentrant), and ErrNoQuorum when too few masters answered: then this process still leads. From
// there on Transfer is Unlock, and returns the same errors.
//
// There are never two leaders: the lease has ended before the masters are asked. If the chosen
// client dies meanwhile, the queue decides, as after any Unlock: Leader and Observe say who leads.
func (e *Election) Transfer(ctx context.Context, lease *Lease, clientID string) error {
	if err := e.leads("Transfer", lease); err != nil {
		return err
	}
	if clientID == "" {
		return fmt.Errorf("redlock: Transfer: client id: must not be empty")
	}
	found, err := e.client.Inspect(ctx, e.mutex.lock.name)
	if err != nil {
		return err
	}
	waiter, err := found.waiterOf(clientID)
	if err != nil {
		return lease.lock.failed("transfer", err, nil)
	}
	now := lease.now()
	if err := lease.letGoAlone(now); err != nil {
		return lease.lock.failed("transfer", err, nil)
	}
	return lease.releaseBy(lease.releaseCommand().HandTo(waiter), now)
}

// letGoAlone is letGo unless nested calls hold the lease, too: who leads next must find it ended.
func (l *Lease) letGoAlone(now drift.Instant) error {
	l.mu.Lock()
	if l.holds > 1 {
		defer l.mu.Unlock()
		return fmt.Errorf("%w: %d holds, unlock the others before", ErrNested, l.holds)
	}
	return l.letLast(now)
}

// waiterOf returns the id of the first waiter of a client.
func (h *Holder) waiterOf(client string) (id string, err error) {
	var others []string
	for _, w := range h.Queue {
		if w.Client == client {
			return values.ID(w.Value), nil
		}
		if !slices.Contains(others, w.Client) {
			others = append(others, w.Client)
		}
	}
	return "", fmt.Errorf("client %.300q: %w, %s", client, ErrNotQueued, waitingClients(others))
}

// waitingClients lists the clients that wait, for people: at most twenty.
func waitingClients(all []string) string {
	const most = 20
	switch {
	case len(all) == 0:
		return "nobody waits"
	case len(all) > most:
		return fmt.Sprintf("those who wait are %s, and %d more", strings.Join(all[:most], ", "), len(all)-most)
	}
	return "those who wait are " + strings.Join(all, ", ")
}
