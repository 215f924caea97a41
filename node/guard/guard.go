package guard

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
)

// Guard decides whether a master may vote. Two things make a master grant a lock that
// another client still holds: it forgot keys (restart, failover, FLUSHALL, an old
// snapshot: S1, S3, S24, S25), or its clock ran ahead and expired them (S2, S28). Both
// are over once every lease that may have been forgotten has ended: when the master's
// memory is as old as the longest restart guard of any client. Until then the master
// is quarantined and must not grant.
//
// Only a marker, a key that the clients leave on the master, proves how old a memory
// is. A master without one has an age of zero, whatever its uptime says (S33, S34). So
// the first lock ever on new masters takes a restart guard, once, unless an operator
// declares them new (see Init).
//
// A guard cannot see keys that were evicted or deleted while the marker stayed.
//
// A Guard is a state machine without I/O: Look feeds it; Admit, Vouched and Young ask
// it. It is not safe for concurrent use.
type Guard struct {
	config   Config
	clock    steady
	group    *Group
	standing *standing // of the master in the group

	lastLook // what we know to compare the next look with
	proposed proposal
	time     timepiece // its clock
	untimely reading   // of a vote that did not count; the next look judges it
	listed   uint32    // Group.comers when its offsets last lacked no clock
	tell     bool      // the marker is to tell that the clock was set forward; see mustTell

	// born is the instant since when the master certainly remembers everything, on our
	// steady clock. It only ever grows.
	born   time.Duration
	reason string // why born is not earlier
	lost   bool   // a quarantine began that no Verdict has reported
	barred bool   // the master must not vote, by the last Verdict
}

// proposal is the last marker that we asked to be written.
type proposal struct {
	marker Marker
	begins bool // it has no Since yet: the memory begins when it is written
}

// lastLook is what the looks at a master have shown so far: of each thing, the last that
// could be seen. It changes when a look has been judged (remember). Of a look at a replica
// only the role is kept.
type lastLook struct {
	last   time.Duration // when it was judged, or longAgo
	proven drift.Instant // when it was sent
	read   time.Time     // what the master's clock said then
	run    string        // the last known run_id
	hidden bool          // the run_id was unknown when we last looked
	marker Marker        // the last marker seen on the master
	stored string        // its stored form there
	blind  bool          // the marker could not be read yet
	role   role
}

// looked reports whether we have looked at the master yet, as a master.
func (l *lastLook) looked() bool { return l.last > longAgo }

// role is what we know of the server's roles.
type role struct {
	replica   bool   // it was one when we last looked
	run       string // of that replica; empty: unknown
	promotion string // the last known Evidence.Promotion
}

// Config says how careful a Guard is.
type Config struct {
	// Hold is the restart guard of this client: the age below which the memory of
	// a master is too young, so at least the longest TTL that this client uses. The
	// longest Hold of any client counts; they tell each other by the marker (S5b).
	// Zero: nothing is quarantined and no marker is kept, but a clock that steps is
	// still reported.
	Hold time.Duration
	// ClockTolerance is how far the master's clock may certainly be set forward against
	// ours for its votes still to count: at most drift.Tolerance, which every lease gives
	// up. Zero: its clock is not watched.
	ClockTolerance time.Duration
	// Unsettled is for how long the votes of a master do not count after its clock was set
	// back (S59). Zero: until all clients have looked at it twice.
	Unsettled time.Duration
	// DriftFactor is the share of a time by which clocks may run apart while it passes.
	// Zero: drift.DefaultFactor.
	DriftFactor float64
	// Durable masters lose nothing when they restart (appendfsync always), so
	// a restart alone does not cause a quarantine. A lost marker still does.
	Durable bool
	// Random makes the markers that this client writes unlike all others. Nil: the
	// usual.
	Random func() uint64
}

// Factor is the drift factor.
func (c *Config) Factor() float64 {
	if c.DriftFactor == 0 {
		return drift.DefaultFactor
	}
	return c.DriftFactor
}

