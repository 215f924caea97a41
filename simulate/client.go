package simulate

import (
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/weaker"
)

// client is one simulated process that uses the library: a host, its links to
// the masters, and the production redlock.Client on top.
type client struct {
	world   *world
	index   int
	host    *host
	masters []*master
	links   []connection
	back    time.Duration // when a master was last connected again, by the monotonic clock
	api     *redlock.Client
	dice    *stream
	config  *Config

	guard node.GuardConfig
	weak  weaker.Client
	group *node.Group
	wires []*cable
	stats *Stats

	steps      *seam.Steps
	preemption preemption
	stopDice   *stream
	untilStop  int

	well   quorum.Set // the masters that it can talk to and that may grant
	ill    quorum.Set // those for which that is not so
	looked uint64     // when it was found: see checker.looks

	unproven map[int]time.Duration // by master: until when its extensions may count for nothing (S35), as its last reply said

	sizes       map[string]int // of the semaphores of which it was told another one than all began with
	leases      int            // that it holds
	released    int            // how many releases it has given to masters
	asked       int            // how many commands it has given to masters
	closing     bool
	handles     *extension               // it is handed a reply to this renewal
	handling    wire.Op                  // of what it is handed a reply to
	inspecting  *inspection              // the last Inspect
	resizing    *replies                 // to a Resize that is watched
	unlocked    map[string]bool          // values of leases that were unlocked, and may not be renewed
	over        map[string]bool          // values of leases whose end the observer was told of
	longest     map[string]time.Duration // by value: the longest TTL that a master was asked for
	paces       paces
	debts       debts
	counted     int                   // asked, when its rounds were counted last
	otherwise   map[string]quorum.Set // by value: the masters with another number of permits than it asked for
	told        []leading             // by each master, when it last looked who leads an election
	check       *checker
	born        time.Duration // when its process began
	held        time.Duration // when masters that may not grant left it no quorum
	gotOn       time.Duration // when a workload last got a lease or had waited of its own accord
	mayHaveKeys bool          // it has stored some since we last looked
}

// clientIDs is below the numbers of all hosts that are clients, and above those
// of masters.
const clientIDs = 100

func newClient(w *world, index int, masters []*master, cfg *Config, lat latency, seed uint64, stats *Stats) *client {
	c := &client{
		world:   w,
		index:   index,
		host:    newHost(w, clientIDs+1+index, clientName(index)),
		masters: masters,
		dice:    newStream(seed, "client", index),
		config:  cfg,
		guard:   cfg.guard(index),
		weak:    weaker.Client{Lacks: cfg.lacks},
		stats:   stats,

		stopDice: newStream(seed, "stops", index),
		sizes:    map[string]int{},
		unproven: map[int]time.Duration{},
	}
	c.guard.Random = newStream(seed, "markers", index).bits
	for i := range masters {
		c.wires = append(c.wires, &cable{
			world: w, dice: newStream(seed, "wire", index, i), latency: lat, stats: stats,
		})
	}
	return c
}

// groupOf is what a client of these masters calls them.
func groupOf(masters []*master) node.GroupID {
	var names []string
	for _, m := range masters {
		names = append(names, m.address())
	}
	return node.GroupOf("", names...)
}

func clientName(index int) string { return "client " + strconv.Itoa(index+1) }

// me is the life that the client lives.
func (c *client) me() masters.Owner { return masters.Owner{Client: c.index, Life: c.host.life} }

// connect makes the links and the redlock.Client, as a process does that starts.
func (c *client) connect() error {
	c.steps = &seam.Steps{Stop: c.step}
	c.inspecting, c.resizing = nil, nil
	c.host.down, c.closing, c.leases, c.mayHaveKeys, c.born = false, false, 0, false, c.world.now
	c.counted, c.debts, c.otherwise = 0, debts{}, map[string]quorum.Set{}
	c.told = make([]leading, len(c.masters))
	c.unlocked, c.over, c.longest, c.paces = map[string]bool{}, map[string]bool{}, map[string]time.Duration{}, paces{}
	c.links = make([]connection, len(c.masters))
	nodes := make([]node.Node, len(c.masters))
	c.group = node.NewGroup(groupOf(c.masters))
	for i, m := range c.masters {
		var err error
		if c.links[i], err = c.link(m, c.wires[i]); err != nil {
			return err
		}
		nodes[i] = c.links[i]
	}
	opts := slices.Concat([]redlock.Option{
		redlock.WithTTL(c.config.ttlOf(c.index)),
		redlock.WithNodeTimeout(c.config.nodeTimeout),
		redlock.WithRetryInterval(c.config.retryInterval),
	}, c.config.Options, []redlock.Option{
		redlock.WithClientID(c.me().ID()),
		redlock.WithClock(c.weak.Clock(c.host.clock)),
		redlock.WithLogger(slog.New(slog.DiscardHandler)),
		redlock.WithObserver(c.observe),
		seam.Option(seam.Seams{Guarded: true, Wait: c.world.wait, Random: c.dice.bits, Unsafe: c.config.unsafe, Steps: c.steps}).(redlock.Option),
	})
	if c.config.ClockGuard < 0 {
		opts = append(opts, redlock.WithClockGuard(0))
	}
	var err error
	c.api, err = redlock.New(nodes, opts...)
	return err
}

// connection is how a client reaches one master.
type connection interface {
	node.Node
	// quiet reports whether the master is connected, nothing is under way, and
	// nothing is owed; settled also that everything sent has arrived.
	quiet() bool
	settled() bool
	owed() int // releases that the master was not told of
	// well reports whether client and master can talk, and the master may grant.
	well() bool
	// held reports whether the master may not grant although it could be talked to.
	held() bool
	// believes reports whether a grant that comes with this proof would count.
	believes(proof string) bool
	// crash ends it with its process. What was sent still arrives.
	crash()
}

// noteReturn is f, which is called when a master is connected again, and notes when.
func (c *client) noteReturn(f func()) func() {
	return func() {
		c.back = c.host.clock.Monotonic()
		f()
	}
}

func (c *client) link(m *master, w *cable) (connection, error) {
	if c.config.Transport == Production {
		return newTransport(c, m, w)
	}
	return newLink(c, m, w), nil
}

// crash ends the process. What it has sent still arrives.
func (c *client) crash() {
	c.host.crash()
	for _, l := range c.links {
		l.crash()
	}
}

func (c *client) observe(e redlock.Event) {
	c.count(e)
	if e.Kind == redlock.LeaseLost || e.Kind == redlock.LeaseReleased {
		c.over[e.Value] = true
	}
	switch {
	case e.Kind == redlock.NodeRepaired && e.Err == nil:
		c.stats.repaired++
	case e.Kind == redlock.LeaseRenewed && e.Err == nil:
		c.stats.Renewals++
		if c.over[e.Value] && c.preemption.every == 0 {
			c.blame("the observer is told that a lease is renewed which had ended")
		}
	case e.Kind == redlock.LeaseLost:
		c.stats.Losses++
		if l, ok := e.Context.Value(lossKey{}).(*loss); ok {
			l.noticed, l.at = true, c.world.now
		}
	case e.Kind == redlock.LockFailed:
		c.stats.attemptsFailed++
	}
}
