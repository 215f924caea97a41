package waiting

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// silent is a master that keeps what it is asked until the test answers. Timers ask on goroutines of
// their own.
type silent struct {
	name string

	mu    sync.Mutex
	asked []question
}

type question struct {
	cmd  *wire.Command
	done func(wire.Reply)
}

func (s *silent) Addr() string                                    { return s.name }
func (s *silent) Subscribe(string, node.Listener) (cancel func()) { return func() {} }
func (s *silent) Close() error                                    { return nil }

func (s *silent) Do(cmd *wire.Command, done func(wire.Reply)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, question{cmd, done})
}

func (s *silent) open() []question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *silent) answers(n int, value any) {
	s.mu.Lock()
	some := s.asked[:n]
	s.asked = s.asked[n:]
	s.mu.Unlock()
	for _, q := range some {
		q.done(wire.Reply{Value: value})
	}
}

// taken is the answer to an ask for a lock that is held for a minute.
var taken = []any{int64(60_000), int64(0)}

// named is a lock whose waiters and asks have numbers.
type named struct {
	discards
	ids int
}

func (n *named) Name() string                    { return "lock" }
func (n *named) NewClaim() Claim                 { return voting{} }
func (n *named) NewID() string                   { n.ids++; return fmt.Sprintf("ann/nonce/%d", n.ids) }
func (n *named) Value(id string, ask int) string { return fmt.Sprintf("%s:%d", id, ask) }

// voting is the claim to a plain lock.
type voting struct{}

var queueOfLock = wire.QueueOf("", "lock")

func (voting) Acquire(value string, ttl time.Duration) *wire.Command {
	return wire.Acquire("lock", value, ttl)
}

func (voting) Ask(value string, ticket int64, stay time.Duration) *wire.Command {
	return wire.Ask("lock", queueOfLock, value, ticket, stay)
}

func (voting) Judge(_ wire.Op, r wire.Reply) quorum.Vote {
	switch {
	case wire.Granted(r):
		return quorum.Granted
	case r.Err != nil:
		return quorum.Failed
	}
	return quorum.Refused
}

// client is the queues of a client of three silent masters.
type client struct {
	*Queues
	clock   *clock.Mock
	masters []*silent
	lock    *named
	wanted  []string
	missed  int
}

func newClient(registered int) *client {
	c := &client{Queues: &Queues{}, clock: clock.NewMock(), lock: &named{}}
	c.lock.options = Options{TTL: time.Hour, Registered: registered}
	nodes := make([]node.Node, 3)
	for i := range nodes {
		c.masters = append(c.masters, &silent{name: string(rune('A' + i))})
		nodes[i] = c.masters[i]
	}
	watch := drift.NewStopwatch(c.clock)
	timers := drift.NewTimers(watch)
	c.Start(Client{
		Members: quorum.NewMembers(nodes, 2, timers, watch, time.Second), Watch: watch, Timers: timers, Logger: slog.New(slog.DiscardHandler),
		Channel: "redlock:wait:ann/nonce", TTL: time.Hour, RetryInterval: 100 * time.Millisecond,
		Jitter: func(d time.Duration) time.Duration { return d }, MastersTime: c.clock.Now, Reason: func(err error) error { return err },
		Wanted: func(key, value string) { c.wanted = append(c.wanted, key+" "+value) }, Missed: func() { c.missed++ },
		Enter: func() bool { return true }, Leave: func() {},
	})
	return c
}

// wait queues n callers.
func (c *client) wait(n int) (all []*Waiter) {
	for range n {
		all = append(all, c.Queue(c.lock, voting{}, "", nil))
	}
	return all
}

// refuse has every master say that the lock is taken, to all that it was asked.
func (c *client) refuse() {
	for _, m := range c.masters {
		m.answers(len(m.open()), taken)
	}
}

// soon waits for what a timer does.
func (c *client) soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30s: %s", what)
		}
	}
}

func (c *client) given(i int, w *Waiter) { c.ears[i].Heard("4 lock" + w.ask.value) }

// A master may have granted the lock as long ago as its messages may be late: no lease counts from
// later than that.
func TestA_grant_in_a_message_may_be_as_old_as_the_message(t *testing.T) {
	for _, c := range []struct{ asked, first time.Duration }{
		{time.Minute, time.Minute - guard.HeardWithin},
		{guard.HeardWithin / 2, 0}, // no master grants before it is asked
	} {
		client := newClient(1)
		begins := client.Watch.Now()
		w := client.wait(1)[0]
		client.refuse()
		client.clock.Add(c.asked)

		client.given(0, w)
		client.given(2, w)

		if wins, _ := w.Woke(); !wins {
			t.Fatal("a majority has granted the lock, and it is not won")
		}
		if _, _, _, first := w.Won(); first.Sub(begins) != c.first {
			t.Errorf("asked %v ago: granted %v after the ask, want %v", c.asked, first.Sub(begins), c.first)
		}
	}
}

