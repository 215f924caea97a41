package promises

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// This file checks what every master does with the locks that it stores. Overlaps
// are rare even where a protection is missing: it takes two clients at the right
// places at the right moment. These promises break long before that, with one
// Client and one master.

// Ran is called for every command that a master has run and not refused. closed says
// that it came over a connection that its client had closed.
func (k *checker) Ran(m *fleet.Master, client int, cmd *wire.Command, closed bool) {
	by := k.scene.Clients[client]
	if k.scene.Config.Rung != nil {
		return // naive locks promise nothing
	}
	if k.enlists(cmd.Op) && (closed || len(k.strays) > 0) {
		waiter, _ := masters.SplitValue(cmd.Args[0])
		k.strays[stray{m.Index, waiter}] = closed
	}
	if k.scene.Apart() {
		return
	}
	if k.scene.Config.Lock.IsFair() {
		k.queuedAt(m, cmd)
	}
	k.tellsLeader(m, by, cmd, closed)
	by.inspected(m, cmd)
	k.keepsAt(m, cmd)
	k.leaves(by, cmd)
	if cmd.Op == wire.OpRepair {
		k.putBack(m, by, cmd)
	}
	for _, key := range cmd.Keys {
		if masters.IsLock(key) {
			k.entered(m, by, cmd, closed, k.Ledger.Book(key))
		}
	}
	for _, b := range k.sharesOf(m, cmd) {
		k.entered(m, by, cmd, closed, b)
	}
}

// entered is called for a book that a command may have changed at a master.
func (k *checker) entered(m *fleet.Master, by *Client, cmd *wire.Command, closed bool, b *book) {
	s := &b.at[m.Index]
	e, which := k.at(m, b)
	if e == nil && s.value == "" || e != nil && e.Value == s.value && e.Until == s.until && which == s.which && !k.renewed(m, s, e, cmd) {
		return
	}
	k.touched = true
	if e != nil && e.Value != s.value {
		k.stays(m, by, e)
	}
	if s.value != "" && (e == nil || e.Value != s.value) {
		k.ended(m, b, by, cmd)
		if cmd.Op == wire.OpRelease && slices.Contains(cmd.Args, s.value) { // also what a restart has undone of the loss
			s.lost = slices.DeleteFunc(s.lost, func(p promise) bool { return p.value == s.value })
		}
	}
	lost := closed
	if e != nil && e.Value != s.value && gives(cmd.Op) && e.Value != masters.Kept+s.value {
		if lost = closed || !k.believed(m, e); !lost {
			k.granted(m, s, e)
		}
	}
	before := s.value
	s.put(e, which, k.scene.World.Now, k.relied(m, e))
	if s.owner.Client >= 0 && s.value != before {
		k.scene.Clients[s.owner.Client].mayHaveKeys = true
	}
	s.astray = s.astray && s.value == before || (lost || k.ghost(m, s)) && s.value != before
}

// putBack checks a command that gave permits back to a master. The command must carry at least
// the order of the Resize that the holder knows. A master of a fenced semaphore must have
// counted as far as the token of the permits, or it would give the next client a smaller token.
func (k *checker) putBack(m *fleet.Master, by *Client, cmd *wire.Command) {
	cl := by.claimOf(cmd.Args[0])
	if cl == nil || !k.scene.Config.Lock.IsSemaphore() {
		return
	}
	if order, _ := strconv.ParseInt(cmd.Args[4], 10, 64); order < cl.Order {
		by.Blame(fmt.Sprintf("%s was given back permits of %q with the Resize %d, and their holder was told of %d when it adopted them", m.Host.Name, cl.Names[0], order, cl.Order))
	}
	if k.scene.Config.Lock != plan.FencedSemaphoreLock {
		return
	}
	keys := masters.PermitKeys{Queue: masters.QueueKeys{Order: cmd.Keys[1], Marker: cmd.Keys[3]}, Held: cmd.Keys[5]}
	waiter, _ := masters.SplitValue(cmd.Args[0])
	_, value, has := m.Keys.SlotsOf(keys, waiter)
	count := int64(cl.Hold.(Holding).Token() / wire.MaxPermits)
	if counted := m.Keys.Counter(keys.Counter()); has && value == cmd.Args[0] && counted < count {
		by.Blame(fmt.Sprintf("%s was given back a permit of %q whose token counts to %d, and has counted to %d", m.Host.Name, cl.Names[0], count, counted))
	}
}

