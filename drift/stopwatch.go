package drift

import (
	"time"

	"github.com/benbjohnson/clock"
)

// Stopwatch measures elapsed time as the larger of what the monotonic and what
// the wall clock say, because each can hide time that really passed: Linux's
// monotonic clock stands still while the machine is suspended (S12), and the
// wall clock can be set back (S11). Counting too much only shortens a lease;
// counting too little lets two clients hold it.
//
// A Stopwatch is safe for concurrent use.
type Stopwatch struct {
	clock  clock.Clock
	mono   Monotonic // nil: the monotonic reading travels inside time.Time
	origin time.Time
	wall   time.Time // the origin without its monotonic reading
}

// Monotonic is implemented by clocks whose monotonic reading is not part of
// Now. The clock of package time carries it inside time.Time, where only
// package time can put it; a simulated clock implements this instead.
type Monotonic interface {
	Monotonic() time.Duration
}

// Instant is one reading of a Stopwatch. Instants of different stopwatches do
// not compare. The zero Instant is the moment the stopwatch was made.
type Instant struct {
	mono, wall time.Duration
}

// NewStopwatch returns a stopwatch that reads c.
func NewStopwatch(c clock.Clock) *Stopwatch {
	mono, _ := c.(Monotonic)
	now := c.Now()
	return &Stopwatch{clock: c, mono: mono, origin: now, wall: now.Round(0)} // Round(0) drops the monotonic reading
}

// Now reads both clocks.
func (s *Stopwatch) Now() Instant {
	now := s.clock.Now()
	in := Instant{wall: now.Round(0).Sub(s.wall)}
	if s.mono != nil {
		in.mono = s.mono.Monotonic()
	} else {
		in.mono = now.Sub(s.origin)
	}
	return in
}

// Since returns the time since start: the larger of the monotonic and the wall
// difference, and never less than zero.
func (s *Stopwatch) Since(start Instant) time.Duration {
	return s.Now().Sub(start)
}

// Earlier returns the instant that was d before i.
func (i Instant) Earlier(d time.Duration) Instant { return Instant{i.mono - d, i.wall - d} }

// Or returns the earlier of two instants. If the clocks disagree about which that is, it
// returns the earlier reading of each clock: time counted from there is enough for either.
func (i Instant) Or(other Instant) Instant {
	return Instant{min(i.mono, other.mono), min(i.wall, other.wall)}
}

// Monotonic returns what the monotonic clock alone says.
func (i Instant) Monotonic() time.Duration { return i.mono }

// Sub returns the time from start to i as Since does.
func (i Instant) Sub(start Instant) time.Duration {
	return max(0, i.mono-start.mono, i.wall-start.wall)
}