// Unnoticed is how far the master's clock may be set forward while a lease lasts without
// any client noticing.
func (c *Config) Unnoticed() time.Duration {
	if c.ClockTolerance == 0 || c.Hold == 0 {
		return 0
	}
	return c.ClockTolerance - drift.Tolerance + drift.UnnoticedBy(c.Factor())
}

// New returns the guard of one master. Quarantines are counted on the monotonic
// clock of c: never on the master's clock, which may be wrong (S4), and never on our
// own wall clock, which can be set. The guards of one client's masters share a group;
// nil: the master is the only one.
func New(config Config, c clock.Clock, group *Group) *Guard {
	g := &Guard{
		config:   config,
		group:    group,
		born:     longAgo,
		lastLook: lastLook{last: longAgo},
	}
	g.config.DriftFactor = config.Factor()
	g.time = timepiece{
		bounds: bounds{factor: g.config.DriftFactor, longest: config.Hold + HeardWithin, tolerance: config.ClockTolerance, unsettled: cmp.Or(config.Unsettled, unsettled)},
		paces:  [2]pace{{window: 2 * time.Second}, {window: max(2*time.Second, config.Hold)}}, // current, and over a lease
	}
	if g.config.Random == nil {
		g.config.Random = rand.Uint64
	}
	g.standing, g.clock = group.enter(c)
	return g
}

// Now reads the clock by which the guards of a group count.
func (g *Guard) Now() drift.Instant { return g.clock.watch.Now() }

// hold is the longest restart guard that we know of: the age at which a memory is old enough.
func (g *Guard) hold() time.Duration {
	if g.config.Hold <= 0 {
		return 0
	}
	return max(g.config.Hold, g.group.longest())
}

// reading returns the reading of the master's clock, with the instants of the question and
// the answer. The instant of the judgement does not matter.
func (g *Guard) reading(e Evidence) reading {
	sent := e.Sent.Monotonic()
	return reading{node: e.Time, sent: sent, came: sent + e.Took}
}

// Look judges new evidence. A running quarantine is never shortened by it.
func (g *Guard) Look(e Evidence) Verdict {
	now := g.clock.now()
	if e.Replica {
		g.role.replica, g.role.run = true, e.RunID // that is all it shows
		return Verdict{Rest: g.rest(now), Reason: g.why(now)}
	}
	again := g.proposed.begins && (e.RunID == "" || e.RunID == g.run) // the last Verdict has reported the loss
	// Before the clock is read: if it was set, it is out for the longest hold.
	twin := g.group.note(g.standing, e)
	g.time.longest = g.hold() + HeardWithin
	steps := g.watchClock(e, now)
	switch known := e.Marker.Nonce == g.marker.Nonce; {
	case !known && !e.Blind:
		g.tell = false // it was written since; if the clock is not where it is written to be, compareClock finds that
	case steps.forward > 0:
		g.tell = !g.time.said.before(e.Marker)
	}
	age, why := g.age(e, now, steps)
	g.lose(now, age, why)
	if why := steps.reason(); why != "" {
		g.lose(now, 0, why)
	}
	if e.RunID == "" && g.run != "" && !g.hidden && !g.config.Durable {
		g.lose(now, 0, "hides its run_id since we looked last: it may have restarted")
	}
	v := Verdict{Slow: steps.slow}
	g.proposed.begins = false
	if g.config.Hold > 0 {
		if !e.Blind {
			g.group.noteID(g.standing, e.Marker.Group)
		}
		v.Stranger = cmp.Or(g.group.stranger(g.standing), twin)
		if write := g.propose(e, age, now); write != e.Marker {
			v.Write, v.Over = write, e.Marker
			g.proposed = proposal{write, write.Since.IsZero()}
		}
	}
	g.remember(e, now)
	g.compareClock(now)
	v.Offsets, v.OffsetsOver = g.offsets(e.Time, now)
	v.Lost, g.lost = g.lost && !again, false
	barred := g.Admit(wire.OpAcquire) != nil
	v.Admitted, g.barred = g.barred && !barred, barred
	if v.Rest = g.rest(now); v.Rest == 0 {
		v.Reason = g.finding(age, why, steps)
	} else {
		v.Reason = g.why(now)
	}
	return v
}

