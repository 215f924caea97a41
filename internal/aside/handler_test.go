package aside

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slow is a handler that waits for leave to write each line.
type slow struct {
	slog.Handler
	begun chan string
	leave chan struct{}
	wrote chan string
}

func newSlow() *slow {
	return &slow{slog.DiscardHandler, make(chan string, 2*limit), make(chan struct{}), make(chan string, 2*limit)}
}

func (s *slow) Enabled(context.Context, slog.Level) bool { return true }

func (s *slow) Handle(_ context.Context, r slog.Record) error {
	s.begun <- r.Message
	<-s.leave
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	s.wrote <- text
	return nil
}

func TestA_slow_handler_holds_up_nobody(t *testing.T) {
	s := newSlow()
	log := slog.New(NewHandler(s))
	var want []string
	for i := range 100 {
		log.Info(fmt.Sprint(i)) // nothing has been written yet
		want = append(want, fmt.Sprint(i))
	}

	close(s.leave)

	var got []string
	for range want {
		got = append(got, <-s.wrote)
	}
	if !slices.Equal(got, want) {
		t.Errorf("wrote %q, want them in order", got)
	}
}

func TestA_log_that_is_too_far_behind_loses_the_newest_and_says_so(t *testing.T) {
	s := newSlow()
	log := slog.New(NewHandler(s))
	log.Info("first")
	<-s.begun

	for range 3 * limit {
		log.Info("more")
	}
	close(s.leave)

	<-s.wrote
	for range limit {
		if text := <-s.wrote; text != "more" {
			t.Fatalf("wrote %q", text)
		}
	}
	if text, want := <-s.wrote, fmt.Sprint("log too slow, lines left out lines=", 2*limit); text != want {
		t.Errorf("wrote %q, want %q", text, want)
	}
}

func TestDisabled_levels_are_not_queued(t *testing.T) {
	h := NewHandler(slog.DiscardHandler)
	log := slog.New(h.WithGroup("g").WithAttrs([]slog.Attr{slog.Int("a", 1)}))

	log.Error("nothing")

	if len(h.queue.lines) > 0 || h.queue.busy {
		t.Error("queued what the handler does not want")
	}
}
