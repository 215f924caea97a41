package redlock

import (
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
)

// hearing is whether the masters can tell a client what its waiters are given. A queue
// gives the lock to those who can be told: of several clients that cannot, each would keep
// a minority for as long as it waits (L35). So a client that no quorum of masters can
// tell anything does without a queue, until one can.
//
// A connection that breaks is made again at once, mostly; so one look says little. A
// client is deaf if all looks have found it so for a while.
type hearing struct {
	channel string        // of all waiters of the client
	none    bool          // the last look found no quorum that can tell us
	since   drift.Instant // the first of those in a row
	deaf    bool
}

// deafAfter is longer than it takes to connect, by default.
const deafAfter = 3 * time.Second

// look counts how many nodes can tell us, and reports whether we are deaf, and whether
// that is new.
func (h *hearing) look(nodes []node.Node, need int, now drift.Instant) (deaf, news bool) {
	if h.count(nodes) >= need {
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

// count returns how many nodes can tell us.
func (h *hearing) count(nodes []node.Node) (heard int) {
	for _, n := range nodes {
		if s, ok := n.(node.Subscribed); !ok || s.Subscribed(h.channel) {
			heard++
		}
	}
	return heard
}

// excuse has the while begin anew: there was nobody who could have told us.
func (h *hearing) excuse() { h.none = h.deaf }
