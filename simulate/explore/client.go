package explore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/weaker"
)

// explorer is a client of a small world: the production redlock.Client, with a
// clock that moves only when the search says so.
type explorer struct {
	run     *miniature
	index   int8
	api     *redlock.Client
	clock   *handClock
	tethers []*tether
	caller  *caller
	crash   int // the step at which it crashed; -1: it has not
	random  uint64
	rounds  map[any]int16 // numbers of the questions that it has asked
	weak    weaker.Client
	writes  bool // although its lease is for reading
}

func newExplorer(x *miniature, index int) *explorer {
	c := &explorer{run: x, index: int8(index), crash: -1, rounds: map[any]int16{}, weak: weaker.Client{Lacks: x.world.lacks, Masters: len(x.masters)}}
	c.clock = &handClock{Mock: noMock, client: c}
	nodes := make([]node.Node, len(x.masters))
	for i, m := range x.masters {
		p := newTether(c, m)
		c.tethers = append(c.tethers, p)
		nodes[i] = p
	}
	opts := []redlock.Option{
		redlock.WithClientID(masters.Owner{Client: index}.ID()),
		redlock.WithTTL(exploredTTL),
		redlock.WithClock(c.weak.Clock(c.clock)),
		redlock.WithLogger(discard),
		seam.Option(x.world.lacks.Seams(seam.Seams{Wait: c.wait, Random: c.next, Unsafe: x.world.unsafe})).(redlock.Option),
	}
	api, err := seam.NewClient(nodes, opts)
	if err != nil {
		panic("simulate: a small world has options that package redlock refuses: " + err.Error())
	}
	c.api = api.(*redlock.Client)
	return c
}

// exploredTTL is the TTL of all locks of small worlds.
const exploredTTL = 300 * time.Millisecond

var (
	discard = slog.New(slog.DiscardHandler)
	noMock  = clock.NewMock()
	noTimer = noMock.AfterFunc(0, nil)
)

// next is the client's source of random numbers: the same in every run.
func (c *explorer) next() uint64 {
	c.random++
	return c.random * 0x9e3779b97f4a7c15
}

func (c *explorer) host() int8 { return c.index }

func (c *explorer) dead() bool { return c.crash >= 0 }

// caller is the code that uses the client. It is a coroutine, which yields wherever it
// waits.
type caller struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	ctx   context.Context
	ready <-chan struct{}
	err   error
	alive bool
	dead  bool
}

// errCrashed unwinds the caller of a client that has crashed.
var errCrashed = errors.New("the client has crashed")

// begins is what every clock shows at first.
var begins = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *explorer) begin() {
	p := &caller{alive: true}
	body := c.run.world.clients[c.index]
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && r != errCrashed {
				panic(fmt.Sprintf("%s: %v", nameOf(int(c.index)), r))
			}
		}()
		p.yield = yield
		body(c)
	})
	c.caller = p
	c.resume()
	c.settle()
}

// wait is the client's seam.Seams.Wait, the only place where its caller blocks.
func (c *explorer) wait(ctx context.Context, ready <-chan struct{}) error {
	p := c.caller
	if p.dead {
		panic(errCrashed)
	}
	p.ctx, p.ready = ctx, ready
	if !p.due() && !p.yield(struct{}{}) {
		p.dead = true
		panic(errCrashed)
	}
	err := p.err
	p.ctx, p.ready, p.err = nil, nil, nil
	return err
}

// due reports whether what the caller waits for is there, or its context has ended.
func (p *caller) due() bool {
	if p.ctx == nil {
		return false
	}
	select {
	case <-p.ready:
		return true
	default:
	}
	if p.ctx.Err() != nil {
		p.err = p.ctx.Err()
		return true
	}
	return false
}

// settle resumes the caller until it has to wait.
func (c *explorer) settle() {
	for c.waits() && c.caller.due() {
		c.run.moved()
		c.resume()
	}
}

