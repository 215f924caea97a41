package node

import (
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// ticker calls f again and again on the injected clock, without a goroutine
// while it waits.
type ticker struct {
	clock clock.Clock
	next  func(pause time.Duration) time.Duration // the pause behind that one; zero: none
	f     func()

	mu    sync.Mutex
	pause time.Duration
	timer *clock.Timer // nil: stopped
}

// newTicker calls f every d.
func newTicker(c clock.Clock, d time.Duration, f func()) *ticker {
	return startTicker(c, d, func(d time.Duration) time.Duration { return d }, f)
}

// newEarlyTicker calls f after first, and again after twice that, and so on, until d has
// about passed.
func newEarlyTicker(c clock.Clock, first, d time.Duration, f func()) *ticker {
	return startTicker(c, first, func(pause time.Duration) time.Duration {
		if pause *= 2; pause < d/2 {
			return pause
		}
		return 0
	}, f)
}

func startTicker(c clock.Clock, first time.Duration, next func(time.Duration) time.Duration, f func()) *ticker {
	t := &ticker{clock: c, next: next, f: f, pause: first}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = c.AfterFunc(first, t.tick)
	return t
}

func (t *ticker) tick() {
	t.mu.Lock()
	stopped := t.timer == nil
	t.mu.Unlock()
	if stopped {
		return
	}
	t.f()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pause = t.next(t.pause); t.timer != nil && t.pause > 0 {
		t.timer = t.clock.AfterFunc(t.pause, t.tick)
	}
}

// stop ends the calls; one may be under way still.
func (t *ticker) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}
