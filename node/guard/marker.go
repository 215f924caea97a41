package guard

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Marker is a small key by which the clients recognise a master: it goes when the
// master's memory goes. It says which run of the server wrote it, since when that run
// remembers everything, for how long the most careful client keeps it from granting
// after a loss, and which group of masters it belongs to.
//
// Markers are compared with ==; parsed and new ones compare alike.
type Marker struct {
	RunID string // the server's run_id, or UnknownRun; empty: the marker is absent
	// Since is the instant, on the master's own clock, after which no key was
	// forgotten. Zero: unknown, and in a marker that is to be written, the instant
	// of the write.
	Since time.Time
	// New: an operator has said that the run never held a lock, so that Since may
	// be before its start.
	New bool
	// Hold is the longest restart guard that any client of the master has asked
	// for (S5b). It is only ever raised.
	Hold time.Duration
	// Group is the group that the master's clients take it for a part of (S14).
	Group GroupID
	// Nonce is another one in every marker that a client puts back. Where the
	// master's clock stands still, Since does not tell two of them apart, of which
	// the first was forgotten (S27). It begins with firstSight where the client knew
	// nothing of the master before. Behind a dot it names the Evidence.Promotion of the
	// server, if there was one (S50).
	Nonce string
}

// UnknownRun stands in a Marker for the run_id of a master that does not tell.
const UnknownRun = "-"

// NewMarker returns the marker of the given run, rounded to its stored precision.
func NewMarker(runID string, since time.Time) Marker {
	if runID == "" {
		runID = UnknownRun
	}
	if !since.IsZero() {
		since = time.UnixMicro(since.UnixMicro()).UTC()
	}
	return Marker{RunID: runID, Since: since}
}

// NewMaster returns the marker of a master that never held a lock, at an
// instant on its own clock: it has nothing to remember. Since is then long ago,
// and different whenever it is declared.
func NewMaster(runID string, now time.Time, hold time.Duration, group GroupID) Marker {
	m := NewMarker(runID, time.UnixMicro(1+max(0, now.UnixMicro())/4)).with(hold, group)
	m.New = true
	return m
}

// halfway is how long after it began an Init that failed can be gone on with.
const halfway = time.Minute

// JustDeclared reports whether a master was declared new within the last minute, by
// its own clock.
func (m Marker) JustDeclared(now time.Time) bool {
	ago := now.Sub(time.UnixMicro(4 * (m.Since.UnixMicro() - 1)))
	return m.New && ago >= 0 && ago < halfway
}

// Regrouped returns the marker of a master that joins a group, at an instant on
// its own clock: it counts as having lost its memory then.
func (m Marker) Regrouped(runID string, now time.Time, hold time.Duration, group GroupID) Marker {
	return NewMarker(runID, now).with(max(m.Hold, hold), group)
}

// Spread returns the marker with the name of the group, and a map: a new one, from when it is
// written on, if the master has none.
func (m Marker) Spread(runID string, group GroupID, text string) Marker {
	if m.RunID == "" {
		m = NewMarker(runID, time.Time{})
	}
	m.Group = group.over(m.Group)
	m.Group.Map = text
	return m
}

// Promoted returns m for a server with the given Evidence.Promotion.
func (m Marker) Promoted(promotion string) Marker {
	if promotion != "" {
		m.Nonce += "." + promotion
	}
	return m
}

// After reports whether m was written after the promotion, if there was one.
func (m Marker) After(promotion string) bool {
	return promotion == "" || strings.HasSuffix(m.Nonce, "."+promotion)
}

// firstSight begins the nonce of a marker by a client that had not seen the master before,
// and found none there.
const firstSight = "!"

// Unused reports whether no client can have been granted anything since the first of them
// marked the master, which was empty of markers and unknown to it. Such a master is as
// new to an operator as it was before (see Init).
func (m Marker) Unused(now time.Time) bool {
	age := now.Sub(m.Since)
	return strings.HasPrefix(m.Nonce, firstSight) && !m.Since.IsZero() && 0 <= age && age < m.Hold
}

