package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

var ctx = context.Background()

const second = time.Second

func TestLock_stores_its_value_on_every_master(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()

	lease := mustLock(t, c.Mutex("orders"))

	for i, v := range ms.holders("orders") {
		if v != lease.Value() {
			t.Errorf("%s holds %q, want %q", ms.nodes[i].addr, v, lease.Value())
		}
	}
	if !lease.Valid() || lease.Err() != nil || lease.Context().Err() != nil {
		t.Errorf("valid %v, err %v, context %v", lease.Valid(), lease.Err(), lease.Context().Err())
	}
	if got, want := lease.Until().Sub(ms.clk.Now()), 968*time.Millisecond; got != want {
		t.Errorf("validity %v, want TTL less drift %v", got, want)
	}
}

func TestUnlock_frees_every_master(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	lease := mustLock(t, c.Mutex("orders"))

	if err := lease.Unlock(ctx); err != nil {
		t.Fatal(err)
	}

	ms.mustBeFree("orders")
	if lease.Valid() || !lease.Until().IsZero() {
		t.Errorf("valid %v until %v after Unlock", lease.Valid(), lease.Until())
	}
	mustBe(t, lease.Err(), redlock.ErrUnlocked)
	mustBe(t, context.Cause(lease.Context()), redlock.ErrUnlocked)
}

func TestS21_second_Unlock_deletes_nothing(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders")
	first := mustLock(t, m)
	first.Unlock(ctx)
	second := mustLock(t, m)

	mustBe(t, first.Unlock(ctx), redlock.ErrNotHeld)

	if !second.Valid() || ms.holders("orders")[0] != second.Value() {
		t.Error("the second Unlock of an old lease touched the new one")
	}
}

func TestS22_release_compares_before_it_deletes(t *testing.T) {
	ms := fiveMasters(t)
	slow, _ := ms.client()
	quick, _ := ms.client()
	old := mustLock(t, slow.Mutex("orders", redlock.NoRenew()))
	ms.pass(second) // the keys have expired
	current := mustLock(t, quick.Mutex("orders"))

	mustBe(t, old.Unlock(ctx), redlock.ErrExpired)

	for _, v := range ms.holders("orders") {
		if v != current.Value() {
			t.Errorf("holder %q, want %q", v, current.Value())
		}
	}
}

func TestTwo_locks_on_one_mutex_exclude_each_other(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders")
	mustLock(t, m)

	_, err := m.TryLock(ctx)

	mustBe(t, err, redlock.ErrTaken)
}

func TestErrors_tell_busy_from_broken(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(*masters, []*link)
		want error
	}{
		{"held by another", func(ms *masters, _ []*link) { hold(ms) }, redlock.ErrTaken},
		{"held by another, two masters down", func(ms *masters, links []*link) {
			hold(ms)
			links[0].set(down)
			links[1].set(down)
		}, redlock.ErrTaken},
		{"three masters down", func(_ *masters, links []*link) {
			for _, l := range links[2:] {
				l.set(down)
			}
		}, redlock.ErrNoQuorum},
	} {
		t.Run(c.name, func(t *testing.T) {
			ms := fiveMasters(t)
			client, links := ms.client()
			c.make(ms, links)

			_, err := client.Mutex("orders").TryLock(ctx)

			mustBe(t, err, c.want)
			for _, other := range []error{redlock.ErrTaken, redlock.ErrNoQuorum, redlock.ErrLost, redlock.ErrExpired} {
				if other != c.want && errors.Is(err, other) {
					t.Errorf("%v is also %v", err, other)
				}
			}
		})
	}
}

func hold(ms *masters) {
	c, _ := ms.client()
	mustLock(ms.t, c.Mutex("orders"))
}

