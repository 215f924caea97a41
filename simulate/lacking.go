package simulate

import (
	"fmt"
	"strconv"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// What a waiter for several locks lacks at each master decides how it goes on waiting: for
// the one that somebody has, so that others get the rest, or for each of them if the
// votes are split.

// lacking is what the masters have replied to an ask for several locks.
type lacking struct {
	replies
	had    map[string]int // how many say that somebody has one of the locks, by which and who
	most   int            // of those
	split  bool           // when it was decided, nobody could have any of the locks
	timely bool           // that was not by its timeout
	called bool           // a master has said that it is its turn, or was asked again
}

// lacks notes what a client asks for if that is an ask for several locks.
func (c *client) lacks(cmd *wire.Command) {
	if cmd.Script != wire.ScriptMultiAsk || c.preemption.every > 0 || c.config.unsafe != (seam.Unsafe{}) {
		return
	}
	value := cmd.Args[0]
	if cmd.Again || cmd.Op != wire.OpAsk {
		c.calledOn(value)
		return
	}
	if c.lacking[value] != nil {
		return
	}
	waiter, number := masters.SplitValue(value)
	before := waiter + ":" + strconv.Itoa(number-1)
	place, _ := strconv.Atoi(cmd.Args[4])
	c.goesOn(c.lacking[before], place)
	delete(c.lacking, before)
	c.lacking[value] = &lacking{replies: c.ask(), had: map[string]int{}}
}

// lacked counts a reply to it.
func (c *client) lacked(cmd *wire.Command, r wire.Reply) {
	l := c.lacking[cmd.Args[0]]
	if l == nil || cmd.Again || cmd.Op != wire.OpAsk {
		return
	}
	vote := quorum.Failed
	fields, _ := r.Value.([]any)
	switch counted, _ := r.Value.(int64); {
	case r.Err != nil:
	case r.Value == "OK" || counted > 0:
		vote = quorum.Granted
	case len(fields) == 5:
		vote = quorum.Refused
		if who := textOf(fields[4]); who != "" || fields[1] == int64(1) {
			lock := fmt.Sprint(fields[3], " ", who)
			l.had[lock]++
			l.most = max(l.most, l.had[lock])
		}
	}
	if l.count(vote, c.world.now) {
		pending := l.masters - l.granted - l.refused - l.failed
		l.split, l.timely = l.most+pending < l.need(), l.passed(c.host) < c.config.nodeTimeout
	}
}

// calledOn notes that a waiter is called, or that a master may grant it more than it has
// answered.
func (c *client) calledOn(value string) {
	if l := c.lacking[value]; l != nil {
		l.called = true
	}
}

// goesOn looks at what a waiter waits for with its next ask. What it was told before the
// last one was decided has it ask in the same instant.
func (c *client) goesOn(l *lacking, place int) {
	switch {
	case l == nil || !l.timely || l.at == c.world.now || l.granted >= l.need():
	case l.split && place != wire.WaitForEach:
		c.blame("the votes for several locks are split, and a waiter does not keep its place for each of them")
	case l.most >= l.need() && place <= 0 && !l.called && c.config.Transport != Production:
		c.blame("a quorum says that somebody has one of several locks, and a waiter takes the others meanwhile")
	}
}
