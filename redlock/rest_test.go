package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// looked is a scripted master that is looked at.
type looked struct {
	scripted

	idle  func() bool
	renew func(all bool)

	mu    sync.Mutex
	looks int
	keeps error // from voting
	full  error // it stores nothing
	ahead int   // so many of them were before it was asked last
}

func (l *looked) Do(cmd *wire.Command, done func(wire.Reply)) {
	l.mu.Lock()
	l.ahead = l.looks
	l.mu.Unlock()
	l.scripted.Do(cmd, done)
}

func (l *looked) Idle(idle func() bool)  { l.idle = idle }
func (l *looked) Renew(f func(all bool)) { l.renew = f }

func (l *looked) Look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
}

func (l *looked) Votes() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keeps
}

func (l *looked) Stores() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.full
}

func (l *looked) timesLooked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looks
}

// looksAhead is how often it was looked at before it was asked last.
func (l *looked) looksAhead() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ahead
}

// lookedAt are three such masters, and a client of them.
func lookedAt(t *testing.T, opts ...redlock.Option) (clk *clock.Mock, masters []*looked, c *redlock.Client) {
	t.Helper()
	clk = clock.NewMock()
	var nodes []node.Node
	for i := range 3 {
		masters = append(masters, &looked{scripted: scripted{addr: fmt.Sprintf("master-%c", 'A'+i)}})
		nodes = append(nodes, masters[i])
	}
	c, err := redlock.New(nodes, append([]redlock.Option{redlock.WithClock(clk), redlock.WithLogger(slog.New(slog.DiscardHandler)), relaxed}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeWith(t, c, nodes) })
	return clk, masters, c
}

// answers has the masters answer what they are asked next.
func answers(t *testing.T, masters []*looked, op wire.Op, value any) {
	t.Helper()
	for _, q := range asked(t, masters, op) {
		q.answer(wire.Reply{Value: value})
	}
}

// asked is what the masters are asked next.
func asked(t *testing.T, masters []*looked, op wire.Op) (all []question) {
	t.Helper()
	for _, m := range masters {
		all = append(all, m.next(t, op))
	}
	return all
}

func TestRest_begins_when_nobody_has_used_the_client_for_ten_seconds(t *testing.T) {
	clk, masters, c := lookedAt(t)
	mustRestIn := func(after string, d time.Duration) {
		t.Helper()
		for passed := time.Duration(0); passed < d; passed += time.Second {
			for _, m := range masters {
				if m.idle() {
					t.Fatalf("%s: it rests after %v, want %v", after, passed, d)
				}
			}
			clk.Add(time.Second)
		}
		for _, m := range masters {
			if !m.idle() {
				t.Errorf("%s: it does not rest after %v", after, d)
			}
		}
	}
	mustRestIn("its start", 10*time.Second)

	lasting := c.Mutex("orders", redlock.NoRenew())
	got := make(chan *redlock.Lease, 1)
	go func() { got <- leased(t)(lasting.TryLock(ctx)) }()
	answers(t, masters, wire.OpRead, []any{}) // the end of the rest
	answers(t, masters, wire.OpAcquire, "OK")
	lease := arrival(t, "the lease", got)
	masters[0].idle()
	clk.Add(20 * time.Second)
	if masters[0].idle() {
		t.Error("it rests under a lease")
	}
	lease.Release()
	answers(t, masters, wire.OpRelease, int64(1))
	mustRestIn("a lease", 10*time.Second)

	try := func() chan error {
		failed := make(chan error, 1)
		go func() {
			_, err := lasting.TryLock(ctx)
			failed <- err
		}()
		return failed
	}
	refuse := func(failed chan error) {
		t.Helper()
		answers(t, masters[:2], wire.OpAcquire, nil)
		mustBe(t, arrival(t, "the refusal", failed), redlock.ErrTaken)
		answers(t, masters[2:], wire.OpAcquire, nil)
		answers(t, masters[2:], wire.OpRelease, int64(1))
	}
	failed := try()
	answers(t, masters, wire.OpRead, []any{})
	refuse(failed)
	clk.Add(5 * time.Second)
	refuse(try())
	mustRestIn("a refusal", 10*time.Second)
}