func TestA_failed_lock_says_what_every_node_voted(t *testing.T) {
	ms := fiveMasters(t)
	hold(ms)
	c, links := ms.client()
	links[1].set(down)

	_, err := c.Mutex("orders").TryLock(ctx)

	var failed *redlock.Error
	if !errors.As(err, &failed) || len(failed.Votes) != 5 {
		t.Fatalf("no votes in %v", err)
	}
	if v := failed.Votes[0]; v.Node != "master-A" || v.Vote != quorum.Refused {
		t.Errorf("first vote %+v, want refused by master-A", v)
	}
	var all *multierror.Error
	if !errors.As(err, &all) || len(all.Errors) != 1 {
		t.Fatalf("node errors %v", all)
	}
	var one *wire.Error
	if !errors.As(err, &one) || one.Node != "master-B" || !errors.Is(err, node.ErrDown) {
		t.Errorf("node error %v", one)
	}
	if line := err.Error(); strings.Contains(line, "\n") || !strings.Contains(line, "master-B not connected") {
		t.Errorf("not one readable line: %q", line)
	}
}

func TestS13_quorum_counts_the_configured_nodes(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	for _, l := range links[2:] {
		l.set(down)
	}

	_, err := c.Mutex("orders").TryLock(ctx)

	mustBe(t, err, redlock.ErrNoQuorum)
	ms.mustBeFree("orders")
}

func TestL10_even_split_is_decided_at_once(t *testing.T) {
	ms := newMasters(t, 4)
	left, leftLinks := ms.client()
	right, rightLinks := ms.client()
	leftLinks[2].set(hung)
	leftLinks[3].set(hung)
	rightLinks[0].set(hung)
	rightLinks[1].set(hung)
	results := make(chan error, 2)
	for _, c := range []*redlock.Client{left, right} {
		go func() {
			_, err := c.Mutex("orders").TryLock(ctx)
			results <- err
		}()
	}
	eventually(t, "each has two of four", func() bool {
		return !slices.Contains(ms.holders("orders"), "")
	})

	for _, l := range append(leftLinks, rightLinks...) {
		l.set(holdReplies) // what was hung runs now: each is refused by two
	}
	for _, l := range append(leftLinks, rightLinks...) {
		l.set(up) // no time passes: the refusals alone decide
	}

	mustBe(t, arrival(t, "a result", results), redlock.ErrTaken)
	mustBe(t, arrival(t, "a result", results), redlock.ErrTaken)
	eventually(t, "nothing is left behind", func() bool {
		return strings.Join(ms.holders("orders"), "") == ""
	})
}

func TestA_failed_attempt_leaves_nothing_behind(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	links[0].set(down)
	links[1].set(hung)
	links[2].set(down)
	links[3].set(hung)
	result := make(chan error)
	go func() {
		_, err := c.Mutex("orders").TryLock(ctx)
		result <- err
	}()
	eventually(t, "the attempt is under way", func() bool { return ms.holders("orders")[4] != "" })

	ms.pass(defaults.NodeTimeout)

	mustBe(t, arrival(t, "the result", result), redlock.ErrNoQuorum)
	ms.mustBeFree("orders")
	links[1].set(up) // the acquire runs only now, and the release behind it
	links[3].set(up)
	ms.mustBeFree("orders")
}

func TestL9_Unlock_works_after_the_context_ended(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	request, cancel := context.WithCancel(ctx)
	lease, err := c.Mutex("orders").Lock(request)
	if err != nil {
		t.Fatal(err)
	}
	cancel()

	if lease.Context().Err() != nil {
		t.Error("the end of the request's context ended the lease")
	}
	if err := lease.Unlock(request); err != nil {
		t.Error(err)
	}
	ms.mustBeFree("orders")
}

func TestL9_a_cancelled_attempt_is_cleaned_up(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	for _, l := range links {
		l.set(holdReplies)
	}
	request, cancel := context.WithCancelCause(ctx)
	result := make(chan error)
	go func() {
		_, err := c.Mutex("orders").Lock(request)
		result <- err
	}()
	eventually(t, "the attempt is under way", func() bool { return ms.holders("orders")[4] != "" })
	why := errors.New("the caller went home")

	cancel(why)

	err := arrival(t, "the result", result)
	mustBe(t, err, context.Canceled)
	mustBe(t, err, why)
	ms.mustBeFree("orders")
}

