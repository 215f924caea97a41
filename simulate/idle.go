package simulate

import (
	"fmt"

	"github.com/quorumlock/quorumlock/internal/seam"
)

// rounds looks for rounds that go on although the client has no work, and all that it
// has asked was answered.
func (k *checker) rounds(c *client) {
	if c.asked == c.counted || c.preemption.every > 0 || c.closing || c.api == nil || !c.idle() {
		return
	}
	for _, l := range c.links {
		if !l.settled() {
			return
		}
	}
	c.counted = c.asked
	if u := seam.UsageOf(c.api); u.Rounds > 0 {
		c.blame(fmt.Sprintf("it has nothing to do, all that it asked was answered, and %d rounds go on", u.Rounds))
	}
}
