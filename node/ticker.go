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
	d     time.Duration
	f     func()

	mu    sync.Mutex
	timer *clock.Timer // nil: stopped
}

func newTicker(c clock.Clock, d time.Duration, f func()) *ticker {
	t := &ticker{clock: c, d: d, f: f}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = c.AfterFunc(d, t.tick)
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
	if t.timer != nil {
		t.timer = t.clock.AfterFunc(t.d, t.tick)
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
