package redlock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// closeLater closes c in another goroutine, and returns when one of its leases
// has ended by it.
func closeLater(t *testing.T, c *redlock.Client, witness *redlock.Lease) (closed <-chan error) {
	t.Helper()
	over := make(chan error, 1)
	go func() { over <- c.Close() }()
	mustEnd(t, witness.Context())
	return over
}

// Four masters have granted, and the fifth is being asked, for longer than Close waits for a master.
func TestL17_Close_leaves_nothing_of_an_attempt_under_way(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	reached, goOn := make(chan struct{}), make(chan struct{})
	links[4].before = func(cmd *wire.Command) {
		if cmd.Op == wire.OpAcquire && cmd.Keys[0] == "orders" {
			close(reached)
			<-goOn
		}
	}
	result := make(chan error)
	go func() {
		_, err := c.Mutex("orders").TryLock(ctx)
		result <- err
	}()
	<-reached

	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	eventually(t, "Close has begun", func() bool {
		lease, err := c.Mutex("another").TryLock(ctx)
		if err == nil {
			lease.Unlock(ctx)
		}
		return errors.Is(err, redlock.ErrClosed)
	})
	ms.pass(3 * defaults.NodeTimeout)
	close(goOn)

	mustBe(t, arrival(t, "the end of the attempt", result), redlock.ErrClosed)
	if err := arrival(t, "the end of Close", closed); err != nil {
		t.Error(err)
	}
	ms.mustBeFree("orders")
}

// A waiter has won, and before it makes a lease of that its client is closed.
func TestL17_Close_is_the_reason_for_a_waiter_that_had_just_won(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.client()
	held := mustLock(t, other.Mutex("orders"))
	mustLock(t, other.Mutex("another"))
	var won atomic.Bool
	closed, told := make(chan struct{}), make(chan error, 1)
	c, _ := ms.client(seam.Option(seam.Seams{Guarded: true, Wait: func(ctx context.Context, ready <-chan struct{}) error {
		err := seam.Select(ctx, ready)
		if won.Swap(false) {
			close(closed)
			<-told // Close has ended the waits
		}
		return err
	}}).(redlock.Option))
	result := make(chan error, 1)
	lock := func(name string, to chan<- error) {
		_, err := c.Mutex(name).Lock(ctx)
		to <- err
	}
	go lock("orders", result)
	go lock("another", told)
	ms.awaitQueued("orders", 1)
	ms.awaitQueued("another", 1)

	won.Store(true)
	unlocks(t, held)
	<-closed
	if err := c.Close(); err != nil {
		t.Error(err)
	}

	mustBe(t, arrival(t, "the end of the wait", result), redlock.ErrClosed)
	ms.mustBeFree("orders")
}

// Close releases the lock that another caller of the same client waits for. That
// caller must not take it on its way out.
func TestL17_Close_leaves_nothing_to_its_own_waiter(t *testing.T) {
	for range 20 {
		ms := fiveMasters(t)
		c, _ := ms.client()
		mustLock(t, c.Mutex("orders"))
		result := make(chan error)
		go func() {
			_, err := c.Mutex("orders").Lock(ctx)
			result <- err
		}()
		ms.awaitQueued("orders", 1)

		c.Close()

		mustBe(t, arrival(t, "the end of the wait", result), redlock.ErrClosed)
		ms.mustBeFree("orders")
	}
}

// Unlock has ended the lease, and its release waits in front of a slow master.
func TestL17_Close_leaves_nothing_of_an_Unlock_under_way(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	reached, goOn := make(chan struct{}), make(chan struct{})
	links[0].before = func(cmd *wire.Command) {
		if cmd.Op == wire.OpRelease {
			links[0].before = nil
			close(reached)
			<-goOn
		}
	}
	unlocked := make(chan error)
	go func() { unlocked <- lease.Unlock(ctx) }()
	<-reached

	c.Close()

	ms.mustBeFree("orders")
	close(goOn)
	arrival(t, "the end of Unlock", unlocked)
}

