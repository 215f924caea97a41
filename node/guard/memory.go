package guard

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/drift"
)

const (
	// unforgotten is the age of a memory that no evidence speaks against.
	unforgotten = time.Duration(math.MaxInt64)
	// longAgo is before everything on a steady clock.
	longAgo = time.Duration(math.MinInt64 / 2)
)

// age returns for how long the master has certainly forgotten nothing, as far as new
// evidence shows, and why. Evidence that we have judged before gives unforgotten: its
// age is counted already.
func (g *Guard) age(e Evidence, now time.Duration, clock steps) (time.Duration, string) {
	restarted := g.looked() && e.RunID != "" && g.run != "" && e.RunID != g.run && !g.config.Durable
	known := g.marker.RunID != ""
	switch {
	case g.wasReplica(e):
		return 0, "was a replica, so its keys are another server's"
	case e.Blind && !g.looked():
		return 0, "its marker cannot be read, so that nothing proves its memory"
	case e.Blind && restarted:
		return 0, "restarted"
	case e.Blind:
		return unforgotten, "its marker cannot be read: that it forgot locks would go unnoticed"
	case e.Marker.RunID == "":
		return g.unmarked(e, known)
	case g.proposed.begins && !restarted && e.Marker.same(g.marker):
		return 0, g.reason // the marker that records the loss could not be written
	case (e.Marker.same(g.proposed.marker) && !g.proposed.begins || e.Marker.same(g.marker)) && !restarted:
		return unforgotten, g.unsure(e)
	case g.config.Durable && known && e.Marker.Since.Equal(g.marker.Since) && e.Marker.Nonce == g.marker.Nonce:
		return unforgotten, "" // it came through a restart
	case g.config.Durable && !known:
		return g.claimed(e), "its marker says that it was new, emptied or restarted lately"
	case !e.Marker.Of(e.RunID):
		return 0, "restarted, or was replaced by another server"
	case g.proposed.begins && !restarted:
		return g.since(e, now, clock), g.reason // it has a new marker now, ours or another client's
	case e.Marker.New && !restarted && g.marker.Unused(e.Time):
		return unforgotten, "" // an operator has declared it new after we have met it
	case known || restarted:
		return g.since(e, now, clock), "was marked anew by another client: it lost its memory, or its clock was set"
	}
	return g.claimed(e), "its marker says that it was new, emptied or restarted lately"
}

// wasReplica reports whether the server was made a replica and a master again since
// anybody marked it. It has another server's keys then, with the same run_id (S50). Who saw the
// replica believes a marker that others have written since: after the promotion, or in a later run (L57). A
// durable master may have kept the marker from before, so there a later run proves nothing.
func (g *Guard) wasReplica(e Evidence) bool {
	if e.Promotion != "" && e.Promotion != g.role.promotion {
		return !e.Marker.After(e.Promotion)
	}
	later := g.role.run != "" && e.RunID != "" && e.RunID != g.role.run && !g.config.Durable
	return g.role.replica && !(later && e.Marker.RunID == e.RunID)
}

// since is the age claimed by a marker that was written after we last looked, by us or by
// another client that saw the loss. The claim does not count if the master's clock may have been
// set in between (S4), nor if it says that the marker was written before our last look. That look
// ended when the master had read its clock: the answer may have come much later (L81).
func (g *Guard) since(e Evidence, now time.Duration, clock steps) time.Duration {
	age, asked := g.claimed(e), now-g.proven.Monotonic()
	possible := age <= asked+drift.Allowance(asked, g.config.DriftFactor)
	if !clock.kept || !possible || g.read.IsZero() || e.Marker.Since.Before(g.read) {
		return 0
	}
	return age
}

// unmarkedAdvice recommends Init only for new masters: Init refuses next to masters that
// are in use.
const unmarkedAdvice = "it may have forgotten locks that are held (redlock init spares new masters that)"

// unmarked is the age of a master without a marker: nothing proves that it
// remembers anything. Its uptime does not: it is in whole seconds of a clock
// that can be set, and flushing does not change it.
func (g *Guard) unmarked(e Evidence, known bool) (time.Duration, string) {
	switch {
	case known:
		return 0, "lost its marker, so it may have lost locks too"
	case g.looked():
		return 0, "has no marker, and could not be given one"
	case e.Uptime >= 0:
		return 0, fmt.Sprintf("it started %v ago and has no marker: "+unmarkedAdvice, e.Uptime)
	}
	return 0, "it has no marker: " + unmarkedAdvice
}

