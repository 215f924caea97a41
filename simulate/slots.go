package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// Which slots the masters give to who wants permits, and what they know of the others,
// decides which it may take. Their replies are counted here once more.

// allotment is what the masters have replied to one attempt or ask for permits.
type allotment struct {
	name   string
	total  int
	given  []string     // by master; empty: none
	taken  map[int]bool // the slots that others have after a Resize, as those say that gave some
	others quorum.Set   // the masters that have another number of permits
	moved  quorum.Set   // those that were told which slots it is to be
	slots  string       // and which; empty: none was told
	again  bool         // one was asked once more and gave some: the library may count that before the first answers
	raised bool         // their counters are to be raised: it takes another vote
}

// allots notes what a client asks its masters for, if that is about permits.
func (c *client) allots(master int, cmd *wire.Command) {
	if !c.readsAllotments() {
		return
	}
	value := cmd.Args[0]
	switch cmd.Script {
	case wire.ScriptPermit:
		if cmd.Again || c.allotted[value] != nil {
			return
		}
		waiter, number := masters.SplitValue(value)
		before := waiter + ":" + strconv.Itoa(number-1)
		c.leavesSlots(c.allotted[before])
		delete(c.allotted, before)
		total, _ := strconv.Atoi(cmd.Args[3])
		c.allotted[value] = &allotment{
			name: strings.TrimPrefix(cmd.Keys[0], "redlock:slots:"), total: total,
			given: make([]string, len(c.masters)), taken: map[int]bool{},
		}
	case wire.ScriptPermitMove:
		if a := c.allotted[value]; a != nil && cmd.Op == wire.OpCommit {
			if a.slots == "" {
				a.slots = cmd.Args[2]
				c.choosesSlots(a, a.slots)
			}
			a.moved |= quorum.Only(master)
		}
	case wire.ScriptPermitRaise:
		if a := c.allotted[value]; a != nil {
			a.raised = true
		}
	case wire.ScriptPermitRelease:
		if p := c.world.running; p != nil && c.allotted[value] != nil {
			p.dropped = c.allotted[value]
		}
		delete(c.allotted, value)
	}
}

// readsAllotments reports whether what follows from replies follows at once, by the
// rules of the library.
func (c *client) readsAllotments() bool {
	return c.config.Lock.IsSemaphore() && c.preemption.every == 0 && c.config.unsafe == seam.Unsafe{}
}

// allotting counts a reply to who wants permits. What comes when the slots are chosen
// does not count.
func (c *client) allotting(master int, cmd *wire.Command, r wire.Reply) {
	if cmd.Script != wire.ScriptPermit || c.allotted[cmd.Args[0]] == nil {
		return
	}
	a := c.allotted[cmd.Args[0]]
	if a.slots != "" || a.raised || a.given[master] != "" {
		return
	}
	if otherNumber(r) && !cmd.Again {
		a.others |= quorum.Only(master)
		if cmd.Op == wire.OpAsk {
			c.hopeless(a)
		}
	}
	fields, _ := r.Value.([]any)
	if r.Err != nil || len(fields) < 4 {
		return
	}
	a.given[master], a.others = textOf(fields[0]), a.others&^quorum.Only(master)
	a.again = a.again || cmd.Again
	mine := slotNumbers(a.given[master])
	if len(fields) < 5 {
		return
	}
	for _, slot := range slotNumbers(textOf(fields[4])) {
		if !slices.Contains(mine, slot) {
			a.taken[slot] = true
		}
	}
}

// otherNumber reports whether a master has refused because there is another number of
// permits.
func otherNumber(r wire.Reply) bool {
	var refusal *wire.ServerError
	return r.Err != nil && errors.As(r.Err, &refusal) && refusal.Code == "PERMITS"
}

// hopeless notes who waits for permits of a number that so many masters do not have
// that no quorum can give any. Of several callers it is not known whose ask it was.
func (c *client) hopeless(a *allotment) {
	if len(c.masters)-a.others.Len() >= quorum.Size(len(c.masters)) {
		return
	}
	var who *want
	for _, w := range c.check.wants {
		if w.process.client != c || w.names[0] != a.name {
			continue
		}
		if who != nil {
			return
		}
		who = w
	}
	if who != nil && who.permits == a.total && who.hopeless == 0 {
		who.hopeless = c.world.now
	}
}

// despairs reports a caller that goes on waiting when it was told that there is another
// number of permits.
func (k *checker) despairs(w *want) {
	c := w.process.client
	if w.hopeless == 0 || w.told || c.closing || c.host.down || c.host.hangs() {
		return
	}
	if late := k.trial.world.now - max(w.hopeless, c.host.resumed); late > punctual {
		w.told = true
		k.report(Violation{
			Kind:    FreeAndWanted,
			What:    fmt.Sprintf("%s waits for one of %d permits of %q, and no quorum has so many, as it was told %v ago", w.process.name, w.permits, w.names[0], short(late)),
			Clients: []int{c.index},
		})
	}
}

