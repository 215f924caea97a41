package redlock

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/operate"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// ForceUnlock takes the lock of that name away from its holder, which may be a client
// of another library: every master deletes the value, readers and permits that a
// majority stores now, or may store if not all masters answered, and every value of
// another library. A client that takes the lock meanwhile keeps it.
//
// The holder finds out at its next renewal, up to a third of its TTL later. In the grace of
// StopWithin nothing is renewed: there it finds out when stop is due, up to half of the validity
// later. Until then it may go on working while another client has the lock. So make sure
// that it has ended first; a holder that crashed loses its lock by itself after its TTL.
// A process that has the lock Cached is told, and locks it no more without the masters.
// ForceUnlock returns the holder that it found, and ErrNoQuorum when too few masters
// answered.
func (c *Client) ForceUnlock(ctx context.Context, name string) (Holder, error) {
	found, err := c.Inspect(ctx, name)
	if err != nil {
		return found, err
	}
	for _, f := range found.forced(c, name) {
		if err := c.force(name, f.kind, f.value); err != nil {
			return found, err
		}
		if values.IsCached(f.value) {
			c.send(wire.TellWanted(c.opt.prefix, c.opt.prefix+name, f.value))
		}
	}
	return found, nil
}

// stored is a value that masters store.
type stored struct {
	value  string
	kind   kind
	alone  bool // in the lock itself, so that only one client has it
	nodes  int  // how many store it
	behind int  // its place in the queue, if it waits or has waited
}

// forced returns the values that ForceUnlock deletes. The last of them is stored by the
// most masters.
//
// Invariant: none of the values belongs to a waiter that gets the lock when another of
// the values is released. A waiter keeps the grants of a minority. When the holder's value
// is deleted, the other masters grant the lock to that waiter, too: deleting its value as
// well would take the lock from a client that relies on it.
func (h *Holder) forced(c *Client, name string) (all []stored) {
	need, alone := h.mayDecide(), false
	for _, s := range slices.Backward(h.stored(c, name)) {
		owner, _, _ := values.Parse(s.value)
		if owner != "" && (s.nodes < need || s.alone && alone) {
			continue // it waits, or tries, or it is left over and ends with its TTL
		}
		alone = alone || s.alone && owner != ""
		all = append(all, s)
	}
	slices.Reverse(all)
	return all
}

// mayDecide returns how many of the masters that answered make a majority together with the
// silent masters.
func (h *Holder) mayDecide() int {
	return quorum.Size(len(h.Nodes)) - counted(h.Nodes, func(v NodeView) bool { return v.Err != nil })
}

// stored returns the stored values, in the order of how many masters store each. Among
// equals a waiter comes before the clients that it waits for.
func (h *Holder) stored(c *Client, name string) (all []stored) {
	add := func(s stored) {
		i := slices.IndexFunc(all, func(o stored) bool { return o.value == s.value })
		if i < 0 {
			s.behind = h.placeOf(s.value)
			i, all = len(all), append(all, s)
		}
		all[i].nodes++
	}
	for _, v := range h.Nodes {
		if v.Value != "" {
			add(stored{value: v.Value, kind: h.holding(c, name), alone: true})
		}
		for _, s := range v.Shares {
			add(stored{value: s.Value, kind: s.holding(c, name)})
		}
	}
	slices.SortStableFunc(all, func(a, b stored) int {
		return cmp.Or(cmp.Compare(a.nodes, b.nodes), cmp.Compare(b.behind, a.behind))
	})
	return all
}

// placeOf returns the place in the queue of the waiter that has this value, from 1;
// zero if it is not there.
func (h *Holder) placeOf(value string) int {
	return 1 + slices.IndexFunc(h.Queue, func(w Waiter) bool { return values.ID(w.Value) == values.ID(value) })
}

// holding is the kind of a lock that one client has alone.
func (h *Holder) holding(c *Client, name string) kind {
	if h.Kind == "read-write" {
		return c.readWrite(name).writers(name)
	}
	return c.exclusive(name, lockOptions{})
}

// holding is the kind of a lock that is shared.
func (s *Share) holding(c *Client, name string) kind {
	if s.Slots == nil {
		return c.readWrite(name).readers(name)
	}
	return (&semaphore{of: name, keys: wire.PermitsOf(c.opt.prefix, name)}).kind()
}

