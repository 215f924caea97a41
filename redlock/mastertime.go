package redlock

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/node"
)

// Those who wait for a lock are served in the order of when they came. By its own clock a
// client whose clock is behind would always have come first, and would keep the others
// from the lock for as long as it wants it (L41). So the masters' clocks count.

// mastersTime returns what the clocks of the masters say: the median of those that are
// known, so that a minority that is wrong does not matter. Before any master has told it,
// it is what our own clock says.
func (c *Client) mastersTime() time.Time {
	own := c.clock.Now()
	if c.seams.Unsafe.ClockTicket {
		return own
	}
	var few [16]time.Time
	known := few[:0]
	for _, n := range c.members.Nodes() {
		if m, ok := n.(node.Clocked); ok {
			if now, ok := m.MasterTime(); ok {
				known = append(known, now)
			}
		}
	}
	if len(known) == 0 {
		return own
	}
	slices.SortFunc(known, time.Time.Compare)
	return known[(len(known)-1)/2]
}
