package promises

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/weaker"
)

// debts are the masters that may store something for a client, by the waiter that its request
// named. In the end, the client releases the request at every master that has not refused it,
// whether the key would still be there or not.
type debts map[string]quorum.Set

// owes notes what a client asks a master for, or gives back.
func (d debts) owes(master int, cmd *wire.Command) {
	waiter, _ := masters.SplitValue(cmd.Args[0])
	switch cmd.Op {
	case wire.OpAcquire, wire.OpAsk:
		d[waiter] |= quorum.Only(master)
	case wire.OpRelease:
		d.settle(waiter, master)
	}
}

// settle notes that a master stores nothing for a waiter, or was told to delete it.
func (d debts) settle(waiter string, master int) {
	if d[waiter] &^= quorum.Only(master); d[waiter] == 0 {
		delete(d, waiter)
	}
}

// answered notes that a request was not sent after all, or that a master has refused it. A
// refusal ends the debt if the refused client does not wait.
func (d debts) answered(master int, cmd *wire.Command, r wire.Reply) {
	notSent := r.Err != nil && (errors.Is(r.Err, node.ErrDown) || errors.Is(r.Err, node.ErrSilent) || errors.Is(r.Err, guard.ErrQuarantined))
	refused := r.Err == nil && r.Value == nil && cmd.Op == wire.OpAcquire
	if !notSent && !refused {
		return
	}
	waiter, number := masters.SplitValue(cmd.Args[0])
	if number > 0 && notSent {
		return // it may have asked before
	}
	d.settle(waiter, master)
}

// unpaidDebts looks whether a client that is idle has given back all that it asked for.
// Of other kinds of locks not every refusal can be read here.
func (k *checker) unpaidDebts(c *Client) {
	if kind := k.scene.Config.Lock; kind != plan.PlainLock && kind != plan.ReentrantLock {
		clear(c.debts)
		return
	}
	if len(c.debts) == 0 || !c.Idle() || c.Closing || c.Preemption.Every > 0 || k.scene.Config.Rung != nil {
		return
	}
	for _, waiter := range slices.Sorted(maps.Keys(c.debts)) {
		var names []string
		for i := range c.Links {
			if c.debts[waiter].Has(i) {
				names = append(names, k.scene.Masters[i].Host.Name)
			}
		}
		c.Blame("it holds nothing, and has not given back to " + strings.Join(names, ", ") + " what it asked for as " + waiter)
	}
	clear(c.debts)
}

// asksForPermits notes the last ask of a waiter for permits. When its slots are chosen, or
// the ask is released, its answers no longer say whether the semaphore has a different number.
func (c *Client) asksForPermits(cmd *wire.Command) {
	value := cmd.Args[0]
	switch cmd.Script {
	case wire.ScriptPermit:
		if _, asked := c.otherwise[value]; asked || cmd.Again {
			return
		}
		waiter, number := masters.SplitValue(value)
		delete(c.otherwise, waiter+":"+strconv.Itoa(number-1))
		c.otherwise[value] = 0
	case wire.ScriptPermitMove, wire.ScriptPermitRaise, wire.ScriptPermitRelease:
		delete(c.otherwise, value)
	}
}

// sized notes the answer of a master to the last ask for permits. If too many masters have a
// different number of permits, no quorum can grant the ask.
func (c *Client) sized(master int, cmd *wire.Command, r wire.Reply) {
	value := cmd.Args[0]
	if _, last := c.otherwise[value]; !last || cmd.Script != wire.ScriptPermit || c.Preemption.Every > 0 || c.Config.Lacks != (weaker.Lacks{}) {
		return
	}
	var refusal *wire.ServerError
	switch {
	case r.Err == nil:
		c.otherwise[value] &^= quorum.Only(master)
	case errors.As(r.Err, &refusal) && refusal.Code == "PERMITS" && !cmd.Again:
		c.otherwise[value] |= quorum.Only(master)
	}
	if cmd.Op == wire.OpAsk && len(c.Masters)-c.otherwise[value].Len() < quorum.Size(len(c.Masters)) {
		c.hopeless(cmd)
	}
}

// hopeless notes the caller that waits for permits of a number that no quorum has. If several
// callers wait, it is not known which of them sent the ask, and hopeless notes none.
func (c *Client) hopeless(cmd *wire.Command) {
	var who *want
	for _, w := range c.check.wants {
		if w.process.Client != c || w.names[0] != strings.TrimPrefix(cmd.Keys[0], "redlock:slots:") {
			continue
		}
		if who != nil {
			return
		}
		who = w
	}
	if total, _ := strconv.Atoi(cmd.Args[3]); who != nil && who.permits == total && who.hopeless == 0 {
		who.hopeless = c.World.Now
	}
}

// despairs reports a caller that goes on waiting although the replies have shown that no quorum
// has its number of permits.
func (k *checker) despairs(w *want) {
	c := w.process.Client
	if w.hopeless == 0 || w.told || c.Closing || c.Host.Down || c.Host.Hangs() {
		return
	}
	if late := k.scene.World.Now - max(w.hopeless, c.Host.Resumed); late > Punctual {
		w.told = true
		k.Report(tally.Violation{
			Kind:    tally.FreeAndWanted,
			What:    fmt.Sprintf("%s waits for one of %d permits of %q, and no quorum has so many, as it was told %v ago", w.process.Name(), w.permits, w.names[0], plan.Short(late)),
			Clients: []int{c.Index},
		})
	}
}
