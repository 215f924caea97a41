package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// What a kind of lock refuses is named, and reaches no master.
func TestReal_bad_input_to_every_kind_is_named_and_writes_nothing(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t)
	fair, fenced := redlock.Fair(), redlock.Fenced()
	multi := func(names []string, opts ...redlock.MultiOption) take {
		return func(ctx context.Context, _ *redlock.Client) (*redlock.Lease, error) {
			return c.Multi(names, opts...).TryLock(ctx)
		}
	}
	mutex := func(name string, opts ...redlock.MutexOption) take {
		return func(ctx context.Context, _ *redlock.Client) (*redlock.Lease, error) {
			return c.Mutex(name, opts...).Lock(ctx)
		}
	}
	read := func(name string, opts ...redlock.RWMutexOption) take {
		return func(ctx context.Context, _ *redlock.Client) (*redlock.Lease, error) {
			return c.RWMutex(name, opts...).RLock(ctx)
		}
	}
	permits := func(name string, total, n int, opts ...redlock.SemaphoreOption) take {
		return func(ctx context.Context, _ *redlock.Client) (*redlock.Lease, error) {
			return c.Semaphore(name, total, opts...).Acquire(ctx, n)
		}
	}
	campaign := func(name, value string, opts ...redlock.LockOption) take {
		return func(ctx context.Context, _ *redlock.Client) (*redlock.Lease, error) {
			return c.Election(name, opts...).Campaign(ctx, value)
		}
	}
	resize := func(from, to int) take {
		return func(ctx context.Context, _ *redlock.Client) (*redlock.Lease, error) {
			return nil, c.Semaphore("s", from).Resize(ctx, to)
		}
	}
	latch := func(name string, count int) take {
		return func(ctx context.Context, _ *redlock.Client) (*redlock.Lease, error) {
			return nil, c.Latch(name, count).Arrive(ctx, "somebody")
		}
	}
	for _, input := range []struct {
		take  take
		named []string
	}{
		{multi(nil), []string{"Multi", "no names"}},
		{multi([]string{"a", "b", "a"}), []string{`"a"`, "twice"}},
		{multi([]string{"a", ""}), []string{"lock name", "not be empty"}},
		{multi([]string{"a", "redlock:b"}), []string{`"redlock:b"`, `must not begin with "redlock:"`}},
		{multi(manyNames(wire.MaxNames + 1)), []string{"1001 names", "at most 1000"}},
		{multi([]string{"a"}, redlock.TTL(time.Millisecond)), []string{"TTL(1ms)", "at least 10ms"}},
		{mutex("a", fair, redlock.Polling(time.Second, time.Second)), []string{"Fair", "Polling"}},
		{mutex("a", fenced, redlock.Polling(time.Second, time.Millisecond)), []string{"Polling(1s, 1ms)"}},
		{read(""), []string{"lock name", "not be empty"}},
		{permits("s", 0, 1), []string{"0 permits", "between 1 and 4096"}},
		{permits("s", -1, 1), []string{"-1 permits", "between 1 and 4096"}},
		{permits("s", wire.MaxPermits+1, 1), []string{"4097 permits", "between 1 and 4096"}},
		{permits("s", 3, 4), []string{`"s"`, "Acquire(4)", "between 1 and its 3 permits"}},
		{permits("s", 3, 0), []string{`"s"`, "Acquire(0)", "between 1 and its 3 permits"}},
		{permits("s", 3, -1), []string{"Acquire(-1)"}},
		{permits("s", wire.MaxPermits, wire.MaxAcquire+1), []string{`"s"`, "Acquire(2049)", "between 1 and 2048"}},
		{permits("", 3, 1), []string{"lock name", "not be empty"}},
		{resize(3, 0), []string{"Resize", "0 permits"}},
		{resize(0, 3), []string{"Semaphore", "0 permits"}},
		{campaign("", "x"), []string{"lock name", "not be empty"}},
		{campaign("e", "\xff"), []string{`"\xff"`, "UTF-8"}},
		{campaign("e", strings.Repeat("x", 1025)), []string{"1025 bytes"}},
		{latch("l", 0), []string{`"l"`, "0 arrivals"}},
		{latch("l", wire.MaxArrivals+1), []string{"5001 arrivals", "between 1 and 5000"}},
		{latch("", 1), []string{"lock name", "not be empty"}},
	} {
		_, err := input.take(ctx, c)
		mustName(t, err, input.named)
	}
	for _, id := range []string{"", ".", strings.Repeat("x", 257)} {
		mustName(t, c.Latch("l", 1).Arrive(ctx, id), []string{`"l"`, fmt.Sprintf("%q", id), "between 1 and 256 bytes"})
	}
	for _, s := range masters {
		if n := do(t, s, "DBSIZE"); n != int64(0) {
			t.Errorf("%d keys at %s", n, s.Addr())
		}
	}
}

// Names and metadata of any shape come back as they were, from every kind.
func TestReal_names_and_metadata_of_any_shape_in_every_kind(t *testing.T) {
	masters := startMasters(t, 3)
	holder, waiter := masters.client(t, redlock.WithKeyPrefix("a b:")), masters.client(t, redlock.WithKeyPrefix("a b:"))
	about := redlock.Metadata("two words:1 and\na/line:2 ")
	for _, name := range []string{"with spaces", "with:colons:1", "line\r\nbreak", "\xff\xfe", "a,b", "1 2", "12:t x"} {
		for kind, lock := range map[string]func(*redlock.Client) (*redlock.Lease, error){
			"fenced": func(c *redlock.Client) (*redlock.Lease, error) {
				return c.Mutex(name, redlock.Fenced(), about).Lock(ctx)
			},
			"fair": func(c *redlock.Client) (*redlock.Lease, error) { return c.Mutex(name, redlock.Fair(), about).Lock(ctx) },
			"multi": func(c *redlock.Client) (*redlock.Lease, error) {
				return c.Multi([]string{name, "b"}, about, redlock.Fenced()).Lock(ctx)
			},
			"write":     func(c *redlock.Client) (*redlock.Lease, error) { return c.RWMutex(name, about).Lock(ctx) },
			"semaphore": func(c *redlock.Client) (*redlock.Lease, error) { return c.Semaphore(name, 1, about).Acquire(ctx, 1) },
		} {
			lease, err := lock(holder)
			if err != nil {
				t.Fatalf("%s %q: %v", kind, name, err)
			}
			next := make(chan *redlock.Lease, 1)
			go func() {
				lease, err := lock(waiter)
				if err != nil {
					t.Error(err)
				}
				next <- lease
			}()
			eventually(t, "it is queued", func() bool {
				for _, s := range masters {
					if len(do(t, s, "KEYS", "a b:redlock:*queue:*").([]any)) > 0 {
						return true
					}
				}
				return false
			})
			unlocks(t, lease)
			unlocks(t, arrival(t, "the lock", next))
		}
	}
}