func TestRest_ends_with_a_look_before_the_first_vote(t *testing.T) {
	clk, masters, c := lookedAt(t)
	clk.Add(10 * time.Second)
	for _, m := range masters {
		m.idle()
	}
	got := make(chan *redlock.Lease, 2)
	for _, name := range []string{"orders", "bills"} {
		go func() { got <- leased(t)(c.Mutex(name, redlock.NoRenew()).TryLock(ctx)) }()
	}

	var looks []question
	for _, m := range masters {
		q := m.next(t, wire.OpRead)
		if n := m.timesLooked(); n != 1 {
			t.Errorf("%s was looked at %d times", m.addr, n)
		}
		if len(q.cmd.Keys) != 1 {
			t.Errorf("it reads %q, and a user without the right to the clock's key fills the log of denials", q.cmd.Keys)
		}
		looks = append(looks, q)
	}
	looks[1].answer(wire.Reply{Err: &wire.Error{Node: masters[1].addr, Op: wire.OpRead, Err: node.ErrDown}})
	looks[0].answer(wire.Reply{Value: []any{}})
	for _, m := range masters {
		m.mustNotBeAsked(t) // one is no quorum
	}
	looks[2].answer(wire.Reply{Value: []any{}})

	for range 2 {
		answers(t, masters, wire.OpAcquire, "OK")
	}
	for range 2 {
		arrival(t, "the lease", got)
	}
	if masters[0].idle() {
		t.Error("it still rests")
	}
}

// No call waits for a minority that hangs. A master that has restarted answers, but does not vote.
func TestRest_ends_when_a_quorum_that_votes_has_answered(t *testing.T) {
	clk, masters, c := lookedAt(t)
	masters[1].keeps = errors.New("it may have lost its memory")
	clk.Add(10 * time.Second)
	masters[0].idle()
	got := make(chan *redlock.Lease, 1)
	go func() { got <- leased(t)(c.Mutex("orders", redlock.NoRenew()).TryLock(ctx)) }()
	looks := asked(t, masters, wire.OpRead)

	looks[0].answer(wire.Reply{Value: []any{}})
	looks[1].answer(wire.Reply{Value: []any{}})
	for _, m := range masters {
		m.mustNotBeAsked(t)
	}
	masters[1].mu.Lock()
	masters[1].keeps = nil // another look at it was answered
	masters[1].mu.Unlock()
	looks[2].answer(wire.Reply{Value: []any{}})
	answers(t, masters, wire.OpAcquire, "OK")
	arrival(t, "the lease", got).Release()
	answers(t, masters, wire.OpRelease, int64(1))

	clk.Add(10 * time.Second)
	masters[0].idle()
	clk.Add(10 * time.Second)
	if !masters[0].idle() {
		t.Fatal("it does not rest")
	}
	go func() { got <- leased(t)(c.Mutex("orders", redlock.NoRenew()).TryLock(ctx)) }()
	masters[2].next(t, wire.OpRead) // it hangs
	answers(t, masters[:2], wire.OpRead, []any{})
	answers(t, masters, wire.OpAcquire, "OK")
	arrival(t, "the lease", got)
}

// Heartbeats notice masters that hang, whose messages an observer misses.
func TestRest_does_not_begin_while_somebody_observes(t *testing.T) {
	clk, masters, c := lookedAt(t, redlock.WithTTL(2*time.Minute)) // an observer looks every 40 s by itself
	within, giveUp := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range c.Election("leader").Observe(within) {
		}
	}()
	answers(t, masters, wire.OpRead, []any{})
	eventually(t, "it observes", func() bool { return masters[2].listening() })
	masters[0].idle()
	clk.Add(20 * time.Second)
	if masters[0].idle() {
		t.Error("it rests")
	}
	giveUp()
	<-over
	masters[0].idle()
	clk.Add(10 * time.Second)
	if !masters[0].idle() {
		t.Error("it does not rest afterwards")
	}
}

// To read is to use, too.
func TestRest_does_not_begin_while_somebody_reads(t *testing.T) {
	clk, masters, c := lookedAt(t)
	for range 12 {
		read := make(chan error, 1)
		go func() {
			_, err := c.Inspect(ctx, "orders")
			read <- err
		}()
		answers(t, masters, wire.OpRead, []any{})
		arrival(t, "the end of Inspect", read)
		clk.Add(time.Second)
		if masters[0].idle() {
			t.Fatal("it rests")
		}
	}
}