// believed reports whether the client that a master gave a lock to counts the grant.
// A grant that it does not believe now counts later only if the quarantine ends in
// between, and by then what the master forgot has ended, too.
func (k *checker) believed(m *fleet.Master, e *masters.Entry) bool {
	o := masters.OwnerOf(e.Value)
	if o.Client < 0 {
		return true
	}
	links := k.scene.Clients[o.Client].Links
	return m.Index >= len(links) || links[m.Index].Believes(m.Keys.Proof(fleet.MarkerKey))
}

// ghost reports whether a master gave a lock to a waiter that no longer waits: its
// registration came over a connection that was closed, or its client is idle.
func (k *checker) ghost(m *fleet.Master, s *shelf) bool {
	waiter, _ := masters.SplitValue(s.value)
	return s.owner.Client >= 0 && (k.strays[stray{m.Index, waiter}] || k.scene.Clients[s.owner.Client].Idle())
}

// enlists reports whether a command puts its sender into the queue or among the
// readers. An entry there does not tell which command made it.
func (k *checker) enlists(op wire.Op) bool {
	switch op {
	case wire.OpAsk:
		return true
	case wire.OpAcquire:
		return k.scene.Config.Lock.IsFair() || k.scene.Config.Lock == plan.ReadWriteLock || k.scene.Apart()
	case wire.OpExtend:
		return k.scene.Config.Lock == plan.ReadWriteLock || k.scene.Apart() // a repair
	}
	return false
}

// stray is a waiter or a reader whose registration reached a master over a connection
// that its client had closed. Its release may have come before that.
type stray struct {
	master int
	waiter string
}

// gives reports whether a command can give the lock to a client.
func gives(op wire.Op) bool {
	return op == wire.OpAcquire || op == wire.OpAsk || op == wire.OpRelease
}

// renewed reports whether a command promised the key for longer although it left the
// key as it was: a master whose clock stands still extends it to the same instant.
// A clock that was set back keeps the key for longer, too, but promises nothing.
func (k *checker) renewed(m *fleet.Master, s *shelf, e *masters.Entry, cmd *wire.Command) bool {
	return cmd.Op == wire.OpExtend && cmd.Args[0] == e.Value && k.scene.World.Now+promised(k.relied(m, e)) > s.ends
}

// relied is how long a client may rely on a key that a master stores: as long as the key is
// kept, but no longer than the longest TTL. After a clock was set back, a waiter's registration
// lasts longer than that, and so does the key made from it.
func (k *checker) relied(m *fleet.Master, e *masters.Entry) time.Duration {
	cfg, kept := k.scene.Config, m.Keeps(e)
	if e == nil || cfg.RestartGuard <= 0 {
		return kept // any TTL may be asked for
	}
	return min(kept, max(cfg.RestartGuard, cfg.TTLOf(masters.OwnerOf(e.Value).Client)))
}

// Ended is called when a key is gone, by a command or by the end of its TTL.
func (k *checker) ended(m *fleet.Master, b *book, by *Client, cmd *wire.Command) {
	s := &b.at[m.Index]
	last := s.until // the millisecond in which it was stored last
	if b.waiter != "" {
		last-- // a share is over when its time has come, a key afterwards
	}
	if s.until != 0 && m.Keys.Millis() > last {
		s.lose(k.scene.World.Now, true) // if its time is not up in true time, it expired early
		return
	}
	if s.ends <= k.scene.World.Now {
		return // nobody relied on it, and it may have expired before the clock was set back
	}
	if cmd.Script == wire.ScriptPermitMove {
		return // it takes back what the master gave by another number of permits
	}
	for _, cl := range k.Claims {
		// A writer that reads from now on has no lock, and a share of other permits is none.
		if cl.Value == s.value && cl.Hold.Valid() && cl.stored() == (b.waiter == "") && b.clearly(cl.Value, s.which) {
			k.Report(tally.Violation{
				Kind:    tally.OwnDelete,
				What:    fmt.Sprintf("%s deleted the key of a lease of %s at %s while it was valid", by.Host.Name, cl.Client.Host.Name, m.Host.Name),
				Clients: []int{by.Index, cl.Client.Index},
			})
		}
	}
}