// Whoever gives up leaves every queue, and what it was given goes to the next.
func TestL19_a_waiter_that_is_cancelled_hands_on_what_it_was_given(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.unhurried()
	first, links := ms.unhurried()
	second, _ := ms.unhurried()
	held := mustLock(t, other.Mutex("orders"))
	request, cancel := context.WithCancel(ctx)
	result := lockResult(first.Mutex("orders"), request)
	ms.awaitQueued("orders", 1)
	ms.clk.Add(time.Millisecond)
	got := leaseLater(second.Mutex("orders"))
	ms.awaitQueued("orders", 2)
	for _, l := range links {
		l.set(holdReplies) // first does not hear what it is given
	}
	held.Unlock(ctx)

	cancel()

	mustBe(t, arrival(t, "the result", result), context.Canceled)
	if lease := soon(t, ms, got); !lease.Valid() {
		t.Error("not valid")
	}
}

func TestL18_a_waiter_that_is_cancelled_is_queued_nowhere(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	hold(ms)
	request, cancel := context.WithCancel(ctx)
	result := lockResult(c.Mutex("orders"), request)
	ms.awaitQueued("orders", 1)

	cancel()

	mustBe(t, arrival(t, "the result", result), context.Canceled)
	ms.awaitQueued("orders", 0)
}

func TestL16_Close_ends_every_wait(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	hold(ms)
	one, two := lockResult(c.Mutex("orders"), ctx), lockResult(c.Mutex("orders"), ctx)
	ms.awaitQueued("orders", 1)

	c.Close()

	mustBe(t, arrival(t, "the first result", one), redlock.ErrClosed)
	mustBe(t, arrival(t, "the second result", two), redlock.ErrClosed)
	ms.awaitQueued("orders", 0)
}

// Close releases what the client holds; its own waiters must not be given it.
func TestL17_Close_leaves_nothing_to_its_own_waiters(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	mustLock(t, c.Mutex("orders"))
	result := lockResult(c.Mutex("orders"), ctx)
	ms.awaitQueued("orders", 1)

	c.Close()

	mustBe(t, arrival(t, "the result", result), redlock.ErrClosed)
	ms.mustBeFree("orders")
}

// lockResult waits for a lock, and delivers how that ended.
func lockResult(m *redlock.Mutex, request context.Context) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := m.Lock(request)
		result <- err
	}()
	return result
}

// leaseLater waits for a lock, and delivers it.
func leaseLater(m *redlock.Mutex) <-chan *redlock.Lease {
	got := make(chan *redlock.Lease, 1)
	go func() {
		lease, _ := m.Lock(ctx)
		got <- lease
	}()
	return got
}

// awaitQueued waits until n clients are queued for a lock at every master.
func (ms *masters) awaitQueued(key string, n int) {
	ms.t.Helper()
	eventually(ms.t, fmt.Sprintf("%d are queued everywhere", n), func() bool {
		return !slices.ContainsFunc(ms.nodes, func(m *memory) bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return len(m.queues[key]) != n
		})
	})
}

func TestS6_elapsed_time_is_read_after_the_deciding_vote(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client(redlock.WithNodeTimeout(10 * second))
	for _, l := range links {
		l.set(holdReplies)
	}
	result := make(chan error)
	go func() {
		_, err := c.Mutex("orders", redlock.NoRenew()).TryLock(ctx)
		result <- err
	}()
	eventually(t, "every master said yes", func() bool { return ms.holders("orders")[4] != "" })

	ms.clk.Add(2 * second) // the client was paused; the keys have expired
	hold(ms)
	for _, l := range links {
		l.set(up) // it resumes, and reads five OKs
	}

	mustBe(t, arrival(t, "the result", result), redlock.ErrExpired)
}

