package redlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// scripted is a master that answers what the test says, when it says so.
type scripted struct {
	addr string

	mu   sync.Mutex
	open []question
	ear  node.Listener
	mute bool // it tells the client nothing
}

type question struct {
	cmd    *wire.Command
	answer func(wire.Reply)
}

func (s *scripted) Addr() string { return s.addr }

func (s *scripted) Do(cmd *wire.Command, done func(wire.Reply)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, question{cmd, done})
}

func (s *scripted) Subscribe(_ string, l node.Listener) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ear = l
	return func() {}
}

func (s *scripted) Close() error {
	s.mu.Lock()
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for _, q := range open {
		q.answer(wire.Reply{Err: &wire.Error{Node: s.addr, Op: q.cmd.Op, Err: node.ErrClosed}})
	}
	return nil
}

// next waits for the next command, which is answered by the test.
func (s *scripted) next(t *testing.T, op wire.Op) (q question) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is asked to %v", s.addr, op), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.open) == 0 {
			return false
		}
		q, s.open = s.open[0], s.open[1:]
		return true
	})
	if q.cmd.Op != op {
		t.Fatalf("%s is asked to %v, want %v", s.addr, q.cmd.Op, op)
	}
	return q
}

// drops takes the next command away if it is a release: of an attempt that was decided before
// this master had answered.
func (s *scripted) drops(t *testing.T) {
	t.Helper()
	eventually(t, s.addr+" is asked", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.open) > 0 && s.open[0].cmd.Op == wire.OpRelease {
			s.open = s.open[1:]
		}
		return len(s.open) > 0
	})
}

// questions are what the masters are asked next.
func questions(t *testing.T, masters []*scripted, op wire.Op) (asked []question) {
	t.Helper()
	for _, m := range masters {
		asked = append(asked, m.next(t, op))
	}
	return asked
}

// mustNotBeAsked wants no command to be open. The mocked clock stands still meanwhile.
func (s *scripted) mustNotBeAsked(t *testing.T) {
	t.Helper()
	time.Sleep(20 * time.Millisecond)
	s.isNotAsked(t)
}

// isNotAsked is mustNotBeAsked when all that might ask is over.
func (s *scripted) isNotAsked(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) > 0 {
		t.Errorf("%s is asked to %v, want nothing", s.addr, s.open[0].cmd.Op)
	}
}

// Subscribed reports what the test says.
func (s *scripted) Subscribed(string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.mute
}

// mutes has the master tell the client nothing, or anything again.
func (s *scripted) mutes(mute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = mute
}

// missed says that messages may have been missed.
func (s *scripted) missed() { s.listener().Missed() }

// says sends a message.
func (s *scripted) says(message string) { s.listener().Heard(message) }

func (s *scripted) listening() bool { return s.listener() != nil }

func (s *scripted) listener() node.Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ear
}

// slots is the answer of a master that gave these, and has others that are free.
func slots(mine, free string) wire.Reply { return countedSlots(mine, free, 0) }

// countedSlots is the same of a fenced semaphore.
func countedSlots(mine, free string, count int64) wire.Reply {
	return wire.Reply{Value: []any{[]byte(mine), []byte(free), count, int64(0)}}
}

// noSlots is the answer of a master where all are taken.
func noSlots() wire.Reply { return noSlotsBut("") }

// noSlotsBut is the answer of a master that has these free, but for others.
func noSlotsBut(free string) wire.Reply {
	return wire.Reply{Value: []any{int64(-2), int64(0), []byte(free)}}
}