// ByNoClient reports whether an operator has written the marker, or a client of a version
// that gave it no nonce.
func (m Marker) ByNoClient() bool {
	nonce, _, _ := strings.Cut(m.Nonce, ".")
	return nonce == ""
}

// with returns m with a hold, rounded up to its stored precision, and a group.
func (m Marker) with(hold time.Duration, group GroupID) Marker {
	m.Hold = (hold + time.Microsecond - 1).Truncate(time.Microsecond)
	m.Group = group
	return m
}

// LongestHold bounds the hold of a marker, so that a wrong hold cannot keep a
// master from granting permanently.
const LongestHold = 366 * 24 * time.Hour

// ParseMarker reads what String wrote. The empty string is the zero Marker.
// Fields that are missing were not known to an earlier version; those beyond
// the seventh are left to later ones.
func ParseMarker(s string) (Marker, error) {
	if s == "" {
		return Marker{}, nil
	}
	fields := strings.Split(s, " ")
	if len(fields) < 2 || fields[0] == "" {
		return Marker{}, badMarker(s)
	}
	since, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || since < 0 {
		return Marker{}, badMarker(s)
	}
	m := Marker{RunID: fields[0], New: strings.HasPrefix(fields[1], "+")}
	if since > 0 {
		m.Since = time.UnixMicro(since).UTC()
	}
	if len(fields) > 2 {
		hold, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || hold < 0 || hold > LongestHold.Microseconds() {
			return Marker{}, badMarker(s)
		}
		m.Hold = time.Duration(hold) * time.Microsecond
	}
	if len(fields) < 6 {
		return m, nil
	}
	if m.Group, err = parseGroupID(fields[3:6]); err != nil {
		return Marker{}, badMarker(s)
	}
	if len(fields) > 6 {
		m.Nonce = fields[6]
	}
	return m, nil
}

func badMarker(s string) error {
	return fmt.Errorf("marker %.100q: must be a run_id, microseconds since 1970, microseconds to hold, a group's size, masters and name, and a nonce", s)
}

// String returns the stored form: the run_id, Since in microseconds since 1970
// (0: unknown), Hold in microseconds, the group, and the nonce. The zero Marker is
// the empty string.
func (m Marker) String() string {
	if m.RunID == "" {
		return ""
	}
	var us int64
	if !m.Since.IsZero() {
		us = m.Since.UnixMicro()
	}
	sign := " "
	if m.New {
		sign = " +" // which a number may have
	}
	s := m.RunID + sign + strconv.FormatInt(us, 10) + " " + strconv.FormatInt(m.Hold.Microseconds(), 10)
	if m.Group == (GroupID{}) && m.Nonce == "" {
		return s
	}
	s += " " + m.Group.String()
	if m.Nonce == "" {
		return s
	}
	return s + " " + m.Nonce
}

// Of reports whether the marker can be of the given run: an unknown run can be
// any.
func (m Marker) Of(runID string) bool {
	return runID == "" || m.RunID == UnknownRun || m.RunID == runID
}

// Memory returns the part that is equal in all markers that vouch for the same memory,
// also of a durable master over its restarts, in the form that latch.lua reads.
func (m Marker) Memory() string {
	var us int64
	if !m.Since.IsZero() {
		us = m.Since.UnixMicro()
	}
	return strconv.FormatInt(us, 10) + " " + m.Nonce
}

// name is Memory in one word; empty: the marker is absent.
func (m Marker) name() string {
	if m.RunID == "" {
		return ""
	}
	return strings.ReplaceAll(m.Memory(), " ", "/")
}

// same reports whether both markers vouch for the same memory, whatever else
// they say.
func (m Marker) same(other Marker) bool {
	return m.RunID == other.RunID && m.Since.Equal(other.Since) && m.Nonce == other.Nonce
}
