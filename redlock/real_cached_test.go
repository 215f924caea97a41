package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// A cached lock asks no master while only one process uses it.
func TestReal_a_cached_lock_stays_in_the_process(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	m := masters.client(t, redlock.WithTTL(10*second)).Mutex("lock", redlock.Cached())
	var values []string
	for range 3 {
		lease, err := m.Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, lease.Value())
		if err := lease.Unlock(ctx); err != nil {
			t.Error(err)
		}
		if lease.Valid() {
			t.Error("valid after Unlock")
		}
		if err := lease.Unlock(ctx); err == nil {
			t.Error("a second Unlock says nothing")
		}
	}
	if values[0] != values[1] || values[0] != values[2] {
		t.Errorf("values %q", values)
	}
}

// Another process gets it soon.
func TestReal_a_cached_lock_goes_to_another_process(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	var ms []*redlock.Mutex
	for range 2 {
		ms = append(ms, masters.client(t, redlock.WithTTL(10*second)).Mutex("lock", redlock.Cached()))
	}
	for turn := range 200 {
		since := time.Now()
		lease, err := ms[turn%2].Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(since); took > second {
			t.Errorf("turn %d: took %v", turn, took)
		}
		lease.Unlock(ctx)
	}
}

func TestReal_a_cached_lock_excludes(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	s := newSection(t)
	var all sync.WaitGroup
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const each = 200
	for range 3 {
		m := masters.client(t, redlock.WithTTL(10*second)).Mutex("lock", redlock.Cached())
		for range 4 {
			all.Go(func() {
				for range each {
					if err := redlock.Do(limited, m, func(context.Context) error { return s.enter() }); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	since := time.Now()
	all.Wait()
	t.Logf("%d sections in %v", 12*each, time.Since(since))
	if got := s.count(t); got != 12*each {
		t.Errorf("%d of %d", got, 12*each)
	}
}

// BenchmarkCached takes and releases one lock that stays in the process: by one caller, and by 64
// that pass it to each other.
func BenchmarkCached(b *testing.B) {
	servers := redistest.StartN(b, 5)
	declareNew(b, redistest.URLs(servers))
	c := dial(b, redistest.URLs(servers))
	for _, opts := range map[string][]redlock.MutexOption{"": nil, "cached": {redlock.Cached()}} {
		m := c.Mutex("lock", opts...)
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%d options/callers=%d", len(opts), callers), func(b *testing.B) {
				benchPairs(b, callers, func(int) error {
					lease, err := m.Lock(ctx)
					if err != nil {
						return err
					}
					return lease.Unlock(ctx)
				})
			})
		}
	}
}
