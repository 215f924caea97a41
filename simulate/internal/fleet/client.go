// Package fleet has the clients and the masters of a schedule, and the connections between them: a fast
// model of the transport, and package node's own on simulated connections.
package fleet

import (
	"log/slog"
	"slices"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/weaker"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Client is one simulated process that uses the library: a host, its links to
// the masters, and the production redlock.Client on top.
type Client struct {
	World   *world.World
	Index   int
	Host    *world.Host
	Masters []*Master
	Links   []Connection
	APIs    []*redlock.Client // one for each group of masters
	API     *redlock.Client   // the first of them, or the only one
	Groups  *redlock.Groups   // nil: one group has all names
	Dice    *world.Dice
	Config  *plan.Config

	Guard guard.Config
	weak  weaker.Client
	Group *guard.Group // of all masters; nil: there are several, or the client looks at none
	parts []*guard.Group
	Wires []*Cable
	Stats *tally.Stats
	Watch Watcher

	steps      *seam.Steps
	Preemption plan.Preemption
	stopDice   *world.Dice
	untilStop  int
	calls      []*call // free ones, to be used again

	Leases   int // that it holds
	Closing  bool
	Handling wire.Op // of the command whose reply it is being handed
}

// Watcher observes the actions of a client.
type Watcher interface {
	// Gives is called when the library gives a command to a master.
	Gives(master int, cmd *wire.Command)
	// Hand gives the library a reply.
	Hand(master int, cmd *wire.Command, done func(wire.Reply), r wire.Reply)
	// KeptOut is called when the guard of a link keeps a vote from its master.
	KeptOut(l *Link)
	// Observe is the observer of the redlock.Client.
	Observe(e redlock.Event)
	// Blame reports what the client did wrong.
	Blame(what string)
	// Healed reports whether the faults of the schedule are over.
	Healed() bool
	// Strike makes a fault happen now.
	Strike(f *plan.Fault)
}

// ClientIDs is below the numbers of all hosts that are clients, and above those
// of masters.
const ClientIDs = 100

func NewClient(w *world.World, index int, masters []*Master, cfg *plan.Config, lat plan.Latency, seed uint64, stats *tally.Stats) *Client {
	c := &Client{
		World:   w,
		Index:   index,
		Host:    world.NewHost(w, ClientIDs+1+index, plan.ClientName(index)),
		Masters: masters,
		Dice:    world.NewDice(seed, "client", index),
		Config:  cfg,
		Guard:   cfg.Guard(index),
		weak:    weaker.Client{Lacks: cfg.Lacks, Masters: len(masters)},
		Stats:   stats,

		stopDice: world.NewDice(seed, "stops", index),
	}
	c.Guard.Random = world.NewDice(seed, "markers", index).Bits
	for i := range masters {
		c.Wires = append(c.Wires, &Cable{
			world: w, dice: world.NewDice(seed, "wire", index, i), latency: lat, stats: stats,
		})
	}
	return c
}

// GroupOf is what a client of these masters calls them.
func GroupOf(masters []*Master) guard.GroupID { return groupNamed("", masters) }

func groupNamed(name string, masters []*Master) guard.GroupID {
	return guard.GroupOf(name, Addresses(masters)...)
}

// Me is the life that the client lives.
func (c *Client) Me() masters.Owner { return masters.Owner{Client: c.Index, Life: c.Host.Life} }

// Connect makes the links and the redlock.Client, as a process does that starts.
func (c *Client) Connect() error {
	c.steps = &seam.Steps{Stop: c.step}
	c.Host.Down, c.Closing, c.Leases = false, false, 0
	c.Links, c.APIs, c.Groups = nil, nil, nil
	if c.Config.Groups > 1 {
		return c.joinGroups()
	}
	if !c.Config.Lacks.Others {
		c.Group = guard.NewGroup(GroupOf(c.Masters))
	}
	var err error
	c.API, err = c.join(c.Masters, c.Group)
	return err
}

// joinGroups makes a redlock.Client for each group of masters.
func (c *Client) joinGroups() error {
	c.parts = nil
	for name, masters := range Parts(c.Masters, c.Config.Groups) {
		part := guard.NewSpread(groupNamed(name, masters))
		c.parts = append(c.parts, part)
		if _, err := c.join(masters, part, seam.InGroup(name, part).(redlock.Option)); err != nil {
			return err
		}
	}
	var err error
	c.API = c.APIs[0]
	c.Groups, err = redlock.NewGroups(c.APIs...)
	return err
}

// join makes the links to some masters and their redlock.Client.
func (c *Client) join(masters []*Master, group *guard.Group, more ...redlock.Option) (*redlock.Client, error) {
	var nodes []node.Node
	for _, m := range masters {
		l, err := c.link(m, c.Wires[m.Index], group)
		if err != nil {
			return nil, err
		}
		c.Links, nodes = append(c.Links, l), append(nodes, l)
	}
	api, err := seam.NewClient(nodes, append(c.options(), more...))
	if err != nil {
		return nil, err
	}
	c.APIs = append(c.APIs, api.(*redlock.Client))
	return api.(*redlock.Client), nil
}

// options returns the options of each redlock.Client.
func (c *Client) options() []redlock.Option {
	opts := slices.Concat([]redlock.Option{
		redlock.WithTTL(c.Config.TTLOf(c.Index)),
		redlock.WithNodeTimeout(c.Config.NodeTimeout),
		redlock.WithRetryInterval(c.Config.RetryInterval),
	}, c.Config.Options, []redlock.Option{
		redlock.WithClientID(c.Me().ID()),
		redlock.WithClock(c.weak.Clock(c.Host.Clock)),
		redlock.WithLogger(slog.New(slog.DiscardHandler)),
		redlock.WithObserver(c.Watch.Observe),
		seam.Option(c.weak.Lacks.Seams(seam.Seams{
			Guarded: true, Wait: c.World.Wait, Random: c.Dice.Bits, Unsafe: c.Config.Unsafe, Steps: c.steps, Rest: c.Config.Rest,
		})).(redlock.Option),
	})
	if c.Config.ClockGuard < 0 || c.Config.Lacks.Unnoticed {
		opts = append(opts, redlock.WithClockGuard(0))
	}
	return opts
}

// Close closes the client, as a process does that ends in good order.
func (c *Client) Close() error {
	if c.Groups != nil {
		return c.Groups.Close()
	}
	return c.API.Close()
}

// Connection is how a client reaches one master.
type Connection interface {
	node.Node
	// Quiet reports whether the master is connected, nothing is under way, and
	// nothing is owed; settled also that everything sent has arrived.
	Quiet() bool
	Settled() bool
	Owing() int // releases that the master was not told of
	// Well reports whether client and master can talk, and the master may grant.
	Well() bool
	// Held reports whether the master may not grant although it could be talked to.
	Held() bool
	// Believes reports whether a grant that comes with this proof would count.
	Believes(proof string) bool
	// crash ends the connection with its process. The messages that were sent still arrive.
	crash()
}

func (c *Client) link(m *Master, w *Cable, group *guard.Group) (Connection, error) {
	if c.Config.Transport == plan.Production {
		return newTransport(c, m, w, group)
	}
	return newLink(c, m, w, group), nil
}

// Crash ends the process. The messages that it has sent still arrive.
func (c *Client) Crash() {
	c.Host.Crash()
	for _, l := range c.Links {
		l.crash()
	}
}

// IsStranger reports whether one of the client's masters belongs to another group
// than the client believes. It gets no lock until an operator decides (S14).
func (c *Client) IsStranger() bool {
	stranger := func(g *guard.Group) bool { return g.Trouble() != nil }
	return stranger(c.Group) || slices.ContainsFunc(c.parts, stranger)
}

// Idle reports whether no code of the library is running or waiting on the
// client, and no lease is held.
func (c *Client) Idle() bool {
	if c.Host.Down || c.Host.Rests() || c.Leases > 0 {
		return false
	}
	for _, p := range c.Host.Procs {
		if p.Inside() {
			return false
		}
	}
	return true
}

// ReachesAll reports whether the client can talk to every master, and owes it nothing.
func (c *Client) ReachesAll() bool {
	for _, l := range c.Links {
		if !l.Well() || l.Owing() > 0 {
			return false
		}
	}
	return true
}

// SkewsAlone gives the clock that leases are counted by a rate, if that is another one
// than the clock that is compared with the masters'. It reports whether it is.
func (c *Client) SkewsAlone(millionths int) bool {
	c.weak.Skew = float64(millionths) / 1e6
	return c.Config.Lacks.OwnRate
}
