package waiting

import (
	"slices"
	"testing"
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
