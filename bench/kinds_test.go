package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/monitor"
)

// Every kind is measured, with us and with Redisson's way, and leaves nothing behind.
func TestKinds_measures_every_kind_and_cleans_up(t *testing.T) {
	masters := realMasters(t, 3)
	masters.slow = true // a machine that stands still fails no operation
	workloads := Kinds(Quick, masters)
	for i := range workloads {
		workloads[i].Length = 20 * time.Millisecond
	}

	report, err := Plan{Masters: masters, Workloads: workloads}.Run(context.Background())

	if err != nil {
		t.Fatal(err)
	}
	if want := 2*len(KindNames) - 1; len(report.Results) != want { // they have no elections
		t.Errorf("%d results, want %d", len(report.Results), want)
	}
	for _, r := range report.Results {
		must(t, r, PerSecond, 1, anything)
		must(t, r, P50, 1, anything)
		must(t, r, P99, r.Values[P50], anything)
		must(t, r, Failures, 0, 0)
		must(t, r, Leftover, 0, 0)
		must(t, r, Leaked, 0, 0)
	}
	for _, m := range masters.all {
		conn, err := monitor.Dial(m.URL())
		if err != nil {
			t.Fatal(err)
		}
		keys, err := redis.Strings(conn.Do("KEYS", "*"))
		conn.Close()
		if keys = slices.DeleteFunc(keys, func(key string) bool { return key == "redlock:marker" || key == "redlock:clock" }); err != nil || len(keys) > 0 {
			t.Errorf("left at %s: %q, %v", m.URL(), keys[:min(len(keys), 9)], err)
		}
	}
	mustFit(t, report)
}

// mustFit looks at the table and the section of the page.
func mustFit(t *testing.T, report *Report) {
	t.Helper()
	var text, page strings.Builder
	report.WriteText(&text)
	for line := range strings.Lines(text.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if err := report.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, kind := range KindNames {
		if !strings.Contains(text.String(), "\n  "+kind+" ") || !strings.Contains(page.String(), "<td>"+kind+"<td>") {
			t.Errorf("no row for %s", kind)
		}
	}
	if n := strings.Count(page.String(), "<h2>Kinds of locks"); n != 1 || !strings.Contains(page.String(), "The scripts are ours") {
		t.Errorf("%d sections about kinds, or no caption", n)
	}
}

// What we measure ourselves against must be a lock: it keeps others out, and lets them
// in afterwards.
func TestRedisson_keeps_others_out(t *testing.T) {
	masters := realMasters(t, 1)
	ctx := context.Background()
	for kind, hold := range map[string]struct {
		first, refused string // kinds of two handles of the same name
	}{
		"mutex": {"mutex", "mutex"}, "fenced": {"fenced", "fenced"}, "fair": {"fair", "fair"}, "re-entrant": {"re-entrant", "mutex"},
		"read": {"read", "write"}, "write": {"write", "read"}, "two writers": {"write", "write"}, "multi of 3": {"multi of 3", "multi of 3"},
	} {
		first, other := redissonAt(t, masters, hold.first), redissonAt(t, masters, hold.refused)
		lease, err := first.Mutex(kind).Lock(ctx)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if _, err := other.Mutex(kind).Lock(ctx); !errors.Is(err, errTaken) {
			t.Errorf("%s: a second holder: %v", kind, err)
		}
		if err := lease.Unlock(ctx); err != nil {
			t.Errorf("%s: unlock: %v", kind, err)
		}
		if err := lease.Unlock(ctx); !errors.Is(err, errNotHeld) && hold.first != "read" && hold.first != "write" { // these say yes where nobody has it
			t.Errorf("%s: unlock again: %v", kind, err)
		}
		if hold.refused == "fair" {
			continue // the other one has a place in the queue
		}
		lease, err = other.Mutex(kind).Lock(ctx)
		if err != nil {
			t.Errorf("%s: after the unlock: %v", kind, err)
			continue
		}
		lease.Unlock(ctx)
	}
}

func TestRedisson_shares_what_is_for_many(t *testing.T) {
	masters := realMasters(t, 1)
	ctx := context.Background()
	readers, sem := redissonAt(t, masters, "read"), redissonAt(t, masters, "semaphore")
	var leases []Lease
	for range 3 {
		lease, err := readers.Mutex("rw").Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, lease)
	}
	for i := range permitsHere + 1 {
		lease, err := sem.Mutex("sem" + strings.Repeat("x", i/99)).Lock(ctx)
		if wanted := i < permitsHere; (err == nil) != wanted {
			t.Errorf("permit %d: %v", i, err)
		}
		if err == nil {
			defer lease.Unlock(ctx)
		}
	}
	for i, lease := range leases {
		if err := lease.Unlock(ctx); err != nil {
			t.Error(err)
		}
		_, err := redissonAt(t, masters, "write").Mutex("rw").Lock(ctx)
		if last := i == len(leases)-1; (err == nil) != last {
			t.Errorf("a writer beside %d readers: %v", len(leases)-1-i, err)
		}
	}
}

func TestRedisson_latch_counts_down(t *testing.T) {
	masters := realMasters(t, 1)
	c := redissonAt(t, masters, "latch")
	for range 3 {
		lease, err := c.Mutex("latch").Lock(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Unlock(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := monitor.Dial(masters.all[0].URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n, err := redis.Int64(conn.Do("GET", "latch:count")); n != latchHere-3 || err != nil {
		t.Errorf("count %d, %v", n, err)
	}
}

// redissonAt is a client with a connection pool and holders of its own.
func redissonAt(t *testing.T, masters *Masters, kind string) Client {
	t.Helper()
	s, ok := Redisson(kind, 4)
	if !ok {
		t.Fatalf("no %s", kind)
	}
	c, err := s.Open(context.Background(), []string{masters.all[0].URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