func TestRest_counts_for_how_long_a_call_took_but_not_the_age_of_votes(t *testing.T) {
	took := make(chan time.Duration, 2)
	clk, masters, c := lookedAt(t, redlock.WithObserver(func(e redlock.Event) {
		if e.Kind == redlock.LockAcquired {
			took <- e.Elapsed
		}
	}))
	clk.Add(10 * time.Second)
	masters[0].idle()
	got := make(chan *redlock.Lease, 1)
	go func() { got <- leased(t)(c.Mutex("orders", redlock.NoRenew()).TryLock(ctx)) }()
	looks := asked(t, masters, wire.OpRead)
	clk.Add(30 * time.Millisecond)
	for _, q := range looks {
		q.answer(wire.Reply{Value: []any{}})
	}
	answers(t, masters, wire.OpAcquire, "OK")

	first := arrival(t, "the lease", got)

	if d := arrival(t, "the event", took); d != 30*time.Millisecond {
		t.Errorf("it took %v, want 30ms", d)
	}
	go func() { got <- leased(t)(c.Mutex("bills", redlock.NoRenew()).TryLock(ctx)) }()
	answers(t, masters, wire.OpAcquire, "OK")
	if second := arrival(t, "the lease", got); !second.Until().Equal(first.Until()) {
		t.Errorf("a lease after a rest lasts until %v, and one right after it until %v", first.Until(), second.Until())
	}
}

// A quorum that does not answer is found by the operation itself.
func TestRest_ends_without_an_answer_after_a_node_timeout(t *testing.T) {
	clk, masters, c := lookedAt(t)
	clk.Add(10 * time.Second)
	masters[0].idle()
	failed := make(chan error, 1)
	go func() {
		_, err := c.Mutex("orders").TryLock(ctx)
		failed <- err
	}()
	for _, m := range masters {
		m.next(t, wire.OpRead)
	}
	for _, m := range masters {
		m.mustNotBeAsked(t)
	}

	clk.Add(time.Second)

	for _, m := range masters {
		m.next(t, wire.OpAcquire).answer(wire.Reply{Err: &wire.Error{Node: m.addr, Op: wire.OpAcquire, Err: node.ErrDown}})
	}
	mustBe(t, arrival(t, "the error", failed), redlock.ErrNoQuorum)
}

// A master that has restarted is looked at together with the others.
func TestRest_ends_when_a_master_is_connected_again(t *testing.T) {
	clk, masters, _ := lookedAt(t)
	clk.Add(10 * time.Second)
	if !masters[0].idle() {
		t.Fatal("it does not rest")
	}

	masters[1].renew(false)

	answers(t, masters, wire.OpRead, []any{})
	for _, m := range masters {
		if n := m.timesLooked(); n != 1 {
			t.Errorf("%s was looked at %d times", m.addr, n)
		}
	}
	if masters[0].idle() {
		t.Error("it still rests")
	}
}

// So is one that has forgotten everything.
func TestRest_ends_when_a_master_has_lost_its_memory(t *testing.T) {
	clk, masters, _ := lookedAt(t)
	restsAll(t, clk, masters)

	masters[1].renew(true)

	answers(t, masters, wire.OpRead, []any{})
}

// S28: to a client that was suspended all masters' clocks seem to have been set.
func TestRest_ends_when_the_client_was_suspended(t *testing.T) {
	clk := clock.NewMock()
	machine := &suspended{Mock: clk}
	_, masters, _ := lookedAt(t, redlock.WithClock(machine))
	clk.Add(9 * time.Second)
	if machine.sleep(time.Minute); masters[0].idle() {
		t.Error("it rests, and may have been suspended")
	}

	answers(t, masters, wire.OpRead, []any{})
}

// What a client at rest knows of its masters is old.
func TestRest_ends_for_a_look_at_the_health(t *testing.T) {
	clk, masters, c := lookedAt(t)
	clk.Add(10 * time.Second)
	masters[0].idle()
	healthy := make(chan error, 1)
	go func() { healthy <- c.Healthy() }()

	answers(t, masters, wire.OpRead, []any{})

	mustBe(t, arrival(t, "the health", healthy), nil)
	if !masters[0].idle() {
		t.Error("a probe is a use, so that a client that is probed never rests")
	}
}

func TestRest_does_not_end_for_an_option_that_is_out_of_range(t *testing.T) {
	clk, masters, c := lookedAt(t)
	clk.Add(10 * time.Second)
	masters[0].idle()

	if _, err := c.Mutex("orders", redlock.TTL(time.Nanosecond)).TryLock(ctx); err == nil {
		t.Error("no error")
	}

	for _, m := range masters {
		m.mustNotBeAsked(t)
	}
}

