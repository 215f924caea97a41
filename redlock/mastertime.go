package redlock

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/node"
)

// Waiters for a lock are served in the order of their arrival. By its own clock a client
// whose clock is behind would always have come first, and would keep the others from the
// lock for as long as it wants it (L41). So the masters' clocks count.

// mastersTime returns the time by the clocks of the masters: the median of the known
// clocks, so that a wrong minority does not matter. Before any master's clock is known,
// it returns the time of our own clock.
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