func TestS23_time_spent_waiting_is_not_part_of_the_lease(t *testing.T) {
	t.Parallel()
	ms := fiveMasters(t)
	other, _ := ms.client()
	c, _ := ms.client()
	held := mustLock(t, other.Mutex("orders"))
	got := leaseLater(c.Mutex("orders"))
	ms.awaitQueued("orders", 1)
	ms.pass(5 * second) // far longer than a TTL

	held.Unlock(ctx)

	// The validity counts from the last ask, at most a third of the TTL ago.
	lease := receive(t, ms, got)
	if left := lease.Until().Sub(ms.clk.Now()); left < 640*time.Millisecond || left > 988*time.Millisecond {
		t.Errorf("validity %v after a long wait", left)
	}
	eventually(t, "it is renewed at once", func() bool {
		ms.clk.Add(time.Millisecond)
		return lease.Until().Sub(ms.clk.Now()) > 900*time.Millisecond
	})
}

// receive gets what a goroutine under the mocked clock delivers.
func receive[T any](t *testing.T, ms *masters, from <-chan T) T {
	t.Helper()
	for range 10_000 {
		select {
		case v := <-from:
			return v
		default:
			ms.clk.Add(5 * time.Millisecond)
		}
	}
	t.Fatal("nothing came within 50 s of mocked time")
	panic("unreachable")
}

func TestS20_every_attempt_has_a_value_of_its_own(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders")
	seen := map[string]bool{}
	for range 10 {
		lease := mustLock(t, m)
		if seen[lease.Value()] {
			t.Fatalf("value %q twice", lease.Value())
		}
		seen[lease.Value()] = true
		lease.Unlock(ctx)
	}
	again, _ := ms.client(redlock.WithClientID("same"))
	same, _ := ms.client(redlock.WithClientID("same"))
	a, b := mustLock(t, again.Mutex("a")), mustLock(t, same.Mutex("b"))
	if a.Value() == b.Value() {
		t.Errorf("two clients with the same id made the same value %q", a.Value())
	}
}

// Late answers to an ask that was given back once counted for the next one,
// whose number was the same.
func TestS20_a_grant_to_an_earlier_ask_counts_for_nothing(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]redlock.MutexOption{
		"queued": nil,
		"polled": {redlock.Polling(100*time.Millisecond, 100*time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			ms := newMasters(t, 3)
			c, links := ms.client()
			other, _ := ms.client(redlock.WithTTL(5 * second))
			both := func(ok func(*memory) bool) func() bool {
				return func() bool {
					ms.clk.Add(10 * time.Millisecond)
					return ok(ms.nodes[0]) && ok(ms.nodes[1])
				}
			}
			asked := func(m *memory) int { return m.count(wire.OpAcquire) + m.count(wire.OpAsk) }

			// Given a client whose asks are carried out, but answered late.
			links[0].set(holdReplies)
			links[1].set(holdReplies)
			links[2].set(down)
			holder := make(chan *redlock.Lease, 1)
			stillHeld := make(chan bool, 1)
			go func() {
				c.Mutex("orders", opts...).Lock(ctx)
				stillHeld <- (<-holder).Valid()
			}()
			eventually(t, "an ask is given back", both(func(m *memory) bool { return m.count(wire.OpRelease) == 2 }))
			held := mustLock(t, other.Mutex("orders", redlock.NoRenew()))
			holder <- held
			before := asked(ms.nodes[0])
			eventually(t, "it asks again", both(func(m *memory) bool { return asked(m) > before }))

			// When all the answers come.
			links[0].set(up)
			links[1].set(up)

			if receive(t, ms, stillHeld) {
				t.Error("it got the lock while another client held it")
			}
		})
	}
}

func TestS32_expiry_is_relative(t *testing.T) {
	cmd := wire.Acquire("orders", "value", 1500*time.Millisecond)
	if got := strings.Join(cmd.Args, " "); got != "value NX PX 1500" {
		t.Errorf("SET orders %s", got)
	}
}

func TestLock_waits_for_the_release_and_no_longer(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.unhurried()
	c, _ := ms.unhurried()
	held := mustLock(t, other.Mutex("orders"))
	got := leaseLater(c.Mutex("orders"))
	ms.awaitQueued("orders", 1)

	held.Unlock(ctx)

	if lease := soon(t, ms, got); !lease.Valid() {
		t.Error("not valid")
	}
}

