package guard

import (
	"strconv"
	"strings"
	"time"
)

// offsets is what the clients of a master write beside its marker: how far its clock is
// ahead of that of each other master. The next client learns by it what the clock did
// before it came (S58). The difference of two masters' clocks is the same for every
// client, whatever its own clock says.
type offsets []offset

// offset is how far a master's clock was ahead of another's at an instant on its own.
type offset struct {
	run       string // of the other master
	at        time.Time
	low, high time.Duration
}

// maxOffsets bounds the offsets that are stored and read.
const maxOffsets = 64

// parseOffsets reads what String wrote; nil: it is something else.
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

// near reports whether it can be written.
func (o offset) near() bool { return max(-o.low, o.high) < farthest*time.Microsecond }

// String returns the stored form.
func (all offsets) String() string {
	var b []byte
	for i, o := range all {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(append(b, o.run...), ':')
		b = append(strconv.AppendInt(b, o.at.UnixMicro(), 10), ':')
		b = append(strconv.AppendInt(b, int64(o.low/time.Microsecond)-1, 10), ':')
		b = strconv.AppendInt(b, int64(o.high/time.Microsecond)+1, 10)
	}
	return string(b)
}

// of returns the offset to the master with that run_id.
func (all offsets) of(run string) (offset, bool) {
	for _, o := range all {
		if o.run == run {
			return o, true
		}
	}
	return offset{}, false
}

// fresh is how old an offset may be before a client writes it anew.
const fresh = 500 * time.Millisecond

// aged returns the offset as it was, or will be, at another instant: wider by drift.
func (o offset) aged(at time.Time, b *bounds) offset {
	within := b.drift(at.Sub(o.at))
	return offset{o.run, at, o.low - within, o.high + within}
}

// agrees reports whether two offsets at the same instant can both be true.
func (o offset) agrees(other offset, tolerance time.Duration) bool {
	return other.low-o.high <= tolerance && o.low-other.high <= tolerance
}

// with merges the offsets that a client knows now into all, the stored ones. It reports whether
// the result should be written. A stored offset still holds, so it only gets wider by drift, and
// the new one is cut to it: many clients one after another let a clock move no further than one
// client does. If the two cannot both be true, a clock was set. Then a client that is familiar
// with the clock knows better, and writes its own offset; any other client keeps the stored one.
//
// Invariant: all stored offsets are of one place of the clock, but for what a client contradicts
// that is not familiar with it. An offset to a master that we do not reach is kept only if one to
// a master that we do reach confirms what is written, and none contradicts it (S71): how old it
// is only the clock in question could tell. It is not kept if it is older than the newest offset
// by more than HeardWithin, since the clock may have moved by less than anybody notices (S63).
func (all offsets) with(now []offset, t *timepiece) (merged offsets, news bool) {
	b := &t.bounds
	confirmed, moved := false, false
	for _, o := range now {
		old, known := all.of(o.run)
		agrees := known && old.aged(o.at, b).agrees(o, b.tolerance)
		switch {
		case known && !agrees && t.state != familiar:
			merged, confirmed = append(merged, old), true
			continue
		case known && !agrees:
			moved = true
		case known:
			confirmed = true
		}
		if age := o.at.Sub(old.at); age < 0 || age >= fresh { // what is not written is very old
			news = true
		}
		if agrees {
			old = old.aged(o.at, b)
			o.high = min(o.high, old.high)
			o.low = min(max(o.low, old.low), o.high)
		}
		merged = append(merged, o)
	}
	for _, o := range all {
		_, known := merged.of(o.run)
		over := len(now) > 0 && now[0].at.Sub(o.at).Abs() > HeardWithin
		if !known && !over && confirmed && !moved && len(merged) < maxOffsets {
			merged = append(merged, o) // of a master that we do not reach
		}
	}
	return merged, news || moved
}
