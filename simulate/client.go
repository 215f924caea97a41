package simulate

import (
	"log/slog"
	"strconv"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

// client is one simulated process that uses the library: a host, its links to
// the masters, and the production redlock.Client on top.
type client struct {
	world   *world
	index   int
	host    *host
	masters []*master
	links   []*link
	api     *redlock.Client
	dice    *stream
	config  *Config

	guard node.GuardConfig
	wires []*wire
	stats *Stats
}

func newClient(w *world, index int, masters []*master, cfg *Config, lat latency, seed uint64, stats *Stats) *client {
	c := &client{
		world:   w,
		index:   index,
		host:    newHost(w, 101+index, clientName(index)),
		masters: masters,
		dice:    newStream(seed, "client", index),
		config:  cfg,
		guard:   cfg.guard(),
		stats:   stats,
	}
	for i := range masters {
		c.wires = append(c.wires, &wire{
			world: w, dice: newStream(seed, "wire", index, i), latency: lat, stats: stats,
		})
	}
	return c
}

func clientName(index int) string { return "client " + strconv.Itoa(index+1) }

// connect makes the links and the redlock.Client, as a process does that starts.
func (c *client) connect() error {
	c.host.down = false
	c.links = make([]*link, len(c.masters))
	nodes := make([]node.Node, len(c.masters))
	for i, m := range c.masters {
		c.links[i] = newLink(c, m, c.wires[i])
		nodes[i] = c.links[i]
	}
	opts := []redlock.Option{
		redlock.WithClientID(strconv.Itoa(c.index + 1)),
		redlock.WithTTL(c.config.TTL),
		redlock.WithClock(c.host.clock),
		redlock.WithLogger(slog.New(slog.DiscardHandler)),
		redlock.WithObserver(c.observe),
		redlock.WithSeams(seam.Seams{Wait: c.world.wait, Random: c.dice.bits, Unsafe: c.config.unsafe}),
	}
	var err error
	c.api, err = redlock.New(nodes, append(opts, c.config.Options...)...)
	return err
}

// crash ends the process. What it has sent still arrives.
func (c *client) crash() {
	c.host.crash()
	for i, l := range c.links {
		c.wires[i].troubled = true // what it held is never released
		if l.conn != nil {
			l.conn.open = false
			for _, ear := range l.conn.ears {
				ear.leave()
			}
		}
	}
}

func (c *client) observe(e redlock.Event) {
	switch {
	case e.Kind == redlock.NodeRepaired && e.Err == nil:
		c.stats.repaired++
	case e.Kind == redlock.LeaseRenewed && e.Err == nil:
		c.stats.Renewals++
	case e.Kind == redlock.LeaseLost:
		c.stats.Losses++
	case e.Kind == redlock.LockFailed:
		c.stats.attemptsFailed++
	}
}