func TestRest_keeps_no_caller_that_gives_up(t *testing.T) {
	clk, masters, c := lookedAt(t)
	clk.Add(10 * time.Second)
	masters[0].idle()
	within, giveUp := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Mutex("orders").Lock(within)
		failed <- err
	}()
	for _, m := range masters {
		m.next(t, wire.OpRead)
	}

	giveUp()

	mustBe(t, arrival(t, "the error", failed), context.Canceled)
	for _, m := range masters {
		m.mustNotBeAsked(t)
	}
}

// restsAll has a client rest.
func restsAll(t *testing.T, clk *clock.Mock, masters []*looked) {
	t.Helper()
	clk.Add(10 * time.Second)
	for _, m := range masters {
		if !m.idle() {
			t.Fatal("it does not rest")
		}
	}
}

// The operations that ask the masters do so after the looks.
func TestRest_ends_for_every_operation(t *testing.T) {
	for what, call := range map[string]func(ctx context.Context, c *redlock.Client){
		"TryLock":        func(ctx context.Context, c *redlock.Client) { c.Mutex("orders").TryLock(ctx) },
		"Lock":           func(ctx context.Context, c *redlock.Client) { c.Mutex("orders").Lock(ctx) },
		"TryLock cached": func(ctx context.Context, c *redlock.Client) { c.Mutex("orders", redlock.Cached()).TryLock(ctx) },
		"Adopt":          func(ctx context.Context, c *redlock.Client) { c.Mutex("orders").Adopt(ctx, "crashed/aaaa/1:0") },
		"Acquire":        func(ctx context.Context, c *redlock.Client) { c.Semaphore("sem", 5).Acquire(ctx, 1) },
		"Resize":         func(ctx context.Context, c *redlock.Client) { c.Semaphore("sem", 5).Resize(ctx, 4) },
		"Inspect":        func(ctx context.Context, c *redlock.Client) { c.Inspect(ctx, "orders") },
		"ForceUnlock":    func(ctx context.Context, c *redlock.Client) { c.ForceUnlock(ctx, "orders") },
		"RequestRelease": func(ctx context.Context, c *redlock.Client) { c.RequestRelease(ctx, "orders", "") },
		"Campaign":       func(ctx context.Context, c *redlock.Client) { c.Election("leader").Campaign(ctx, "me") },
		"Leader":         func(ctx context.Context, c *redlock.Client) { c.Election("leader").Leader(ctx) },
		"Arrive":         func(ctx context.Context, c *redlock.Client) { c.Latch("start", 2).Arrive(ctx, "me") },
		"Count":          func(ctx context.Context, c *redlock.Client) { c.Latch("start", 2).Count(ctx) },
		"Wait":           func(ctx context.Context, c *redlock.Client) { c.Latch("start", 2).Wait(ctx) },
	} {
		t.Run(what, func(t *testing.T) {
			clk, masters, c := lookedAt(t)
			restsAll(t, clk, masters)
			within, giveUp := context.WithCancel(ctx)
			over := make(chan struct{})
			go func() { defer close(over); call(within, c) }()

			for _, m := range masters {
				if asked := m.next(t, wire.OpRead); asked.cmd.Script != wire.ScriptMarker || m.looksAhead() != 1 {
					t.Errorf("%s was asked before it was looked at", m.addr)
				}
			}

			giveUp()
			arrival(t, "the end of the call", over)
			for _, m := range masters {
				m.isNotAsked(t)
			}
		})
	}
}

// What a message gives to a waiter counts only if its master was looked at just before.
func TestRest_does_not_begin_while_a_caller_waits_for_a_lock(t *testing.T) {
	clk, masters, c := lookedAt(t, redlock.WithNodeTimeout(time.Minute))
	within, giveUp := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() { defer close(over); c.Mutex("orders").Lock(within) }()
	answers(t, masters, wire.OpAcquire, nil)
	for _, m := range masters {
		m.next(t, wire.OpAsk)
	}
	masters[0].idle()

	clk.Add(20 * time.Second)

	if masters[0].idle() {
		t.Error("it rests while a caller waits")
	}
	giveUp()
	arrival(t, "the end of the call", over)
}

// The end may take a node timeout, and the looks at its beginning are too old for votes by then.
func TestRest_that_is_ending_is_none(t *testing.T) {
	clk, masters, _ := lookedAt(t)
	restsAll(t, clk, masters)
	masters[0].renew(false)

	for _, m := range masters {
		if m.idle() {
			t.Errorf("%s is not looked at while the rest ends", m.addr)
		}
	}

	answers(t, masters, wire.OpRead, []any{})
}

