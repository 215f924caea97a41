package redlock_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quorumlock/quorumlock/redlock"
)

func TestReal_multi_excludes_every_mutex_of_its_names(t *testing.T) {
	masters := startMasters(t, 5)
	c, other := masters.client(t), masters.client(t)
	both := c.Multi([]string{"b", "a"})
	lease, err := both.TryLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := other.Mutex(name).TryLock(ctx); !errors.Is(err, redlock.ErrTaken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = other.Multi([]string{"b", "c"}).TryLock(ctx)
	if !errors.Is(err, redlock.ErrTaken) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("%v; want taken, and b named", err)
	}
	if err := lease.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	masters.mustBeFreeSoon(t, "a")
	masters.mustBeFreeSoon(t, "b")
	masters.mustBeFreeSoon(t, "c")
}

func TestReal_multi_and_mutexes_all_get_their_locks(t *testing.T) {
	t.Parallel()
	masters := startMasters(t, 5)
	var inside [3]atomic.Int32
	var all sync.WaitGroup
	work := func(m *redlock.Mutex, which ...int) {
		for range 15 {
			lease, err := m.Lock(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			for _, i := range which {
				if inside[i].Add(1) != 1 {
					t.Error("two inside", i)
				}
			}
			for _, i := range which {
				inside[i].Add(-1)
			}
			if err := lease.Unlock(ctx); err != nil {
				t.Error(err)
			}
		}
	}
	for range 2 {
		c := masters.client(t)
		all.Go(func() { work(c.Multi([]string{"a", "b"}), 0, 1) })
		all.Go(func() { work(c.Multi([]string{"b", "c"}, redlock.Fenced()), 1, 2) })
		all.Go(func() { work(c.Multi([]string{"c", "a"}), 2, 0) })
		all.Go(func() { work(c.Mutex("a"), 0) })
	}
	all.Wait()
	for _, n := range []string{"a", "b", "c"} {
		masters.mustBeFreeSoon(t, n)
		eventually(t, "nobody is queued", func() bool { return slices.Max(masters.places(t, n)) == 0 })
	}
}

// MGET says nothing of a key that is no string. It is a lock all the same, of
// Redisson, say: a Mutex is refused there, and so is a Multi.
func TestReal_multi_keeps_off_keys_that_are_no_strings(t *testing.T) {
	masters := startMasters(t, 3)
	masters.doAll(t, "HSET", "b", "redisson", "1")
	c := masters.client(t)

	_, err := c.Multi([]string{"a", "b"}).TryLock(ctx)

	mustBe(t, err, redlock.ErrTaken)
	mustName(t, err, []string{`"b"`})
	for _, s := range masters {
		if got := do(t, s, "HGET", "b", "redisson"); string(got.([]byte)) != "1" {
			t.Errorf("%v stands where another library's lock was", got)
		}
	}
	masters.mustBeFreeSoon(t, "a")
}

// Names may have commas, and look like ids.
func TestReal_locks_whose_names_look_alike_are_not_taken_for_one_another(t *testing.T) {
	c := startMasters(t, 3).client(t)
	again := redlock.Reentrant()
	outer := c.Multi([]string{"a", "b"}, again)
	held, err := outer.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*redlock.Mutex{
		"one name":    c.Multi([]string{"a,b"}, again),
		"alike":       c.Mutex("multi:a,b", again),
		"id":          c.Mutex(`multi:["a" "b"]`, again),
		"with quotes": c.Multi([]string{`a" "b`}, again),
	} {
		inner, err := m.TryLock(held.Context())
		if err != nil || inner == held {
			t.Fatalf("%q: %v, %v; want a lease of its own", name, inner, err)
		}
		unlocks(t, inner)
	}
	unlocks(t, held)
}