// scriptedClient has a caller take a lock of five masters.
func scriptedClient(t *testing.T, call take, opts ...redlock.Option) (masters []*scripted, got <-chan *redlock.Lease) {
	t.Helper()
	var nodes []node.Node
	for i := range 5 {
		masters = append(masters, &scripted{addr: fmt.Sprintf("master-%c", 'A'+i)})
		nodes = append(nodes, masters[i])
	}
	c, err := redlock.New(nodes, append([]redlock.Option{
		redlock.WithClock(clock.NewMock()), redlock.WithLogger(slog.New(slog.DiscardHandler)), relaxed,
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	within, cancel := context.WithCancel(ctx)
	leases, over := make(chan *redlock.Lease, 1), make(chan struct{})
	go func() {
		defer close(over)
		if lease, err := call(within, c); err == nil {
			leases <- lease
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-over
		closeWith(t, c, nodes)
	})
	return masters, leases
}

// closeWith closes the client of scripted masters, which answer what it asks of them meanwhile.
func closeWith(t *testing.T, c *redlock.Client, masters []node.Node) {
	t.Helper()
	closed := make(chan struct{})
	go func() { defer close(closed); c.Close() }()
	eventually(t, "the end of Close", func() bool {
		for _, m := range masters {
			m.Close() // answers what it is asked
		}
		select {
		case <-closed:
			return true
		default:
			return false
		}
	})
}

// movedInVain has a caller wait for a permit. Three masters give it one, each
// another, and it moves to one that all of them have free. Then that is taken. The
// ask was not answered by the last two masters yet.
func movedInVain(t *testing.T) (masters []*scripted, asks, moves []question, got <-chan *redlock.Lease) {
	t.Helper()
	masters, got = scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		return c.Semaphore("sem", 5).Acquire(ctx, 1)
	})
	for _, m := range masters {
		m.next(t, wire.OpAcquire).answer(noSlots())
	}
	for _, m := range masters {
		asks = append(asks, m.next(t, wire.OpAsk))
	}
	asks[0].answer(noSlots())
	asks[1].answer(noSlots())
	asks[2].answer(slots("2", "3"))
	for i, m := range masters[:3] {
		m.missed()
		m.next(t, wire.OpAsk).answer(slots(fmt.Sprint(i), "3"))
	}
	for _, m := range masters {
		moves = append(moves, m.next(t, wire.OpCommit))
	}
	return masters, asks, moves, got
}

// A move that failed gave back what was there before. What the ask was given is
// worth nothing then, also where the answer comes only now.
func TestS29_what_a_move_gave_back_does_not_count_when_the_ask_is_answered_late(t *testing.T) {
	masters, asks, moves, got := movedInVain(t)
	for _, move := range moves[:3] {
		move.answer(wire.Reply{})
	}
	for _, ask := range asks[3:] {
		ask.answer(slots("2", "3"))
	}
	for _, move := range moves[3:] {
		move.answer(wire.Reply{})
	}

	for _, ask := range questions(t, masters, wire.OpAsk) {
		ask.answer(slots("4", ""))
	}
	arrival(t, "the lease", got)
}

// The same when the waiter knows that the move has failed before its ask is decided: the
// grants that decide it are worth nothing.
func TestS29_what_a_move_gave_back_does_not_count_when_the_ask_is_decided_afterwards(t *testing.T) {
	masters, asks, moves, got := movedInVain(t)
	for _, move := range moves {
		move.answer(wire.Reply{})
	}
	time.Sleep(50 * time.Millisecond) // until the waiter knows
	for _, ask := range asks[3:] {
		ask.answer(slots("2", "3"))
	}

	for _, ask := range questions(t, masters, wire.OpAsk) {
		ask.answer(slots("4", ""))
	}
	arrival(t, "the lease", got)
}

// The same for what comes in answers to repeats of that ask.
func TestS29_what_a_move_gave_back_does_not_count_when_the_ask_is_repeated(t *testing.T) {
	masters, asks, moves, got := movedInVain(t)
	for _, move := range moves {
		move.answer(wire.Reply{})
	}
	time.Sleep(50 * time.Millisecond) // until the waiter knows
	for _, m := range masters[:3] {
		m.missed()
		m.next(t, wire.OpAsk).answer(slots("2", "3"))
	}
	for _, ask := range asks[3:] {
		ask.answer(noSlots())
	}

	for _, ask := range questions(t, masters, wire.OpAsk) {
		ask.answer(slots("4", ""))
	}
	arrival(t, "the lease", got)
}

// A master that refused the attempt can give what the move asks for: it must be told that
// the attempt came to nothing, too.
func TestL3_a_master_that_gave_by_a_move_what_it_had_refused_is_told_to_forget_it(t *testing.T) {
	masters, got := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		return c.Semaphore("sem", 4).TryAcquire(ctx, 1)
	})
	// Given three masters that give a permit each, another one, and one that gives none.
	for i, answer := range []wire.Reply{slots("0", "3"), slots("1", "3"), slots("2", "3"), noSlotsBut("3"), noSlotsBut("3")} {
		masters[i].next(t, wire.OpAcquire).answer(answer)
	}

	// When that one alone gives the permit which the attempt moves to.
	for i, m := range masters {
		answer := wire.Reply{}
		if i == 3 {
			answer.Value = []any{[]byte("3"), int64(0)}
		}
		m.next(t, wire.OpCommit).answer(answer)
	}

	for _, m := range masters {
		m.next(t, wire.OpRelease).answer(wire.Reply{Value: int64(1)})
	}
	if len(got) > 0 {
		t.Error("a lease of one master")
	}
}

// The ask is decided while its caller takes what it was given. When that is not
// enough, it asks again.
func TestWaiter_that_took_in_vain_asks_again_also_when_its_ask_was_decided_meanwhile(t *testing.T) {
	masters, asks, moves, got := movedInVain(t)
	for _, ask := range asks[3:] {
		ask.answer(noSlots())
	}
	for _, move := range moves {
		move.answer(wire.Reply{})
	}
	for _, m := range masters {
		m.next(t, wire.OpAsk).answer(slots("4", ""))
	}
	arrival(t, "the lease", got)
}

// Fair waiters that split the vote each know their place at the masters that refused
// them, and are the first at those that did not. Such a grant may come when the ask is
// decided already. If it did not count as an answer, nobody would agree on a ticket, and
// both would ask for ever.
func TestL25_a_fair_waiter_agrees_on_its_ticket_by_a_grant_that_comes_late(t *testing.T) {
	masters, got := scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		return c.Mutex("orders", redlock.Fair()).Lock(ctx)
	})
	const place = int64(1 << 60)
	var asks []question
	for _, m := range masters {
		asks = append(asks, m.next(t, wire.OpAcquire))
	}
	queued := wire.Reply{Value: []any{int64(1000), int64(0), int64(0), place}}
	// Given two that queue it behind another, and one that fails, which decides.
	asks[0].answer(queued)
	asks[1].answer(queued)
	asks[2].answer(wire.Reply{Err: &wire.Error{Node: masters[2].addr, Op: wire.OpAcquire, Err: node.ErrDown}})

	// When one grants after that.
	asks[3].answer(wire.Reply{Value: "OK"})

	for _, m := range masters {
		ask := m.next(t, wire.OpAsk)
		if ticket := ask.cmd.Args[1]; ticket != fmt.Sprint(place) {
			t.Errorf("%s is asked with the ticket %s, want %d", m.addr, ticket, place)
		}
		ask.answer(wire.Reply{Value: "OK"})
	}
	arrival(t, "the lease", got)
}
