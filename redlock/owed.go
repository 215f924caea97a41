package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// A release is owed to a master until the master has confirmed it. Unlock returns when a
// majority has. A release that is still owed when its client ends stays undelivered, and
// the key keeps others out at that master for up to its TTL; with one such key at each of
// two masters out of three no client can lock (L39). So Close waits for owed releases. A release
// that waits for a stop is owed to all masters.

// owedWait bounds how long Close waits for masters that do not answer. A master that has
// not been asked for anything is owed nothing, and is not waited for.
const owedWait = 3 * time.Second

// creditor waits until every master has confirmed the releases that it is owed.
type creditor struct {
	client *Client
	timer  drift.Timer
	over   chan struct{}

	mu    seam.Mutex
	ended bool
}

// awaitOwed waits until the masters have confirmed all releases, for up to owedWait and no
// longer than the keys may last. It returns which releases are still owed.
func (c *Client) awaitOwed() error {
	w := &creditor{client: c, over: make(chan struct{})}
	w.mu.In(c.seams.Steps)
	c.farewell.creditor.Store(w)
	longest, left := c.owed()
	if longest == 0 {
		return left
	}
	for _, n := range c.members.Nodes() {
		if o, ok := n.(node.Owing); ok {
			o.Paid(w.paid)
		}
	}
	c.timers.Set(&w.timer, min(owedWait, longest), w)
	w.paid() // the last may have been before we asked to be told
	c.seams.Wait(context.Background(), w.over)
	_, left = c.owed()
	return left
}

// paid is called when a release no longer waits for its stop, or Close for the stop.
func (c *Client) paid() {
	if w := c.farewell.creditor.Load(); w != nil {
		w.paid()
	}
}

// paid is called when a master has confirmed the last of its owed releases.
func (w *creditor) paid() {
	if longest, _ := w.client.owed(); longest == 0 {
		w.end()
	}
}

// Fire ends the wait when its time is over.
func (w *creditor) Fire() { w.end() }

func (w *creditor) end() {
	w.mu.Lock()
	before := w.ended
	w.ended = true
	w.mu.Unlock()
	if !before {
		close(w.over)
	}
}

// owed returns an error that lists the owed releases, and for how long their keys may
// last at the masters: zero if Close need not wait for any of them.
func (c *Client) owed() (longest time.Duration, left error) {
	var all *multierror.Error
	for _, n := range c.members.Nodes() {
		o, ok := n.(node.Owing)
		if !ok {
			continue
		}
		if cmds := o.Owed(); len(cmds) > 0 {
			keep := slices.MaxFunc(cmds, func(a, b *wire.Command) int { return cmp.Compare(a.Keep, b.Keep) }).Keep
			longest = max(longest, keep)
			why := fmt.Errorf("not confirmed, and may stay for %v: %s", keep, listed(cmds))
			all = multierror.Append(all, &wire.Error{Node: n.Addr(), Op: wire.OpRelease, Err: why})
		}
	}
	for _, l := range c.leases() {
		if wait, withheld := l.owes(); withheld {
			longest = max(longest, wait)
			all = multierror.Append(all, &Error{Op: "release", Name: l.lock.name, Err: errStopRuns})
		}
	}
	if all == nil {
		return 0, nil
	}
	all.ErrorFormat = oneLine
	return longest, fmt.Errorf("redlock: close: %w: %w", ErrUndelivered, all)
}

// errStopRuns is why the release of a lease is not given.
var errStopRuns = errors.New("its stop has not returned, so that it ends with its TTL")

// maxListed is how many keys an error names.
const maxListed = 3

// listed names the keys that releases are for.
func listed(cmds []*wire.Command) string {
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
