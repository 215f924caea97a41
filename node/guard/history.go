package guard

import (
	"strconv"
	"strings"
	"time"
)

// history is what the clients of a master write of its clock, beside its marker. The next client
// learns by it what the clock did before it came (S58).
type history struct {
	memory  string    // of the master: the name of the marker beside which it began
	since   time.Time // since when the clock has been where it is, by itself
	offsets offsets   // where that is
	stored  string    // the form in which it was read
	hidden  bool      // it can be neither read nor written
}

// age is for how long the clock of a master with that marker has certainly been where it is.
func (h history) age(m Marker, now time.Time) time.Duration {
	if h.memory != m.name() || len(h.offsets) == 0 {
		return 0
	}
	return max(0, now.Sub(h.since))
}

// newest is when it was written last, by the clock that it is of.
func (h history) newest() (at time.Time) {
	for _, o := range h.offsets {
		if o.at.After(at) {
			at = o.at
		}
	}
	return at
}

// before reports whether nothing was written since a master was marked. Then no client has counted a
// vote of it since, and to later clients it has no memory: the marker records everything that its
// clock has done.
func (h history) before(m Marker) bool { return len(h.offsets) > 0 && h.memory != m.name() }

// offsets is how far a master's clock is ahead of that of each other master. The difference of
// two masters' clocks is the same for every client, whatever its own clock says.
type offsets []offset

// offset is how far a master's clock was ahead of another's at an instant on its own.
type offset struct {
	name      string // of the other master; see Group.names
	at        time.Time
	low, high time.Duration
}

// maxOffsets bounds the offsets that are stored and read: two for each of 64 masters, which are the most
// (see Group.names).
const maxOffsets = 128

// parseHistory reads a text that String wrote. Any other text is an empty history.
func parseHistory(s string) history {
	head, rest, _ := strings.Cut(s, " ")
	memory, since, ok := strings.Cut(head, "@")
	us, err := strconv.ParseInt(since, 10, 64)
	if !ok || err != nil || us < 0 || us > 2*farthest {
		return history{stored: s}
	}
	return history{memory: memory, since: time.UnixMicro(us), offsets: parseOffsets(rest), stored: s}
}

// String returns the stored form.
func (h history) String() string {
	return h.memory + "@" + strconv.FormatInt(h.since.UnixMicro(), 10) + " " + h.offsets.String()
}

func parseOffsets(s string) offsets {
	fields := strings.Fields(s)
	if len(fields) > maxOffsets {
		return nil
	}
	var all offsets
	for _, field := range fields {
		o, ok := parseOffset(field)
		if !ok {
			return nil
		}
		all = append(all, o)
	}
	return all
}

func parseOffset(s string) (o offset, ok bool) {
	fields := strings.Split(s, ":")
	if len(fields) != 4 || fields[0] == "" {
		return o, false
	}
	var us [3]int64
	for i, most := range [...]int64{2 * farthest, farthest, farthest} {
		n, err := strconv.ParseInt(fields[i+1], 10, 64)
		if err != nil || n > most || n < -most {
			return o, false
		}
		us[i] = n
	}
	o = offset{fields[0], time.UnixMicro(us[0]), time.Duration(us[1]) * time.Microsecond, time.Duration(us[2]) * time.Microsecond}
	return o, o.low <= o.high
}

// farthest bounds the difference of clocks in an offset, in microseconds: 71 years, so that
// sums of it and a clock of this century or the next fit into a duration.
const farthest = 1 << 51

// writable reports whether parseOffset would read what String writes.
func (o offset) writable() bool {
	return max(-o.low, o.high) < farthest*time.Microsecond && !strings.Contains(o.name, ":")
}

// String returns the stored form.
func (all offsets) String() string {
	var b []byte
	for i, o := range all {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(append(b, o.name...), ':')
		b = append(strconv.AppendInt(b, o.at.UnixMicro(), 10), ':')
		b = append(strconv.AppendInt(b, int64(o.low/time.Microsecond)-1, 10), ':')
		b = strconv.AppendInt(b, int64(o.high/time.Microsecond)+1, 10)
	}
	return string(b)
}

