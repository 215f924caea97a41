package redlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

var ctx = context.Background()

const second = time.Second

func TestLockStoresItsValueOnEveryMaster(t *testing.T) {
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
	if got, want := lease.Until().Sub(ms.clk.Now()), 988*time.Millisecond; got != want {
		t.Errorf("validity %v, want TTL less drift %v", got, want)
	}
}

func TestUnlockFreesEveryMaster(t *testing.T) {
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

func TestS21SecondUnlockDeletesNothing(t *testing.T) {
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

func TestS22ReleaseComparesBeforeItDeletes(t *testing.T) {
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

func TestTwoLocksOnOneMutexExcludeEachOther(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders")
	mustLock(t, m)

	_, err := m.TryLock(ctx)

	mustBe(t, err, redlock.ErrTaken)
}

func TestErrorsTellBusyFromBroken(t *testing.T) {
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

func TestAFailedLockSaysWhatEveryNodeVoted(t *testing.T) {
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
	var one *node.Error
	if !errors.As(err, &one) || one.Node != "master-B" || !errors.Is(err, node.ErrDown) {
		t.Errorf("node error %v", one)
	}
	if line := err.Error(); strings.Contains(line, "\n") || !strings.Contains(line, "master-B not connected") {
		t.Errorf("not one readable line: %q", line)
	}
}

func TestS13QuorumCountsTheConfiguredNodes(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	for _, l := range links[2:] {
		l.set(down)
	}

	_, err := c.Mutex("orders").TryLock(ctx)

	mustBe(t, err, redlock.ErrNoQuorum)
	ms.mustBeFree("orders")
}

func TestL10EvenSplitIsDecidedAtOnce(t *testing.T) {
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
		h := ms.holders("orders")
		return h[0] != "" && h[3] != ""
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

func TestAFailedAttemptLeavesNothingBehind(t *testing.T) {
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

	ms.pass(redlock.DefaultNodeTimeout)

	mustBe(t, arrival(t, "the result", result), redlock.ErrNoQuorum)
	ms.mustBeFree("orders")
	links[1].set(up) // the acquire runs only now, and the release behind it
	links[3].set(up)
	ms.mustBeFree("orders")
}

func TestL9UnlockWorksAfterTheContextEnded(t *testing.T) {
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

func TestL9ACancelledAttemptIsCleanedUp(t *testing.T) {
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

func TestL9AWaiterThatIsCancelledAtTheGateIsCleanedUp(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	gate := ms.gateOf(c, "orders")
	links[gate].set(holdReplies)
	request, cancel := context.WithCancel(ctx)
	result := make(chan error)
	go func() {
		_, err := c.Mutex("orders").Lock(request)
		result <- err
	}()
	eventually(t, "the gate has granted", func() bool { return ms.holders("orders")[gate] != "" })

	cancel()

	mustBe(t, arrival(t, "the result", result), context.Canceled)
	ms.mustBeFree("orders")
}

func TestS6ElapsedTimeIsReadAfterTheDecidingVote(t *testing.T) {
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

func TestS23TimeSpentWaitingIsNotPartOfTheLease(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.client()
	c, _ := ms.client()
	held := mustLock(t, other.Mutex("orders"))
	got := make(chan *redlock.Lease)
	go func() {
		lease, err := c.Mutex("orders").Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		got <- lease
	}()
	ms.pass(5 * second) // far longer than a TTL

	held.Unlock(ctx)

	lease := receive(t, ms, got)
	if left := lease.Until().Sub(ms.clk.Now()); left < 900*time.Millisecond || left > 988*time.Millisecond {
		t.Errorf("validity %v after a long wait, want that of a fresh lease", left)
	}
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

func TestS20EveryAttemptHasAValueOfItsOwn(t *testing.T) {
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

func TestS32ExpiryIsRelative(t *testing.T) {
	cmd := node.Acquire("orders", "value", 1500*time.Millisecond)
	if got := strings.Join(cmd.Args, " "); got != "value NX PX 1500" {
		t.Errorf("SET orders %s", got)
	}
}

func TestLockWaitsForTheReleaseAndNoLonger(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.unhurried()
	c, _ := ms.unhurried()
	held := mustLock(t, other.Mutex("orders"))
	got := make(chan *redlock.Lease)
	go func() {
		lease, _ := c.Mutex("orders").Lock(ctx)
		got <- lease
	}()
	eventually(t, "the waiter is subscribed", func() bool { return subscribers(ms) == 1 })

	held.Unlock(ctx)

	if lease := soon(t, ms, got); !lease.Valid() {
		t.Error("not valid")
	}
}

// unhurried makes clients that look at a lock that is held twice a minute at
// most, so that only a message can bring it sooner.
func (ms *masters) unhurried() (*redlock.Client, []*link) {
	ms.t.Helper()
	return ms.client(redlock.WithTTL(time.Minute), redlock.WithRetryInterval(time.Minute))
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

// gate waits until somebody is subscribed and returns where.
func (ms *masters) gate() (gate int) {
	ms.t.Helper()
	eventually(ms.t, "somebody is subscribed", func() bool {
		gate = slices.IndexFunc(ms.nodes, func(m *memory) bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return len(m.subs) > 0
		})
		return gate >= 0
	})
	return gate
}

// gateOf has a client wait for a lock, and returns where it did.
func (ms *masters) gateOf(c *redlock.Client, name string) int {
	ms.t.Helper()
	other, _ := ms.client()
	held := mustLock(ms.t, other.Mutex(name))
	request, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.Mutex(name).Lock(request)
	}()
	gate := ms.gate()
	cancel()
	<-over
	held.Unlock(ctx)
	return gate
}

func subscribers(ms *masters) (n int) {
	for _, m := range ms.nodes {
		m.mu.Lock()
		n += len(m.subs)
		m.mu.Unlock()
	}
	return n
}

func TestL12AWaiterThatHearsNothingLooksAgain(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.client()
	c, _ := ms.client()
	held := mustLock(t, other.Mutex("orders"))
	got := make(chan *redlock.Lease)
	go func() {
		lease, _ := c.Mutex("orders").Lock(ctx)
		got <- lease
	}()
	eventually(t, "the waiter is subscribed", func() bool { return subscribers(ms) == 1 })
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

// The gate of the one who waits fails, for him alone: he stands in line at
// another node before long, and is woken there.
func TestL12AWaiterWhoseGateFailsWaitsAtAnother(t *testing.T) {
	for name, state := range map[string]linkState{"down": down, "hung": hung} {
		t.Run(name, func(t *testing.T) {
			ms := fiveMasters(t)
			other, _ := ms.unhurried()
			c, links := ms.unhurried()
			held := mustLock(t, other.Mutex("orders"))
			got := make(chan *redlock.Lease)
			go func() {
				lease, _ := c.Mutex("orders").Lock(ctx)
				got <- lease
			}()
			gate := ms.gate()
			links[gate].set(state)
			eventually(t, "the waiter is subscribed elsewhere", func() bool {
				ms.clk.Add(second)
				return ms.gate() != gate
			})

			held.Unlock(ctx)

			if lease := soon(t, ms, got); !lease.Valid() {
				t.Error("not valid")
			}
		})
	}
}

// The gate is silent, so that the next node is asked, and then turns out to
// have stored the value after all. To the rest of the round it says "taken", as
// those do where somebody else holds the lock.
func TestAGateThatAnsweredTooLateKeepsNothing(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	gate := ms.gateOf(c, "orders")
	next := (gate + 1) % 5
	for i, m := range ms.nodes {
		if i != gate && i != next {
			m.keys["orders"] = entry{"somebody else", ms.clk.Now().Add(time.Hour)}
		}
	}
	links[gate].set(holdReplies)
	links[next].before = func(cmd *node.Command) {
		if cmd.Script == node.ScriptProbe {
			links[gate].set(up)
		}
	}
	request, cancel := ms.clk.WithTimeout(ctx, second/4) // well before a TTL
	defer cancel()
	result := make(chan error)
	go func() {
		_, err := c.Mutex("orders").Lock(request)
		result <- err
	}()

	mustBe(t, receive(t, ms, result), redlock.ErrTaken)

	for _, i := range []int{gate, next} {
		if v := ms.holders("orders")[i]; v != "" {
			t.Errorf("%s still holds %q", ms.nodes[i].addr, v)
		}
	}
}

func TestLockGivesUpWhenItsContextEndsAndSaysWhy(t *testing.T) {
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

func TestEndedContextAsksNobody(t *testing.T) {
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

func TestDoHoldsTheLockWhileItRuns(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders")
	type key struct{}

	err := m.Do(context.WithValue(ctx, key{}, "value"), func(ctx context.Context) error {
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

func TestDoUnlocksAfterErrorAndPanic(t *testing.T) {
	ms := fiveMasters(t)
	c, _ := ms.client()
	m := c.Mutex("orders")
	broken := errors.New("broken")

	mustBe(t, m.Do(ctx, func(context.Context) error { return broken }), broken)
	ms.mustBeFree("orders")

	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic was swallowed")
			}
		}()
		m.Do(ctx, func(context.Context) error { panic("boom") })
	}()
	ms.mustBeFree("orders")
}

func TestDoCancelsItsContextOnLossAndOnTheCallersCancel(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	m := c.Mutex("orders")

	err := m.Do(ctx, func(ctx context.Context) error {
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
	err = m.Do(request, func(ctx context.Context) error {
		cancel()
		mustEnd(t, ctx)
		return ctx.Err()
	})
	mustBe(t, err, context.Canceled)
	ms.mustBeFree("orders")
}

func TestCloseReleasesWhatIsHeldAndRefusesMore(t *testing.T) {
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

func TestCloseEndsThoseWhoWait(t *testing.T) {
	ms := fiveMasters(t)
	hold(ms)
	c, _ := ms.client()
	result := make(chan error)
	go func() {
		_, err := c.Mutex("orders").Lock(ctx)
		result <- err
	}()
	eventually(t, "the waiter is subscribed", func() bool { return subscribers(ms) == 1 })

	c.Close()

	mustBe(t, arrival(t, "the result", result), redlock.ErrClosed)
}