// A waiter asks a master again whose messages may have been lost. It wins while
// that ask is on its way: its lease does not begin before the ask is at the
// master, or the ask could run behind the release of the lease.
func TestNo_ask_follows_the_release_of_its_lease(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.unhurried()
	c, links := ms.unhurried()
	held := mustLock(t, other.Mutex("orders"))
	var again atomic.Bool
	links[0].before = func(cmd *wire.Command) {
		if cmd.Op == wire.OpAsk && again.Swap(false) {
			held.Unlock(ctx)                  // the waiter is granted the lock everywhere, and knows
			time.Sleep(50 * time.Millisecond) // no lease begins meanwhile
		}
	}
	unlocked := make(chan error, 1)
	go func() {
		lease, err := c.Mutex("orders").Lock(ctx)
		if err == nil {
			err = lease.Unlock(ctx)
		}
		unlocked <- err
	}()
	ms.awaitQueued("orders", 1)
	again.Store(true)

	ms.nodes[0].missed()

	if err := soon(t, ms, unlocked); err != nil {
		t.Error(err)
	}
	want := []string{"acquire orders", "acquire orders", "ask orders", "release orders", "ask orders", "release orders"}
	if ran := ms.nodes[0].ran(); !slices.Equal(ran, want) {
		t.Errorf("the master ran %q, want %q", ran, want)
	}
	ms.mustBeFree("orders")
}

// missed tells all subscribers that messages may have been lost.
func (m *memory) missed() {
	m.mu.Lock()
	subs := slices.Collect(maps.Keys(m.subs))
	m.mu.Unlock()
	for _, s := range subs {
		s.Missed()
	}
}

// unhurried makes clients that look at a lock that is held twice a minute at
// most, so that only a message can bring it sooner.
func (ms *masters) unhurried(opts ...redlock.Option) (*redlock.Client, []*link) {
	ms.t.Helper()
	return ms.client(append(opts, redlock.WithTTL(time.Minute), redlock.WithRetryInterval(time.Minute))...)
}

// soon gets what a message brings to an unhurried client.
func soon[T any](t *testing.T, ms *masters, from <-chan T) T {
	t.Helper()
	for range 1000 {
		select {
		case v := <-from:
			return v
		case <-time.After(5 * time.Millisecond):
			ms.clk.Add(time.Millisecond) // the other nodes may be behind with the release
		}
	}
	t.Fatal("nothing came within a second of mocked time")
	panic("unreachable")
}

// Of four masters two refusals decide an ask, which is less than a quorum. And
// who has a minority already asks ever less often, but not later than this.
func TestL8_what_a_dead_holder_left_is_taken_when_its_keys_end(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ masters, held int }{
		{2, 2}, {3, 3}, {4, 4}, {6, 6}, {3, 2}, {4, 3}, {5, 3}, {7, 5},
	} {
		t.Run(fmt.Sprintf("%d of %d masters", c.held, c.masters), func(t *testing.T) {
			ms := newMasters(t, c.masters)
			holder, links := ms.client(redlock.WithTTL(2 * second))
			waiter, far := ms.unhurried(redlock.WithNodeTimeout(second)) // a busy machine may be behind the clock
			for _, l := range far {
				l.lag(40 * time.Millisecond)
			}
			for _, l := range links[c.held:] {
				l.set(down)
			}
			mustLock(t, holder.Mutex("orders"))
			for _, l := range links {
				l.set(down)
			}
			began := ms.clk.Now()

			got := leaseLater(waiter.Mutex("orders"))

			receive(t, ms, got)
			if waited := ms.clk.Now().Sub(began); waited > 2*second+100*time.Millisecond {
				t.Errorf("waited %v for keys with a TTL of two seconds", waited)
			}
		})
	}
}