// force has every node delete a value and wake the waiters for it.
func (c *Client) force(name string, k kind, value string) error {
	l, cl := c.lock(name, k), k.claim()
	cmd := cl.release(value, l.opt.ttl)
	r := c.members.Ask(quorum.Question{Command: cmd, Judge: cl, Since: c.watch.Now()})
	defer r.Free()
	c.seams.Wait(context.Background(), r.Ready()) // the round ends by itself
	if r.Tally().Outcome() != quorum.Won {
		return l.fail("unlock", l.closedOr(ErrNoQuorum), r)
	}
	return nil
}

// Init declares that the given masters are new and have never held a lock. Call it once,
// before their first client. Without it the first lock on new masters takes a restart
// guard, because a master without a marker may have lost its memory. Init returns one
// line for each master: the action that it took there.
//
// Init checks each master as far as it can: the master must be reachable, must not be a
// replica, must be a server of its own, must have no keys that may be locks, and must not
// have been used before (operate.ErrNotNew). Init marks all masters or none. A client that
// has met the masters and was refused has not used them: Init works after it, until the
// masters would vote for that client by themselves. If all are marked already and may vote
// for a client with these options, Init does nothing and succeeds; while they may not, it
// fails. Init uses the options WithKeyPrefix, WithGroup, WithTTL, WithRestartGuard, and
// the connection options.
func Init(ctx context.Context, addrs []string, opts ...Option) ([]string, error) {
	group, config, err := founding(addrs, opts)
	if err != nil {
		return nil, err
	}
	done, err := operate.Init(ctx, addrs, group, config)
	if err != nil {
		return nil, fmt.Errorf("redlock: init: %w", err)
	}
	return done, nil
}

// Regroup makes these masters, of which some are in use, the group of all clients that
// are given the same number of them from now on: five instead of three, say. Clients
// of the old group are shut out immediately and lose their locks in time. The masters vote
// for the new clients when the longest restart guard has passed that the options or
// any master knows of. A quorum of the old group must be among the masters. All of them
// take over the data that outlives locks: fencing counters, the sizes of
// semaphores, and arrivals at latches. If it fails, call it again. If there are as many
// masters as before, only a name tells the lists apart: WithGroup, here and in all
// clients.
func Regroup(ctx context.Context, addrs []string, opts ...Option) ([]string, error) {
	group, config, err := founding(addrs, opts)
	if err != nil {
		return nil, err
	}
	done, err := operate.Regroup(ctx, addrs, group, config)
	if err != nil {
		return nil, fmt.Errorf("redlock: regroup: %w", err)
	}
	return done, nil
}

// Spread spreads names over these groups of masters from now on, for clients with [WithSpread] (see
// [NewGroups]): it writes their map to all masters. The masters of all groups that have names now must
// be given, by group, and those of the groups that get some. Each group must have been declared by Init,
// with its name. The first Spread shuts all other clients out, but not those without a restart guard, which read
// no marker: end these before.
//
// No group has a name that moves for the longest restart guard that the options or any master knows
// of; all other names are undisturbed. Spread logs how long that is (WithLogger) and waits. Then the new
// groups take over the data that outlives locks, as in Regroup, and the names. All masters must be
// reachable. If it fails, or ctx ends, call it again with the same groups.
func Spread(ctx context.Context, masters map[string][]string, over []string, opts ...Option) ([]string, error) {
	var config node.Config
	for _, group := range slices.Sorted(maps.Keys(masters)) {
		var err error
		if _, config, err = founding(masters[group], opts); err != nil {
			return nil, fmt.Errorf("group %q: %w", group, err)
		}
	}
	done, err := operate.Spread(ctx, masters, over, config)
	if err != nil {
		return nil, fmt.Errorf("redlock: spread: %w", err)
	}
	return done, nil
}

// founding returns the name of the group that the options mean, and how to connect to its
// masters. Without a restart guard the TTL counts: it is what a lease may still last.
func founding(addrs []string, opts []Option) (group string, config node.Config, err error) {
	o, err := resolve(opts)
	if err != nil {
		return "", config, err
	}
	if o.restartGuard == 0 {
		o.restartGuard = o.ttl
	}
	config = o.node()
	config.Guard = o.guard("")
	_, err = checkAddrs(addrs, nil)
	return o.group.name, config, err
}
