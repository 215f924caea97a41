package node

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
)

// S52: other libraries store HOST:PID, or whatever else they like. A release of such a
// value, by Adopt or ForceUnlock, deletes that value and no other.
func TestReal_S52_a_release_deletes_no_value_of_another_process(t *testing.T) {
	s, ttl := redistest.Start(t), time.Minute
	for _, other := range []struct{ ours, theirs string }{
		{"host:4711", "host:4712"},
		{"host:4711", "host:4711:2"},
		{"team/app/web1:4711", "team/app/web1:4712"},
		{"job", "another job"},
		{":1", ":2"},
		{"c/nnnnnnnnnnnnnnnn/h:zero", "c/nnnnnnnnnnnnnnnn/h:one"},
	} {
		q, m := wire.QueueOf("", "a"), wire.ManyOf("", []string{"a", "b"})
		for name, release := range map[string]*wire.Command{
			"a release":            wire.Release("a", q, other.ours, ttl),
			"a fenced release":     wire.FencedRelease("a", q, other.ours, ttl, 7),
			"several releases":     folded(wire.Release("a", q, other.ours, ttl), wire.Release("b", wire.QueueOf("", "b"), other.ours, ttl)),
			"a release of several": m.Release(other.ours, ttl, 0),
			"a release of readers": wire.ReadWriteOf("", "a").Release(other.ours, ttl),
		} {
			do(t, s, "SET", "a", other.theirs)

			runOn(t, s, release)

			if left := do(t, s, "EXISTS", "a"); left != int64(1) {
				t.Errorf("%s of %q has deleted %q", name, other.ours, other.theirs)
			}
			do(t, s, "SET", "a", other.ours)
			do(t, s, "SET", "b", other.ours)

			runOn(t, s, release)

			if left := do(t, s, "EXISTS", "a"); left != int64(0) {
				t.Errorf("%s of %q has not deleted it", name, other.ours)
			}
		}
	}
}
