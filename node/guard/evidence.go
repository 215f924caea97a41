package guard

import (
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
)

// Evidence is what one look at a master shows.
type Evidence struct {
	RunID   string        // empty: unknown
	Uptime  time.Duration // negative: unknown
	Time    time.Time     // the master's TIME; zero: unknown
	Sent    drift.Instant // when the question was sent, on the clock of Guard.Now
	Took    time.Duration // how long the answer took from then: Time was read meanwhile
	Marker  Marker        // zero: absent
	Offsets string        // what clients have written of its clock
	Secret  bool          // that can be neither read nor written
	Blind   bool          // the marker can be neither read nor written here
	Replica bool          // it is a replica; nothing but its run need be known then
	// Promotion is the replication ID that the server gave itself when it was last made
	// a master out of a replica. Empty: it never was a replica, or that is unknown, or
	// too long ago for the server to know.
	Promotion string
}

// Verdict is what follows from the evidence.
type Verdict struct {
	Rest   time.Duration // of the quarantine; zero: there is none
	Reason string        // why it is quarantined, or what could not be known
	Lost   bool          // just found: the master may have forgotten leases of ours, or never had them
	// Admitted: the master may vote again, and must not have when it was last looked at. The end
	// of the quarantine alone does not say so: the clocks may still have to be compared.
	Admitted bool
	// Write is the marker to be written if the one on the master is still
	// Over. Zero: leave it.
	Write, Over Marker
	// Offsets is to be written of the master's clock if the stored offsets are still
	// OffsetsOver. Empty: leave it.
	Offsets, OffsetsOver string
	// Slow: it has just come out that our own clock is slower than it seemed, so leases
	// end earlier.
	Slow bool
	// Stranger is ErrOtherGroup if the master belongs to another group.
	Stranger error
}

// Writes reports whether something is to be written beside the locks.
func (v *Verdict) Writes() bool { return v.Write.RunID != "" || v.Offsets != "" }

// Args are the arguments of ScriptMarker that write it.
func (v *Verdict) Args() []string {
	return []string{v.Over.String(), v.Write.String(), v.OffsetsOver, v.Offsets}
}

// EvidenceOf reads the answer to a look at a server.
func EvidenceOf(host wire.Host, r wire.Reply) Evidence {
	e := Evidence{RunID: host.RunID, Uptime: host.Uptime}
	seen, ok := wire.SeenOf(r)
	if !ok {
		e.Blind, e.Secret = true, true
		return e
	}
	marker, err := ParseMarker(seen.Marker)
	e.Marker, e.Blind = marker, err != nil // another program's key: to be left alone
	e.Replica, e.Promotion = seen.Replica, seen.Promotion
	e.Time, e.Offsets, e.Secret = seen.Time, seen.Offsets, seen.Secret
	return e
}
