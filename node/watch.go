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

// age is for how long the oldest call has waited.
type age struct {
	watch     *watch // nil: not yet
	unwatched bool   // there is a watch that is not looking
	seen      uint64 // calls that were answered when it last looked
	unmoved   int    // looks since then
}

// watchBy has w look while there are calls.
func (c *conn) watchBy(w *watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.age.watch, c.age.unwatched = w, c.calls.n == 0
	if !c.age.unwatched {
		w.begin()
	}
}

// ageSteps is how many looks without progress make a connection too old.
const ageSteps = 20

// checkAge is called ageSteps times in the age that is allowed and severs the
// connection if its oldest call was there all the time. It returns at how many looks
// in a row that call was there. A client that was paused itself counts the pause as
// one look, so it does not blame the master.
func (c *conn) checkAge() (looks int) {
	c.mu.Lock()
	waiting, answered := c.calls.n > 0, c.taken
	c.age.unwatched = !waiting && c.age.watch != nil
	if !waiting || answered != c.age.seen {
		c.age.seen, c.age.unmoved = answered, 0
	}
	if waiting {
		c.age.unmoved++
	}
	looks = c.age.unmoved
	c.mu.Unlock()
	if looks > ageSteps {
		c.socket.abort()
		c.sever(errStuck)
	}
	return looks
}