// It was suspended once, and is not suspended from then on.
func TestRest_begins_after_a_suspension(t *testing.T) {
	clk := clock.NewMock()
	machine := &suspended{Mock: clk}
	_, masters, _ := lookedAt(t, redlock.WithClock(machine))
	machine.sleep(time.Minute)
	masters[0].idle()
	answers(t, masters, wire.OpRead, []any{})
	clk.Add(5 * time.Second)
	masters[0].idle()

	clk.Add(5 * time.Second)

	if !masters[0].idle() {
		t.Error("it does not rest")
	}
	masters[0].mustNotBeAsked(t)
}

// The time that the looks took is not taken from the lease, nor from the time in which the masters may
// answer.
func TestRest_costs_no_validity(t *testing.T) {
	for what, opts := range map[string][]redlock.MutexOption{"at once": nil, "cached": {redlock.Cached()}} {
		t.Run(what, func(t *testing.T) {
			const timeout = time.Second
			clk, masters, c := lookedAt(t, redlock.WithTTL(10*time.Second), redlock.WithNodeTimeout(timeout))
			restsAll(t, clk, masters)
			got := make(chan *redlock.Lease, 1)
			go func() { got <- leased(t)(c.Mutex("orders", opts...).TryLock(ctx)) }()
			looks := asked(t, masters, wire.OpRead)

			clk.Add(timeout - time.Millisecond)
			for _, look := range looks {
				look.answer(wire.Reply{Value: []any{}})
			}
			asks := asked(t, masters, wire.OpAcquire)
			clk.Add(timeout / 2)
			for _, ask := range asks {
				ask.answer(wire.Reply{Value: "OK"})
			}

			if lease := arrival(t, "the lease", got); lease.Remaining() < 9*time.Second {
				t.Errorf("the lease has %v left", lease.Remaining())
			}
		})
	}
}

// Close tells its nodes nothing more once it has begun.
func TestRest_of_a_closed_client_does_not_end(t *testing.T) {
	clk, masters, c := lookedAt(t)
	restsAll(t, clk, masters)
	c.Close()

	masters[1].renew(false)
	mustBe(t, c.Healthy(), redlock.ErrClosed)

	for _, m := range masters {
		m.mustNotBeAsked(t)
	}
}

func TestRest_ends_for_callers_when_the_client_is_closed(t *testing.T) {
	clk, masters, c := lookedAt(t)
	restsAll(t, clk, masters)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Mutex("orders").Lock(ctx)
		failed <- err
	}()
	for _, m := range masters {
		m.next(t, wire.OpRead)
	}

	go c.Close()

	mustBe(t, arrival(t, "the error", failed), redlock.ErrClosed)
}

func TestRest_ends_for_a_probe_when_the_client_is_closed(t *testing.T) {
	clk, masters, c := lookedAt(t)
	for _, m := range masters {
		m.keeps = errors.New("it may have lost its memory")
	}
	restsAll(t, clk, masters)
	failed := make(chan error, 1)
	go func() { failed <- c.Healthy() }()
	asked(t, masters, wire.OpRead)

	go c.Close()

	mustBe(t, arrival(t, "the error", failed), redlock.ErrClosed)
}

// Close comes when a probe has found the client open, before the looks.
func TestRest_does_not_begin_to_end_when_the_client_is_closed(t *testing.T) {
	steps := &seam.Steps{Stop: func() {}}
	clk, masters, c := lookedAt(t, seam.Option(seam.Seams{Guarded: true, Steps: steps, Wait: func(context.Context, <-chan struct{}) error {
		return nil // the probe that Close waits for stands still below it
	}}).(redlock.Option))
	restsAll(t, clk, masters)
	steps.Stop = func() {
		steps.Stop = func() {}
		c.Close()
	}

	err := c.Healthy()

	mustBe(t, err, redlock.ErrClosed)
	for _, m := range masters {
		if m.timesLooked() > 0 {
			t.Errorf("%s is looked at", m.addr)
		}
	}
}

