package redlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
)

// A release is owed to a master until the master has confirmed it. Unlock returns when a
// majority has. A release that is still owed when its client ends stays undelivered, and
// the key keeps others out at that master for up to its TTL; with one such key at each of
// two masters out of three nobody can lock (L39). So Close waits for what is owed.

// owedWait bounds how long Close waits for masters that do not answer. A master that has
// not been asked for anything is owed nothing, and is not waited for.
const owedWait = 3 * time.Second

// owedLook is between two looks at what is owed.
const owedLook = 5 * time.Millisecond

// awaitOwed waits until no master is owed a release any more, for up to owedWait and no
// longer than the keys may last. It returns which releases are still owed.
func (c *Client) awaitOwed() error {
	for began := c.watch.Now(); ; c.sleep(owedLook) {
		longest, left := c.owed()
		if left == nil || c.watch.Since(began) >= min(owedWait, longest) {
			return left
		}
	}
}

// owed returns for how long what is owed may last at the masters, and what it is.
func (c *Client) owed() (longest time.Duration, left error) {
	var all *multierror.Error
	for _, n := range c.members.Nodes() {
		o, ok := n.(node.Owing)
		if !ok {
			continue
		}
		if cmds := o.Owed(); len(cmds) > 0 {
			keep := slices.MaxFunc(cmds, func(a, b *node.Command) int { return cmp.Compare(a.Keep, b.Keep) }).Keep
			longest = max(longest, keep)
			why := fmt.Errorf("not confirmed, and may stay for %v: %s", keep, listed(cmds))
			all = multierror.Append(all, &node.Error{Node: n.Addr(), Op: node.OpRelease, Err: why})
		}
	}
	if all == nil {
		return 0, nil
	}
	all.ErrorFormat = oneLine
	return longest, fmt.Errorf("redlock: close: %w: %w", ErrUndelivered, all)
}

// maxListed is how many keys an error names.
const maxListed = 3

// listed names the keys that releases are for.
func listed(cmds []*node.Command) string {
	var keys []string
	for _, cmd := range cmds {
		if key := fmt.Sprintf("%q", cmd.Keys[0]); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if more := len(keys) - maxListed; more > 0 {
		keys = append(keys[:maxListed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(keys, ", ")
}

// sleep waits, whatever happens.
func (c *Client) sleep(d time.Duration) {
	s := &sleeper{over: make(chan struct{})}
	c.timers.Set(&s.timer, d, s)
	c.seams.Wait(context.Background(), s.over)
}

type sleeper struct {
	timer drift.Timer
	over  chan struct{}
}

// Fire ends the sleep.
func (s *sleeper) Fire() { close(s.over) }
