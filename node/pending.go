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
	unsent  grants // acquires that were not sent
	denied  grants // acquires that our user must not run
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
	if said := answered(err); said != nil && said.NotRun() {
		if d.denied.take(what.Cmd) {
			return
		}
		d.denied.note(what.Cmd, d.limit)
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
	if !d.unsent.take(what.Cmd) {
		d.Failed(what, err)
	}
	d.unsent.note(what.Cmd, d.limit)
}

// Spare reports whether a master that does not answer need not be sent cmd. It would
// run an acquire only when its caller has given up, thousands of them after a
// pause, and each release that follows. Commands for held locks are still sent.
func (d *PendingReleases) Spare(cmd *wire.Command) bool {
	d.unsent.note(cmd, d.limit)
	return cmd.Op.Grants() || cmd.Op == wire.OpAsk || cmd.Op == wire.OpRepair || d.unsent.take(cmd)
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

// grants are those of acquires that the master has not run. So their releases have nothing to
// release. In a long outage such releases would drive out those that are really owed.
type grants map[grant]struct{}

// note adds that of cmd, if cmd is the first acquire of a waiter.
func (all *grants) note(cmd *wire.Command, limit int) {
	g, ok := grantOf(cmd)
	if !ok || !beginsWaiter(cmd) {
		return
	}
	if *all == nil || len(*all) >= limit {
		*all = make(grants) // to forget is safe: the release is kept
	}
	(*all)[g] = struct{}{}
}

// take reports whether cmd is the release of one of them, and removes that.
func (all grants) take(cmd *wire.Command) bool {
	if cmd.Op != wire.OpRelease {
		return false
	}
	g, ok := grantOf(cmd)
	if _, found := all[g]; !ok || !found {
		return false
	}
	delete(all, g)
	return true
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

// answered is what the master answered instead of running a command, or nil. That of a login says nothing
// about the command.
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
