package node

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
)

// The short ways of the scripts are for what is mostly so, and for nothing else.

func TestShort_a_release_raises_a_counter_that_is_below_the_token(t *testing.T) {
	s, q := redistest.Start(t), wire.QueueOf("", "k")
	do(t, s, "SET", "k", "c/nnnnnnnnnnnnnnnn/w:0")
	do(t, s, "SET", q.Counter(), "6")

	runOn(t, s, wire.FencedRelease("k", q, "c/nnnnnnnnnnnnnnnn/w:0", time.Minute, 7))

	if got := do(t, s, "GET", q.Counter()); string(got.([]byte)) != "7" {
		t.Errorf("the counter is %s, want 7", got)
	}
	if left := do(t, s, "EXISTS", "k"); left != int64(0) {
		t.Error("the lock was not released")
	}
}

func TestShort_a_release_of_several_locks_leaves_those_of_others(t *testing.T) {
	s, m := redistest.Start(t), wire.ManyOf("", []string{"a", "b", "c"})
	do(t, s, "MSET", "a", "c/nnnnnnnnnnnnnnnn/w:0", "b", "foreign", "c", "c/nnnnnnnnnnnnnnnn/w:0")

	runOn(t, s, m.Release("c/nnnnnnnnnnnnnnnn/w:0", time.Minute, 0))

	if left := do(t, s, "EXISTS", "a", "c"); left != int64(0) {
		t.Errorf("%v of ours are left", left)
	}
	if left := do(t, s, "EXISTS", "b"); left != int64(1) {
		t.Error("the lock of somebody else was released")
	}
}

// Somebody waits for the last lock only, and has gone: the release passes it over.
func TestShort_releases_see_who_waits_for_any_of_the_locks(t *testing.T) {
	s := redistest.Start(t)
	q, m := wire.QueueOf("", "b"), wire.ManyOf("", []string{"a", "b"})
	for name, release := range map[string]*wire.Command{
		"several releases":     folded(wire.Release("a", wire.QueueOf("", "a"), aHolder, time.Minute), wire.Release("b", q, aHolder, time.Minute)),
		"a release of several": m.Release(aHolder, time.Minute, 0),
	} {
		do(t, s, "MSET", "a", aHolder, "b", aHolder)
		runOn(t, s, wire.Ask("b", q, "gone/nnnnnnnnnnnnnnnn/w:1", 1, time.Minute))

		runOn(t, s, release)

		if left := do(t, s, "EXISTS", "a", "b"); left != int64(0) {
			t.Errorf("%s: %v locks are left", name, left)
		}
		if waiting := do(t, s, "ZCARD", q.Order); waiting != int64(0) {
			t.Errorf("%s: who has gone is first in the queue of a lock that is free", name)
		}
	}
}

func TestShort_releases_raise_every_counter_that_is_below_its_token(t *testing.T) {
	s, a, b := redistest.Start(t), wire.QueueOf("", "a"), wire.QueueOf("", "b")
	do(t, s, "MSET", "a", aHolder, "b", aHolder, a.Counter(), 7, b.Counter(), 6)

	runOn(t, s, folded(wire.FencedRelease("a", a, aHolder, time.Minute, 7), wire.FencedRelease("b", b, aHolder, time.Minute, 7)))

	if got := do(t, s, "GET", b.Counter()); string(got.([]byte)) != "7" {
		t.Errorf("the counter is %s, want 7", got)
	}
}
