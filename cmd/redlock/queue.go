package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
)

// mostWaiters is how many of those who wait are shown.
const mostWaiters = 1000

// waiters returns who waits for a lock, by client and in the order in which they
// will be served, as far as a quorum of the masters agrees that they wait.
func (m *masters) waiters(ctx context.Context, kind, name string) []string {
	queue := "queue:"
	if kind == "semaphore" {
		queue = "permitqueue:"
	}
	f, err := m.open()
	if err != nil {
		return nil
	}
	defer f.Close()
	queues := make([][]string, len(f))
	f.each(ctx, func(i int, master *node.Master, err error) {
		if err == nil {
			reply, _ := ask(ctx, master, "ZRANGE", m.prefix+"redlock:"+queue+name, "0", fmt.Sprint(mostWaiters-1))
			queues[i] = texts(reply)
		}
	})
	return agreed(queues)
}

// agreed are the waiters that a quorum of queues has, in the order of the
// longest queue, which has missed the fewest of them.
func agreed(queues [][]string) []string {
	count := map[string]int{}
	var longest []string
	for _, queue := range queues {
		if len(queue) > len(longest) {
			longest = queue
		}
		for _, waiter := range queue {
			count[waiter]++
		}
	}
	var clients []string
	for _, waiter := range longest {
		if count[waiter] >= quorum.Size(len(queues)) {
			client, _, _ := strings.Cut(waiter, "/")
			clients = append(clients, client)
		}
	}
	return clients
}

// showWaiters prints who waits, as far as that fits a line.
func showWaiters(w io.Writer, waiting []string) {
	if len(waiting) == 0 {
		return
	}
	line := fmt.Sprintf("%d waiting: %s", len(waiting), plain(strings.Join(waiting, ", ")))
	fmt.Fprintln(w, cut(line, width(w)))
}