func TestL12_a_waiter_that_hears_nothing_looks_again(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.client()
	c, _ := ms.client()
	held := mustLock(t, other.Mutex("orders"))
	got := leaseLater(c.Mutex("orders"))
	ms.awaitQueued("orders", 1)
	for _, m := range ms.nodes {
		m.mu.Lock()
		clear(m.subs) // the subscriber's connection is gone
		m.mu.Unlock()
	}

	held.Unlock(ctx)

	started := ms.clk.Now()
	receive(t, ms, got)
	if waited := ms.clk.Now().Sub(started); waited > second {
		t.Errorf("waited %v after the release", waited)
	}
}

// A majority of messages is enough.
func TestL12_a_waiter_that_is_cut_off_from_a_minority_waits_on(t *testing.T) {
	for name, state := range map[string]linkState{"down": down, "hung": hung} {
		t.Run(name, func(t *testing.T) {
			ms := fiveMasters(t)
			other, _ := ms.unhurried()
			c, links := ms.unhurried()
			held := mustLock(t, other.Mutex("orders"))
			got := leaseLater(c.Mutex("orders"))
			ms.awaitQueued("orders", 1)
			links[0].set(state)
			links[3].set(state)

			held.Unlock(ctx)

			if lease := soon(t, ms, got); !lease.Valid() {
				t.Error("not valid")
			}
		})
	}
}

func TestLock_gives_up_when_its_context_ends_and_says_why(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		make func(*masters, []*link)
		want error
	}{
		{"held", func(ms *masters, _ []*link) { hold(ms) }, redlock.ErrTaken},
		{"unreachable", func(_ *masters, links []*link) {
			for _, l := range links {
				l.set(down)
			}
		}, redlock.ErrNoQuorum},
	} {
		t.Run(c.name, func(t *testing.T) {
			ms := fiveMasters(t)
			client, links := ms.client()
			c.make(ms, links)
			limited, cancel := ms.clk.WithTimeout(ctx, 3*second)
			defer cancel()
			result := make(chan error)
			go func() {
				_, err := client.Mutex("orders").Lock(limited)
				result <- err
			}()

			err := receive(t, ms, result)

			mustBe(t, err, context.DeadlineExceeded)
			mustBe(t, err, c.want)
		})
	}
}

func TestEnded_context_asks_nobody(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	gone, cancel := context.WithCancel(ctx)
	cancel()

	_, lockErr := c.Mutex("orders").Lock(gone)
	_, tryErr := c.Mutex("orders").TryLock(gone)

	mustBe(t, lockErr, context.Canceled)
	mustBe(t, tryErr, context.Canceled)
	mustHaveRun(t, ms)
}

// mustHaveRun compares the commands that ran at the first master.
func mustHaveRun(t *testing.T, ms *masters, want ...string) {
	t.Helper()
	if got := ms.nodes[0].ran(); strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("ran %q, want %q", got, want)
	}
}

func TestDo_holds_the_lock_while_it_runs(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders")
	type key struct{}

	err := redlock.Do(context.WithValue(ctx, key{}, "value"), m, func(ctx context.Context) error {
		if ctx.Value(key{}) != "value" {
			t.Error("the caller's values are missing")
		}
		_, err := m.TryLock(ctx)
		mustBe(t, err, redlock.ErrTaken)
		return nil
	})

	if err != nil {
		t.Error(err)
	}
	ms.mustBeFree("orders")
}

func TestDo_unlocks_after_error_and_panic(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders")
	broken := errors.New("broken")

	mustBe(t, redlock.Do(ctx, m, func(context.Context) error { return broken }), broken)
	ms.mustBeFree("orders")

	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic was swallowed")
			}
		}()
		redlock.Do(ctx, m, func(context.Context) error { panic("boom") })
	}()
	ms.mustBeFree("orders")
}

func TestDo_returns_the_error_it_was_given(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	m := c.Mutex("orders")

	if err := redlock.Do(ctx, m, func(context.Context) error { return io.EOF }); err != io.EOF {
		t.Errorf("%v, want io.EOF itself", err)
	}
	err := redlock.Do(ctx, m, func(context.Context) error {
		for _, l := range links {
			l.set(down)
		}
		return io.EOF
	})
	mustBe(t, err, io.EOF)
	mustBe(t, err, redlock.ErrNoQuorum)
}

