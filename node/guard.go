package node

import (
	"fmt"
	"math"
	"time"

	"github.com/benbjohnson/clock"
)

// Guard decides whether a master may vote. Two things make a master grant what
// somebody else still holds: it forgot keys (restart, failover, FLUSHALL, an
// old snapshot: S1, S3, S24, S25), or its clock ran ahead and expired them (S2,
// S28). Both show in evidence that a client can read, and both are over once
// every lease that may have been forgotten has ended: after Hold. For so long
// the master is quarantined and may not grant.
//
// What a guard cannot see: a fault between two looks (one heartbeat, 1 s), and
// keys that were evicted or deleted while the marker stayed.
//
// A Guard is a state machine without I/O: Look feeds it, Admit asks it. It is
// not safe for concurrent use.
type Guard struct {
	config GuardConfig
	clock  steady

	looked   bool
	run      string        // the last known run_id
	marker   Marker        // the last marker seen on the master
	proposed Marker        // the last marker that we asked to be written
	last     time.Duration // when we last looked
	replica  bool          // it was a replica when we last looked
	pace     pace

	until  time.Duration // end of the quarantine on our steady clock
	reason string
}

// GuardConfig says how careful a Guard is.
type GuardConfig struct {
	// Hold is the length of a quarantine: the longest TTL that any client of
	// the master uses (S5). Zero: nothing is quarantined and no marker is kept,
	// but a clock that steps is still reported.
	Hold time.Duration
	// ClockTolerance is how far the master's clock may step against ours.
	// Zero: its clock is not watched.
	ClockTolerance time.Duration
	// Durable masters lose nothing when they restart (appendfsync always), so
	// a restart alone is no reason for a quarantine. A lost marker still is.
	Durable bool
}

// Evidence is what one look at a master shows.
type Evidence struct {
	RunID   string        // empty: unknown
	Uptime  time.Duration // negative: unknown
	Time    time.Time     // the master's TIME; zero: unknown
	Took    time.Duration // how long the question took: Time was read within it
	Marker  Marker        // zero: there is none
	Blind   bool          // the marker can be neither read nor written here
	Replica bool          // it is no master; nothing else need be known then
}

// Verdict is what follows from the evidence.
type Verdict struct {
	Rest   time.Duration // of the quarantine; zero: the master may grant
	Reason string        // why it is quarantined, or what could not be known
	// Write is the marker to be written if the one on the master is still
	// Over. Zero: leave it.
	Write, Over Marker
}

// unforgotten is the age of a memory that nothing was found against.
const unforgotten = time.Duration(math.MaxInt64)

// NewGuard returns the guard of one master. Quarantines are counted on the
// monotonic clock of c: never on the master's clock, which may be what is wrong
// (S4), and never on our own wall clock, which can be set.
func NewGuard(config GuardConfig, c clock.Clock) *Guard {
	return &Guard{
		config: config,
		clock:  newSteady(c),
		pace:   pace{window: max(config.Hold, 4*config.ClockTolerance), tolerance: config.ClockTolerance},
	}
}

// Look judges new evidence. A running quarantine is never shortened by it.
func (g *Guard) Look(e Evidence) Verdict {
	now := g.clock.now()
	if e.Replica {
		g.replica = true
		return Verdict{Rest: g.rest(now), Reason: g.reason}
	}
	steps := g.watchClock(e, now)
	age, why := g.age(e, now, steps)
	g.quarantine(now, age, why)
	if steps.off != 0 {
		g.quarantine(now, 0, steps.reason())
	}

	v := Verdict{Rest: g.rest(now), Reason: g.reason}
	if v.Rest == 0 {
		v.Reason = g.finding(age, why, steps)
	}
	if write := g.propose(e, age); write != e.Marker && g.config.Hold > 0 {
		v.Write, v.Over = write, e.Marker
		g.proposed = write
	}
	g.remember(e, now)
	return v
}

// Admit returns nil if the master may be asked for op, else ErrQuarantined with
// the rest of the quarantine and its reason.
//
// Only acquiring is refused. Extending compares the value, so it succeeds only
// for a key that a valid holder put back after the loss; repairing is that
// holder putting it back; and the sooner both happen, the sooner the master
// knows again what it forgot.
func (g *Guard) Admit(op Op) error {
	if op != OpAcquire || g.until == 0 {
		return nil
	}
	rest := g.Rest()
	if rest == 0 {
		return nil
	}
	return fmt.Errorf("%w for another %v: %s", ErrQuarantined, rest.Round(time.Millisecond), g.reason)
}

// Rest returns how long the quarantine still lasts, or zero.
func (g *Guard) Rest() time.Duration {
	return g.rest(g.clock.now())
}

func (g *Guard) rest(now time.Duration) time.Duration {
	return max(0, g.until-now)
}

// finding is what a look showed that led to no quarantine.
func (g *Guard) finding(age time.Duration, why string, clock steps) string {
	switch {
	case clock.off != 0:
		return clock.reason()
	case age == unforgotten && g.config.Hold > 0:
		return why // what could not be known
	}
	return "" // old enough
}

