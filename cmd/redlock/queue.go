package main

import (
	"fmt"
	"io"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/words"
	"github.com/quorumlock/quorumlock/redlock"
)

// mostWaiters is how many waiters are shown to people. JSON has more.
const mostWaiters = 20

// showWaiters prints the waiters, the next one first: a line for each.
func showWaiters(w io.Writer, h redlock.Holder) {
	all := max(h.Waiting, len(h.Queue))
	if all == 0 {
		return
	}
	fmt.Fprintf(w, "%d waiting:\n", all)
	shown := h.Queue[:min(len(h.Queue), mostWaiters)]
	digits := len(fmt.Sprint(len(shown)))
	for i, q := range shown {
		fmt.Fprintln(w, cli.Cut(fmt.Sprintf("  %*d  %s%s", digits, i+1, named(q.Client, q.Metadata), wants(q)), cli.Width(w)))
	}
	if more := all - len(shown); more > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
}

// wants says what a waiter wants, unless it wants the lock for itself.
func wants(q redlock.Waiter) string {
	switch {
	case q.Shared:
		return ", to read"
	case q.Permits > 0:
		return ", " + words.Counted(q.Permits, "permit")
	}
	return ""
}

// waiterStatus is one waiter.
type waiterStatus struct {
	Position int        `json:"position"` // from 1
	Client   string     `json:"client"`
	Metadata string     `json:"metadata,omitempty"`
	Since    *time.Time `json:"since"` // when it began to wait, by the masters' clocks; null: unknown
	Value    string     `json:"value"`
	Ticket   int64      `json:"ticket"`
	Shared   bool       `json:"shared,omitempty"`  // it wants to read
	Permits  int        `json:"permits,omitempty"` // that it wants
	Places   []int      `json:"places"`            // at each node; 0: it is not queued there
}

func queueOf(all []redlock.Waiter) (clients []string, queue []waiterStatus) {
	for i, q := range all {
		clients = append(clients, q.Client)
		queue = append(queue, waiterStatus{i + 1, q.Client, q.Metadata, orNil(q.Since), q.Value, q.Ticket, q.Shared, q.Permits, q.Places})
	}
	return clients, queue
}
