package node

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/seam"
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
	config   GuardConfig
	clock    steady
	group    *Group
	standing *standing // of the master in the group

	looked   bool
	run      string        // the last known run_id
	marker   Marker        // the last marker seen on the master
	stored   string        // what is stored there for it
	proposed Marker        // the last marker that we asked to be written
	begins   bool          // it was to begin when it is written
	blind    bool          // the marker could not be read when we last looked
	last     time.Duration // when we last looked
	proven   drift.Instant // when we asked for what we last saw
	replica  bool          // it was a replica when we last looked
	promoted string        // its last known Evidence.Promotion
	time     timepiece     // its clock

	// born is the instant since when the master certainly remembers everything, on our
	// steady clock. It only ever grows.
	born   time.Duration
	reason string // why it is no earlier
	lost   bool   // a quarantine began that no Verdict has told of
}

// GuardConfig says how careful a Guard is.
type GuardConfig struct {
	// Hold is the age below which the memory of a master is too young: the
	// longest TTL that this client uses. The longest Hold of any client counts;
	// they tell each other by the marker (S5b). Zero: nothing is quarantined and
	// no marker is kept, but a clock that steps is still reported.
	Hold time.Duration
	// ClockTolerance is how far the master's clock may certainly be set forward against
	// ours; drift.Tolerance, or less, for what every lease gives up to cover it. Zero: its
	// clock is not watched.
	ClockTolerance time.Duration
	// DriftFactor is the share of a time by which clocks may run apart while it passes.
	// Zero: drift.DefaultFactor.
	DriftFactor float64
	// Durable masters lose nothing when they restart (appendfsync always), so
	// a restart alone is no reason for a quarantine. A lost marker still is.
	Durable bool
	// Random makes the markers that this client writes unlike all others. Nil: the
	// usual.
	Random func() uint64
	// Unsafe is for the simulator only.
	Unsafe seam.UnsafeGuard
}

// LongestAttempt is how long after it was asked for a grant may be counted. No client
// of this library gets a lock by an older vote, so the votes that a master forgets are
// soon worth nothing anywhere (S35).
const LongestAttempt = 2 * time.Second

// HeardWithin is how old a message about a grant may be. A message can be late without
// a sign of it, so it counts only if the master has shown its marker that lately, by the
// monotonic and by the wall clock: a suspend stops the one (S49). Heartbeats are more
// frequent.
const HeardWithin = drift.HeardWithin

// factor is the drift factor.
func (c *GuardConfig) factor() float64 {
	if c.DriftFactor == 0 {
		return drift.DefaultFactor
	}
	return c.DriftFactor
}

// unnoticed is how far the master's clock may be set forward while a lease lasts without
// any client noticing.
func (c *GuardConfig) unnoticed() time.Duration {
	if c.ClockTolerance == 0 || c.Hold == 0 {
		return 0
	}
	return c.ClockTolerance - drift.Tolerance + drift.UnnoticedBy(c.factor())
}

// Evidence is what one look at a master shows.
type Evidence struct {
	RunID   string        // empty: unknown
	Uptime  time.Duration // negative: unknown
	Time    time.Time     // the master's TIME; zero: unknown
	Sent    drift.Instant // when the question was sent, on the clock of Guard.Now
	Took    time.Duration // how long the answer took from then: Time was read meanwhile
	Marker  Marker        // zero: there is none
	Offsets string        // what clients have written of its clock
	Secret  bool          // that can be neither read nor written
	Blind   bool          // the marker can be neither read nor written here
	Replica bool          // it is no master; nothing else need be known then
	// Promotion is the replication ID that the server gave itself when it was last made
	// a master out of a replica. Empty: it never was a replica, or that is unknown, or
	// too long ago for the server to know.
	Promotion string
}

