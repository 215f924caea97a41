package simulate

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
)

// A client that has nothing to do keeps nothing of what it did: a process that runs for
// a year makes a billion rounds.

// forgetful is after how long a client without work has forgotten all of it: the queue
// of a lock that was contended stays for up to two seconds, and its timer may be stopped
// in the middle twice.
func (t *trial) forgetful() time.Duration {
	d := 3 * time.Second
	if p := t.schedule.preemption(); p.every > 0 {
		d += 2 * p.long
	}
	return d
}

// usage looks for what clients keep in memory although all work was done long ago.
func (k *checker) usage() {
	for _, c := range k.trial.clients {
		if c.api == nil || c.host.down || c.host.rests() || c.isStranger() || len(c.host.procs) > 0 {
			continue
		}
		t := k.trial
		if u := seam.UsageOf(c.api); u != (seam.Usage{}) {
			k.report(Violation{
				Kind:    Leftover,
				What:    fmt.Sprintf("%s has had nothing to do for %v, and still has %+v in memory", c.host.name, t.forgetful(), u),
				Clients: []int{c.index},
			})
		}
	}
}