func (c *explorer) resume() {
	if _, more := c.caller.next(); !more {
		c.caller.alive = false
	}
}

func (c *explorer) waits() bool { return c.caller.alive && !c.dead() }

func (c *explorer) kill() {
	if c.caller.alive {
		c.caller.stop()
		c.caller.alive = false
	}
}

// crashes ends the client. The messages that it has sent still arrive.
func (c *explorer) crashes() {
	c.run.moved()
	c.crash = len(c.run.steps) - 1
	c.run.check.crashed(c)
	c.kill()
}

// handClock is a client's clock. It stands still until the search moves it, always to
// an instant at which something is due.
type handClock struct {
	*clock.Mock // for the interface
	client      *explorer
	wall, mono  time.Duration
	timers      []*handTimer
	made        int16 // timers so far
	moves       []move
	points      []time.Duration // where a pledge ends, on the wall clock
}

// move is where a clock was after a step.
type move struct {
	step int
	wall time.Duration
}

type handTimer struct {
	due    time.Duration // monotonic
	handle *clock.Timer
}

// Now returns the wall clock's time.
func (k *handClock) Now() time.Time {
	k.client.run.moved() // reading the time does not commute with moving it
	return begins.Add(k.wall)
}

func (k *handClock) Since(t time.Time) time.Duration { return k.Now().Sub(t) }
func (k *handClock) Until(t time.Time) time.Duration { return t.Sub(k.Now()) }

// Monotonic implements drift.Monotonic.
func (k *handClock) Monotonic() time.Duration { return k.mono }

// AfterFunc makes a timer with a strand of its own. It may fire at any time once it is
// due.
func (k *handClock) AfterFunc(d time.Duration, f func()) *clock.Timer {
	c := k.client
	c.run.moved()
	handle := *noTimer
	t := &handTimer{due: k.mono + max(0, d), handle: &handle}
	k.timers = append(k.timers, t)
	name := strandName{kind: strandTimer, client: c.index, number: k.made}
	k.made++
	st := c.run.put(name, c.host(), func() {
		k.drop(t)
		if !c.dead() && handle.Stop() {
			c.run.moved()
			f()
		}
	})
	st.ready = func() bool { return t.due <= k.mono }
	st.caused = func() []int { return k.passed(k.wall - k.mono + t.due) }
	return &handle
}

func (k *handClock) drop(t *handTimer) {
	for i, o := range k.timers {
		if o == t {
			k.timers = append(k.timers[:i:i], k.timers[i+1:]...)
			return
		}
	}
}

// untilNext returns how long it is until something is due next; zero if nothing is.
func (c *explorer) untilNext() time.Duration {
	if c.dead() {
		return 0
	}
	least := time.Duration(0)
	soonest := func(d time.Duration) {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	for _, t := range c.clock.timers {
		soonest(t.due - c.clock.mono)
	}
	for _, at := range c.clock.points {
		soonest(at - c.clock.wall)
	}
	return least
}

// advance moves the clock on.
func (c *explorer) advance(d time.Duration) {
	k := c.clock
	k.wall += d
	k.mono += d
	k.moves = append(k.moves, move{len(c.run.steps) - 1, k.wall})
}

// passed returns the step by which the clock came to an instant, if any.
func (k *handClock) passed(at time.Duration) []int {
	for _, m := range k.moves {
		if m.wall >= at {
			return []int{m.step}
		}
	}
	return nil
}

// over reports whether a pledge that ends at that instant of the client's wall clock is
// over. Nothing is promised to a client that has crashed.
func (c *explorer) over(at time.Duration) bool { return c.dead() || c.clock.wall >= at }

// ended returns the step that made over true.
func (c *explorer) ended(at time.Duration) []int {
	if s := c.clock.passed(at); s != nil || !c.dead() {
		return s
	}
	return []int{c.crash}
}

// nameOf is how reports call a client.
func nameOf(index int) string { return "client " + strconv.Itoa(index+1) }