// Verdict is what follows from the evidence.
type Verdict struct {
	Rest   time.Duration // of the quarantine; zero: the master may grant
	Reason string        // why it is quarantined, or what could not be known
	Lost   bool          // it has just come out that the master forgot what it knew
	// Write is the marker to be written if the one on the master is still
	// Over. Zero: leave it.
	Write, Over Marker
	// Offsets is to be written of the master's clock if what is there is still
	// OffsetsOver. Empty: leave it.
	Offsets, OffsetsOver string
	// Slow: it has just come out that our own clock is slower than it seemed, so leases
	// end earlier.
	Slow bool
	// Stranger is ErrOtherGroup if the master belongs to another group.
	Stranger error
}

const (
	// unforgotten is the age of a memory that no evidence speaks against.
	unforgotten = time.Duration(math.MaxInt64)
	// longAgo is before everything on a steady clock.
	longAgo = time.Duration(math.MinInt64 / 2)
)

// NewGuard returns the guard of one master. Quarantines are counted on the monotonic
// clock of c: never on the master's clock, which may be wrong (S4), and never on our
// own wall clock, which can be set. The guards of one client's masters share a group;
// nil: there are no others.
func NewGuard(config GuardConfig, c clock.Clock, group *Group) *Guard {
	g := &Guard{
		config: config,
		group:  group,
		born:   longAgo,
	}
	g.config.DriftFactor = config.factor()
	g.time = timepiece{
		bounds: bounds{factor: g.config.DriftFactor, longest: config.Hold + time.Second, tolerance: config.ClockTolerance},
		paces:  [2]pace{{window: 2 * time.Second}, {window: max(2*time.Second, config.Hold)}}, // as it is now, and over a lease
	}
	if g.config.Random == nil {
		g.config.Random = rand.Uint64
	}
	g.standing, g.clock = group.enter(c)
	return g
}

// Now reads the clock by which the guards of a group count.
func (g *Guard) Now() drift.Instant { return g.clock.watch.Now() }

// hold is the age at which a memory is old enough.
func (g *Guard) hold() time.Duration {
	if g.config.Hold <= 0 || g.config.Unsafe.OwnHold {
		return max(0, g.config.Hold)
	}
	return max(g.config.Hold, g.group.longest())
}

// reading is when the master's clock was read. That somebody judges it late says nothing
// of it.
func (g *Guard) reading(e Evidence) reading {
	sent := e.Sent.Monotonic()
	return reading{node: e.Time, sent: sent, came: sent + e.Took}
}

// Writes reports whether something is to be written beside the locks.
func (v *Verdict) Writes() bool { return v.Write.RunID != "" || v.Offsets != "" }

// Args are the arguments of ScriptMarker that write it.
func (v *Verdict) Args() []string {
	return []string{v.Over.String(), v.Write.String(), v.OffsetsOver, v.Offsets}
}

