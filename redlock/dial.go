package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/operate"
	"github.com/quorumlock/quorumlock/quorum"
)

// Dial connects to independent Redis masters and returns when a quorum of them
// is ready. It goes on connecting to the other masters in the background. It
// fails as soon as a quorum has become impossible, when ctx ends, when two
// addresses turn out to be the same server (guard.ErrSameNode), and when a master
// belongs to another group (guard.ErrOtherGroup); the error says what became of
// each address. A master that is older than Redis 6.2 or Valkey 7.2 never votes
// (node.ErrTooOld).
//
// Addresses are host:port, redis://user:password@host:port/db, rediss:// for
// TLS and unix:///path?db=1.
//
// A master that the restart guard holds back counts as ready: Dial does not
// wait for quarantines to end, Lock does. New masters look like masters that
// forgot everything, so the first Lock on them waits for a restart guard, 30 s by
// default. [Init], or redlock init, spares it: it declares masters new before their
// first client.
func Dial(ctx context.Context, addrs []string, opts ...Option) (*Client, error) {
	o, err := resolve(opts)
	if err != nil {
		return nil, err
	}
	masters, group, err := open(addrs, o)
	if err != nil {
		return nil, err
	}
	if err := awaitQuorum(ctx, masters, o); err != nil {
		node.CloseAll(masters)
		return nil, err
	}
	awaitClock(ctx, masters, group, o)
	if o.group.spreads {
		o.group.masters = group
	}
	nodes := make([]node.Node, len(masters))
	for i, m := range masters {
		nodes[i] = m
	}
	return start(nodes, o), nil
}

// open makes a master of each address, or of none: it dials only when all addresses
// are in order, since a connection leaves a marker on its master.
func open(addrs []string, o options) ([]*node.Master, *guard.Group, error) {
	names, err := checkAddrs(addrs, o.durable)
	if err == nil && o.group.spreads && len(names) < operate.LeastSpread {
		err = fmt.Errorf("redlock: WithSpread: %d masters: at least %d are needed: one alone may forget the map", len(names), operate.LeastSpread)
	}
	if err != nil {
		return nil, nil, err
	}
	config := o.node()
	config.Group = o.group.of(names)
	if o.credentials != nil {
		config.LoginTurn = node.NewTurn()
	}
	var masters []*node.Master
	for _, addr := range addrs {
		config.Guard = o.guard(addr)
		m, err := node.Open(addr, config)
		if err != nil {
			node.CloseAll(masters)
			return nil, nil, fmt.Errorf("redlock: %w", err)
		}
		masters = append(masters, m)
	}
	return masters, config.Group, nil
}

// node is how each master is reached and watched.
func (o *options) node() node.Config {
	return node.Config{
		KeyPrefix:   o.prefix,
		TLS:         o.tls,
		Dialer:      o.dialer,
		Credentials: o.credentials,
		Clock:       o.clock,
		Logger:      o.logger,
		// An answer may take a node timeout. A shorter silence does not mean trouble.
		MaxAge:     max(time.Second, o.nodeTimeout),
		MaxSilence: o.nodeTimeout,
		// A master that is farther away never votes. It is better to say so now than
		// when another master is down.
		NodeTimeout: o.nodeTimeout,
	}
}

// checkAddrs returns the names of the addresses. Its error lists all addresses that
// cannot be dialled, without their passwords.
func checkAddrs(addrs, durable []string) (names []string, err error) {
	var wrong *multierror.Error
	for i, addr := range addrs {
		name, err := node.Name(addr)
		switch {
		case addr == "":
			wrong = multierror.Append(wrong, fmt.Errorf("redlock: address %d of %d is empty: is the variable set that it comes from?", i+1, len(addrs)))
		case err != nil:
			wrong = multierror.Append(wrong, fmt.Errorf("redlock: %w", err))
		}
		names = append(names, name)
	}
	for _, addr := range durable {
		name, err := node.Name(addr)
		switch {
		case err != nil:
			wrong = multierror.Append(wrong, fmt.Errorf("redlock: WithDurableNodes: %w", err))
		case !slices.Contains(addrs, addr):
			wrong = multierror.Append(wrong, fmt.Errorf("redlock: WithDurableNodes(%q): not among the addresses", name))
		}
	}
	if wrong != nil {
		wrong.ErrorFormat = oneLine
		return nil, wrong
	}
	return names, checkNames(names)
}

