package redlock

import (
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// hearing decides whether the masters can notify the waiters of a client. A queue gives
// the lock to waiters that can be notified. If several clients could not be notified,
// each would keep a minority for as long as it waits (L35). So a client that no quorum of
// masters can notify does without a queue, until a quorum can.
//
// A connection that breaks is usually made again soon; so one look says little. A
// client is deaf if all looks have found it so for a while.
type hearing struct {
	members *quorum.Members
	channel string        // of all waiters of the client
	none    bool          // the last look found no quorum that can notify us
	since   drift.Instant // the first of those in a row
	deaf    bool
}

// deafAfter is longer than it takes to connect, by default.
const deafAfter = 3 * time.Second

// look reports whether we are deaf, and whether that is new.
func (h *hearing) look(now drift.Instant) (deaf, news bool) {
	if h.reaches() {
		h.none, h.deaf = false, false
		return false, false
	}
	if !h.none {
		h.none, h.since = true, now
	}
	news = !h.deaf && now.Sub(h.since) >= deafAfter
	h.deaf = h.deaf || news
	return h.deaf, news
}

// reaches reports whether a quorum of masters can notify us.
func (h *hearing) reaches() bool {
	n := 0
	for _, m := range h.members.Nodes() {
		if s, ok := m.(node.Subscribed); !ok || s.Subscribed(h.channel) {
			n++
		}
	}
	return n >= h.members.Need()
}

// excuse restarts the period: no master could have notified us so far.
func (h *hearing) excuse() { h.none = h.deaf }