// of returns the offset to the master with one of these names, the first that is found.
func (all offsets) of(names []string) (offset, bool) {
	for _, name := range names {
		for _, o := range all {
			if o.name == name {
				return o, true
			}
		}
	}
	return offset{}, false
}

// fresh is how old an offset may be before a client writes it anew.
const fresh = 500 * time.Millisecond

// aged returns the offset as it was, or will be, at another instant: wider by drift.
func (o offset) aged(at time.Time, b *bounds) offset {
	within := b.drift(at.Sub(o.at))
	return offset{o.name, at, o.low - within, o.high + within}
}

// agrees reports whether two offsets at the same instant can both be true.
func (o offset) agrees(other offset, tolerance time.Duration) bool {
	return other.low-o.high <= tolerance && o.low-other.high <= tolerance
}

// with merges the offsets that a client knows now into h, the stored history. It reports whether
// the result should be written. A stored offset still holds, so it only gets wider by drift, and
// the new one is cut to it: many clients one after another let a clock move no further than one
// client does. If the two cannot both be true, a clock was set. Then a client that is familiar
// with the clock knows better, and writes its own offset; any other client keeps the stored one, and
// adds no offset to another master: later it would take its own entry for another client's (S85).
//
// Invariant: all stored offsets are of one place of the clock, but for what a client contradicts
// that is not familiar with it. An offset to a master that we do not reach is kept only if an
// offset to a master that we do reach confirms the stored ones, and none contradicts them (S71):
// only the clock in question could tell how old it is. It is not kept if it is older than the
// newest offset by more than HeardWithin, since the clock may have moved unnoticed (S63).
//
// Invariant: the clock has been at that place since h.since, or the marker was written before
// that. If no offset confirms the place, or the marker is another one, the client writes only its
// own observations (S74).
func (h history) with(now offsets, memory string, t *timepiece) (merged history, news bool) {
	if len(now) == 0 {
		return h, false
	}
	merged = history{memory: memory, since: t.placed}
	confirmed, contradicted := false, false
	var added offsets // to masters of which nothing is stored, by a client that is not familiar with the clock
	for _, o := range now {
		old, known := h.offsets.of([]string{o.name})
		agrees := known && old.aged(o.at, &t.bounds).agrees(o, t.tolerance)
		confirmed, contradicted = confirmed || agrees, contradicted || known && !agrees
		if known && !agrees && t.state != familiar {
			merged.offsets = append(merged.offsets, old)
			continue
		}
		if !known && len(h.offsets) > 0 && t.state != familiar {
			added = append(added, o)
			continue
		}
		if age := o.at.Sub(old.at); age < 0 || age >= fresh || known && !agrees { // a missing offset counts as very old
			news = true
		}
		if agrees {
			o = o.within(old.aged(o.at, &t.bounds))
		}
		merged.offsets = append(merged.offsets, o)
	}
	if confirmed && !contradicted {
		merged.offsets, news = append(merged.offsets, added...), news || added != nil
	}
	if len(merged.offsets) == 0 {
		return h, false
	}
	disputed := contradicted && t.state != familiar
	if disputed || confirmed && h.memory == memory {
		merged.memory, merged.since = h.memory, h.since
	}
	if disputed || confirmed && !contradicted {
		merged.offsets = merged.offsets.and(h.offsets, now[0].at)
	}
	return merged, news || merged.memory != h.memory
}

// within returns o, cut to what an offset says that it agrees with.
func (o offset) within(old offset) offset {
	o.high = min(o.high, old.high)
	o.low = min(max(o.low, old.low), o.high)
	return o
}

// and returns all with what the stored offsets, at the instant at, say of more masters.
func (all offsets) and(stored offsets, at time.Time) offsets {
	for _, o := range stored {
		_, known := all.of([]string{o.name})
		if !known && at.Sub(o.at).Abs() <= HeardWithin && len(all) < maxOffsets {
			all = append(all, o)
		}
	}
	return all
}
