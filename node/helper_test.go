package node

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// patience is how long a test waits for what must come. Nothing waits for it
// when all is well.
const patience = 30 * time.Second

// open returns a master that lives until the test ends.
func open(t testing.TB, addr string, config Config) *Master {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(&journal{})
	}
	m, err := Open(addr, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// connect is open that waits for the connection.
func connect(t testing.TB, addr string, config Config) *Master {
	t.Helper()
	m := open(t, addr, config)
	if err := firstAttempt(t, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// firstAttempt returns what Connected reports.
func firstAttempt(t testing.TB, m *Master) error {
	t.Helper()
	result := make(chan error, 1)
	m.Connected(func(err error) { result <- err })
	return receiveFrom(t, "the first attempt", result)
}

// ask gives a command and waits for the reply.
func ask(t testing.TB, m *Master, cmd *wire.Command) wire.Reply {
	t.Helper()
	return receiveFrom(t, "a reply", give(m, cmd))
}

// give gives a command.
func give(m *Master, cmd *wire.Command) <-chan wire.Reply {
	reply := make(chan wire.Reply, 2) // a second one would be seen
	m.Do(cmd, func(r wire.Reply) { reply <- r })
	return reply
}

func receiveFrom[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// eventually waits until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func wantValue(t testing.TB, r wire.Reply, want any) {
	t.Helper()
	got := r.Value
	if b, ok := got.([]byte); ok {
		got = string(b)
	}
	if r.Err != nil || got != want {
		t.Fatalf("replied %v, %v; want %v", got, r.Err, want)
	}
}

func wantError(t testing.TB, r wire.Reply, want ...error) {
	t.Helper()
	for _, w := range want {
		if r.Err == nil || !errors.Is(r.Err, w) {
			t.Fatalf("replied %v, %v; want %v", r.Value, r.Err, w)
		}
	}
}

// journal is a slog.Handler that remembers.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }
func (j *journal) WithAttrs([]slog.Attr) slog.Handler       { return j }
func (j *journal) WithGroup(string) slog.Handler            { return j }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
	return nil
}

// count returns how many lines have all the words.
func (j *journal) count(words ...string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
next:
	for _, line := range j.lines {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		n++
	}
	return n
}

func get(key string) *wire.Command {
	return &wire.Command{Op: wire.OpRead, Name: "GET", Keys: []string{key}}
}

// declareNew says that servers hold no locks, so that a guarded client need not wait for
// its restart guard.
func declareNew(t testing.TB, addrs ...string) {
	t.Helper()
	var names []string
	for _, addr := range addrs {
		name, err := Name(addr)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	for _, addr := range addrs {
		declareNewBehind(t, "", addr, guard.GroupOf("", names...))
	}
}

// declareNewBehind is declareNew for a marker that has a prefix.
func declareNewBehind(t testing.TB, prefix, addr string, group guard.GroupID) {
	t.Helper()
	d, err := Talk(t.Context(), addr, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	answers, err := d.Ask(wire.Greeting(prefix)...)
	if err != nil {
		t.Fatal(err)
	}
	seen, _ := wire.SeenOf(answers[3])
	declared := guard.NewMaster(wire.HostOf(answers[2]).RunID, seen.Time, 0, group).Promoted(seen.Promotion)
	if _, err := d.Ask(wire.Mark(prefix, seen.Marker, declared.String(), "", "")); err != nil {
		t.Fatal(err)
	}
}