// guard is longer than the longest lease, because the holder's clock may be slow and
// ours fast.
func (o *options) guard(addr string) guard.Config {
	g := guard.Config{DriftFactor: o.driftFactor, Durable: slices.Contains(o.durable, addr)}
	if o.clockGuard > 0 {
		g.ClockTolerance = drift.Tolerance
	}
	if o.restartGuard > 0 {
		g.Hold = o.restartGuard + drift.Allowance(o.restartGuard, o.driftFactor)
	}
	return g
}

// stragglers is how long Dial waits for the other masters once a quorum is
// ready, so that a server that was listed twice is noticed.
const stragglers = 500 * time.Millisecond

// arrivals counts the masters that have connected, or failed to.
type arrivals struct {
	mu      sync.Mutex
	votes   []Vote
	tally   quorum.Tally
	decided chan struct{} // closed when a quorum is ready or impossible
	all     chan struct{} // closed when every master has connected or failed to
}

func awaitQuorum(ctx context.Context, masters []*node.Master, o options) error {
	a := &arrivals{
		votes:   make([]Vote, len(masters)),
		tally:   quorum.NewTally(len(masters)),
		decided: make(chan struct{}),
		all:     make(chan struct{}),
	}
	for i, m := range masters {
		a.votes[i].Node = m.Addr()
	}
	for i, m := range masters {
		m.Connected(func(err error) { a.add(i, err) })
	}
	if err := o.wait(ctx, a.decided); err != nil {
		return a.failed(ended(ctx))
	}
	short, cancel := o.clock.WithTimeout(ctx, stragglers)
	defer cancel()
	o.wait(short, a.all) // a master that is late does not matter
	return a.verdict()
}

// wait waits as the client does that is to be.
func (o *options) wait(ctx context.Context, ready <-chan struct{}) error {
	if o.seams.Wait != nil {
		return o.seams.Wait(ctx, ready)
	}
	return seam.Select(ctx, ready)
}

// awaitClock compares our own clock with those of a quorum until it is nearly known how it
// runs, for 70 ms, or ten times that if the masters answer so slowly that nearly nothing is
// known then. Leases that begin before it is known are shorter (S60).
func awaitClock(ctx context.Context, masters []*node.Master, group *guard.Group, o options) {
	if g := o.guard(""); g.ClockTolerance == 0 || g.Hold == 0 {
		return
	}
	for pause := 10 * time.Millisecond; pause <= 40*time.Millisecond || pause <= 320*time.Millisecond && group.Pace() > 1.5; pause *= 2 {
		short, cancel := o.clock.WithTimeout(ctx, pause)
		err := o.wait(short, group.Measured())
		cancel()
		if err == nil {
			return
		}
		for _, m := range masters {
			m.Look()
		}
	}
}

func (a *arrivals) add(i int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.tally.Outcome()
	a.votes[i].Vote, a.votes[i].Err = quorum.Granted, err
	if err != nil {
		a.votes[i].Vote = quorum.Failed
	}
	a.tally.Count(a.votes[i].Vote)
	if before == quorum.Open && a.tally.Outcome() != quorum.Open {
		close(a.decided)
	}
	if a.tally.Pending() == 0 {
		close(a.all)
	}
}

func (a *arrivals) verdict() error {
	a.mu.Lock()
	outcome, votes := a.tally.Outcome(), slices.Clone(a.votes)
	a.mu.Unlock()
	for _, v := range votes {
		for _, misled := range []error{guard.ErrSameNode, guard.ErrOtherGroup} {
			if errors.Is(v.Err, misled) {
				return a.failed(misled)
			}
		}
	}
	if outcome != quorum.Won {
		return a.failed(ErrNoQuorum)
	}
	return nil
}

func (a *arrivals) failed(err error) *Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &Error{Op: "dial", Err: err, Votes: slices.Clone(a.votes)}
}
