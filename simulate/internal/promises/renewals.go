package promises

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// This file checks renewals: a lease ends when it says, it is renewed only if its owner asked
// for that, and a master that has lost its key gets the key back.

// putOff checks a lease whose end was put off, and the keys at its masters then.
func (k *checker) putOff(cl *Claim, until time.Time) {
	pace := cl.Client.Group.Pace()
	same := pace == cl.pace // else its clock became slow, or right again
	cl.pace = pace
	if !until.After(cl.until) || cl.until.IsZero() {
		return
	}
	if same && cl.uneven == cl.Client.Host.Clock.Uneven { // or its clock may have put it off
		cl.rises++
	}
	if cl.Asked {
		cl.rises = 0
	}
	if !cl.renews && !cl.Asked && cl.rises == 1 {
		k.Report(tally.Violation{
			Kind:    tally.Custom,
			What:    fmt.Sprintf("the lease of %q of %s is renewed, which nobody asked for", cl.Names[0], cl.Client.Host.Name),
			Clients: []int{cl.Client.Index},
		})
	}
	k.repaired(cl)
}

// gapsAllowed is how many renewals in a row may leave a master without the key. The next
// renewal repairs.
const gapsAllowed = 3

// repaired looks whether every master has the key of a lease that is renewed, where
// nothing was wrong for long. Callers that poll take a minority again and again, and may
// have it whenever it is repaired.
func (k *checker) repaired(cl *Claim) {
	polls := k.scene.Config.Polling || k.scene.Config.Deaf > 0
	if polls || !cl.renews || cl.Value == "" || cl.Client.Host.Hangs() || !k.Calm(cl.Client) {
		cl.gaps = 0
		return
	}
	without := 0
	for _, m := range cl.Client.Masters {
		if cl.lacked.Has(m.Index) && !k.has(m, cl) {
			without++
		}
	}
	if without == 0 {
		cl.gaps = 0
		return
	}
	if cl.gaps++; cl.gaps != gapsAllowed+1 {
		return
	}
	k.Report(tally.Violation{
		Kind: tally.Unrepaired,
		What: fmt.Sprintf("%s has renewed its lease of %q %d times, and %d of %d masters have no key of it, though nothing is wrong",
			cl.Client.Host.Name, cl.Names[0], cl.gaps, without, len(cl.Client.Masters)),
		Clients: []int{cl.Client.Index},
	})
}

// has reports whether a master stores a lease, or another value that keeps the lease out: the
// value of a waiter that keeps a minority as long as it waits, or of a departed waiter, if the
// master's clock was set back.
func (k *checker) has(m *fleet.Master, cl *Claim) bool {
	for _, name := range cl.Names {
		if m.Keys.Find(name) == nil && !k.sharedAt(m, cl, name) {
			return false
		}
	}
	return true
}

// lead is how long before its end the end of a lease may be announced.
const lead = 20*time.Millisecond + Punctual

// early looks at a lease that is over before its time: it cannot have expired, unless it was
// extended for less, and the answer came when that was over.
func (k *checker) early(cl *Claim) {
	lease, ok := cl.Hold.(interface{ Err() error })
	left := cl.until.Sub(cl.Client.Host.Clock.Now())
	if !ok || cl.until.IsZero() || left <= lead || cl.uneven != cl.Client.Host.Clock.Uneven || !errors.Is(lease.Err(), redlock.ErrExpired) || cl.extension.outlived() {
		return
	}
	k.Report(tally.Violation{
		Kind:    tally.Custom,
		What:    fmt.Sprintf("the lease of %q of %s had %v left, and says that it has expired", cl.Names[0], cl.Client.Host.Name, plan.Short(left)),
		Clients: []int{cl.Client.Index},
	})
}

// extension is the last renewal of a lease that was sent.
type extension struct {
	Replies
	cmd    *wire.Command
	until  time.Time    // when the renewed validity ends, by the client's clock
	clock  *world.Clock // of the client
	uneven int          // of that clock
	lacks  quorum.Set
	mended quorum.Set
	half   time.Time // from when on the client need not wait for more answers, but may ask again
	counts bool      // when this was decided, the lease was valid, and it was not yet half
}

// outlived reports whether a quorum has granted the extension, and its end may be announced.
func (x *extension) outlived() bool {
	return x.cmd != nil && x.granted >= x.need() && !x.until.After(x.clock.Now().Add(lead))
}