// A waiter's timer is asking for it, and stands still before the last master, when its
// caller gives up. What was asked is given back only behind the ask.
func TestL17_Close_leaves_nothing_of_an_ask_under_way(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.client()
	held := mustLock(t, other.Mutex("orders"))
	c, links := ms.client()
	within, cancel := context.WithCancel(ctx)
	result := make(chan error)
	go func() {
		_, err := c.Mutex("orders").Lock(within)
		result <- err
	}()
	ms.awaitQueued("orders", 1)
	reached, goOn := make(chan struct{}), make(chan struct{})
	links[4].before = func(cmd *wire.Command) {
		if cmd.Op == wire.OpAsk {
			links[4].before = nil
			close(reached)
			<-goOn
		}
	}
	asked := make(chan struct{})
	go func() { // until its timer fires
		defer close(asked)
		for {
			select {
			case <-reached:
				return
			default:
				ms.clk.Add(10 * time.Millisecond)
			}
		}
	}()
	<-asked
	cancel()
	mustBe(t, arrival(t, "the end of the wait", result), context.Canceled)

	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	select {
	case <-closed:
		t.Error("closed while an ask was on its way")
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	arrival(t, "the end of Close", closed)

	ms.awaitQueued("orders", 0)
	unlocks(t, held)
	ms.mustBeFree("orders")
}

// Close has deleted what is being unlocked. That is no loss.
func TestL17_Unlock_behind_Close_is_no_loss(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	links[4].set(hung) // so that Close does not come to its end
	reached, goOn := make(chan struct{}), make(chan struct{})
	links[0].before = func(cmd *wire.Command) {
		if cmd.Op == wire.OpRelease {
			links[0].before = nil
			close(reached)
			<-goOn
		}
	}
	unlocked, closed := make(chan error), make(chan error)
	go func() { unlocked <- lease.Unlock(ctx) }()
	<-reached
	go func() { closed <- c.Close() }()
	eventually(t, "four have released", func() bool { return strings.Join(ms.holders("orders")[:4], "") == "" })

	close(goOn)

	if err := arrival(t, "the end of Unlock", unlocked); err != nil {
		t.Error(err)
	}
	links[4].heal()
	arrival(t, "the end of Close", closed)
}

// That too few masters answer is what Close does to an operation under way.
func TestClose_is_the_reason_for_an_operation_under_way_that_finds_no_quorum(t *testing.T) {
	nobody, held := wire.Reply{Value: []any{nil, int64(-2)}}, wire.Reply{Value: []any{[]byte("a/bcd/1:0"), int64(1000)}}
	type answered struct {
		op    wire.Op
		reply wire.Reply
	}
	for name, o := range map[string]struct {
		call   func(context.Context, *redlock.Client) error
		before []answered // by every master
		asks   wire.Op
	}{
		"Inspect":        {func(ctx context.Context, c *redlock.Client) error { _, err := c.Inspect(ctx, "x"); return err }, nil, wire.OpRead},
		"Leader":         {func(ctx context.Context, c *redlock.Client) error { _, err := c.Election("x").Leader(ctx); return err }, nil, wire.OpRead},
		"RequestRelease": {func(ctx context.Context, c *redlock.Client) error { return c.RequestRelease(ctx, "x", "") }, []answered{{wire.OpRead, held}}, wire.OpRequest},
		"Resize":         {func(ctx context.Context, c *redlock.Client) error { return c.Semaphore("x", 5).Resize(ctx, 6) }, []answered{{wire.OpRead, nobody}}, wire.OpCommit},
		"Proclaim": {func(ctx context.Context, c *redlock.Client) error {
			lease, err := c.Election("x").Campaign(ctx, "here")
			return cmp.Or(err, c.Election("x").Proclaim(ctx, lease, "there"))
		}, []answered{{wire.OpAcquire, wire.Reply{Value: int64(7)}}, {wire.OpRead, wire.Reply{}}}, wire.OpCommit},
	} {
		t.Run(name, func(t *testing.T) {
			var client *redlock.Client
			told := make(chan error, 1)
			masters, _ := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
				client = c
				told <- o.call(ctx, c)
				return nil, redlock.ErrTaken
			})
			for _, b := range o.before {
				for _, q := range questions(t, masters, b.op) {
					q.answer(b.reply)
				}
			}
			open := questions(t, masters, o.asks)
			go client.Close()
			eventually(t, "the client is closed", func() bool { return errors.Is(client.Healthy(), redlock.ErrClosed) })

			for _, q := range open {
				q.answer(wire.Reply{Err: &wire.Error{Op: o.asks, Err: node.ErrDown}})
			}

			mustBe(t, arrival(t, "the error", told), redlock.ErrClosed)
		})
	}
}

// nosy calls asked whenever somebody wants to know its address.
type nosy struct {
	*link
	asked func()
}

func (n *nosy) Addr() string {
	n.asked()
	return n.link.Addr()
}