// Look judges new evidence. A running quarantine is never shortened by it.
func (g *Guard) Look(e Evidence) Verdict {
	now := g.clock.now()
	if e.Replica {
		g.replica = true
		return Verdict{Rest: g.rest(now), Reason: g.why(now)}
	}
	told := g.begins && (e.RunID == "" || e.RunID == g.run) // of the loss, when we last looked
	known := g.looked && !told
	g.group.raise(e.Marker.Hold) // a clock that was set is out for as long as any client's guard
	g.time.longest = g.hold() + time.Second
	steps := g.watchClock(e, now)
	age, why := g.age(e, now, steps)
	g.lose(now, age, why)
	if why := steps.reason(); why != "" {
		g.lose(now, 0, why)
	}
	v := Verdict{Slow: steps.slow}
	g.begins = false
	if g.config.Hold > 0 {
		if !g.config.Unsafe.AnyGroup {
			v.Stranger = g.group.compare(g.standing, e.Marker.Group)
		}
		if write := g.propose(e, age); write != e.Marker {
			v.Write, v.Over = write, e.Marker
			g.proposed, g.begins = write, write.Since.IsZero()
		}
	}
	g.remember(e, now)
	g.compareClock(now)
	if write := g.offsets(e, now); write != "" {
		v.Offsets, v.OffsetsOver = write, e.Offsets
	}
	v.Lost, g.lost = g.lost && known, false

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
// back. The sooner both happen, the sooner the master knows again what it forgot.
func (g *Guard) Admit(op wire.Op) error {
	if !op.Grants() || g.config.Hold <= 0 || !g.looked {
		return nil
	}
	now := g.clock.now()
	if err := g.group.Trouble(); err != nil {
		return err
	}
	if fast := g.group.atLeast(); fast > 1+g.config.DriftFactor {
		return fmt.Errorf("%w: our own clock is slow: most masters' run faster by at least %.1f %%", ErrQuarantined, 100*(fast-1))
	}
	if !g.compareClock(now) {
		return fmt.Errorf("%w: too few of the masters have told their clocks yet to know which are right", ErrQuarantined)
	}
	if rest := g.rest(now); rest > 0 {
		return quarantine(rest, g.why(now))
	}
	if !g.blind && g.marker.Hold < g.config.Hold {
		return fmt.Errorf("%w: its marker does not tell the others of our restart guard yet", ErrQuarantined)
	}
	return nil
}

// Vouched reports whether a marker that was read together with a vote proves that the
// vote is of a memory that we know. If not, the master must be looked at, and the vote
// is worth nothing: since we last looked the master may have forgotten who holds the
// lock, and another client may have marked it anew (S24, S34).
func (g *Guard) Vouched(marker string) bool {
	if g.config.Hold <= 0 || g.blind || g.config.Unsafe.Unvouched {
		return true
	}
	if marker == g.stored && marker != "" {
		return true
	}
	m, err := ParseMarker(marker)
	return err == nil && m.RunID != "" && m.same(g.marker)
}

// wasReplica reports whether the server was made a replica and a master again since
// anybody marked it. It has another server's keys then, with the same run_id (S50).
func (g *Guard) wasReplica(e Evidence) bool {
	return e.Promotion != g.promoted && !e.Marker.After(e.Promotion) && !g.config.Unsafe.AnyRole
}

// Remained reports whether the server was a master all the time since we last looked,
// by what it says of its replication now.
func (g *Guard) Remained(replica bool, promotion string) bool {
	return g.config.Hold <= 0 || g.config.Unsafe.AnyRole || !replica && (promotion == "" || promotion == g.promoted)
}

// Timely reports whether the master's clock, read together with a message, is where ours
// allows it to be. If not, the master must be looked at, and the message is worth
// nothing: a clock that was set forward ends keys early, so that the lock may still be
// held (S2). A zero time was not read.
func (g *Guard) Timely(at time.Time) bool {
	return !g.watches() || at.IsZero() || g.time.ahead(at, g.clock.now()) == 0
}

// TimelyVote is Timely for a vote, of which we know since when it is under way. So it
// also tells us more about the master's clock.
func (g *Guard) TimelyVote(at time.Time, sent time.Duration) bool {
	switch {
	case !g.watches() || at.IsZero():
		return true
	case !g.Timely(at) || g.time.overlooked(sent) && g.group.several():
		return false // the next look says why
	}
	r := reading{node: at, sent: sent, came: g.clock.now()}
	if g.time.behind(r) > 0 && !g.group.mostWentBack(r.came) {
		return false // likewise
	}
	g.time.read(r)
	g.measure(r)
	return true
}

// watches reports whether votes depend on the master's clock.
func (g *Guard) watches() bool {
	return g.config.Hold > 0 && g.config.ClockTolerance > 0 && !g.config.Unsafe.Untimely
}

// Hears reports whether a grant counts that comes in a message with this proof instead
// of an answer.
func (g *Guard) Hears(proof string) bool {
	if g.config.Hold <= 0 {
		return true
	}
	marker, at := wire.ParseProof(proof)
	late := g.Now().Sub(g.proven) > HeardWithin && !g.config.Unsafe.Unvouched
	return !late && g.Vouched(marker) && g.Timely(at) && g.Admit(wire.OpAcquire) == nil
}

// Weigh returns what a vote that has come is worth: nothing if it is an error, and
// nothing yet if it is an extension by a young memory. The guard is asked when the
// vote comes, and not only when it is asked for: a question from before a loss does
// not count after it.
func (g *Guard) Weigh(op wire.Op, vouched bool) (young bool, err error) {
	switch {
	case op == wire.OpExtend:
		return g.Young() || !vouched && !g.config.Unsafe.CountYoung, nil
	case !vouched:
		return false, fmt.Errorf("%w: its marker or its clock has changed, so it may have forgotten locks", ErrQuarantined)
	}
	return false, g.Admit(wire.OpAcquire)
}

// Accepted returns the stored form of the marker that Vouched goes by; empty
// when there is none to go by.
func (g *Guard) Accepted() string {
	if g.config.Hold <= 0 || g.blind {
		return ""
	}
	return g.stored
}

// Young reports whether the master lost its memory so lately that a client may still
// count a vote that it has forgotten. An extension by it proves nothing then: the key
// may have been put back behind that vote (S35). Neither does one by a master whose clock
// was just set back: the key ends early when it comes forward again (S59). Nor one that
// was not compared with the others.
func (g *Guard) Young() bool {
	if g.config.Hold <= 0 || g.config.Unsafe.CountYoung {
		return false
	}
	now, attempt := g.clock.now(), min(LongestAttempt, g.hold())
	return now < g.born+attempt+drift.Allowance(attempt, g.config.DriftFactor) || g.settles(now) > 0 || !g.compareClock(now)
}

// Rest returns how long the quarantine still lasts, or zero.
func (g *Guard) Rest() time.Duration {
	return g.rest(g.clock.now())
}

// Allow returns the command as it may be sent now: as it is, in the form that
// hands nothing on while the master is quarantined, bound to the memory that we know,
// or not at all.
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
	return max(0, g.born+g.hold()-now, g.settles(now))
}

