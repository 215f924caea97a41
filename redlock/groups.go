package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-multierror"

	"github.com/quorumlock/quorumlock/internal/spread"
)

// Groups spreads names over several groups of masters, each of which is a quorum group of its own
// with its own [Client]: where one group is too small. A lock is in the group that the map at the
// masters gives its name. [Spread] writes that map, and moves names when groups are added or
// removed, while the others are in use. Groups is safe for concurrent use.
//
// All its handles find the group of their name when they are made. Lock, TryLock and their kin also
// follow a name that has moved since. All other methods return ErrMoved then, and so do those of a Latch
// and an Election, whose Observe ends: make the handle anew. While a name moves no group has it: Lock
// waits, TryLock returns ErrMoved, and a lease is not renewed, so it ends within its TTL.
type Groups struct {
	clients []*Client                  // in the order of their groups' names
	newest  atomic.Pointer[spread.Map] // that any of the groups has told; set under mu

	mu      sync.Mutex
	waiting []*stay
}

// stay is a call of Lock or Campaign in a group.
type stay struct {
	at    *Client
	names []string
	leave context.CancelCauseFunc
	index int // in Groups.waiting
}

// NewGroups returns Groups of these clients, which need [WithGroup], each with another name, and
// [WithSpread]. Clients of groups that the map does not name yet, or no longer, may be among them,
// and should be while names move. Groups closes the clients.
func NewGroups(clients ...*Client) (*Groups, error) {
	if len(clients) == 0 {
		return nil, errors.New("redlock: NewGroups: no clients: at least 1 is needed")
	}
	for i, c := range clients {
		switch {
		case c == nil:
			return nil, fmt.Errorf("redlock: NewGroups: client %d is nil", i+1)
		case c.opt.group.masters == nil:
			return nil, fmt.Errorf("redlock: NewGroups: client %d, of group %q: must come from Dial with WithSpread", i+1, c.opt.group.name)
		case c.opt.prefix != clients[0].opt.prefix:
			return nil, fmt.Errorf("redlock: NewGroups: client %d: WithKeyPrefix(%q): must be that of all clients, %q", i+1, c.opt.prefix, clients[0].opt.prefix)
		}
	}
	g := &Groups{clients: slices.Clone(clients)}
	slices.SortFunc(g.clients, func(a, b *Client) int { return strings.Compare(a.opt.group.name, b.opt.group.name) })
	for i, c := range g.clients {
		if i > 0 && c.opt.group.name == g.clients[i-1].opt.group.name {
			return nil, fmt.Errorf("redlock: NewGroups: group %q: two clients are of it", c.opt.group.name)
		}
	}
	for _, c := range g.clients {
		c.opt.group.masters.OnMap(g.learn)
		c.mu.Lock()
		c.rest.groups = g
		c.mu.Unlock()
	}
	g.learn()
	return g, nil
}

// Clients returns the client of each group.
func (g *Groups) Clients() map[string]*Client {
	all := map[string]*Client{}
	for _, c := range g.clients {
		all[c.opt.group.name] = c
	}
	return all
}

// Group returns the group that has all these names now. Otherwise it returns ErrMoved, with the groups
// that have them. It asks no master.
func (g *Groups) Group(names ...string) (string, error) {
	if len(names) == 0 {
		return "", errors.New("redlock: Group: no names: at least 1 is needed")
	}
	m := g.newest.Load()
	if owner := common(names, m.Owner); owner != "" {
		return owner, nil
	}
	return "", moved(*m, names)
}

// common returns the group of all these names; empty: they have none in common.
func common(names []string, of func(name string) string) (group string) {
	for i, name := range names {
		switch one := of(name); {
		case i == 0:
			group = one
		case one != group:
			return ""
		}
	}
	return group
}