// quarantine keeps a master whose memory is of the given age from granting
// until it is Hold old.
func (g *Guard) quarantine(now, age time.Duration, why string) {
	if age >= g.config.Hold {
		return
	}
	if until := now + g.config.Hold - age; until > g.until {
		g.until, g.reason = until, why
	}
}

// age returns for how long the master has certainly forgotten nothing, as far
// as new evidence shows, and why. Evidence that we have judged before gives
// unforgotten: its quarantine is already running.
func (g *Guard) age(e Evidence, now time.Duration, clock steps) (time.Duration, string) {
	restarted := g.looked && e.RunID != "" && g.run != "" && e.RunID != g.run && !g.config.Durable
	known := g.marker.RunID != ""
	switch {
	case g.replica:
		return 0, "was a replica, so its keys are another server's"
	case e.Blind || e.Marker.RunID == "":
		switch {
		case known && !e.Blind:
			return 0, "lost its marker, so it may have lost locks too"
		case restarted:
			return 0, "restarted"
		case g.looked || g.config.Durable:
			return unforgotten, ""
		case e.Uptime < 0:
			return unforgotten, "uptime unknown: an earlier restart would go unnoticed"
		}
		return e.Uptime, "started only lately"
	case (e.Marker == g.proposed || e.Marker == g.marker) && !restarted:
		return unforgotten, ""
	case g.config.Durable && g.survived(e):
		return unforgotten, ""
	case !e.Marker.of(e.RunID):
		return 0, "restarted, or was replaced by another server"
	case known || restarted:
		// Another client saw the loss and wrote when it was. That is worth
		// nothing if the master's clock may have stepped since we last looked
		// (S4), and wrong if it was before that: then the writer came after the
		// loss and took the master for sound.
		age := g.claimed(e)
		if !clock.kept || age > now-g.last {
			age = 0
		}
		return age, "lost its marker, which another client put back"
	}
	age := g.claimed(e)
	switch {
	case age < unforgotten:
		return age, "lost its memory lately, says its marker"
	case g.config.Durable:
		return age, ""
	}
	return age, "uptime unknown: an earlier restart would go unnoticed"
}

// survived reports whether the marker came through a restart: it is the one
// that we knew, or at the first look one that another run wrote.
func (g *Guard) survived(e Evidence) bool {
	if g.marker.RunID == "" {
		return !e.Marker.of(e.RunID)
	}
	return e.Marker.Since.Equal(g.marker.Since)
}

// claimed is the age that the master claims: since the marker's instant, and
// since its start where a restart counts.
func (g *Guard) claimed(e Evidence) time.Duration {
	age := unforgotten
	if !e.Time.IsZero() && !e.Marker.Since.IsZero() {
		age = max(0, e.Time.Sub(e.Marker.Since))
	}
	if !g.config.Durable && e.Uptime >= 0 {
		age = min(age, e.Uptime)
	}
	return age
}

// propose returns the marker that should be on the master: the one that is, if
// it is of this run and does not hide a loss that we know of.
func (g *Guard) propose(e Evidence, age time.Duration) Marker {
	m := e.Marker
	switch {
	case e.Blind:
		return m
	case m.RunID != "" && m.of(e.RunID) && (m.RunID != UnknownRun || e.RunID == "") && !g.replica:
		if age >= g.config.Hold || g.claimed(e) < g.config.Hold {
			return m
		}
		// It hides a loss from everyone who comes later.
	case age == unforgotten && g.proposed.RunID != "" && g.proposed.of(e.RunID):
		return g.proposed // it was not written yet
	}
	switch {
	case age == unforgotten:
		return NewMarker(e.RunID, m.Since)
	case e.Time.IsZero():
		return NewMarker(e.RunID, time.Time{})
	}
	return NewMarker(e.RunID, e.Time.Add(-age))
}

func (g *Guard) remember(e Evidence, now time.Duration) {
	g.looked, g.replica, g.last = true, false, now
	if e.RunID != "" {
		g.run = e.RunID
	}
	if !e.Blind {
		g.marker = e.Marker
	}
}

// steps is what the clock guard found.
type steps struct {
	off  time.Duration // beyond what is tolerated; zero: within
	kept bool          // the master's clock was compared with ours since we last looked
}

func (s steps) reason() string {
	if s.off < 0 {
		return fmt.Sprintf("its clock fell %v behind ours", -s.off)
	}
	return fmt.Sprintf("its clock is %v ahead of ours", s.off)
}

// watchClock compares the master's clock with ours: with our wall clock at the
// first look, since nobody can tell when a clock that is wrong became so, and
// after that with how far our steady clock moved. A step of our own wall clock
// is thus no step of the master's. If our monotonic clock stood still in a
// suspend, every master seems to have stepped; that cannot be told from all
// clocks having been set, and is treated alike (S28).
func (g *Guard) watchClock(e Evidence, now time.Duration) steps {
	if g.config.ClockTolerance <= 0 || e.Time.IsZero() {
		return steps{}
	}
	r := reading{node: e.Time, at: now, took: e.Took}
	if g.pace.older.node.IsZero() {
		g.pace.step(r)
		ours := reading{node: g.clock.clock.Now(), at: now}
		return steps{off: g.pace.off(ours, r)}
	}
	return steps{off: g.pace.step(r), kept: true}
}
