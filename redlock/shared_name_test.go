package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// L38: a call that could only wait for a lease of its own context says so at once, and
// locks that have no name in common do not matter.
func TestL38_who_holds_a_name_does_not_wait_for_itself(t *testing.T) {
	onBoth(t, func(t *testing.T, addrs []string) {
		c, other := dial(t, addrs), dial(t, addrs)
		mutex := func(name string, opts ...redlock.MutexOption) *redlock.Mutex { return c.Mutex(name, opts...) }
		multi := func(names ...string) *redlock.Mutex { return c.Multi(names) }
		for what, of := range map[string]struct {
			outer, middle, inner *redlock.Mutex
			nested               bool
		}{
			"a Mutex in a Multi":                    {multi("a", "b"), nil, mutex("a"), true},
			"a re-entrant Mutex in a Multi":         {multi("a", "b"), nil, mutex("b", redlock.Reentrant()), true},
			"a fenced Mutex in a Multi":             {multi("a", "b"), nil, mutex("b", redlock.Fenced()), true},
			"a Multi in a Mutex":                    {mutex("b"), nil, multi("a", "b"), true},
			"a re-entrant Multi in a Mutex":         {mutex("b"), nil, c.Multi([]string{"a", "b"}, redlock.Reentrant()), true},
			"a Multi in one that shares a name":     {multi("a", "b"), nil, multi("b", "c"), true},
			"a Multi of one in a Mutex":             {mutex("a"), nil, multi("a"), true},
			"a Mutex in a Multi in a Mutex":         {mutex("a"), multi("b", "c"), mutex("a"), true},
			"a Mutex of another name in a Multi":    {multi("a", "b"), nil, mutex("c"), false},
			"a Multi of other names in a Multi":     {multi("a", "b"), nil, multi("c", "d"), false},
			"a Mutex of another client in a Multi":  {multi("a", "b"), nil, other.Mutex("c"), false},
			"a re-entrant Multi in itself":          {c.Multi([]string{"a", "b"}, redlock.Reentrant()), nil, c.Multi([]string{"b", "a"}, redlock.Reentrant()), false},
			"a Multi in itself":                     {multi("a", "b"), nil, multi("b", "a"), true},
			"a Mutex in a Multi of another context": {multi("d", "e"), mutex("a"), mutex("b"), false},
		} {
			outer := lock(t, of.outer)
			within, between := outer.Context(), outer
			if of.middle != nil {
				lease, err := of.middle.Lock(within)
				if err != nil {
					t.Fatal(err)
				}
				within = lease.Context()
				between = lease
			}
			within, cancel := context.WithTimeout(within, 5*time.Second)

			lease, err := of.inner.Lock(within)

			cancel()
			if errors.Is(err, redlock.ErrNested) != of.nested || err == nil == of.nested {
				t.Errorf("%s: %v", what, err)
			}
			if lease != nil {
				lease.Unlock(ctx)
			}
			if between != outer {
				between.Unlock(ctx)
			}
			outer.Unlock(ctx)
		}
	})
}
