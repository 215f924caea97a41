package waiting

import (
	"slices"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// The table of who begins to ask when a caller leaves: p asks as the first in the queue, 2 as
// one of the first two, and f, which waits for a fair lock, as one of the first 256. In a
// queue all wait in the same way.
func TestQueue_has_the_next_ask_when_a_caller_leaves(t *testing.T) {
	registered := map[rune]int{'p': 1, 'f': MostFair, '2': 2}
	for _, c := range []struct {
		waiters string
		who     int
		closed  bool
		next    int // who begins, by its place before; -1: no caller
	}{
		{"p", 0, false, -1},
		{"ppp", 0, false, 1},
		{"ppp", 1, false, -1},
		{"ppp", 0, true, -1},
		{"222", 0, false, 2},
		{"222", 1, false, 2},
		{"2222", 2, false, -1},
		{"22", 0, false, -1},
		{"fff", 0, false, -1},
	} {
		q := &queue{all: &Queues{closed: c.closed}}
		for _, r := range c.waiters {
			q.waiters = append(q.waiters, &Waiter{lock: &plain{options: Options{Registered: registered[r]}}})
		}
		before := slices.Clone(q.waiters)
		if next := slices.Index(before, q.remove(before[c.who])); next != c.next {
			t.Errorf("%s, %d leaves: %d begins to ask, want %d", c.waiters, c.who, next, c.next)
		}
	}
}

// discards is a plain lock that remembers what it has the masters release.
type discards struct {
	plain
	values []string
}

func (d *discards) ID() string                    { return "lock" }
func (d *discards) Discard(_ Claim, value string) { d.values = append(d.values, value) }
func (d *discards) Waits()                        {}

// The client is closed between the attempt of a caller and its wait: Close has not seen the caller.
func TestL16_whoever_comes_after_Close_does_not_wait(t *testing.T) {
	for _, others := range []int{0, 1} {
		watch := drift.NewStopwatch(clock.NewMock())
		qs := &Queues{}
		qs.Start(Client{
			Members: quorum.NewMembers(make([]node.Node, 1), 1, nil, nil, 0), Watch: watch, Timers: drift.NewTimers(watch),
			MastersTime: time.Now, Reason: func(err error) error { return err }, Enter: func() bool { return false }, Leave: func() {},
		})
		qs.Close()
		lock := &discards{plain: plain{options: Options{Registered: 1}}}
		for range others {
			qs.Queue(lock, &exclusive{}, "c/n/1:0", ErrTaken)
		}

		w := qs.Queue(lock, &exclusive{}, "c/n/2:0", ErrTaken)

		select {
		case <-w.Ready():
		default:
			t.Fatalf("%d others: nothing wakes the caller", others)
		}
		if wins, ended := w.Woke(); wins || !ended {
			t.Errorf("%d others: wins %v, ended %v, want only that", others, wins, ended)
		}
		w.Leave(false)
		if !slices.Contains(lock.values, "c/n/2:0") {
			t.Errorf("%d others: the attempt is left at the masters: %q", others, lock.values)
		}
	}
}
