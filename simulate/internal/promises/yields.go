package promises

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// This file checks for how long a lock is left to callers that do not queue, while others wait
// for it.

// pauses is the time for which a lock was so.
type pauses struct {
	looked time.Duration // when that was last so
	all    time.Duration
	passed bool // a caller that does not queue has asked for the lock
	told   bool
	by     *Client       // who has begun the last one
	until  time.Duration // its end
}

// leaves notes that a client leaves a lock to callers that do not queue.
func (k *checker) leaves(by *Client, cmd *wire.Command) {
	if cmd.Script == wire.ScriptYield {
		p := &k.Ledger.Book(cmd.Keys[0]).pauses
		p.by, p.until = by, k.scene.World.Now+milliseconds(cmd.Args[1])
	}
}

// open reports whether a call began in a pause, so that it found the lock free whoever waits. A
// client that has begun the pause itself knows that others wait, and must queue behind them (L74).
func (p *pauses) open(cl *Claim) bool { return p.by != cl.Client && cl.began < p.until }

// longestPause is how long a lock is left at a time.
const longestPause = 250 * time.Millisecond

// pausing looks at a lock that a caller could take, if the masters did not leave it to callers that
// do not queue. Such a pause is short. All pauses together are 1 % of the time, and at most as much
// for what masters are apart, until a caller was seen that does not queue.
func (k *checker) pausing(w *want) {
	now, p := k.scene.World.Now, &w.books[0].pauses
	if w.pause < 0 {
		w.pause = now
	}
	if w.pause <= k.calm(w) {
		return // masters whose clocks stand still leave it for longer
	}
	p.all += max(0, now-max(p.looked, w.pause)) // other callers may have counted it
	p.looked = now
	one, all, complaint := now-w.pause, p.all, ""
	switch {
	case one > longestPause+k.Trips():
		complaint = fmt.Sprintf("%q is left to callers that do not queue for %v", w.names[0], plan.Short(one))
	case all > now/50+20*time.Millisecond && !p.passed:
		complaint = fmt.Sprintf("%q was left to callers that do not queue for %v, and none was seen", w.names[0], plan.Short(all))
	}
	if complaint != "" && !p.told {
		p.told = true
		k.Report(tally.Violation{Kind: tally.FreeAndWanted, What: complaint, Clients: []int{w.process.Client.Index}})
	}
}