// L46: a master of which messages were missed is asked by 16 waiters at a time.
func TestL46_waiters_repeat_their_asks_16_at_a_time(t *testing.T) {
	client := newClient(64)
	client.wait(40)
	client.refuse()

	client.ears[1].Missed()
	client.ears[1].Missed()

	m := client.masters[1]
	if n := len(client.ears[1].line.waiters); n != 40 {
		t.Errorf("%d are in line, want those that have repeated it, and those that have not", n)
	}
	for _, want := range []int{16, 16, 16, 16} {
		if len(m.open()) != want {
			t.Fatalf("%d repeats are under way, want %d", len(m.open()), want)
		}
		m.answers(6, taken)
	}
	for len(m.open()) > 0 {
		m.answers(1, taken)
	}
	if client.ears[1].open != 0 || len(client.masters[0].open()) != 0 {
		t.Errorf("%d open, and %d at another master", client.ears[1].open, len(client.masters[0].open()))
	}
	if client.missed != 2 {
		t.Errorf("the client was told %d times", client.missed)
	}
}

// L46: of the waiters of a client few have an ask that is not decided, where masters do not answer.
func TestL46_asks_follow_each_other(t *testing.T) {
	client := newClient(64)
	client.pace.limit = fewestOpen
	client.wait(40)
	asked := func(want int) {
		t.Helper()
		if n := len(client.masters[0].open()); n != want {
			t.Errorf("%d asks are under way, want %d", n, want)
		}
	}
	asked(fewestOpen)
	for _, m := range client.masters[:2] {
		m.answers(3, taken) // two of three decide
	}
	asked(fewestOpen + 3) // as many as were decided, and one more for each
	for range 4 {
		client.refuse()
	}
	if client.pace.open != 0 || len(client.pace.line.waiters) != 0 || client.pace.limit != fewestOpen+40 {
		t.Errorf("in the end %d are open, %d wait, and %d may be open", client.pace.open, len(client.pace.line.waiters), client.pace.limit)
	}
	client.wait(1)
	client.clock.Add(time.Second) // a node timeout
	client.soon(t, "an ask without an answer halves what may be open", func() bool {
		client.mu.Lock()
		defer client.mu.Unlock()
		return client.pace.limit == (fewestOpen+40)/2
	})
}

// L46: one answer has 256 waiters ask, and the others ask soon.
func TestL46_one_answer_does_not_have_all_waiters_ask(t *testing.T) {
	client := newClient(1000)
	client.pace.limit = 1
	client.wait(601)
	client.pace.limit = mostOpen
	for _, m := range client.masters {
		m.answers(1, taken)
	}
	for _, want := range []int{mostAtOnce, 2 * mostAtOnce, 600} {
		client.soon(t, fmt.Sprintf("%d ask", want), func() bool {
			client.mu.Lock()
			defer client.mu.Unlock()
			return !client.pace.line.moving && len(client.masters[0].open()) == want // and the timer is set
		})
		client.clock.Add(client.RetryInterval)
	}
}

// What masters say of a waiter that has left is withdrawn, by one release at a time.
func TestWhat_a_departed_waiter_is_granted_is_released(t *testing.T) {
	client := newClient(1)
	w := client.wait(1)[0]
	client.refuse()
	value := w.ask.value
	w.Leave(false)
	if _, known, _ := client.Usage(); known != 0 {
		t.Errorf("%d waiters are known", known)
	}

	for range 3 {
		client.ears[0].Heard("4 lock" + value)
	}

	m := client.masters[0]
	if len(m.open()) != 1 || m.open()[0].cmd.Op != wire.OpRelease {
		t.Fatalf("%d commands", len(m.open()))
	}
	m.answers(1, int64(1))
	if len(m.open()) != 1 {
		t.Fatalf("%d commands after the first is answered, want another one", len(m.open()))
	}
	m.answers(1, int64(1))
	if _, _, gone := client.Usage(); len(m.open()) != 0 || gone != 0 {
		t.Errorf("%d commands, %d withdrawn", len(m.open()), gone)
	}
}

// A waiter that left with a lease is known until the lease is released.
func TestA_waiter_with_a_lease_is_known_until_its_release(t *testing.T) {
	client := newClient(1)
	w := client.wait(1)[0]
	client.refuse()
	client.given(0, w)
	client.given(1, w)
	w.Woke()
	value := w.ask.value
	w.Leave(true)
	client.ears[2].Heard("4 lock" + value)
	if n := len(client.masters[2].open()); n != 0 {
		t.Errorf("%d commands about a lock that is held", n)
	}

	client.Ended(value)

	if _, known, _ := client.Usage(); known != 0 {
		t.Errorf("%d are known", known)
	}
}

// Others that wait for a cached lock are told of, also by a master that may have forgotten locks: nobody
// repeats an ask for that (L79).
func TestL79_a_message_about_a_cached_lock_has_nobody_ask(t *testing.T) {
	client := newClient(1)
	client.ears[0].Heard("4:c lockann/nonce/C1:3")
	if len(client.wanted) != 1 || client.wanted[0] != "lock ann/nonce/C1:3" {
		t.Errorf("told of %q", client.wanted)
	}
	client.ears[0].Doubted("4:c lockann/nonce/C1:3")
	if len(client.wanted) != 2 || client.missed != 0 {
		t.Errorf("in doubt it is told of %q, and looks %d times", client.wanted, client.missed)
	}
	for _, m := range client.masters {
		if len(m.open()) > 0 {
			t.Errorf("%s was asked", m.name)
		}
	}
}