// Calls notes that the owner calls something that extends the lease.
func (cl *Claim) Calls() { cl.Asked, cl.called = true, cl.Client.Host.Clock.Now() }

// extend notes a renewal.
func (cl *Claim) extend(cmd *wire.Command) {
	clock := cl.Client.Host.Clock
	since := clock.Now()
	if cl.Client.Preempted() {
		since = cl.called // its owner may have been stopped between the call and the command
	}
	ttl := milliseconds(cmd.Args[1])
	rest := cl.Hold.Until().Sub(clock.Now())
	cl.lacked = cl.extension.lacks
	cl.extension = extension{
		Replies: cl.Client.ask(),
		cmd:     cmd, until: since.Add(drift.Budget(ttl, drift.DefaultFactor) - cl.Client.Config.Unnoticed() - cl.grace), clock: clock, uneven: clock.Uneven,
		half: clock.Now().Add(rest / 2),
	}
}

// heard checks what the library has made of a reply to a renewal. A lease that a quorum has
// extended before half of the rest of its validity had passed lasts until the end of the
// renewed validity, and the masters that lack its key are sent the key.
func (c *Client) heard(cmd *wire.Command) {
	if cmd.Op != wire.OpExtend || c.Closing || c.Preemption.Every > 0 {
		return
	}
	cl := c.claimOf(cmd.Args[0])
	if cl == nil || cl.extension.cmd != cmd {
		return
	}
	x := &cl.extension
	if !x.decided || !x.counts || x.uneven != c.Host.Clock.Uneven || c.Group.Pace() > 1 { // its own clock may be slow
		return
	}
	if x.refused > x.Masters-quorum.Size(x.Masters) && cl.Hold.Valid() {
		c.Blame("so many masters have said that they do not have a lease that no quorum has it, and it is valid")
	}
	if x.granted < quorum.Size(x.Masters) {
		return
	}
	renewed := "a lease of " + strconv.Quote(cl.Names[0]) + " is renewed"
	if until := cl.Hold.Until(); x.at == c.World.Now && !x.outlived() && len(c.Config.Options) == 0 && until.Before(x.until.Add(-Punctual)) {
		c.Blame(renewed + " at a quorum of masters, and does not last as long as they keep it")
	}
	if missing := x.lacks &^ x.mended; missing != 0 && cl.Hold.Valid() {
		x.mended |= missing
		c.Blame(renewed + ", and a master that said it has no key is not sent it")
	}
}

// couldBeRenewed looks at a lease that has expired although it is renewed. Its outage must
// have lasted until shortly before: a quorum of masters that store it may not have been
// within reach, without any trouble, for as long as it takes to connect and to renew.
func (k *checker) couldBeRenewed(cl *Claim, err error) {
	c, t := cl.Client, k.scene
	if !errors.Is(err, redlock.ErrExpired) || cl.uneven != c.Host.Clock.Uneven || c.Preemption.Every > 0 {
		return
	}
	since := max(t.World.Rough, c.Host.Resumed, cl.Since)
	if d := t.World.Now - since; d > k.back(cl) && k.within(cl) >= quorum.Size(len(c.Masters)) {
		k.Report(tally.Violation{
			Kind: tally.NeedlessLoss,
			What: fmt.Sprintf("the lease of %q of %s has expired, and a quorum of masters that store it was within reach for %v before",
				cl.Names[0], c.Host.Name, plan.Short(d)),
			Clients: []int{c.Index},
		})
	}
}

// back is how long it takes to connect again after an outage that a lease has survived, and to
// renew it. The pause between two attempts is a sixteenth of the outage, or the shortest pause.
func (k *checker) back(cl *Claim) time.Duration {
	pause := max(fleet.MinPause, k.scene.Config.TTL/16)
	return pause*5/4 + 2*k.Trips()
}

// within returns how many masters that store a lease its client can reach, whether it is
// connected to them or not. A master that was found to have forgotten its keys does not count
// for a while.
func (k *checker) within(cl *Claim) (n int) {
	c := cl.Client
	for i, m := range c.Masters {
		if !c.reaches(i) || c.Links[i].Held() || k.scene.World.Now-k.back(cl) < c.unproven[i] {
			continue
		}
		if !slices.ContainsFunc(cl.Names, func(name string) bool {
			return !slices.ContainsFunc(k.Ledger.of(cl, name), func(b *book) bool {
				e, _ := k.at(m, b)
				return e != nil && e.Value == cl.Value
			})
		}) {
			n++
		}
	}
	return n
}

