package simulate

import (
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// What a client's waiters were told, and what the client does at once. Answers and
// messages are counted here once more, as they are handed to the library. Where code is
// stopped in the middle nothing follows at once, so nothing is said of such schedules.

// hearing is what one waiter has asked for and was told.
type hearing struct {
	value    string          // of its last ask, or of the attempt before
	queues   bool            // that was an ask
	until    time.Duration   // then so much of its TTL is over that a gift may be worth nothing
	given    quorum.Set      // the masters that gave it the lock for that
	timely   quorum.Set      // those that did so before until
	count    replies         // to that
	answers  map[int]int64   // of the first ask of a fair waiter: its place at each master, by master; nil: of no such ask
	least    int64           // the place that it wants at least
	released quorum.Set      // the masters that were told to forget the waiter
	releases map[string]int  // that are on their way, by master and key
	withdrew map[string]bool // those of them that a message has led to
	told     int             // releases that were ever given
	repeats  quorum.Set      // the masters that a repeated ask is on its way to
	doubted  quorum.Set      // those of them of which messages may have been lost since
	repeated int             // asks that were ever repeated
}

// hearings are those of a client, by waiter.
type hearings map[string]*hearing

// of returns what is known of a waiter by one of its values. The value may be none.
func (hs hearings) of(value string) *hearing {
	waiter, _ := masters.SplitValue(value)
	if waiter == "" {
		return nil
	}
	if hs[waiter] == nil {
		hs[waiter] = new(hearing)
	}
	return hs[waiter]
}

// notes notes what a client asks a master for, or gives back.
func (c *client) notes(master int, cmd *wire.Command) {
	h := c.hearings.of(cmd.Args[0])
	if h == nil {
		return
	}
	switch {
	case cmd.Op == wire.OpRelease:
		where := lockAt(master, cmd.Keys[0])
		h.told++
		if h.releases == nil {
			h.releases, h.withdrew = map[string]int{}, map[string]bool{}
		}
		h.releases[where]++
		if h.released.Has(master) && c.withdraws {
			if h.withdrew[where] && c.preemption.every == 0 {
				c.blame(c.masters[master].host.name + " is told once more that a waiter has gone, and has not answered yet")
			}
			h.withdrew[where] = true
		}
		h.released |= quorum.Only(master)
		delete(c.waits, h.value)
	case cmd.Again:
		if h.repeats.Has(master) && h.value == cmd.Args[0] && c.preemption.every == 0 {
			c.blame(c.masters[master].host.name + " is asked once more, and has not answered yet when it was before")
		}
		h.repeats |= quorum.Only(master)
		h.repeated++
	case (cmd.Op == wire.OpAsk || cmd.Op == wire.OpAcquire) && h.value != cmd.Args[0]:
		if h.given.Len() >= quorum.Size(len(c.masters)) {
			c.finds(cmd.Keys[0]) // what it was given came too late
		}
		if h.queues && cmd.Op == wire.OpAsk {
			c.asksInVain(h)
		}
		h.begins(c, cmd)
	}
}

// begins notes that a waiter asks for the first time, or once more.
func (h *hearing) begins(c *client, cmd *wire.Command) {
	delete(c.waits, h.value)
	h.value, h.queues, h.given, h.timely = cmd.Args[0], cmd.Op == wire.OpAsk, 0, 0
	h.repeats, h.doubted = 0, 0
	h.answers, h.count = nil, c.ask()
	if h.queues {
		h.until = c.host.clock.Monotonic() + min(milliseconds(cmd.Args[2]), node.LongestAttempt)/2
	}
	c.waits[h.value] = h
	if cmd.Script == wire.ScriptFair && cmd.Args[1] != "-" {
		h.least, _ = strconv.ParseInt(cmd.Args[1], 10, 64)
		h.queues, h.answers = true, map[int]int64{}
	}
}

// lockAt names a lock at a master.
func lockAt(master int, key string) string { return strconv.Itoa(master) + " " + key }

// asksInVain looks at a waiter that asks again although a quorum has given it what it
// asked for last, and that cannot have come too late.
func (c *client) asksInVain(h *hearing) {
	if !c.config.Lock.answersPlainly() || c.preemption.every > 0 || c.host.resumed > 0 || c.host.clock.uneven > 0 {
		return
	}
	if h.timely.Len() >= quorum.Size(len(c.masters)) && c.check.calm(c) {
		c.blame("a waiter asks again, and " + strconv.Itoa(h.timely.Len()) + " masters have given it what it asked for before")
	}
}

// takes counts a grant to the last ask.
func (h *hearing) takes(c *client, master int, value string) {
	if value != h.value || h.released != 0 {
		return
	}
	h.given |= quorum.Only(master)
	if h.answers != nil {
		h.answers[master] = 0
	}
	if c.host.clock.Monotonic() < h.until {
		h.timely |= quorum.Only(master)
	}
}

// hearsOf counts an answer before the library has it.
func (c *client) hearsOf(master int, cmd *wire.Command, r wire.Reply) {
	h := c.hearings.of(cmd.Args[0])
	if h == nil {
		return
	}
	switch cmd.Op {
	case wire.OpRelease:
		where := lockAt(master, cmd.Keys[0])
		if h.releases[where]--; h.releases[where] <= 0 {
			delete(h.releases, where)
			delete(h.withdrew, where)
		}
	case wire.OpAcquire, wire.OpAsk:
		if cmd.Again && cmd.Args[0] == h.value {
			h.repeats &^= quorum.Only(master)
		}
		if grants(r) == quorum.Granted {
			h.takes(c, master, cmd.Args[0])
		}
		if cmd.Args[0] == h.value && !cmd.Again {
			h.answered(c, master, cmd, r)
		}
	}
}

// answered counts an answer to the last ask or attempt. The waiter has found the lock
// taken if that may be what the answers say.
func (h *hearing) answered(c *client, master int, cmd *wire.Command, r wire.Reply) {
	vote := grants(r)
	standing, queued := r.Value.([]any)
	if r.Err == nil && queued {
		vote = quorum.Refused
	}
	h.count.count(vote, c.world.now)
	switch {
	case h.count.refused > 0 && h.count.verdict() == redlock.ErrTaken:
		c.finds(cmd.Keys[0])
	case vote == quorum.Refused && c.preemption.every > 0:
		c.finds(cmd.Keys[0]) // the library may count the answers in another order
	}
	if h.answers != nil && vote == quorum.Refused && !h.given.Has(master) && len(standing) == 4 {
		h.answers[master], _ = standing[3].(int64)
	}
}

// agrees reports whether a majority of the masters has answered, and whether a
// majority has queued the waiter at the same place.
func (h *hearing) agrees() (answered, agreed bool) {
	size, highest, n := quorum.Size(h.count.masters), h.least, 0
	for _, at := range h.answers {
		highest = max(highest, at)
	}
	for _, at := range h.answers {
		if at == highest {
			n++
		}
	}
	return len(h.answers) >= size, n >= size
}

// asksForPlace looks at a fair waiter whose place masters do not agree on: it asks them
// for the highest as soon as a majority has answered.
func (c *client) asksForPlace(cmd *wire.Command) {
	h := c.hearings.of(cmd.Args[0])
	if h == nil || h.answers == nil || h.value != cmd.Args[0] || c.preemption.every > 0 || c.closing || h.released != 0 || c.config.Lock != FairLock {
		return
	}
	if c.config.Transport == Production {
		return // its messages are not counted here
	}
	if !h.count.decided || h.given.Len() >= quorum.Size(len(c.masters)) {
		return
	}
	answered, agreed := h.agrees()
	if answered {
		h.answers = nil
	}
	if answered && !agreed {
		c.blame("a majority has answered a fair waiter and its masters do not agree on its place, and it asks for none")
	}
}

// listens hands the library a message. Whoever has gone withdraws what it was given,
// once at a time.
func (c *client) listens(master int, text string, believed bool, pass func(string)) {
	said, ok := wire.ParseNotice(text)
	h := c.hearings.of(said.Value)
	if !ok || h == nil || c.preemption.every > 0 || c.closing {
		pass(text)
		return
	}
	if believed && !said.Turn {
		h.takes(c, master, said.Value)
	}
	gone, told, under := h.released.Has(master), h.told, h.withdrew[lockAt(master, said.Key)]
	c.withdraws = true
	pass(text)
	c.withdraws = false
	if gone && h.told == told && !under {
		c.blame(c.masters[master].host.name + " has told it of a waiter that has gone, " + strings.TrimSpace(said.Value) + ", and is not told so")
	}
}

// missesOut tells the library that it may have missed messages of a master. Every waiter
// asks that master again.
func (c *client) missesOut(master int, pass func()) {
	if c.preemption.every > 0 || c.closing || !c.config.Lock.answersPlainly() {
		pass()
		return
	}
	var waits []*hearing
	var repeated []int
	for _, value := range sortedKeys(c.waits) {
		h := c.waits[value]
		switch {
		case h.queues && h.repeats.Has(master):
			h.doubted |= quorum.Only(master)
		case h.queues && h.given == 0:
			waits, repeated = append(waits, h), append(repeated, h.repeated)
		}
	}
	pass()
	for i, h := range waits {
		if h.repeated == repeated[i] && h.released == 0 {
			c.blame("messages of " + c.masters[master].host.name + " may be lost, and it is not asked again for " + h.value)
		}
	}
}

// doubted looks at the answer to a repeated ask, if messages of that master may have been
// lost since the ask was sent. It returns what to look at when the library had it: the
// master is asked once more.
func (c *client) doubted(master int, cmd *wire.Command) (after func()) {
	h := c.hearings.of(cmd.Args[0])
	if !cmd.Again || h == nil || h.value != cmd.Args[0] || !h.doubted.Has(master) || c.preemption.every > 0 || c.closing {
		return nil
	}
	h.doubted &^= quorum.Only(master)
	repeated := h.repeated
	return func() {
		if h.value == cmd.Args[0] && h.repeated == repeated && h.given == 0 && h.released == 0 { // a new ask goes to all
			c.blame("messages of " + c.masters[master].host.name + " may be lost since it was asked again for " + h.value + ", and it is not once more")
		}
	}
}

// answersPlainly reports whether the masters answer a grant as they do for a plain lock.
func (k LockKind) answersPlainly() bool {
	return k == PlainLock || k == FairLock || k == ReentrantLock
}