// A waiter has a lease and has not told its caller yet. Close releases nothing that
// somebody may still take for valid.
func TestL17_Close_ends_the_lease_of_a_waiter_before_it_releases_it(t *testing.T) {
	ms := fiveMasters(t)
	other, _ := ms.client()
	held := mustLock(t, other.Mutex("orders"))
	var armed, ended atomic.Bool
	reached, goOn := make(chan struct{}), make(chan struct{})
	nodes := make([]node.Node, len(ms.nodes))
	for i, m := range ms.nodes {
		l := &link{memory: m}
		l.before = func(cmd *wire.Command) {
			if cmd.Op == wire.OpRelease && !ended.Load() {
				t.Error("released before the lease had ended")
			}
		}
		// Votes are described when the waiter has its lease, or when it has given up.
		nodes[i] = &nosy{l, func() {
			if armed.CompareAndSwap(true, false) {
				close(reached)
				<-goOn
			}
		}}
	}
	c, err := redlock.New(nodes, redlock.WithClock(ms.clk), redlock.WithLogger(slog.New(slog.DiscardHandler)), relaxed,
		redlock.WithObserver(func(e redlock.Event) { ended.Store(ended.Load() || e.Kind == redlock.LeaseReleased) }))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := c.Mutex("orders").Lock(ctx)
		got <- err
	}()
	ms.awaitQueued("orders", 1)
	armed.Store(true)
	unlocks(t, held)
	<-reached
	closed := make(chan error, 1)

	go func() { closed <- c.Close() }()

	eventually(t, "Close has released it", func() bool { return ended.Load() && strings.Join(ms.holders("orders"), "") == "" })
	close(goOn)
	arrival(t, "the end of the wait", got)
	arrival(t, "the end of Close", closed)
}

// Two masters hang: what they have ends with its TTL, and Close does not wait
// for longer than about a node timeout.
func TestL17_Close_gives_up_on_masters_that_hang(t *testing.T) {
	ms := fiveMasters(t)
	c, links := ms.client()
	lease := mustLock(t, c.Mutex("orders"))
	links[1].set(hung)
	links[3].set(hung)

	closed := closeLater(t, c, lease)
	ms.pass(2 * defaults.NodeTimeout)

	arrival(t, "the end of Close", closed)
	for i, v := range ms.holders("orders") {
		if left := v != ""; left != (i == 1 || i == 3) {
			t.Errorf("%s: left over: %v", ms.nodes[i].addr, left)
		}
	}
}

// narrow takes so many unanswered commands and no more, as a real connection does.
type narrow struct {
	*link
	most   int
	atOnce bool // answers before Do returns

	open    []func()
	refused int
}

func (n *narrow) Do(cmd *wire.Command, done func(wire.Reply)) {
	if n.atOnce {
		done(n.run(cmd))
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.open) >= n.most {
		n.refused++
		go done(wire.Reply{Err: &wire.Error{Node: n.addr, Op: cmd.Op, Err: node.ErrFull}})
		return
	}
	reply := n.run(cmd)
	n.open = append(n.open, func() { done(reply) })
}

// answer answers what is open, and reports whether there was anything.
func (n *narrow) answer() bool {
	n.mu.Lock()
	open := n.open
	n.open = nil
	n.mu.Unlock()
	for _, each := range open {
		each()
	}
	return len(open) > 0
}

// More leases than a connection takes commands.
func TestL17_Close_releases_no_faster_than_the_masters_keep_up(t *testing.T) {
	const leases = 5000
	ms := newMasters(t, 1)
	only := &narrow{link: &link{memory: ms.nodes[0]}, most: leases / 2}
	var waits sync.WaitGroup // for Close to wait for something
	c, err := redlock.New([]node.Node{only}, redlock.WithClock(ms.clk), redlock.WithTTL(time.Minute),
		seam.Option(seam.Seams{Wait: func(ctx context.Context, ready <-chan struct{}) error {
			if !only.atOnce {
				waits.Done()
			}
			return seam.Select(ctx, ready)
		}}).(redlock.Option))
	if err != nil {
		t.Fatal(err)
	}
	only.atOnce = true
	var last *redlock.Lease
	for i := range leases {
		last = mustLock(t, c.Mutex(fmt.Sprint("orders-", i)))
	}
	only.atOnce = false
	waits.Add(1)

	closed := closeLater(t, c, last)
	waits.Wait()
	for len(closed) == 0 {
		only.answer()
		ms.clk.Add(defaults.NodeTimeout * 9 / 10) // who answers something is not given up
	}

	if len(only.keys) > 0 || only.refused > 0 {
		t.Errorf("%d keys left, %d releases refused", len(only.keys), only.refused)
	}
}

