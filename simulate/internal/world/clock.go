package world

import (
	"context"
	"time"

	"github.com/benbjohnson/clock"
)

// Clock is the clock of one simulated host. It satisfies clock.Clock, and has a monotonic
// reading beside the wall clock, so that a suspend, a step and a wrong rate have the effects
// that they have on a real clock.
//
// Timers run on the monotonic reading. A Clock is for the goroutine that runs its
// schedule alone.
type Clock struct {
	*clock.Mock // for the interface; its own time stands still

	handle  *clock.Timer // every timer's handle is a copy of it
	host    *Host
	anchor  time.Duration // true time of the last change
	wall    time.Duration // readings at the anchor
	mono    time.Duration
	Rate    int64         // of both readings, in millionths more than one
	Frozen  bool          // the wall clock stands still
	Asleep  int           // suspends that last: if any, the monotonic clock stands still
	Uneven  int           // how often the two readings parted, by a step, a freeze or a suspend
	rocked  time.Duration // true time until which it was last wrong; see WrongUntil
	ahead   time.Duration // the same, but for what only sets it back; see MisledUntil
	gained  time.Duration // true time until which it last went ahead; see GainedUntil
	pending []*timer
}

// Epoch is when every schedule begins.
var Epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Forever is longer than any schedule.
const Forever = 1000 * time.Hour

var epochNanos = Epoch.UnixNano()

func newClock(h *Host) *Clock {
	mock := clock.NewMock()
	return &Clock{Mock: mock, handle: mock.AfterFunc(0, nil), host: h, rocked: -Forever, ahead: -Forever, gained: -Forever}
}

// passed returns how far a running clock moved since the anchor.
func (c *Clock) passed() time.Duration {
	d := c.host.World.Now - c.anchor
	if c.Rate == 0 {
		return d
	}
	return d + d/1e6*time.Duration(c.Rate) + d%1e6*time.Duration(c.Rate)/1e6
}

func (c *Clock) WallNow() time.Duration {
	if c.Frozen {
		return c.wall
	}
	return c.wall + c.passed()
}

// Monotonic implements drift.Monotonic.
func (c *Clock) Monotonic() time.Duration {
	if c.Asleep > 0 {
		return c.mono
	}
	return c.mono + c.passed()
}

// Now returns the wall clock's time.
func (c *Clock) Now() time.Time { return Epoch.Add(c.WallNow()) }

// Nanos is Now in nanoseconds since 1970.
func (c *Clock) Nanos() int64 { return epochNanos + int64(c.WallNow()) }

// Plain reports whether both readings move as true time does.
func (c *Clock) Plain() bool { return c.Rate == 0 && !c.Frozen && c.Asleep == 0 }