// reaches reports whether what the client sends to a master is answered, if it is connected.
func (c *Client) reaches(i int) bool {
	m, w := c.Masters[i], c.Wires[i]
	return !m.Host.Down && !m.Host.Stopped() && !m.Keys.Replica && m.Refuses == nil && w.Cut[fleet.Outward] == 0 && w.Cut[fleet.Inward] == 0 && w.Slow == 0
}

// ReachesQuorum reports whether a quorum of masters answers what the client sends, if it is connected
// to them.
func (c *Client) ReachesQuorum() bool {
	n := 0
	for i := range c.Masters {
		if c.reaches(i) {
			n++
		}
	}
	return n >= quorum.Size(len(c.Masters))
}

// restored looks at the masters of a lease which renews itself. Where a quorum stores the lease, a
// master that has lost its memory has the key again an eighth of a TTL after the lease's client could
// learn of the loss, if nothing else was there to keep the key out; so has a master that did not grant
// the lease. Where something was wrong meanwhile, the master has the key with the next renewal. A
// client that has adopted a lease may see the master for the first time, and does not know that it has
// lost anything.
func (k *checker) restored(cl *Claim) {
	c, t := cl.Client, k.scene
	polls := t.Config.Polling || t.Config.Deaf > 0
	if polls || cl.belated || cl.Adopted || !cl.renews || cl.Value == "" || c.Guard.Hold == 0 || c.Host.Hangs() || c.Preemption.Every > 0 {
		return
	}
	limit := fleet.MaxPause*5/4 + fleet.Heartbeat + max(t.Config.TTLOf(c.Index), c.longest[cl.Value])/8 + 2*k.Trips()
	since := max(t.World.Rough, c.Host.Resumed, t.wrongClocks())
	forgot := func(m *fleet.Master) bool { return m.Suspect > cl.Since && m.Lapses == m.LapsesThen }
	for _, m := range c.Masters {
		if k.occupied(m, cl) { // also if it forgot nothing: a copy may have brought an earlier holder's key back
			cl.crowded = t.World.Now
		}
	}
	if cl.crowded > 0 {
		since = max(since, cl.crowded+t.Config.TTLOf(c.Index)/3) // the key comes back with the next renewal
	}
	since = max(since, cl.Since)
	if t.World.Now <= since+limit || k.within(cl) < quorum.Size(len(c.Masters)) {
		return
	}
	for i, m := range c.Masters {
		limit := limit
		if !forgot(m) && since > cl.Since {
			limit += t.Config.TTLOf(c.Index) * 3 / 8
		}
		if t.World.Now > since+limit && c.reaches(i) && !k.has(m, cl) && !k.occupied(m, cl) {
			cl.belated = true
			k.Report(tally.Violation{
				Kind: tally.Unrepaired,
				What: fmt.Sprintf("%s has no key of the lease of %q of %s, and nothing is wrong for %v",
					m.Host.Name, cl.Names[0], c.Host.Name, plan.Short(t.World.Now-since)),
				Clients: []int{c.Index},
			})
			return
		}
	}
}

// occupied reports whether a master has stored something else in the place of a lease since a fault
// last changed its keys, or still has what was there before: what a copy has brought back, for instance, the key of
// an earlier holder that the master has kept over a restart, or the permits of a waiter that did not know of the
// loss yet. Then the key comes back with the first renewal after the end of that.
func (k *checker) occupied(m *fleet.Master, cl *Claim) bool {
	if !cl.shared() && slices.ContainsFunc(cl.Names, func(name string) bool { return m.Shared(k.scene.Config.Lock, name) }) {
		return true // by readers, of whom the books may know nothing any more
	}
	return slices.ContainsFunc(k.Ledger.books, func(b *book) bool {
		if !slices.Contains(cl.Names, b.name) {
			return false
		}
		s := &b.at[m.Index]
		e, _ := k.at(m, b)
		there := s.since >= m.Lapsed || e != nil && e.Value != cl.Value
		return there && (b.waiter == "" || k.Ledger.rivals(cl, s.which))
	})
}
