package simulate

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
)

// What renewals owe to who holds a lease: it ends when it says, it is renewed only if
// that was asked for, and what a master has lost comes back.

// putOff looks at a lease whose end was put off, and at what stands at the masters then.
func (k *checker) putOff(cl *claim, until time.Time) {
	pace := cl.client.group.Pace()
	same := pace == cl.pace // else its clock was slow, or is no more
	cl.pace = pace
	if !until.After(cl.until) || cl.until.IsZero() {
		return
	}
	if same && cl.uneven == cl.client.host.clock.uneven { // or its clock may have put it off
		cl.rises++
	}
	if cl.asked {
		cl.rises = 0
	}
	if !cl.renews && !cl.asked && cl.rises == 1 {
		k.report(Violation{
			Kind:    Custom,
			What:    fmt.Sprintf("the lease of %q of %s is renewed, which nobody asked for", cl.names[0], cl.client.host.name),
			Clients: []int{cl.client.index},
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
func (k *checker) repaired(cl *claim) {
	polls := k.trial.config.polling || k.trial.config.deaf > 0
	if polls || !cl.renews || cl.value == "" || !cl.stored() || cl.client.host.hangs() || !k.calm(cl.client) {
		cl.gaps = 0
		return
	}
	without := 0
	for _, m := range cl.client.masters {
		if cl.lacked.Has(m.index) && !k.has(m, cl) {
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
	k.report(Violation{
		Kind: Unrepaired,
		What: fmt.Sprintf("%s has renewed its lease of %q %d times, and %d of %d masters have no key of it, though nothing is wrong",
			cl.client.host.name, cl.names[0], cl.gaps, without, len(cl.client.masters)),
		Clients: []int{cl.client.index},
	})
}

// has reports whether a master stores a lease, or what keeps it from that: the value of a
// waiter which keeps a minority as long as it waits, or of one that has gone, if the
// master's clock was set back.
func (k *checker) has(m *master, cl *claim) bool {
	for _, name := range cl.names {
		if m.keys.Find(name) == nil {
			return false
		}
	}
	return true
}

// lead is how long before its end the end of a lease may be announced.
const lead = 20*time.Millisecond + punctual

// early looks at a lease that is over before its time: it cannot have expired.
func (k *checker) early(cl *claim) {
	lease, ok := cl.hold.(interface{ Err() error })
	left := cl.until.Sub(cl.client.host.clock.Now())
	if !ok || cl.until.IsZero() || left <= lead || cl.uneven != cl.client.host.clock.uneven || !errors.Is(lease.Err(), redlock.ErrExpired) {
		return
	}
	k.report(Violation{
		Kind:    Custom,
		What:    fmt.Sprintf("the lease of %q of %s had %v left, and says that it has expired", cl.names[0], cl.client.host.name, short(left)),
		Clients: []int{cl.client.index},
	})
}

// extension is the last renewal of a lease that was sent.
type extension struct {
	replies
	cmd    *wire.Command
	until  time.Time // it is worth, by the client's clock
	uneven int       // of that clock
	lacks  quorum.Set
	mended quorum.Set
	valid  bool          // the lease was, when this was decided
	left   time.Duration // of its validity then
	own    time.Duration // when that was, by the client's monotonic clock
}

// extend notes a renewal.
func (cl *claim) extend(cmd *wire.Command) {
	clock := cl.client.host.clock
	ttl := milliseconds(cmd.Args[1])
	cl.lacked = cl.extension.lacks
	cl.extension = extension{
		replies: cl.client.ask(),
		cmd:     cmd, until: clock.Now().Add(drift.Budget(ttl, drift.DefaultFactor) - cl.client.config.unnoticed()), uneven: clock.uneven,
	}
}

// heard looks at what the library has made of a reply to a renewal: a lease that a
// quorum has extended while it was valid lasts as long as that is worth, and the masters
// that lack its key are sent it.
func (c *client) heard(cmd *wire.Command) {
	if cmd.Op != wire.OpExtend || c.closing || c.preemption.every > 0 {
		return
	}
	cl := c.claimOf(cmd.Args[0])
	if cl == nil || cl.extension.cmd != cmd {
		return
	}
	x := &cl.extension
	if !x.decided || !x.valid || x.uneven != c.host.clock.uneven || c.group.Pace() > 1 { // its own clock may be slow
		return
	}
	if x.refused > x.masters-quorum.Size(x.masters) && cl.hold.Valid() {
		c.blame("so many masters have said that they do not have a lease that no quorum has it, and it is valid")
	}
	if x.granted < quorum.Size(x.masters) {
		return
	}
	renewed := "a lease of " + strconv.Quote(cl.names[0]) + " is renewed"
	if until := cl.hold.Until(); x.at == c.world.now && len(c.config.Options) == 0 && until.Before(x.until.Add(-punctual)) {
		c.blame(renewed + " at a quorum of masters, and does not last as long as they keep it")
	}
	if missing := x.lacks &^ x.mended; missing != 0 && cl.hold.Valid() {
		x.mended |= missing
		c.blame(renewed + ", and a master that said it has no key is not sent it")
	}
}

// dropped looks at a lease that has expired although it is renewed: if its last renewal
// found no quorum, and there was time for another, that was tried.
func (k *checker) dropped(cl *claim) {
	x, c := &cl.extension, cl.client
	lease, ok := cl.hold.(interface{ Err() error })
	if !ok || !cl.renews || c.host.hangs() || !x.decided || x.granted >= quorum.Size(x.masters) || x.left < worthATry || c.preemption.every > 0 ||
		c.host.resumed >= x.at || x.uneven != c.host.clock.uneven || !errors.Is(lease.Err(), redlock.ErrExpired) {
		return
	}
	c.blame("a renewal found no quorum " + short(x.left).String() + " before the end of the lease, and was not tried again")
}

// couldBeRenewed looks at a lease that has expired although it is renewed. Its outage must
// have lasted until shortly before: a quorum of masters that store it may not have been
// within reach, without any trouble, for as long as it takes to connect and to renew.
func (k *checker) couldBeRenewed(cl *claim, err error) {
	c, t := cl.client, k.trial
	if !errors.Is(err, redlock.ErrExpired) || !cl.stored() || cl.uneven != c.host.clock.uneven || c.preemption.every > 0 {
		return
	}
	since := max(t.world.rough, c.host.resumed)
	if d := t.world.now - since; d > k.back(cl) && k.within(cl) >= quorum.Size(len(c.masters)) {
		k.report(Violation{
			Kind: NeedlessLoss,
			What: fmt.Sprintf("the lease of %q of %s has expired, and a quorum of masters that store it was within reach for %v before",
				cl.names[0], c.host.name, short(d)),
			Clients: []int{c.index},
		})
	}
}

// back is how long it takes to connect again after an outage that a lease has survived, and
// to renew it: the pause between two attempts is a sixteenth of the outage, or the shortest
// there is.
func (k *checker) back(cl *claim) time.Duration {
	pause := max(minPause, k.trial.config.TTL/16)
	return pause*5/4 + 2*k.trips()
}

// within returns how many masters that store a lease its client can reach, whether it is
// connected to them or not. One that was found to have forgotten proves nothing for a while.
func (k *checker) within(cl *claim) (n int) {
	c := cl.client
	for i, m := range c.masters {
		if !c.reaches(i) || c.links[i].held() || k.trial.world.now-k.back(cl) < c.unproven[i] {
			continue
		}
		if !slices.ContainsFunc(cl.names, func(name string) bool {
			e := m.keys.Find(name)
			return e == nil || e.Value != cl.value
		}) {
			n++
		}
	}
	return n
}

// reaches reports whether what the client sends to a master is answered, if it is connected.
func (c *client) reaches(i int) bool {
	m, w := c.masters[i], c.wires[i]
	return !m.host.down && !m.host.stopped() && !m.keys.Replica && m.refuses == nil && w.cut[outward] == 0 && w.cut[inward] == 0 && w.slow == 0
}

// restored looks at a master that has lost its memory under a lease which renews itself. Where
// a quorum stores the lease, that master has the key again an eighth of a TTL after the
// lease's client could learn of the loss.
func (k *checker) restored(cl *claim) {
	c, t := cl.client, k.trial
	polls := t.config.polling || t.config.deaf > 0
	if polls || cl.belated || !cl.renews || cl.value == "" || !cl.stored() || c.guard.Hold == 0 || c.host.hangs() || c.preemption.every > 0 {
		return
	}
	limit := maxPause*5/4 + heartbeat + max(t.config.ttlOf(c.index), c.longest[cl.value])/8 + 2*k.trips()
	since := max(t.world.rough, c.host.resumed, t.wrongClocks())
	if t.world.now <= since+limit || k.within(cl) < quorum.Size(len(c.masters)) {
		return
	}
	for i, m := range c.masters {
		if m.suspect > cl.since && m.lapses == m.lapsesThen && c.reaches(i) && !k.has(m, cl) {
			cl.belated = true
			k.report(Violation{
				Kind: Unrepaired,
				What: fmt.Sprintf("%s lost its memory %v ago, nothing is wrong for %v, and it has no key of the lease of %q of %s",
					m.host.name, short(t.world.now-m.suspect), short(t.world.now-since), cl.names[0], c.host.name),
				Clients: []int{c.index},
			})
			return
		}
	}
}

// worthATry is how much of a validity must be left for another renewal to be tried: it
// comes when half of that is over, at the latest.
const worthATry = 100 * time.Millisecond
