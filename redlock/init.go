package redlock

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorumlock/node/operate"
)

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
	o, err := founding(addrs, opts)
	if err != nil {
		return nil, err
	}
	config := o.node()
	config.Guard = o.guard("")
	done, err := operate.Init(ctx, addrs, o.group, config)
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
	o, err := founding(addrs, opts)
	if err != nil {
		return nil, err
	}
	config := o.node()
	config.Guard = o.guard("")
	done, err := operate.Regroup(ctx, addrs, o.group, config)
	if err != nil {
		return nil, fmt.Errorf("redlock: regroup: %w", err)
	}
	return done, nil
}

func founding(addrs []string, opts []Option) (options, error) {
	o, err := resolve(opts)
	if err != nil {
		return o, err
	}
	if o.restartGuard == 0 {
		o.restartGuard = o.ttl
	}
	_, err = checkAddrs(addrs, nil)
	return o, err
}