// unsure names the faults that could go unnoticed although we know the marker.
func (g *Guard) unsure(e Evidence) string {
	if e.RunID == "" && g.run == "" {
		return "run_id unknown: a restart from an old snapshot would go unnoticed"
	}
	return ""
}

// claimed is the age that the marker claims. The uptime can only shorten it, where the
// marker is not of this run, or claims a memory from before the start of the run; only a
// durable master has that, or a master that never held a lock. The uptime may be up to a
// second too long, since it is the difference of two instants in whole seconds (S33).
func (g *Guard) claimed(e Evidence) time.Duration {
	if e.Time.IsZero() || e.Marker.Since.IsZero() {
		return 0
	}
	age := min(g.witnessed(e), max(0, e.Time.Sub(e.Marker.Since)))
	if g.config.Durable || e.Uptime < 0 || e.Marker.RunID == e.RunID && (e.Marker.New || age <= e.Uptime+time.Second) {
		return age
	}
	return min(age, max(0, e.Uptime-time.Second))
}

// witnessed bounds the age that a marker may claim. The clock that wrote its Since may have been
// behind, and have come right: then the marker seems to be older than it is. So an age counts from
// when it was written where the clock was, and only if the clock is still there (S74; see
// compareClock). A master that was declared new had nothing to forget, and a durable one has forgotten
// nothing when it restarts.
func (g *Guard) witnessed(e Evidence) time.Duration {
	declared := e.Marker.New || g.config.Durable && e.Marker.ByNoClient()
	if !g.watches() || !g.group.several() || e.Secret || declared {
		return unforgotten
	}
	return g.time.said.age(e.Marker, e.Time)
}

// propose returns the marker that should be on the master. The present one stays if it
// is of this run and does not hide a loss that we know of, nor that the clock was set
// forward; it gets our hold and our group.
func (g *Guard) propose(e Evidence, age, now time.Duration) Marker {
	if e.Blind {
		return e.Marker
	}
	m := g.memory(e, age)
	if g.mustTell(now) {
		m = g.another(e, time.Time{})
	}
	return m.with(max(e.Marker.Hold, g.hold()), g.group.stamp(e.Marker.Group))
}

// memory is what the marker should say of the master's memory.
func (g *Guard) memory(e Evidence, age time.Duration) Marker {
	m := e.Marker
	// The marker of a client that cannot read the run stays unless it may hide a restart: another marker
	// would have all clients wait (L85).
	unknown := m.RunID == UnknownRun && e.RunID != "" && age < g.hold()
	complete := m.RunID != "" && m.Of(e.RunID) && !unknown && m.After(e.Promotion)
	hides := age < g.hold() && g.claimed(e) >= g.hold() // the loss, from later clients
	switch {
	case complete && !g.wasReplica(e) && !hides:
		return m
	case age == unforgotten, g.config.Durable && m.RunID != "" && 0 < age && age == g.claimed(e):
		// The same memory in another run: a durable master restarted. Clients that know
		// it must find an unchanged memory, also if a new client looks first (L43). New
		// is not kept: it was said of another run.
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
	if !g.looked() && e.Marker.RunID == "" {
		m.Nonce = firstSight + m.Nonce
	}
	return m.Promoted(e.Promotion)
}

// remember keeps what the evidence shows, for the next look to compare with.
func (g *Guard) remember(e Evidence, now time.Duration) {
	g.role.replica, g.last, g.hidden = false, now, e.RunID == ""
	g.blind = e.Blind && g.stored == "" // a marker that we know goes on to count
	if !e.Blind || g.blind {
		g.proven, g.read = e.Sent, e.Time
	}
	if e.RunID != "" {
		g.run = e.RunID
	}
	if e.Promotion != "" {
		g.role.promotion = e.Promotion
	}
	if !e.Blind && g.marker != e.Marker {
		if g.marker.name() != e.Marker.name() {
			g.time.placed = e.Time // the clock may have been elsewhere when the marker was written (S74)
		}
		g.marker, g.stored = e.Marker, e.Marker.String()
	}
}
