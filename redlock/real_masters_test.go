package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// realMasters are redis-server processes.
type realMasters []*redistest.Server

func startMasters(t testing.TB, n int, opts ...redistest.Option) realMasters {
	t.Helper()
	return redistest.StartN(t, n, opts...)
}

// client returns a client of the masters. Without other options the restart
// guard is off, since the servers have only just started, the TTL is 2 s, and
// the node timeout is long enough for a machine with much else to do.
func (ms realMasters) client(t testing.TB, opts ...redlock.Option) *redlock.Client {
	t.Helper()
	return dial(t, redistest.URLs(ms), opts...)
}

// declareNew says that no locks are there, so that clients need not wait for
// their restart guard.
func declareNew(t testing.TB, addrs []string, opts ...redlock.Option) {
	t.Helper()
	if _, err := redlock.Init(ctx, addrs, opts...); err != nil {
		t.Fatal(err)
	}
}

// markAsNew is declareNew by somebody who may do everything, where the clients
// may not.
func (ms realMasters) markAsNew(t testing.TB, prefix string) {
	t.Helper()
	for _, s := range ms {
		info, err := redis.String(s.Do("INFO", "server"))
		if err != nil {
			t.Fatal(err)
		}
		run := regexp.MustCompile(`run_id:(\w+)`).FindStringSubmatch(info)[1]
		do(t, s, "SET", wire.MarkerKey(prefix), guard.NewMaster(run, time.Now(), 0, guard.GroupID{}).String())
	}
}

func dial(t testing.TB, addrs []string, opts ...redlock.Option) *redlock.Client {
	t.Helper()
	c, err := tryDial(addrs, opts...)
	for end := time.Now().Add(patience); errors.Is(err, redlock.ErrNoQuorum) && time.Now().Before(end); {
		c, err = tryDial(addrs, opts...) // a busy machine is late with a handshake
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func tryDial(addrs []string, opts ...redlock.Option) (*redlock.Client, error) {
	opts = append([]redlock.Option{
		redlock.WithTTL(2 * second), redlock.WithRestartGuard(0), redlock.WithNodeTimeout(2 * second), redlock.WithLogger(slog.New(slog.DiscardHandler)), relaxed,
	}, opts...)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return redlock.Dial(limited, addrs, opts...)
}

// behindProxies puts a proxy in front of every master: a client of their
// addresses can be cut off while others are not.
func (ms realMasters) behindProxies(t testing.TB) (addrs []string, proxies []*faultproxy.Proxy) {
	t.Helper()
	for _, s := range ms {
		p := faultproxy.Start(t, s.Addr())
		addrs, proxies = append(addrs, p.Addr()), append(proxies, p)
	}
	return addrs, proxies
}

// do runs a command at one master.
func do(t testing.TB, s *redistest.Server, command string, args ...any) any {
	t.Helper()
	v, err := s.Do(command, args...)
	if err != nil {
		t.Fatalf("%s at %s: %v", command, s.Addr(), err)
	}
	return v
}

// runAt has one master run a command, whoever sends it.
func runAt(t testing.TB, s *redistest.Server, cmd *wire.Command) any {
	t.Helper()
	var args []any
	for _, arg := range slices.Concat(cmd.Keys, cmd.Args) {
		args = append(args, arg)
	}
	if cmd.Script == nil {
		return do(t, s, cmd.Name, args...)
	}
	return do(t, s, "EVAL", slices.Concat([]any{cmd.Script.Source, len(cmd.Keys)}, args)...)
}

// doAll runs a command at every master.
func (ms realMasters) doAll(t testing.TB, command string, args ...any) {
	t.Helper()
	for _, s := range ms {
		do(t, s, command, args...)
	}
}

// values returns what every master stores at key; "" where there is none.
func (ms realMasters) values(t testing.TB, key string) []string {
	t.Helper()
	values := make([]string, len(ms))
	for i, s := range ms {
		v, err := redis.String(s.Do("GET", key))
		if err != nil && err != redis.ErrNil {
			t.Fatalf("GET at %s: %v", s.Addr(), err)
		}
		values[i] = v
	}
	return values
}

// free reports whether no master stores key.
func (ms realMasters) free(t testing.TB, key string) bool {
	t.Helper()
	return strings.Join(ms.values(t, key), "") == ""
}

// mustBeFreeSoon waits for releases that nobody waits for.
func (ms realMasters) mustBeFreeSoon(t testing.TB, key string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("what the masters store: %q", ms.values(t, key))
		}
	}()
	eventually(t, fmt.Sprintf("nothing is left of %.40q", key), func() bool { return ms.free(t, key) })
}

// mustHold waits until every master stores the lease, and checks that it is
// valid.
func (ms realMasters) mustHold(t testing.TB, lease *redlock.Lease) {
	t.Helper()
	want := slices.Repeat([]string{lease.Value()}, len(ms))
	eventually(t, "every master stores the lease", func() bool {
		return slices.Equal(ms.values(t, lease.Name()), want)
	})
	if !lease.Valid() {
		t.Errorf("the lease is not valid: %v", lease.Err())
	}
}

func lock(t testing.TB, m *redlock.Mutex) *redlock.Lease {
	t.Helper()
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lease, err := m.Lock(limited)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// lockLater is lock in another goroutine. The lease is what the returned
// function waits for.
func lockLater(t testing.TB, m *redlock.Mutex) func() *redlock.Lease {
	limited, cancel := context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	var lease *redlock.Lease
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		lease, err = m.Lock(limited)
	}()
	return func() *redlock.Lease {
		t.Helper()
		<-over
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
}

// arrival receives what must come.
func arrival[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("not within %v: %s", patience, what)
		panic("unreachable")
	}
}

// diary is an observer that remembers, and a slog.Handler too.
type diary struct {
	mu     sync.Mutex
	events []redlock.Event
	lines  []string
}

func (d *diary) observe(e redlock.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

// ofKind returns the events of a kind so far.
func (d *diary) ofKind(kind redlock.EventKind) (found []redlock.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// count returns how many events of a kind were without an error.
func (d *diary) count(kind redlock.EventKind) (n int) {
	for _, e := range d.ofKind(kind) {
		if e.Err == nil {
			n++
		}
	}
	return n
}

func (d *diary) Enabled(context.Context, slog.Level) bool { return true }
func (d *diary) WithAttrs([]slog.Attr) slog.Handler       { return d }
func (d *diary) WithGroup(string) slog.Handler            { return d }

func (d *diary) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
	return nil
}

// all returns the lines so far.
func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// forget drops the events so far.
func (d *diary) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = nil
}

// said reports whether one line of the log has all the words.
func (d *diary) said(words ...string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.lines, func(line string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
	})
}