// A probe comes between any two steps of Close.
func TestRest_that_begins_to_end_while_the_client_is_closed_ends(t *testing.T) {
	waited := false
	ended := make(chan struct{})
	close(ended)
	for step, tried := 0, true; tried; step++ {
		steps, probing := &seam.Steps{Stop: func() {}}, false
		var over <-chan struct{} = ended // of the rest, if the probe waits for that
		clk, masters, c := lookedAt(t, seam.Option(seam.Seams{Guarded: true, Steps: steps, Wait: func(_ context.Context, ready <-chan struct{}) error {
			if probing {
				over, waited = ready, true
				return nil
			}
			select { // Close waits for what is under way
			case <-over:
			default:
				t.Errorf("at step %d: the probe waits on", step)
			}
			return nil
		}}).(redlock.Option))
		restsAll(t, clk, masters)
		left := step
		tried = false
		steps.Stop = func() {
			if left--; left < 0 {
				steps.Stop, tried, probing = func() {}, true, true
				c.Healthy()
				probing = false
			}
		}

		c.Close()
	}
	if !waited {
		t.Error("no probe ever came in time to wait")
	}
}

// A caller that has given up is told so at once, and nothing is asked for it.
func TestRest_does_not_end_for_a_caller_that_has_given_up(t *testing.T) {
	clk, masters, c := lookedAt(t)
	restsAll(t, clk, masters)
	within, giveUp := context.WithCancel(ctx)
	giveUp()

	_, err := c.Mutex("orders").TryLock(within)

	mustBe(t, err, context.Canceled)
	for _, m := range masters {
		m.mustNotBeAsked(t)
	}
}

// L88: a master that does not vote is not asked whether it stores locks: what it said before is old.
func TestL88_a_master_that_does_not_vote_says_why_and_not_that_it_was_full(t *testing.T) {
	_, masters, c := lookedAt(t)
	full, down := errors.New("full"), errors.New("down")
	masters[0].keeps, masters[0].full, masters[1].full = down, full, full

	failed := new(redlock.Error)
	if err := c.Healthy(); !errors.As(err, &failed) || !errors.Is(err, redlock.ErrNoQuorum) {
		t.Fatalf("Healthy: %v", err)
	}

	for i, want := range []error{down, full, nil} {
		if got := failed.Votes[i].Err; got != want {
			t.Errorf("%s: %v, want %v", masters[i].addr, got, want)
		}
	}
}

// S12: a lock that the process has was taken before the suspension. A caller that gets it afterwards, when little of it
// is left, is told of its end in time.
func TestS12_a_cached_lock_that_is_used_after_a_suspension_ends_in_time(t *testing.T) {
	clk := clock.NewMock()
	machine := &suspended{Mock: clk}
	_, masters, c := lookedAt(t, redlock.WithClock(machine), redlock.WithTTL(10*time.Second))
	m := c.Mutex("orders", redlock.Cached())
	got := make(chan *redlock.Lease, 1)
	go func() { got <- leased(t)(m.Lock(ctx)) }()
	answers(t, masters, wire.OpAcquire, "OK")
	first := arrival(t, "the lease", got)
	clk.Add(800 * time.Millisecond)
	before := first.Remaining()
	answers(t, masters, wire.OpExtend, int64(1)) // the next renewal is seconds away
	eventually(t, "it is renewed", func() bool { return first.Remaining() > before })
	left := first.Remaining()
	noError(t, first.Unlock(ctx))
	machine.sleep(left - 100*time.Millisecond)

	section, err := m.Lock(ctx)
	noError(t, err)
	clk.Add(100 * time.Millisecond)

	eventually(t, "its end is told", func() bool { return section.Context().Err() != nil })
}

// An observer waits for messages, which do not come any more.
func TestClose_ends_for_those_who_observe(t *testing.T) {
	_, masters, c := lookedAt(t)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range c.Election("leader").Observe(ctx) {
		}
	}()
	answers(t, masters, wire.OpRead, []any{})
	eventually(t, "it observes", func() bool { return masters[2].listening() })

	go c.Close()

	arrival(t, "the end of Observe", over)
}

// L89: a process went to rest when it had learned that a name moves. A campaign ends that rest, or it would be told
// for ever that the name moves.
func TestL89_a_campaign_of_a_process_that_went_to_rest_while_the_name_moved_has_the_masters_looked_at(t *testing.T) {
	g, masters, clocks := lookedGroupsBy(t, "3:a>b")
	restsAll(t, clocks["a"], masters["a"])
	restsAll(t, clocks["b"], masters["b"])
	failed := make(chan error, 1)
	go func() {
		_, err := g.Election("boss").Campaign(ctx, "me")
		failed <- err
	}()

	answers(t, slices.Concat(masters["a"], masters["b"]), wire.OpRead, []any{})

	mustBe(t, arrival(t, "the error", failed), redlock.ErrMoved)
}