// Admit returns nil if the master may be asked for op, else ErrQuarantined with the
// rest of the quarantine and its reason, or ErrOtherGroup.
//
// Only acquiring is refused. Extending compares the value, so it succeeds only for a
// key that a valid holder put back after the loss. Repairing is that holder putting it
// back. The sooner both happen, the sooner the master has the forgotten key again.
func (g *Guard) Admit(op wire.Op) error {
	if !op.Grants() || g.config.Hold <= 0 || !g.looked() {
		return nil
	}
	now := g.clock.now()
	if err := cmp.Or(g.group.Trouble(), g.lacksMap()); err != nil {
		return err
	}
	if fast := g.group.AtLeast(); fast > 1+g.config.DriftFactor {
		return fmt.Errorf("%w: our own clock is slow: most masters' run faster by at least %.1f %%", ErrQuarantined, 100*(fast-1))
	}
	if !g.compareClock(now) {
		if rest := g.unread(now); rest > 0 {
			return Quarantine(rest, "clients have compared its clock only with masters that do not answer, or have lost their memory")
		}
		return fmt.Errorf("%w: too few of the masters have told their clocks yet to know which are right", ErrQuarantined)
	}
	if rest := g.rest(now); rest > 0 {
		return Quarantine(rest, g.why(now))
	}
	if !g.blind && g.marker.Hold < g.config.Hold {
		return fmt.Errorf("%w: its marker does not tell the others of our restart guard yet", ErrQuarantined)
	}
	return nil
}

// watches reports whether votes depend on the master's clock.
func (g *Guard) watches() bool {
	return g.config.Hold > 0 && g.config.ClockTolerance > 0
}

// Rest returns for how long the master does not vote yet, or zero.
func (g *Guard) Rest() time.Duration {
	now := g.clock.now()
	return max(g.rest(now), g.unread(now))
}

// Allow returns the command in the form that may be sent now: unchanged, in the form that
// hands nothing on while the master is quarantined, or bound to the memory that we know.
// It returns an error if the command must not be sent.
func (g *Guard) Allow(cmd *wire.Command) (*wire.Command, error) {
	if err := g.Admit(cmd.Op); err != nil {
		return cmd, err
	}
	if cmd.HandsOn() && g.Admit(wire.OpAcquire) != nil {
		return cmd.Hold(), nil
	}
	if cmd.Recalls && g.Accepted() != "" {
		return cmd.For(g.marker.Memory()), nil
	}
	return cmd, nil
}

func (g *Guard) rest(now time.Duration) time.Duration {
	return max(0, g.born+g.hold()-now, g.ahead(now), g.settles(now))
}

// unfinished reports whether the quarantine was not over when we last looked.
func (g *Guard) unfinished() bool { return g.born+g.hold() > g.last }

// why is the reason of a quarantine, or empty without a quarantine.
func (g *Guard) why(now time.Duration) string {
	switch {
	case g.born+g.hold() > now, g.ahead(now) > 0:
		return g.reason
	case g.settles(now) > 0:
		return fmt.Sprintf("its clock was set back by %v", g.time.back)
	}
	return ""
}

// finding is what a look showed that led to no quarantine.
func (g *Guard) finding(age time.Duration, why string, clock steps) string {
	switch {
	case clock.reason() != "":
		return clock.reason()
	case age == unforgotten && g.config.Hold > 0:
		return why // what could not be known
	}
	return "" // old enough
}

// lose notes that the master's memory is not older than age. If that is news and calls
// for a quarantine, the next Verdict says so: votes compare clocks, too.
func (g *Guard) lose(now, age time.Duration, why string) {
	if age == unforgotten || now-age <= g.born {
		return
	}
	g.born, g.reason = now-age, why
	g.lost = g.lost || age < g.hold()
}
