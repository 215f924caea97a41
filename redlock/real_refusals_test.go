package redlock_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// B restarts without its data, and without the rights that were never saved (ACL SETUSER without ACL SAVE):
// EVAL and INFO are refused until the operator notices. 2 knew B's marker and its run.
func TestReal_S82_a_restart_that_loses_rights_too_is_no_vote(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lacks []string }{
		"nothing":       {[]string{"+ping"}},
		"info":          {[]string{"-info"}},
		"eval":          {[]string{"-eval"}},
		"info and eval": {[]string{"-info", "-eval"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 3, redistest.User("ann", "pw", append([]string{"~*", "&*", "+@all"}, c.lacks...)...))
			ms.doAll(t, "ACL", "SETUSER", "ann", "+@all")
			opts := []redlock.Option{redlock.WithTTL(20 * second), redlock.WithRestartGuard(20 * second)}
			noTwo(t, ms, opts, func() { ms[1].RestartEmpty() })
		})
	}
}

// The same with a snapshot from before the lock: the marker is there.
func TestReal_S82_a_restart_that_loses_the_right_to_INFO_is_no_vote(t *testing.T) {
	t.Parallel()
	for name, lacks := range map[string]string{"nothing": "+ping", "info": "-info"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 3, redistest.Snapshots(), redistest.User("ann", "pw", "~*", "&*", "+@all", lacks))
			ms.doAll(t, "ACL", "SETUSER", "ann", "+@all")
			opts := []redlock.Option{redlock.WithTTL(20 * second), redlock.WithRestartGuard(20 * second)}
			noTwo(t, ms, opts, func() { ms[1].Restart() })
		})
	}
}

// noTwo has 1 hold A, B, B forget, and 2, which knew all three, try.
func noTwo(t *testing.T, ms realMasters, opts []redlock.Option, forget func()) {
	t.Helper()
	addrs, proxies := urlsBehind(t, ms)
	declareNew(t, redistest.URLs(ms))
	rival := ms.connected(t, opts...)
	first := dial(t, addrs, opts...)
	eventually(t, "nothing is left", func() bool { return ms.free(t, "something else") })
	for _, s := range ms {
		s.Do("SAVE")
	}
	proxies[2].Refuse()
	proxies[2].Reset()
	lease := lock(t, first.Mutex("orders", redlock.NoRenew()))
	ms[:2].mustHold(t, lease)
	proxies[1].Refuse()
	proxies[1].Reset()
	forget()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end) && lease.Valid(); time.Sleep(time.Millisecond) {
		if got, err := rival.TryLock(ctx); err == nil && lease.Valid() {
			t.Fatalf("two holders: %v and %v", lease, got)
		}
	}
}

func urlsBehind(t *testing.T, ms realMasters) (addrs []string, proxies []*faultproxy.Proxy) {
	plain, proxies := ms.behindProxies(t)
	for _, a := range plain {
		addrs = append(addrs, "redis://ann:pw@"+a)
	}
	return addrs, proxies
}
