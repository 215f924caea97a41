package node

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Marker is what the clients leave on a master to recognise it by: a small key
// that goes when the master's memory goes. It says which run of the server
// wrote it and since when that run remembers everything.
//
// Markers are compared with ==; parsed and new ones compare alike.
type Marker struct {
	RunID string // the server's run_id, or UnknownRun; empty: there is no marker
	// Since is the instant, on the master's own clock, after which no key was
	// forgotten. Zero: unknown.
	Since time.Time
}

// UnknownRun stands in a Marker for the run_id of a master that does not tell.
const UnknownRun = "-"

// MarkerKey is the key of the marker among the keys with the given prefix. No
// lock may have that name.
func MarkerKey(prefix string) string {
	return prefix + "redlock:marker"
}

// NewMarker returns the marker of the given run, rounded as it is stored.
func NewMarker(runID string, since time.Time) Marker {
	if runID == "" {
		runID = UnknownRun
	}
	if !since.IsZero() {
		since = time.UnixMicro(since.UnixMicro()).UTC()
	}
	return Marker{RunID: runID, Since: since}
}

// ParseMarker reads what String wrote. The empty string is the zero Marker.
// Fields beyond the second are left to later versions.
func ParseMarker(s string) (Marker, error) {
	if s == "" {
		return Marker{}, nil
	}
	run, rest, ok := strings.Cut(s, " ")
	since, _, _ := strings.Cut(rest, " ")
	us, err := strconv.ParseInt(since, 10, 64)
	if !ok || run == "" || err != nil || us < 0 {
		return Marker{}, fmt.Errorf("marker %.100q: must be a run_id and microseconds since 1970", s)
	}
	if us == 0 {
		return Marker{RunID: run}, nil
	}
	return Marker{RunID: run, Since: time.UnixMicro(us).UTC()}, nil
}

// String returns the stored form: the run_id and Since in microseconds since
// 1970 (0: unknown). The zero Marker is the empty string.
func (m Marker) String() string {
	if m.RunID == "" {
		return ""
	}
	var us int64
	if !m.Since.IsZero() {
		us = m.Since.UnixMicro()
	}
	return m.RunID + " " + strconv.FormatInt(us, 10)
}

// of reports whether the marker can be of the given run: an unknown run can be
// any.
func (m Marker) of(runID string) bool {
	return runID == "" || m.RunID == UnknownRun || m.RunID == runID
}