// agreed returns the slots that a quorum has given, if there are such.
func (a *allotment) agreed() string {
	for _, slots := range a.given {
		n := 0
		for _, other := range a.given {
			if other == slots {
				n++
			}
		}
		if slots != "" && n >= quorum.Size(len(a.given)) {
			return slots
		}
	}
	return ""
}

// fits reports whether there are no more permits than those up to the last of these slots
// and those behind it that others have.
func (a *allotment) fits(slots string) bool {
	up := 1 + slices.Max(slotNumbers(slots))
	out := up
	for slot := range a.taken {
		if slot >= up {
			out++
		}
	}
	return out <= a.total
}

// choosesSlots looks at the slots that a client takes: those that a quorum has given, if
// it may, and none while others have so many behind them that there would be too many.
func (c *client) choosesSlots(a *allotment, slots string) {
	if a.again {
		return
	}
	if !a.fits(slots) {
		c.blame(fmt.Sprintf("it takes the slots %s of %q, of which there are %d, and was told that others have %v", slots, a.name, a.total, sortedSlots(a.taken)))
	}
	if agreed := a.agreed(); agreed != "" && agreed != slots && a.fits(agreed) {
		c.blame(fmt.Sprintf("it takes the slots %s of %q, and a quorum has given it %s, which it may have", slots, a.name, agreed))
	}
}

// leavesSlots looks at an attempt or ask that has come to nothing: a quorum has not given
// it slots that it may take.
func (c *client) leavesSlots(a *allotment) {
	if a == nil || a.again || a.raised || a.slots != "" || c.host.resumed > 0 || c.host.clock.uneven > 0 || !c.check.calm(c) {
		return
	}
	if agreed := a.agreed(); agreed != "" && a.fits(agreed) {
		c.blame(fmt.Sprintf("it asks again for permits of %q, and a quorum has given it the slots %s, which it may have", a.name, agreed))
	}
}

// refusedSlots looks at a TryAcquire that was refused: a quorum has not given it slots that
// it may take.
func (p *Process) refusedSlots(err error) {
	a := p.dropped
	if a == nil || a.raised || a.slots != "" || !errors.Is(err, redlock.ErrTaken) {
		return
	}
	if agreed := a.agreed(); agreed != "" && a.fits(agreed) {
		p.Fail("%s was refused permits of %q, and a quorum has given it the slots %s, which it may have: %v", p.name, a.name, agreed, err)
	}
}

// allottedTo looks at who has got permits: every master that has given it other slots, or
// has another number of permits, was told which they are.
func (k *checker) allottedTo(cl *claim) {
	c := cl.client
	a := c.allotted[cl.value]
	delete(c.allotted, cl.value)
	if a == nil || a.again || c.preempted() || !c.readsAllotments() {
		return
	}
	slots := a.slots
	if slots == "" {
		if slots = a.agreed(); slots == "" {
			c.blame(fmt.Sprintf("it has permits of %q, of which no quorum has given it the same", cl.names[0]))
			return
		}
		c.choosesSlots(a, slots)
	}
	for i, given := range a.given {
		if (given != "" && given != slots || a.others.Has(i)) && !a.moved.Has(i) {
			c.blame(fmt.Sprintf("it has the slots %s of %q, and %s, which has given it %q, is not told", slots, cl.names[0], c.masters[i].host.name, given))
		}
	}
}

// ranks looks at the order of a Resize: behind all that a master has told of.
func (c *client) ranks(cmd *wire.Command) {
	p := c.world.running
	if cmd.Script != wire.ScriptPermitResize || p == nil || p.survey == nil || c.preemption.every > 0 {
		return
	}
	if order, _ := strconv.ParseInt(cmd.Args[1], 10, 64); order <= p.latest {
		c.blame(fmt.Sprintf("a Resize of the order %d is sent, and a master has told of one of %d", order, p.latest))
	}
	p.survey = nil
}

// surveys notes that the process which runs asks its masters what they know of a lock.
func (c *client) surveys(cmd *wire.Command) {
	if p := c.world.running; p != nil && cmd.Script == wire.ScriptInspect && p.survey != cmd {
		p.survey, p.latest = cmd, 0
	}
}

// surveyed notes what a master has told of the last Resize.
func (c *client) surveyed(cmd *wire.Command, r wire.Reply) {
	for _, p := range c.host.procs {
		if cmd == nil || p.survey != cmd {
			continue
		}
		if seen, ok := wire.InspectedOf(r); ok {
			p.latest = max(p.latest, seen.Order)
		}
	}
}

func textOf(v any) string {
	b, _ := v.([]byte)
	return string(b)
}

// slotNumbers reads slots with commas.
func slotNumbers(list string) (slots []int) {
	for slot := range strings.SplitSeq(list, ",") {
		if n, err := strconv.Atoi(slot); err == nil {
			slots = append(slots, n)
		}
	}
	return slots
}

func sortedSlots(taken map[int]bool) (slots []int) {
	for slot := range taken {
		slots = append(slots, slot)
	}
	slices.Sort(slots)
	return slots
}
