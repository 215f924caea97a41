package node

import (
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// watch looks at the age of a connection's oldest call, again and again for as
// long as there is one: an idle connection needs no timer.
type watch struct {
	clock clock.Clock
	d     time.Duration
	look  func() (busy bool)

	mu    sync.Mutex
	timer *clock.Timer // nil: it is not looking
	ended bool
}

// begin looks from now on, unless it does already.
func (w *watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil && !w.ended {
		w.timer = w.clock.AfterFunc(w.d, w.fire)
	}
}

// fire looks, and goes on if there is a call. A call that comes after the look calls
// begin.
func (w *watch) fire() {
	w.mu.Lock()
	w.timer = nil
	ended := w.ended
	w.mu.Unlock()
	if !ended && w.look() {
		w.begin()
	}
}

// stop ends the looks; one may be under way still.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