// debtor is a node that owes releases, and says when it does not any more.
type debtor struct {
	*link
	mu   sync.Mutex
	owed []*wire.Command
	paid func()
}

func (d *debtor) Owed() []*wire.Command {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.owed
}

func (d *debtor) Paid(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paid = f
}

// pay settles what is owed. It returns false if nobody has asked for that yet.
func (d *debtor) pay() bool {
	d.mu.Lock()
	tell := d.paid
	if tell != nil {
		d.owed = nil
	}
	d.mu.Unlock()
	if tell == nil {
		return false
	}
	tell()
	return true
}

// owing returns a client of masters that all owe a release.
func (ms *masters) owing(t *testing.T) (*redlock.Client, []*debtor) {
	t.Helper()
	var debtors []*debtor
	var nodes []node.Node
	for _, m := range ms.nodes {
		owed := wire.Release("orders", wire.QueueOf("", "orders"), "far/away/1:0", time.Minute)
		d := &debtor{link: &link{memory: m}, owed: []*wire.Command{owed}}
		debtors, nodes = append(debtors, d), append(nodes, d)
	}
	c, err := redlock.New(nodes, redlock.WithClock(ms.clk), relaxed)
	if err != nil {
		t.Fatal(err)
	}
	return c, debtors
}

// Close ends with the last confirmation, whatever the clock does.
func TestL39_Close_ends_when_nothing_is_owed_any_more(t *testing.T) {
	ms := newMasters(t, 3)
	c, debtors := ms.owing(t)
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	for i, d := range debtors {
		if len(closed) > 0 {
			t.Errorf("closed when %d of 3 had confirmed", i)
		}
		eventually(t, "the master confirms", d.pay)
	}
	if err := arrival(t, "the end of Close", closed); err != nil {
		t.Error(err)
	}
}

// A master does not confirm. Close ends with its time, by the client's clock.
func TestL39_Close_ends_with_its_time(t *testing.T) {
	ms := newMasters(t, 3)
	c, debtors := ms.owing(t)
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	eventually(t, "two confirm", func() bool { return debtors[0].pay() && debtors[2].pay() })
	ms.clk.Add(2 * time.Second)
	if len(closed) > 0 {
		t.Error("closed too early")
	}

	eventually(t, "Close has ended", func() bool {
		ms.clk.Add(time.Second)
		return len(closed) > 0
	})

	err := <-closed
	mustBe(t, err, redlock.ErrUndelivered)
	if !strings.Contains(err.Error(), debtors[1].Addr()) || strings.Contains(err.Error(), debtors[0].Addr()) {
		t.Errorf("it names the wrong masters: %v", err)
	}
}

// A master does not confirm. Whoever closes the client learns of it, also who comes later.
func TestL39_every_Close_says_what_the_first_one_left(t *testing.T) {
	ms := newMasters(t, 3)
	c, debtors := ms.owing(t)
	const closers = 3
	results := make(chan error, closers)
	for range closers - 1 {
		go func() { results <- c.Close() }()
	}
	eventually(t, "two masters confirm", func() bool { return debtors[0].pay() && debtors[2].pay() })
	go func() { results <- c.Close() }()

	eventually(t, "every Close has ended", func() bool {
		ms.clk.Add(time.Second)
		return len(results) == closers
	})

	for range closers {
		mustBe(t, <-results, redlock.ErrUndelivered)
	}
	mustBe(t, c.Close(), redlock.ErrUndelivered)
}

// The key of a release that is owed lasts for two seconds at most. Close waits no longer, and no
// shorter, though another release is worth less.
func TestL39_Close_ends_when_the_keys_have(t *testing.T) {
	ms := newMasters(t, 3)
	c, debtors := ms.owing(t)
	queue := wire.QueueOf("", "orders")
	for _, d := range debtors {
		d.owed = []*wire.Command{
			wire.Release("orders", queue, "far/away/1:0", 2*time.Second),
			wire.Release("orders", queue, "far/away/2:0", time.Second),
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	eventually(t, "two confirm", func() bool { return debtors[0].pay() && debtors[2].pay() })
	began := ms.clk.Now()

	eventually(t, "Close has ended", func() bool {
		ms.clk.Add(20 * time.Millisecond)
		return len(closed) > 0
	})

	mustBe(t, <-closed, redlock.ErrUndelivered)
	if passed := ms.clk.Since(began); passed < 2*time.Second || passed >= 3*time.Second {
		t.Errorf("closed after %v, want 2s", passed)
	}
}
