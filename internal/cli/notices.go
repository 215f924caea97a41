package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/wrap"
)

// Notices prints the library's warnings as the command prints its errors. Warnings
// that come before they are shown are held back: if the command fails, its error says
// the same of every master, and it says only once what several have in common.
type Notices struct {
	w io.Writer

	mu      sync.Mutex
	open    bool
	held    []notice
	resting map[string]time.Time // until when a master is quarantined
}

// notice is one warning about masters, or about none.
type notice struct {
	said  []string // the message, with all that is not below: of each master
	nodes []string
	rest  time.Duration // how long it lasts; zero: that is not said
}

// Show prints the warnings that were held back, and from now on each immediately.
func (n *Notices) Show() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = true
	for _, one := range n.held {
		n.print(one)
	}
	n.held = nil
}

func (n *Notices) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (n *Notices) Handle(_ context.Context, r slog.Record) error {
	one, what := notice{}, r.Message
	r.Attrs(func(a slog.Attr) bool {
		switch {
		case a.Key == "node":
			one.nodes = []string{a.Value.String()}
		case a.Key == "for" && a.Value.Kind() == slog.KindDuration:
			one.rest = a.Value.Duration()
		case a.Key == "use": // an option
			what += ", use: " + inFlags("redlock: "+a.Value.String(), nil)
		default:
			what += fmt.Sprintf(", %s: %v", a.Key, a.Value)
		}
		return true
	})
	one.said = []string{what}
	n.mu.Lock()
	defer n.mu.Unlock()
	if one.rest > 0 && len(one.nodes) > 0 {
		n.resting[one.nodes[0]] = time.Now().Add(one.rest)
	}
	if n.open {
		return n.print(one)
	}
	n.hold(one)
	return nil
}

// hold keeps a notice, together with the same about other masters.
func (n *Notices) hold(one notice) {
	for i := range n.held {
		if same := &n.held[i]; alike(same.said[0]) == alike(one.said[0]) {
			same.said = append(same.said, one.said...)
			same.nodes = append(same.nodes, one.nodes...)
			same.rest = max(same.rest, one.rest)
			return
		}
	}
	n.held = append(n.held, one)
}

// print writes one line, over whatever a terminal shows in it.
func (n *Notices) print(one notice) error {
	text := together(one.said)
	if len(one.nodes) > 0 {
		slices.Sort(one.nodes)
		text = strings.Join(one.nodes, ", ") + ": " + strings.TrimPrefix(strings.TrimPrefix(text, "redlock: "), "redis master ")
	}
	if one.rest > 0 {
		text += ", for another " + Seconds(one.rest)
	}
	line := prefixed(text)
	if IsTerminal(n.w) {
		line = EraseLine + wrap.Text(line, 2, Width(n.w))
	}
	_, err := fmt.Fprintln(n.w, line)
	return err
}

// Quarantined returns how many masters do not vote now, and when the first of
// them will again.
func (n *Notices) Quarantined() (masters int, rest time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, until := range n.resting {
		left := time.Until(until)
		if left <= 0 {
			continue
		}
		if masters++; masters == 1 || left < rest {
			rest = left
		}
	}
	return masters, rest
}

// The library uses neither.
func (n *Notices) WithAttrs([]slog.Attr) slog.Handler { return n }

func (n *Notices) WithGroup(string) slog.Handler { return n }