// Since returns the wall time since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Until returns the wall time until t.
func (c *Clock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// change moves the anchor to now and lets set change how the readings go on.
func (c *Clock) change(set func()) {
	c.rocked, c.ahead, c.gained = c.WrongUntil(), c.MisledUntil(), c.GainedUntil()
	c.wall, c.mono = c.WallNow(), c.Monotonic()
	c.anchor = c.host.World.Now
	set()
	for _, a := range c.pending {
		a.schedule()
	}
}

func (c *Clock) Step(d time.Duration) {
	c.change(func() { c.wall += d; c.Uneven++ })
	c.rocked = c.host.World.Now
	if d > 0 {
		c.ahead, c.gained = c.host.World.Now, c.host.World.Now
	}
}

// GainedUntil is until when, in true time, the clock went ahead: it was set forward, or ran too
// fast. That is now, if it still runs too fast.
func (c *Clock) GainedUntil() time.Duration {
	if c.Rate > 0 {
		return c.host.World.Now
	}
	return c.gained
}

// Loses reports whether the clock falls behind: it stands still, or runs too slow.
func (c *Clock) Loses() bool { return c.Frozen || c.Rate < 0 }

// WrongUntil is until when, in true time, the clock was wrong: set, or at a rate that a
// good clock does not have, or at rest. That is now, if it is still wrong.
func (c *Clock) WrongUntil() time.Duration {
	if c.Rate < -goodRate {
		return c.host.World.Now
	}
	return max(c.rocked, c.MisledUntil())
}

// MisledUntil is WrongUntil for a clock that must not be believed afterwards: a clock that was
// only set back, or ran too slow, has ended no key early.
func (c *Clock) MisledUntil() time.Duration {
	if c.Frozen || c.Asleep > 0 || c.Rate > goodRate {
		return c.host.World.Now
	}
	return c.ahead
}

// goodRate is how many millionths a good clock may run apart.
const goodRate = 2000

func (c *Clock) SetRate(millionths int) { c.change(func() { c.Rate = int64(millionths) }) }
func (c *Clock) Freeze()                { c.change(func() { c.Frozen = true; c.Uneven++ }) }
func (c *Clock) Thaw()                  { c.change(func() { c.Frozen = false }) }
func (c *Clock) suspend()               { c.change(func() { c.Asleep++; c.Uneven++ }) }
func (c *Clock) wake()                  { c.change(func() { c.Asleep = max(0, c.Asleep-1) }) }

// Crash drops every timer, and ends all suspends.
func (c *Clock) crash() {
	for _, a := range c.pending {
		a.f = nil
	}
	c.pending = nil
	c.change(func() { c.Asleep = 0 })
}

// Heal makes the clock run at the right rate again. It keeps the time that it shows:
// to set it right would be one more step.
func (c *Clock) Heal() { c.change(func() { c.Frozen, c.Rate = false, 0 }) }

// timer is a timer that has not fired.
type timer struct {
	clock  *Clock
	due    time.Duration // monotonic
	event  time.Duration // true time of the event that looks at it next
	handle *clock.Timer  // nil: no caller has one
	f      func()        // nil: it has fired
}

// AfterFunc calls f on the host after d, unless the Timer is stopped before.
func (c *Clock) AfterFunc(d time.Duration, f func()) *clock.Timer {
	// Only package clock can make a Timer that can be stopped, and that is
	// expensive. A copy of one can be stopped as well; it can do nothing else.
	a := &struct {
		timer
		copy clock.Timer
	}{timer{clock: c, f: f}, *c.handle}
	a.handle = &a.copy
	c.add(&a.timer, d)
	return a.handle
}

// Later is AfterFunc without the handle, which costs more than the rest of a timer.
func (c *Clock) Later(d time.Duration, f func()) *timer {
	a := &timer{clock: c, f: f}
	c.add(a, d)
	return a
}

func (c *Clock) add(a *timer, d time.Duration) {
	a.due, a.event = c.Monotonic()+max(0, d), -1
	c.pending = append(c.pending, a)
	a.schedule()
}

// schedule makes sure that an event looks at the timer when it is due. A clock that
// is asleep has no such event: waking up schedules anew.
func (a *timer) schedule() {
	c := a.clock
	if c.Asleep > 0 {
		return
	}
	left := max(0, a.due-c.Monotonic())
	at := c.host.World.Now + left
	if c.Rate != 0 {
		per := 1e6 + c.Rate
		at = c.host.World.Now + time.Duration((int64(left)/per)*1e6+(int64(left)%per*1e6+per-1)/per)
	}
	if a.event >= 0 && a.event <= at && a.event >= c.host.World.Now {
		return // that event comes soon enough, and schedules again
	}
	a.event = at
	c.host.World.At(at, c.host, a)
}

// Run fires the timer if it is due and was not stopped.
func (a *timer) Run() {
	if a.f == nil {
		return // it was stopped, or an earlier event has fired it
	}
	c := a.clock
	if c.Monotonic() < a.due {
		a.event = -1
		a.schedule()
		return
	}
	f := a.f
	a.stop()
	if a.handle == nil || a.handle.Stop() {
		f()
	}
}

// stop keeps the timer from firing.
func (a *timer) stop() {
	if a.f == nil {
		return
	}
	a.f = nil
	c := a.clock
	for i, p := range c.pending {
		if p == a {
			last := len(c.pending) - 1
			c.pending[i] = c.pending[last]
			c.pending[last] = nil
			c.pending = c.pending[:last]
			return
		}
	}
}

// Sleep stops the running Process for d.
func (c *Clock) Sleep(d time.Duration) {
	c.host.World.Running.Sleep(context.Background(), d)
}

// After returns a channel that delivers the time after d.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.Timer(d).C }

// Timer returns a timer whose channel delivers the time after d. It cannot be
// reset.
func (c *Clock) Timer(d time.Duration) *clock.Timer {
	ch := make(chan time.Time, 1)
	t := c.AfterFunc(d, func() { ch <- c.Now() })
	t.C = ch
	return t
}

// Ticker is not simulated.
func (c *Clock) Ticker(time.Duration) *clock.Ticker {
	panic("simulate: Clock.Ticker is not simulated: use AfterFunc")
}

// Tick is not simulated.
func (c *Clock) Tick(time.Duration) <-chan time.Time {
	panic("simulate: Clock.Tick is not simulated: use AfterFunc")
}

// WithDeadline returns a context that ends when the clock's wall time is d.
func (c *Clock) WithDeadline(parent context.Context, d time.Time) (context.Context, context.CancelFunc) {
	return c.WithTimeout(parent, c.Until(d))
}

// WithTimeout returns a context that ends after d on this clock.
func (c *Clock) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(parent)
	ctx := &deadlined{Context: inner, deadline: c.Now().Add(d)}
	if d <= 0 {
		cancel(context.DeadlineExceeded)
		return ctx, func() {}
	}
	t := c.Later(d, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() {
		t.stop()
		cancel(context.Canceled)
	}
}

// deadlined is a context with a deadline on a simulated clock. It wraps one of package
// context, so that contexts derived from it end at the same instant, without a
// goroutine.
type deadlined struct {
	context.Context
	deadline time.Time
}

func (d *deadlined) Deadline() (time.Time, bool) { return d.deadline, true }

func (d *deadlined) Err() error {
	err := d.Context.Err()
	if err != nil && context.Cause(d.Context) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return err
}
