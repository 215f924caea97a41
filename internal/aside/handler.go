// Package aside keeps a slow log from holding up its writers.
package aside

import (
	"context"
	"log/slog"
	"sync"
)

// Handler is a slog.Handler that hands records to another one from a goroutine
// of its own, in order. Handle never waits: a handler that blocks blocks no writer
// else. The goroutine runs only while there is something to hand on.
type Handler struct {
	next  slog.Handler
	queue *queue // shared by the handlers that WithAttrs and WithGroup make
}

// NewHandler returns a Handler in front of next.
func NewHandler(next slog.Handler) *Handler {
	return &Handler{next: next, queue: &queue{}}
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler. What the other handler says is not known yet,
// so the error is nil.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	h.queue.push(line{ctx, h.next, r.Clone()})
	return nil
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.next.WithAttrs(attrs), h.queue}
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.next.WithGroup(name), h.queue}
}

// line is a record on its way.
type line struct {
	ctx    context.Context
	next   slog.Handler
	record slog.Record
}

// limit is how many records wait at most. A log that is further behind loses the
// newest, with their number.
const limit = 1024

// queue is what waits for the goroutine.
//
// Invariant: the goroutine runs exactly as long as busy is set.
type queue struct {
	mu    sync.Mutex
	lines []line
	lost  int // records that found the queue full
	busy  bool
}

func (q *queue) push(l line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lines) >= limit {
		q.lost++
		return
	}
	q.lines = append(q.lines, l)
	if !q.busy {
		q.busy = true
		go q.run()
	}
}

// run hands on what there is.
func (q *queue) run() {
	for {
		lines, lost := q.take()
		if len(lines) == 0 {
			return
		}
		for _, l := range lines {
			_ = l.next.Handle(l.ctx, l.record) // without a reader
		}
		if lost > 0 {
			last := lines[len(lines)-1]
			r := slog.NewRecord(last.record.Time, slog.LevelWarn, "log too slow, lines left out", 0)
			r.AddAttrs(slog.Int("lines", lost))
			_ = last.next.Handle(last.ctx, r)
		}
	}
}

func (q *queue) take() (lines []line, lost int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines, lost = q.lines, q.lost
	q.lines, q.lost = nil, 0
	q.busy = len(lines) > 0
	return lines, lost
}
