package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// notices prints the library's warnings as the command prints its errors. Those
// that come while it connects are held back: if it fails, its error says all of
// them again.
type notices struct {
	w io.Writer

	mu   sync.Mutex
	open bool
	held strings.Builder
}

// connected prints what was held back, and from now on everything at once.
func (n *notices) connected() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = true
	io.WriteString(n.w, n.held.String())
	n.held.Reset()
}

func (n *notices) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (n *notices) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString("redlock: " + strings.TrimPrefix(r.Message, "redlock: "))
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&line, ", %s: %v", a.Key, a.Value)
		return true
	})
	line.WriteByte('\n')

	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open {
		_, err := io.WriteString(n.w, line.String())
		return err
	}
	n.held.WriteString(line.String())
	return nil
}

// The library uses neither.
func (n *notices) WithAttrs([]slog.Attr) slog.Handler { return n }
func (n *notices) WithGroup(string) slog.Handler      { return n }
