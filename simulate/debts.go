package simulate

import (
	"errors"
	"strings"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// debts are the masters that may store something for a client, by what it called itself
// when it asked. Whatever a client asks for it gives back in the end, to every master
// that has not refused it, whether the key would still be there or not.
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

// answered notes that a master was not asked after all, or has refused, which ends the
// debt where who is refused does not wait.
func (d debts) answered(master int, cmd *wire.Command, r wire.Reply) {
	notSent := r.Err != nil && (errors.Is(r.Err, node.ErrDown) || errors.Is(r.Err, node.ErrSilent) || errors.Is(r.Err, node.ErrQuarantined))
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
func (k *checker) unpaidDebts(c *client) {
	if kind := k.trial.config.Lock; kind != PlainLock && kind != ReentrantLock {
		clear(c.debts)
		return
	}
	if len(c.debts) == 0 || !c.idle() || c.closing || c.preemption.every > 0 || k.trial.config.rung != nil {
		return
	}
	for _, waiter := range sortedKeys(c.debts) {
		var names []string
		for i := range c.links {
			if c.debts[waiter].Has(i) {
				names = append(names, k.trial.masters[i].host.name)
			}
		}
		c.blame("it holds nothing, and has not given back to " + strings.Join(names, ", ") + " what it asked for as " + waiter)
	}
	clear(c.debts)
}