// granted reports a grant of a lock that the master has promised to another value, and
// forgotten by a fault.
func (k *checker) granted(m *fleet.Master, s *shelf, e *masters.Entry) {
	now, to := k.scene.World.Now, masters.OwnerOf(e.Value).Client
	if to >= 0 && k.scene.twoWrong(m) && k.scene.Clients[to].Born > m.Host.Clock.MisledUntil() {
		return // to a new client either clock may be the wrong one
	}
	s.lost = slices.DeleteFunc(s.lost, func(p promise) bool { return p.ends <= now })
	for _, p := range s.lost {
		if p.guarded && p.value != e.Value {
			k.Report(tally.Violation{
				Kind: tally.GaveAway,
				What: fmt.Sprintf("%s granted the lock to %s while it was promised to %s for another %v",
					m.Host.Name, plan.ClientName(to), plan.ClientName(p.owner.Client), plan.Short(p.ends-now)),
				Clients: []int{to, p.owner.Client},
			})
			return
		}
	}
}

// Forgot is called when a fault has taken keys from a master. If the guards protect against
// that fault, no other client may be granted the forgotten locks.
func (k *checker) Forgot(m *fleet.Master, guarded bool) {
	k.tokens.lost = true
	k.Changed(m, guarded)
}

// Changed is called when a fault has changed a master's locks, but not its counters.
func (k *checker) Changed(m *fleet.Master, guarded bool) {
	now := k.scene.World.Now
	m.Lapses++
	m.Lapsed = now
	m.Stale = m.Keys.Memory(fleet.MarkerKey)
	m.Keys.Changes++
	k.touched = true
	k.lookAtLines(m)
	for _, b := range k.Ledger.books {
		s := &b.at[m.Index]
		e, which := k.at(m, b)
		if e != nil && e.Value == s.value && e.Until >= s.until {
			continue
		}
		s.lose(now, guarded)
		s.put(e, which, now, k.relied(m, e))
		s.astray = e != nil
	}
}

// Stepped is called when a master's clock was set forward: its keys end early.
func (k *checker) Stepped(m *fleet.Master) {
	m.Lapses++
	k.touched = true
	for _, b := range k.Ledger.books {
		b.at[m.Index].lose(k.scene.World.Now, true)
	}
}

// left is the rest of the validity, as the holder sees it: negative once it has ended.
func (cl *Claim) left() time.Duration {
	return cl.Hold.Until().Sub(cl.Client.Host.Clock.Now())
}

// backing reports a valid lease whose key no quorum of masters keeps for long enough.
// The passing of time does not bring that about. So it is called when a master's keys
// have changed, or the lease's validity.
func (k *checker) backing(cl *Claim) {
	if cl.unbacked || cl.Value == "" {
		return
	}
	left := cl.left()
	if left <= 0 {
		return
	}
	keep := 0
	for _, m := range cl.Client.Masters {
		if k.keeps(m, cl, left) {
			keep++
		}
	}
	if keep >= quorum.Size(len(cl.Client.Masters)) {
		return
	}
	cl.unbacked = true
	k.Report(tally.Violation{
		Kind: tally.Unbacked,
		What: fmt.Sprintf("%s holds %q for another %v, and only %d of %d masters keep it for that long",
			cl.Client.Host.Name, cl.Names[0], plan.Short(left), keep, len(cl.Client.Masters)),
		Clients: []int{cl.Client.Index},
	})
}

// keeps reports whether a master keeps all locks of a claim for long enough.
func (k *checker) keeps(m *fleet.Master, cl *Claim, left time.Duration) bool {
	for _, name := range cl.Names {
		if !k.keepsOne(m, cl, name, left) {
			return false
		}
	}
	return true
}

// keepsOne reports whether a master keeps one of the locks of a claim for long enough, or has
// lost it by a fault that keeps it from voting.
func (k *checker) keepsOne(m *fleet.Master, cl *Claim, name string, left time.Duration) bool {
	return slices.ContainsFunc(k.Ledger.of(cl, name), func(b *book) bool {
		s := &b.at[m.Index]
		kept := s.value == cl.Value && s.which == b.agreed(cl.Value) && m.Left(s.until) >= worst(left)
		return kept || s.forgot(cl.Value, k.scene.World.Now+latest(left))
	})
}

// forgot reports whether the master has lost the value by a fault, and may grant the lock to no
// other value until the given instant. The library is not to blame for a fault that no guard
// can see: then only an overlap counts.
func (s *shelf) forgot(value string, until time.Duration) bool {
	kept := s.value == "" || s.value == value || s.astray
	return slices.ContainsFunc(s.lost, func(p promise) bool {
		return p.value == value && p.ends >= until && (kept || !p.guarded)
	})
}
