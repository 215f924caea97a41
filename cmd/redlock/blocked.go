package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/wrap"
	"github.com/quorumlock/quorumlock/redlock"
)

// blocking has the waits for all locks. It is the JSON of status --blocked.
type blocking struct {
	Waits   []wait     `json:"waits"`
	Circles [][]string `json:"circles"` // of clients that wait for each other
	// Complete, Cut and Unread are as in listing.
	Complete bool     `json:"complete"`
	Cut      bool     `json:"cut,omitempty"`
	Unread   []string `json:"unread,omitempty"`
}

// wait is one waiter, and the clients that hold the lock.
type wait struct {
	Client   string   `json:"client"`
	Metadata string   `json:"metadata,omitempty"`
	Lock     string   `json:"lock"`
	Position int      `json:"position"`         // in the queue, from 1
	Holders  []string `json:"holders"`          // empty: a client of another library
	Circle   int      `json:"circle,omitempty"` // the number of the circle, from 1, that it closes
}

// blocked lists the waits.
func (o *statusOptions) blocked(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	held, cut := map[string]redlock.Holder{}, false
	unread, err := o.readEach(func(one *masters) error {
		some, err := one.holders(ctx, o.limit, held)
		cut = cut || some
		return err
	})
	if err != nil && len(held) == 0 {
		return cli.Failed(err)
	}
	b := blockingOf(held)
	b.Cut, b.Complete, b.Unread = cut, err == nil && !cut, unread
	return o.print(w, b, err)
}

// holders adds the locks of a group that are held.
func (m *masters) holders(ctx context.Context, limit int, held map[string]redlock.Holder) (cut bool, err error) {
	found, err := m.listGroup(ctx, limit)
	if err != nil {
		return false, err
	}
	client, err := m.Dial(ctx, io.Discard, m.unguarded()...)
	if err != nil {
		return false, err
	}
	defer client.Close()
	names := make(chan string, len(found.Locks))
	for _, lock := range found.Locks {
		names <- lock.Name
	}
	close(names)
	var mu sync.Mutex
	var readers sync.WaitGroup
	for range inspectedAtOnce {
		readers.Go(func() {
			for name := range names {
				holder, failed := client.Inspect(ctx, name)
				mu.Lock()
				if failed == nil {
					held[name] = holder
				} else if err == nil {
					err = failed
				}
				goOn := err == nil
				mu.Unlock()
				if !goOn {
					return
				}
			}
		})
	}
	readers.Wait()
	return found.Cut, err
}

// inspectedAtOnce is how many locks are inspected in parallel.
const inspectedAtOnce = 64

// blockingOf finds the waits for locks that are held, and the circles among them.
func blockingOf(held map[string]redlock.Holder) blocking {
	b := blocking{Waits: []wait{}, Circles: [][]string{}}
	waitsFor := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(held)) {
		h := held[name]
		holders := holdersOf(h)
		for i, q := range h.Queue {
			b.Waits = append(b.Waits, wait{Client: q.Client, Metadata: q.Metadata, Lock: name, Position: i + 1, Holders: holders})
			waitsFor[q.Client] = append(waitsFor[q.Client], holders...)
		}
	}
	circleOf := map[string]int{} // by client
	for i, circle := range circles(waitsFor) {
		b.Circles = append(b.Circles, circle)
		for _, client := range circle {
			circleOf[client] = i + 1
		}
	}
	for i, w := range b.Waits {
		if n := circleOf[w.Client]; slices.ContainsFunc(w.Holders, func(h string) bool { return circleOf[h] == n }) {
			b.Waits[i].Circle = n
		}
	}
	return b
}

// holdersOf are the clients that have a lock, each once.
func holdersOf(h redlock.Holder) []string {
	all := []string{}
	if h.Client != "" && !h.Kept {
		all = append(all, h.Client)
	}
	for _, s := range h.Shares {
		all = append(all, s.Client)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// circles returns the sets of clients of which each waits, over others or not, for each other:
// the strongly connected components of the graph, in the order of their first client. A client
// that waits for itself has several goroutines, and is none.
func circles(waitsFor map[string][]string) (all [][]string) {
	clients := slices.Sorted(maps.Keys(waitsFor))
	reaches := map[string]map[string]bool{}
	for _, c := range clients {
		seen, next := map[string]bool{}, slices.Clone(waitsFor[c])
		for len(next) > 0 {
			if to := next[0]; !seen[to] {
				seen[to] = true
				next = append(next, waitsFor[to]...)
			}
			next = next[1:]
		}
		reaches[c] = seen
	}
	placed := map[string]bool{}
	for _, c := range clients {
		if placed[c] {
			continue
		}
		var circle []string
		for _, other := range clients {
			if reaches[c][other] && reaches[other][c] {
				circle, placed[other] = append(circle, other), true
			}
		}
		if len(circle) > 1 {
			all = append(all, circle)
		}
	}
	return all
}

// show fits 80 columns, or what the terminal has.
func (b blocking) show(w io.Writer) error {
	if len(b.Waits) == 0 {
		nobody := "nobody waits for a lock that is held"
		if !b.Complete {
			nobody += ", as far as was read"
		}
		if _, err := fmt.Fprintln(w, nobody); err != nil {
			return err
		}
		return sayCut(w, b.Cut)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	heading := "CLIENT\tWAITS FOR\tHELD BY"
	if len(b.Circles) > 0 {
		heading += "\tCIRCLE"
	}
	fmt.Fprintln(t, heading)
	room := (cli.Width(w) - 2*3 - len("CIRCLE")) / 3
	for _, one := range b.Waits {
		by := "another library"
		if len(one.Holders) > 0 {
			by = cli.Printable(one.Holders[0])
		}
		more := ""
		if n := len(one.Holders); n > 1 {
			more = fmt.Sprintf(" and %d more", n-1)
		}
		circle := ""
		if one.Circle > 0 {
			circle = fmt.Sprint("\t", one.Circle)
		}
		fmt.Fprintf(t, "%s\t%s\t%s%s%s\n", cli.Cut(named(one.Client, one.Metadata), room), cli.Cut(cli.Printable(one.Lock), room), cli.Cut(by, room-len(more)), more, circle)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i, circle := range b.Circles {
		said := fmt.Sprintf("circle %d: %s", i+1, strings.Join(b.told(i+1, circle), "; "))
		if _, err := fmt.Fprintln(w, cli.Caution.On(w, wrap.Text(said, 2, cli.Width(w)))); err != nil {
			return err
		}
	}
	return sayCut(w, b.Cut)
}

// told names, for each client of a circle, the lock and its holders.
func (b blocking) told(n int, circle []string) (all []string) {
	for _, w := range b.Waits {
		if w.Circle != n {
			continue
		}
		holders := slices.DeleteFunc(slices.Clone(w.Holders), func(h string) bool { return !slices.Contains(circle, h) })
		for i := range holders {
			holders[i] = cli.Printable(holders[i])
		}
		all = append(all, fmt.Sprintf("%s waits for %s, held by %s", cli.Printable(w.Client), cli.Printable(w.Lock), strings.Join(holders, ", ")))
	}
	return all
}
