package redlock

import (
	crand "crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock/internal/waiting"
)

// Client makes locks over a fixed set of independent masters. All clients that
// share locks must be given the same masters: quorums of different sets need
// not intersect (S14). A Client is safe for concurrent use.
type Client struct {
	opt     options
	clock   clock.Clock
	seams   seam.Seams
	watch   *drift.Stopwatch
	timers  *drift.Timers
	members *quorum.Members
	queues  waiting.Queues
	tenures tenures
	timing  node.Watching // knows how our clock runs; nil: no node does
	self    string        // what every stored value of this client begins with
	seq     atomic.Uint64

	proclaimed atomic.Int64 // the number of the last proclamation, in any election

	closed atomic.Bool // set under mu, so that nothing is held that Close does not see

	farewell farewell

	// Invariant: a lease is on the list from before its owner has it until its release
	// was given to every node.
	mu   seam.Mutex // guards seams.Random, too
	held list
	rest rest

	followers []*news             // guarded by mu
	lookouts  map[string]*lookout // by latch; guarded by mu
}

// newClient is described at seam.NewClient.
func newClient(nodes []node.Node, opts ...Option) (*Client, error) {
	o, err := apply(opts)
	if err != nil {
		return nil, err
	}
	if !o.seams.Guarded {
		if err := o.refuseDialOptions(); err != nil {
			return nil, err
		}
		o.restartGuard, o.unnoticed = 0, unnoticedBy(nodes) // the nodes have their own guards
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := checkNodes(nodes); err != nil {
		return nil, err
	}
	return start(nodes, o), nil
}

// unnoticedBy is how far a clock of the nodes may be set forward unnoticed.
func unnoticedBy(nodes []node.Node) time.Duration {
	most := time.Duration(0)
	for _, n := range nodes {
		if w, ok := n.(node.Watching); ok {
			most = max(most, w.Unnoticed())
		}
	}
	return most
}

// resolve applies the options to the defaults and validates the result.
func resolve(opts []Option) (options, error) {
	o, err := apply(opts)
	if err != nil {
		return o, err
	}
	return o, o.check()
}

func apply(opts []Option) (options, error) {
	o := defaultOptions()
	for _, opt := range opts {
		if opt == nil {
			return o, errors.New("redlock: nil Option")
		}
		opt(&o)
	}
	return o, nil
}

func checkNodes(nodes []node.Node) error {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		if n == nil {
			return fmt.Errorf("redlock: node %d is nil", i)
		}
		names[i] = n.Addr()
	}
	return checkNames(names)
}

// checkNames refuses sets of nodes that cannot vote.
func checkNames(names []string) error {
	if len(names) == 0 {
		return errors.New("redlock: no nodes: at least 1 is needed, 5 are advised")
	}
	if len(names) > quorum.MaxNodes {
		return fmt.Errorf("redlock: %d nodes: at most %d are possible, 5 are advised", len(names), quorum.MaxNodes)
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return fmt.Errorf("redlock: node %s: listed twice: a node votes once", name)
		}
		seen[name] = true
	}
	return nil
}

func start(nodes []node.Node, o options) *Client {
	if len(nodes)%2 == 0 {
		o.logger.Warn("redlock: an even number of nodes survives no more failures than one node less",
			"nodes", len(nodes), "quorum", quorum.Size(len(nodes)))
	}
	c := &Client{opt: o, clock: o.clock, seams: o.seams}
	if c.seams.Wait == nil {
		c.seams.Wait = seam.Select
	}
	if c.seams.Random == nil {
		c.seams.Random = newRandom()
	}
	if c.seams.Number == nil {
		c.seams.Number = func() uint64 { return c.seq.Add(1) }
	}
	if c.seams.Quorum == nil {
		c.seams.Quorum = quorum.Size
	}
	if c.seams.Budget == nil {
		c.seams.Budget = o.budget
	}
	c.watch = drift.NewStopwatch(c.clock)
	c.rest.used = c.watch.Now()
	c.rest.polled = c.rest.used
	c.timers = drift.NewTimers(c.watch)
	c.members = quorum.NewMembers(nodes, c.seams.Quorum(len(nodes)), c.timers, c.watch, o.nodeTimeout)
	if o.observer != nil {
		c.members.TimeAnswers()
	}
	c.in(c.seams.Steps)
	c.farewell.over, c.farewell.ended = make(chan struct{}), make(chan struct{})
	c.self = o.clientID
	if c.self == "" {
		c.self = processName()
	}
	// A client that restarts under the same id counts from one again; the nonce keeps
	// its values from ever repeating (S20).
	c.self += "/" + nonce(c.seams.Random)
	c.queues.Start(waiting.Client{
		Members: c.members, Watch: c.watch, Timers: c.timers, Steps: c.seams.Steps, Logger: o.logger,
		Channel: wire.WaitChannel(o.prefix, c.self), Prefix: o.prefix, TTL: o.ttl, RetryInterval: o.retryInterval,
		Jitter: c.jitter, MastersTime: c.mastersTime, Reason: reason, Enter: c.enter, Leave: c.leave,
		Wanted: func(key, value string) { c.tenures.othersWait(mutexes+key, value) },
		Missed: c.tenures.missed,
	})
	c.self += "/"
	for i, n := range nodes {
		if w, ok := n.(node.Watching); ok {
			c.timing = w // they are of one group
		}
		if r, ok := n.(node.Renewing); ok {
			r.Renew(func(all bool) { c.renew(i, all) })
		}
		if r, ok := n.(node.Resting); ok {
			r.Idle(c.idle)
		}
		c.observeNode(n)
	}
	return c
}