// client returns the client of the group that has all these names now.
func (g *Groups) client(names []string) (*Client, error) {
	group, err := g.Group(names...)
	if err != nil {
		return nil, err
	}
	for _, c := range g.clients {
		if c.opt.group.name == group {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w, group %s, of which there is no client here", ErrMoved, group)
}

// clientOrFirst is the client that has the names, or the first one. Its calls return ErrMoved then, because it
// knows the newest map; see learn.
func (g *Groups) clientOrFirst(names ...string) *Client {
	if c, err := g.client(names); err == nil {
		return c
	}
	return g.clients[0]
}

// Mutex is Client.Mutex in the group of the name.
func (g *Groups) Mutex(name string, opts ...MutexOption) *Mutex {
	m := g.clientOrFirst(name).Mutex(name, opts...)
	m.lock.home = g.homeOf(func(c *Client) *lock { return &c.Mutex(name, opts...).lock }, name)
	return m
}

// Multi is Client.Multi in the group of the names. All of them must be in one group: ErrMoved says
// which are in which.
func (g *Groups) Multi(names []string, opts ...MultiOption) *Mutex {
	names = slices.Clone(names)
	m := g.clientOrFirst(names...).Multi(names, opts...)
	if m.lock.err == nil {
		m.lock.home = g.homeOf(func(c *Client) *lock { return &c.Multi(names, opts...).lock }, names...)
	}
	return m
}

// RWMutex is Client.RWMutex in the group of the name.
func (g *Groups) RWMutex(name string, opts ...RWMutexOption) *RWMutex {
	m := g.clientOrFirst(name).RWMutex(name, opts...)
	m.read.home = g.homeOf(func(c *Client) *lock { return &c.RWMutex(name, opts...).read }, name)
	m.write.home = g.homeOf(func(c *Client) *lock { return &c.RWMutex(name, opts...).write }, name)
	return m
}

// Semaphore is Client.Semaphore in the group of the name.
func (g *Groups) Semaphore(name string, permits int, opts ...SemaphoreOption) *Semaphore {
	s := g.clientOrFirst(name).Semaphore(name, permits, opts...)
	s.home = func(n int) *home {
		return g.homeOf(func(c *Client) *lock { return c.Semaphore(name, permits, opts...).of(n) }, name)
	}
	return s
}

// Latch is Client.Latch in the group of the name.
func (g *Groups) Latch(name string, count int) *Latch {
	l := g.clientOrFirst(name).Latch(name, count)
	l.groups = g
	return l
}

// Election is Client.Election in the group of the name.
func (g *Groups) Election(name string, opts ...LockOption) *Election {
	e := g.clientOrFirst(name).Election(name, opts...)
	e.groups = g
	return e
}

// Inspect is Client.Inspect in the group of the name.
func (g *Groups) Inspect(ctx context.Context, name string) (Holder, error) {
	return g.clientOrFirst(name).Inspect(ctx, name)
}

// Healthy returns nil if every group is healthy; see Client.Healthy.
func (g *Groups) Healthy() error {
	var errs []error
	for _, c := range g.clients { // the first one that rests ends the rest of all
		errs = append(errs, c.Healthy())
	}
	return g.named(errs)
}

// learn takes up the newest map, and has calls leave the groups that their names have left: such a group
// may be out of reach, or gone.
func (g *Groups) learn() {
	g.mu.Lock()
	defer g.mu.Unlock()
	newest := spread.Map{}
	for _, c := range g.clients {
		if m, _ := c.opt.group.masters.Map(); m.Newer(newest) {
			newest = m
		}
	}
	g.newest.Store(&newest)
	for _, c := range g.clients { // one of them may be cut off from the group that the names have left
		c.opt.group.masters.Learn(newest)
	}
	for _, s := range g.waiting {
		s.leaveIfMoved(g)
	}
}

// leaveIfMoved has a call leave the group that its names have left.
func (s *stay) leaveIfMoved(g *Groups) {
	if c, err := g.client(s.names); err != nil || c != s.at {
		s.leave(ErrMoved)
	}
}

// whileThere returns a context that ends when ctx does, or the names leave the group of the client. Names that
// have left before do not end it.
//
// Invariant: learn gives all clients the map before it walks the calls that wait. So a call that registers
// later is refused by its client.
func (g *Groups) whileThere(ctx context.Context, at *Client, names []string) (_ context.Context, done func()) {
	ctx, leave := context.WithCancelCause(ctx)
	s := &stay{at: at, names: names, leave: leave}
	g.mu.Lock()
	s.index = len(g.waiting)
	g.waiting = append(g.waiting, s)
	g.mu.Unlock()
	return ctx, func() {
		g.mu.Lock()
		last := len(g.waiting) - 1
		g.waiting[s.index] = g.waiting[last]
		g.waiting[s.index].index = s.index
		g.waiting[last] = nil
		g.waiting = g.waiting[:last]
		g.mu.Unlock()
		leave(nil)
	}
}

// cutOff reports whether a client is in use of whose masters no quorum votes. Only those of other groups can
// tell that its names have moved there, so their clients do not rest (L89).
func (g *Groups) cutOff() bool {
	if g == nil {
		return false
	}
	return slices.ContainsFunc(g.clients, (*Client).cutOff)
}

// during calls take with a context that ends when the names leave the group of the client; then it returns
// ErrMoved, unless take has the lease already. Without groups they stay for ever.
func (g *Groups) during(ctx context.Context, op string, at *Client, names []string, take func(context.Context) (*Lease, error)) (*Lease, error) {
	if g == nil {
		return take(ctx)
	}
	staying, done := g.whileThere(ctx, at, names)
	defer done()
	lease, err := take(staying)
	if err != nil && context.Cause(staying) == ErrMoved {
		err = &Error{Op: op, Name: strings.Join(names, ","), Err: ErrMoved}
	}
	return lease, err
}

// Close closes all clients in parallel, as Client.Close does. A stop that runs then, in whatever group, is
// not waited for.
func (g *Groups) Close() error { return g.named(closeAll(g.clients...)) }

// named joins the errors of the clients.
func (g *Groups) named(errs []error) error {
	var wrong *multierror.Error
	for i, err := range errs {
		if err != nil {
			wrong = multierror.Append(wrong, fmt.Errorf("group %s: %w", g.clients[i].opt.group.name, err))
		}
	}
	return wrong.ErrorOrNil()
}
