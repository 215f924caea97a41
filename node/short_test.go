package node

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// The short ways of the scripts are for what is mostly so, and for nothing else.

func TestShort_a_release_raises_a_counter_that_is_below_the_token(t *testing.T) {
	s, q := redistest.Start(t), QueueOf("", "k")
	do(t, s, "SET", "k", "c/n/w:0")
	do(t, s, "SET", q.Counter(), "6")

	runOn(t, s, FencedRelease("k", q, "c/n/w:0", time.Minute, 7))

	if got := do(t, s, "GET", q.Counter()); string(got.([]byte)) != "7" {
		t.Errorf("the counter is %s, want 7", got)
	}
	if left := do(t, s, "EXISTS", "k"); left != int64(0) {
		t.Error("the lock was not released")
	}
}

func TestShort_a_release_of_several_locks_leaves_those_of_others(t *testing.T) {
	s, m := redistest.Start(t), ManyOf("", []string{"a", "b", "c"})
	do(t, s, "MSET", "a", "c/n/w:0", "b", "foreign", "c", "c/n/w:0")

	runOn(t, s, m.Release("c/n/w:0", time.Minute, 0))

	if left := do(t, s, "EXISTS", "a", "c"); left != int64(0) {
		t.Errorf("%v of ours are left", left)
	}
	if left := do(t, s, "EXISTS", "b"); left != int64(1) {
		t.Error("the lock of somebody else was released")
	}
}