// What answers is not a Redis, or not what the command answers. That is no
// refusal: nobody knows whether the value was stored.
func TestAnswers_that_are_none_are_no_votes(t *testing.T) {
	for name, answer := range map[string]any{
		"an integer":   int64(1),
		"a status":     "QUEUED",
		"a bulk OK":    []byte("OK"),
		"an array":     []any{"OK"},
		"an empty set": []any{},
	} {
		t.Run(name, func(t *testing.T) {
			ms := fiveMasters(t)
			c, links := ms.client()
			for _, l := range links[:3] {
				l.says = map[wire.Op]any{wire.OpAcquire: answer}
			}

			_, err := c.Mutex("orders").TryLock(ctx)

			mustBe(t, err, redlock.ErrNoQuorum)
			if strange := (*wire.ReplyError)(nil); !errors.As(err, &strange) {
				t.Errorf("%v does not say what came", err)
			}
			ms.mustBeFree("orders") // they were sent the release, too
		})
	}
}

func TestAn_extension_that_is_answered_oddly_is_not_lost(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	for _, l := range links[:3] {
		l.says = map[wire.Op]any{wire.OpExtend: "QUEUED"}
	}

	err := lease.Extend(ctx, second)

	mustBe(t, err, redlock.ErrNoQuorum)
	if !lease.Valid() {
		t.Errorf("not valid: %v", lease.Err())
	}
}

func TestA_release_that_is_answered_oddly_is_not_confirmed(t *testing.T) {
	for name, answer := range map[string]any{
		"nothing":         nil,
		"a status":        "OK",
		"a bulk string":   []byte("1"),
		"an array":        []any{int64(1)},
		"another integer": int64(2),
	} {
		t.Run(name, func(t *testing.T) {
			ms := fiveMasters(t)
			c, links := ms.client()
			lease := mustLock(t, c.Mutex("orders"))
			for _, l := range links[:3] {
				l.says = map[wire.Op]any{wire.OpRelease: answer}
			}

			err := lease.Unlock(ctx)

			mustBe(t, err, redlock.ErrNoQuorum)
			if strange := (*wire.ReplyError)(nil); !errors.As(err, &strange) {
				t.Errorf("%v does not say what came", err)
			}
		})
	}
}

func TestA_context_that_ended_before_with_a_cause_is_told(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	why := errors.New("the caller went home")
	request, cancel := context.WithCancelCause(ctx)
	cancel(why)

	for name, lock := range map[string]func(context.Context) (*redlock.Lease, error){
		"Lock": c.Mutex("orders").Lock, "TryLock": c.Mutex("orders").TryLock,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lock(request)
			mustBe(t, err, context.Canceled)
			mustBe(t, err, why)
		})
	}
}

func TestDo_cancels_its_context_on_loss_and_on_the_callers_cancel(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	m := c.Mutex("orders")

	err := redlock.Do(ctx, m, func(ctx context.Context) error {
		for _, l := range links {
			l.set(down)
		}
		ms.pass(second)
		mustEnd(t, ctx)
		return context.Cause(ctx)
	})
	mustBe(t, err, redlock.ErrExpired)

	for _, l := range links {
		l.set(up)
	}
	ms.pass(second)
	request, cancel := context.WithCancel(ctx)
	err = redlock.Do(request, m, func(ctx context.Context) error {
		cancel()
		mustEnd(t, ctx)
		return ctx.Err()
	})
	mustBe(t, err, context.Canceled)
	ms.mustBeFree("orders")
}

func TestClose_releases_what_is_held_and_refuses_more(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	a, b := mustLock(t, c.Mutex("a")), mustLock(t, c.Mutex("b"))

	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	ms.mustBeFree("a")
	ms.mustBeFree("b")
	mustBe(t, context.Cause(a.Context()), redlock.ErrClosed)
	mustBe(t, b.Unlock(ctx), redlock.ErrClosed)
	_, err := c.Mutex("a").Lock(ctx)
	mustBe(t, err, redlock.ErrClosed)
}
