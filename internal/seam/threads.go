package seam

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"
)

// Threads are what the transport of a node runs on, beside its clock and its
// dialer: what the simulator replaces. Every field is set.
type Threads struct {
	// Go begins a thread.
	Go func(f func())
	// Wait is where a thread blocks, other than in its connection: as that of
	// Seams.
	Wait func(ctx context.Context, ready <-chan struct{}) error
	// Yield lets the others go first that could go on.
	Yield func()
	// Now is the time by which the deadlines of connections are meant.
	Now func() time.Time
	// Random returns 64 random bits. It is called from any thread.
	Random func() uint64
}

// System are the Threads of production.
var System = Threads{
	Go:     func(f func()) { go f() },
	Wait:   Select,
	Yield:  runtime.Gosched,
	Now:    time.Now,
	Random: rand.Uint64,
}

// Await waits for as long as it takes.
func (t *Threads) Await(ready <-chan struct{}) {
	_ = t.Wait(context.Background(), ready)
}
