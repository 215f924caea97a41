package node

import (
	"errors"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// PendingReleases are the releases that are owed to a master. A release that did not
// reach it is kept until it can be delivered, or until the key has expired anyway (L3,
// L5). Their number is bounded: the newest ones are kept.
//
// Delivering a release late or twice is harmless, because it compares the value and
// values are never used again.
//
// These are rules without a connection or a clock, for a Master and for the masters of
// the simulator. They are not safe for concurrent use.
type PendingReleases struct {
	limit   int
	list    ring[PendingRelease]
	dropped uint64
	unsent  grants // that were asked for, and not sent
	denied  grants // that our user must not ask for
}

// PendingRelease is a command that may be owed: only a release is.
type PendingRelease struct {
	Cmd   *wire.Command
	Until time.Duration // when it is pointless; zero: it could not be sent again yet
}

// NewPendingReleases returns an empty list that keeps at most limit releases, and at least
// one.
func NewPendingReleases(limit int) *PendingReleases { return &PendingReleases{limit: limit} }

// Len returns how many releases are owed.
func (d *PendingReleases) Len() int { return d.list.n }

// Commands returns the releases that are owed, the oldest first.
func (d *PendingReleases) Commands() []*wire.Command {
	cmds := make([]*wire.Command, d.list.n)
	for i := range cmds {
		cmds[i] = d.list.at(i).Cmd
	}
	return cmds
}

// Failed notes that a command failed with err, and keeps it if it is a release
// that still has to reach the master. If our user must run neither the release nor the acquire,
// there is nothing to release.
func (d *PendingReleases) Failed(what PendingRelease, err error) {
	said := answered(err)
	if said == nil || !said.Denied() {
		d.Ran(what.Cmd) // it may have run
	} else if d.noteDenied(what.Cmd) {
		return
	}
	if !owed(what.Cmd, err) {
		return
	}
	if d.list.n >= max(1, d.limit) {
		d.list.pop()
		d.dropped++
	}
	what.Cmd = what.Cmd.Unheld()
	d.list.push(what)
}

// NotSent is Failed for a command that was not sent, for want of a connection.
func (d *PendingReleases) NotSent(what PendingRelease, err error) {
	if !d.pointless(what.Cmd) {
		d.Failed(what, err)
	}
	d.forgo(what.Cmd)
}

// Spare reports whether a master that does not answer need not be sent cmd. It would
// run an acquire only when its caller has given up, thousands of them after a
// pause, and each release that follows. Commands for held locks are still sent.
func (d *PendingReleases) Spare(cmd *wire.Command) bool {
	d.forgo(cmd)
	return cmd.Op.Grants() || cmd.Op == wire.OpAsk || cmd.Op == wire.OpRepair || d.pointless(cmd)
}

// Heard ends what NotSent and Spare noted, now that the master answers: from
// now on a repair may be sent, and a release may have more to release than its
// acquire that was not sent.
func (d *PendingReleases) Heard() { clear(d.unsent) }

// Deliver sends the releases that still matter, and keeps the ones that could not be sent.
//
// A release matters until a TTL after it could first be sent again, and not
// until a TTL after it was given: a server that hung for longer than that still
// runs the acquire when it goes on, and the TTL of the key starts then.
func (d *PendingReleases) Deliver(now time.Duration, send func(PendingRelease) error) {
	for range d.list.n {
		what := d.list.pop()
		switch {
		case what.Until == 0:
			what.Until = now + what.Cmd.Keep
		case what.Until <= now:
			continue
		}
		if send(what) != nil {
			d.list.push(what)
		}
	}
}

// beginsWaiter reports whether nothing of the same waiter was sent before. Fair
// waiters ask with acquires, which are numbered like asks.
func beginsWaiter(cmd *wire.Command) bool {
	if cmd.Again || cmd.Op != wire.OpAcquire && cmd.Op != wire.OpAsk {
		return false
	}
	number := cmd.Args[0][len(wire.WaiterOf(cmd.Args[0])):]
	return strings.HasPrefix(number, ":0") || cmd.Op == wire.OpAcquire && number == ""
}

// grant is what an acquire or ask asks for and its release gives back.
type grant struct{ key, waiter string }

func grantOf(cmd *wire.Command) (g grant, ok bool) {
	if len(cmd.Keys) == 0 || len(cmd.Args) == 0 {
		return grant{}, false
	}
	return grant{cmd.Keys[0], wire.WaiterOf(cmd.Args[0])}, true
}

// grants are those that a master did not make, because it did not run the acquire. To forget one is safe: its
// release is owed then.
type grants map[grant]struct{}

func (all *grants) note(g grant, limit int) {
	if *all == nil || len(*all) >= limit {
		*all = make(grants)
	}
	(*all)[g] = struct{}{}
}

// take reports whether the grant is one of them, and removes it.
func (all grants) take(g grant) bool {
	_, found := all[g]
	delete(all, g)
	return found
}

// forgo notes an acquire that is not sent: until the master answers, its release
// has nothing to release. In a long outage such releases would drive out those
// that are really owed.
func (d *PendingReleases) forgo(cmd *wire.Command) {
	if g, ok := grantOf(cmd); ok && beginsWaiter(cmd) {
		d.unsent.note(g, d.limit)
	}
}

// pointless reports whether cmd is the release of an acquire that was not sent,
// once.
func (d *PendingReleases) pointless(cmd *wire.Command) bool {
	g, ok := grantOf(cmd)
	return ok && cmd.Op == wire.OpRelease && d.unsent.take(g)
}

// mostDenied bounds how many waiters are remembered that our user must not have.
const mostDenied = 1024

// noteDenied notes the first acquire or ask of a waiter that our user must not run, or reports whether cmd is
// a release of that waiter.
func (d *PendingReleases) noteDenied(cmd *wire.Command) (released bool) {
	g, ok := grantOf(cmd)
	if !ok {
		return false
	}
	if beginsWaiter(cmd) {
		d.denied.note(g, mostDenied)
	}
	_, released = d.denied[g]
	return released && cmd.Op == wire.OpRelease
}

// Ran notes that a command was run. If it may have stored something of a waiter whose first ask was denied,
// the releases of that waiter are owed again (L39).
func (d *PendingReleases) Ran(cmd *wire.Command) {
	if g, ok := grantOf(cmd); ok && len(d.denied) > 0 && storesMore(cmd) {
		delete(d.denied, g)
	}
}

// storesMore reports whether a command may store something of a waiter that has asked before.
func storesMore(cmd *wire.Command) bool {
	return (cmd.Op.Grants() || cmd.Op == wire.OpAsk || cmd.Op == wire.OpRepair) && !beginsWaiter(cmd)
}

// Releases reports whether a reply to a release tells what has become of the key. After
// any other, the release is still owed: what answers so may not be the master (L5).
func Releases(value any) bool {
	_, ok := wire.KeyStateOf(wire.Reply{Value: value})
	return ok
}

// owed reports whether a command that failed with err is a release that still
// has to reach the master.
func owed(cmd *wire.Command, err error) bool {
	if cmd.Op != wire.OpRelease || cmd.Keep <= 0 {
		return false
	}
	if said := answered(err); said != nil {
		return said.Refuses() || said.Code == "NOSCRIPT"
	}
	return !errors.Is(err, ErrClosed)
}

// answered is what the master answered instead of running a command, or nil. What it answered to a login
// (ErrDown) says nothing about the command.
func answered(err error) *wire.ServerError {
	if errors.Is(err, ErrDown) {
		return nil
	}
	said := new(wire.ServerError)
	if !errors.As(err, &said) {
		return nil
	}
	return said
}