// rate is how many seconds leases assume to pass by the clocks of most masters in one second
// of ours: 1, or more if our own clock is slow or not measured yet. See guard.Group.Pace.
func (c *Client) rate() float64 {
	if c.timing == nil {
		return 1
	}
	return c.timing.Pace()
}

// in makes every use of a mutex one of the steps at which the simulator may stop
// the client.
func (c *Client) in(steps *seam.Steps) {
	c.mu.In(steps)
	c.farewell.mu.In(steps)
	c.tenures.mu.In(steps)
	c.timers.In(steps)
	c.members.In(steps)
}

// newRandom is seeded from the operating system. Its caller holds Client.mu.
func newRandom() func() uint64 {
	var seed [32]byte
	crand.Read(seed[:]) // never fails
	return rand.NewChaCha8(seed).Uint64
}

func nonce(random func() uint64) string {
	var b [10]byte
	for i := 0; i < len(b); i += 8 {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], random())
		copy(b[i:], w[:])
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return strings.NewReplacer(" ", "-", "/", "-").Replace(host) + ":" + strconv.Itoa(os.Getpid())
}

// jitter returns a duration between half of d and d.
func (c *Client) jitter(d time.Duration) time.Duration {
	half := d / 2
	if half <= 0 {
		return d
	}
	c.mu.Lock()
	r := c.seams.Random()
	c.mu.Unlock()
	return half + time.Duration(r%uint64(half+1))
}

// keep puts a lease on the list of held leases, unless the client is closed.
func (c *Client) keep(l *Lease) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return false
	}
	c.held.add(l)
	return true
}

// drop takes a lease off the list once its release has been given to the nodes. Any
// earlier, a late message about it would be answered by a second release, and a lease
// unlocked in time would be reported lost.
func (c *Client) drop(l *Lease) {
	c.queues.Ended(l.value)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held.remove(l)
}

// list has leases in the order in which they were added. The client's mutex guards it.
type list struct{ last *Lease }

// links are the neighbours of a lease in a list.
type links struct{ before, after *Lease }

func (s *list) add(l *Lease) {
	if l.before = s.last; l.before != nil {
		l.before.after = l
	}
	s.last = l
}

// remove does nothing for a lease that is not in the list.
func (s *list) remove(l *Lease) {
	if l.before != nil {
		l.before.after = l.after
	}
	if l.after != nil {
		l.after.before = l.before
	} else if s.last == l {
		s.last = l.before
	}
	l.links = links{}
}

// Waiters for a lock are served in the order of their arrival. By its own clock a client
// whose clock is behind would always have come first, and would keep the others from the
// lock for as long as it wants it (L41). So the masters' clocks count.

// mastersTime returns the time by the clocks of the masters: the median of the known
// clocks, so that a wrong minority does not matter. Before any master's clock is known,
// it returns the time of our own clock.
func (c *Client) mastersTime() time.Time {
	var few [16]time.Time
	known := few[:0]
	for _, n := range c.members.Nodes() {
		if m, ok := n.(node.Clocked); ok {
			if now, ok := m.MasterTime(); ok {
				known = append(known, now)
			}
		}
	}
	if len(known) == 0 {
		return c.clock.Now()
	}
	slices.SortFunc(known, time.Time.Compare)
	return known[(len(known)-1)/2]
}

// usage counts what the client keeps in memory for work under way.
func (c *Client) usage() seam.Usage {
	u := seam.Usage{Timers: c.timers.Len(), Rounds: c.members.InUse()}
	leases := c.leases()
	for _, l := range leases {
		l.mu.Lock()
		for s := l.scopes; s != nil; s = s.next {
			u.Scopes++
		}
		l.mu.Unlock()
	}
	u.Leases = len(leases)
	u.Queues, u.Known, u.Gone = c.queues.Usage()
	return u
}

func init() {
	seam.Option = func(s seam.Seams) any {
		return Option(func(o *options) { o.seams = s })
	}
	seam.InGroup = func(name string, masters any) any {
		return Option(func(o *options) { o.group = membership{name, true, masters.(*guard.Group)} })
	}
	seam.GiveBack = func(client any) { client.(*Client).tenures.giveBack() }
	seam.SettingsOf = func(client any) seam.Settings {
		o := client.(*Client).opt
		return seam.Settings{Clock: o.clock, RestartGuard: o.restartGuard, Prefix: o.prefix}
	}
	seam.NewClient = func(nodes, opts any) (any, error) {
		c, err := newClient(nodes.([]node.Node), opts.([]Option)...)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	seam.HoldsOf = func(lease any) int { return lease.(*Lease).holdsNow() }
	seam.IsShared = func(lease any) bool { return lease.(*Lease).shared() }
	seam.AnswersOnly = func(failed any) bool { return failed.(*Error).answersOnly() }
	seam.UsageOf = func(client any) seam.Usage { return client.(*Client).usage() }
}