// why is the reason of a quarantine, or empty when there is none.
func (g *Guard) why(now time.Duration) string {
	switch {
	case g.born+g.hold() > now:
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

// age returns for how long the master has certainly forgotten nothing, as far as new
// evidence shows, and why. Evidence that we have judged before gives unforgotten: its
// age is counted already.
func (g *Guard) age(e Evidence, now time.Duration, clock steps) (time.Duration, string) {
	restarted := g.looked && e.RunID != "" && g.run != "" && e.RunID != g.run && !g.config.Durable
	known := g.marker.RunID != ""
	switch {
	case g.replica:
		return 0, "was a replica, so its keys are another server's"
	case g.wasReplica(e):
		return 0, "was a replica in between, so its keys are another server's"
	case e.Blind && !g.looked:
		return 0, "its marker cannot be read, so that nothing proves its memory"
	case e.Blind && restarted:
		return 0, "restarted"
	case e.Blind:
		return unforgotten, "its marker cannot be read: that it forgot locks would go unnoticed"
	case e.Marker.RunID == "":
		return g.unmarked(e, known)
	case g.begins && !restarted && e.Marker.same(g.marker):
		return 0, g.reason // and no marker that says so could be written
	case (e.Marker.same(g.proposed) && !g.begins || e.Marker.same(g.marker)) && !restarted:
		return unforgotten, g.unsure(e)
	case g.config.Durable && known && e.Marker.Since.Equal(g.marker.Since) && e.Marker.Nonce == g.marker.Nonce:
		return unforgotten, "" // it came through a restart
	case g.config.Durable && !known:
		return g.claimed(e), "its marker says that it was new, emptied or restarted lately"
	case !e.Marker.Of(e.RunID):
		return 0, "restarted, or was replaced by another server"
	case g.begins && !restarted:
		return g.since(e, now, clock), g.reason // it has the marker that it lacked
	case e.Marker.New && !restarted && g.marker.Unused(e.Time):
		return unforgotten, "" // an operator has declared it new after we have met it
	case known || restarted:
		return g.since(e, now, clock), "lost its marker, which another client put back"
	}
	return g.claimed(e), "its marker says that it was new, emptied or restarted lately"
}

// since is the age claimed by a marker that was written after we last looked, by us or
// by another client that saw the loss. It is worth nothing if the master's clock may
// have stepped in between (S4), and wrong if the marker was written before that.
func (g *Guard) since(e Evidence, now time.Duration, clock steps) time.Duration {
	age := g.claimed(e)
	if !clock.kept || age > now-g.last {
		return 0
	}
	return age
}

// unmarkedAdvice sends nobody to an Init that would refuse, which it does beside
// masters that are in use.
const unmarkedAdvice = "it may have forgotten locks that are held (redlock init spares new masters that)"

// unmarked is the age of a master without a marker: nothing proves that it
// remembers anything. Its uptime does not: it is in whole seconds of a clock
// that can be set, and flushing does not change it.
func (g *Guard) unmarked(e Evidence, known bool) (time.Duration, string) {
	switch {
	case known:
		return 0, "lost its marker, so it may have lost locks too"
	case g.looked:
		return 0, "has no marker, and could not be given one"
	case g.config.Unsafe.TrustUptime:
		return e.Uptime, "started only lately"
	case e.Uptime >= 0:
		return 0, fmt.Sprintf("it started %v ago and has no marker: "+unmarkedAdvice, e.Uptime)
	}
	return 0, "it has no marker: " + unmarkedAdvice
}

// unsure is what a marker that we know leaves open.
func (g *Guard) unsure(e Evidence) string {
	if e.RunID == "" && g.run == "" {
		return "run_id unknown: a restart from an old snapshot would go unnoticed"
	}
	return ""
}

// claimed is the age that the marker claims. The uptime can only shorten it, where the
// marker is not of this run, or claims to remember what was before its start; only a
// durable master does, or one that never held a lock. The uptime may be up to a second
// too long, since it is the difference of two instants in whole seconds (S33).
func (g *Guard) claimed(e Evidence) time.Duration {
	if e.Time.IsZero() || e.Marker.Since.IsZero() {
		return 0
	}
	age := max(0, e.Time.Sub(e.Marker.Since))
	if g.config.Durable || e.Uptime < 0 || e.Marker.RunID == e.RunID && (e.Marker.New || age <= e.Uptime+time.Second) {
		return age
	}
	return min(age, max(0, e.Uptime-time.Second))
}

// propose returns the marker that should be on the master. The present one stays if it
// is of this run and does not hide a loss that we know of; it gets our hold and our
// group.
func (g *Guard) propose(e Evidence, age time.Duration) Marker {
	if e.Blind {
		return e.Marker
	}
	m := g.memory(e, age)
	return m.with(max(e.Marker.Hold, g.hold()), g.group.stamp(e.Marker.Group))
}

// memory is what the marker should say of the master's memory.
func (g *Guard) memory(e Evidence, age time.Duration) Marker {
	m := e.Marker
	complete := m.RunID != "" && m.Of(e.RunID) && (m.RunID != UnknownRun || e.RunID == "") && m.After(e.Promotion)
	hides := age < g.hold() && g.claimed(e) >= g.hold() // from everyone who comes later
	switch {
	case complete && !g.replica && !hides:
		return m
	case age == unforgotten, g.config.Durable && m.RunID != "" && 0 < age && age == g.claimed(e):
		// The same memory in another run: a durable master restarted, which those who
		// know it must find as they left it, also if a client that is new looks first
		// (L43). But not New: that was another run.
		kept := NewMarker(e.RunID, m.Since)
		kept.Nonce = m.Nonce
		return kept
	case age <= 0 || e.Time.IsZero():
		return g.another(e, time.Time{}) // from when it is written on
	}
	return g.another(e, e.Time.Add(-age))
}

// another returns a marker that is like none before.
func (g *Guard) another(e Evidence, since time.Time) Marker {
	m := NewMarker(e.RunID, since)
	m.Nonce = strconv.FormatUint(g.config.Random(), 36)
	if !g.looked && e.Marker.RunID == "" {
		m.Nonce = firstSight + m.Nonce
	}
	return m.Promoted(e.Promotion)
}

func (g *Guard) remember(e Evidence, now time.Duration) {
	g.looked, g.replica, g.last, g.blind = true, false, now, e.Blind
	g.proven = e.Sent
	if e.RunID != "" {
		g.run = e.RunID
	}
	if e.Promotion != "" {
		g.promoted = e.Promotion
	}
	if !e.Blind && g.marker != e.Marker {
		g.marker, g.stored = e.Marker, e.Marker.String()
	}
}
