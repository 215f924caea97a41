package redlock_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/quorumlock/quorumlock/internal/loopback"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// permissions are the ACL rules of a user who may do all that this library does
// with locks whose names begin with "app:", and nothing else. They stand in
// docs/permissions.md.
var permissions = []string{
	"resetkeys", "~app:*", // the locks, and the marker with WithKeyPrefix("app:")
	"resetchannels", "&app:redlock:wait:*", // handing the lock on
	"&app:redlock:latch:*", "&app:redlock:leader:*", // latches and elections
	"-@all",
	"+set", "+get", "+mget", "+exists", "+del", "+pexpire", "+pttl", "+eval", "+evalsha", // locks
	"+script|load", "+time", "+role", "+info", // what is asked when connecting, and by the heartbeat
	"+zadd", "+zrange", "+zrem", "+hset", "+hget", "+hdel", "+publish", "+subscribe", "+unsubscribe", "+ping", "+pubsub|numsub", // those who wait
	"+zscore", "+zcard", "+zrangebyscore", "+hexists", "+hvals", // read-write locks, semaphores and fair locks
	"+sadd", "+smembers", "+hmget", // latches and elections
}

// Every way to reach a server carries all that happens to a lock.
func TestReal_lock_over_every_kind_of_connection(t *testing.T) {
	for name, opts := range map[string][]redistest.Option{
		"plain":                                nil,
		"password":                             {redistest.Password("s3cr@t/?#")},
		"ACL user":                             {redistest.User("ann", "p:w@%")},
		"ACL user with least privilege":        {redistest.User("ann", "p:w@%", permissions...)},
		"unix socket":                          {redistest.UnixSocket()},
		"unix socket with password":            {redistest.UnixSocket(), redistest.Password("pw")},
		"TLS":                                  {redistest.TLS()},
		"TLS with client certificate and user": {redistest.TLS(), redistest.Config("tls-auth-clients", "yes"), redistest.User("ann", "pw", permissions...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms := startMasters(t, 3, opts...)
			var config *tls.Config
			if strings.HasPrefix(ms[0].URL(), "rediss:") {
				config = ms[0].TLSConfig()
			}
			log := &diary{}
			all := []redlock.Option{
				redlock.WithKeyPrefix("app:"), redlock.WithTLS(config), redlock.WithRestartGuard(time.Hour),
				redlock.WithDurableNodes(redistest.URLs(ms)...), redlock.WithLogger(slog.New(log)),
				redlock.WithRetryInterval(time.Hour), // only a wake-up hands the lock on
			}
			ms.markAsNew(t, "app:")
			holder, waiter := ms.client(t, all...), ms.client(t, all...)
			lease := lock(t, holder.Mutex("orders", redlock.Metadata("nightly")))
			if err := lease.Extend(ctx, time.Hour); err != nil {
				t.Fatal(err)
			}
			h, err := waiter.Inspect(ctx, "orders")
			if err != nil || !h.Held || h.Metadata != "nightly" || h.Remaining < 59*time.Minute {
				t.Errorf("holder %+v, error %v", h, err)
			}
			next := lockLater(t, waiter.Mutex("orders"))
			eventually(t, "the waiter listens", func() bool { return subscriptions(t, ms) == len(ms) })
			if err := lease.Unlock(ctx); err != nil {
				t.Fatal(err)
			}
			if err := next().Unlock(ctx); err != nil {
				t.Fatal(err)
			}
			ms.mustBeFreeSoon(t, "app:orders")
			if log.said("WARN") {
				t.Errorf("the log complains: %q", log.lines)
			}
		})
	}
}

// The same rights are enough for every kind of lock, with waiting and handing on,
// and each kind needs those that its row of docs/permissions.md names.
func TestReal_every_kind_with_least_privilege(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.User("ann", "pw", permissions...))
	ms.markAsNew(t, "app:")
	log := &diary{}
	opts := []redlock.Option{redlock.WithKeyPrefix("app:"), redlock.WithLogger(slog.New(log))}
	holder, waiter := ms.client(t, opts...), ms.client(t, opts...)
	for _, k := range kinds() {
		lease := k.rival(t, holder)
		next := make(chan *redlock.Lease, 1)
		go func() { next <- k.holds(t, waiter) }()
		eventually(t, "it is queued", func() bool {
			return slices.ContainsFunc(ms, func(s *redistest.Server) bool { // one may have granted
				return len(do(t, s, "KEYS", "app:redlock:*queue:*").([]any)) > 0
			})
		})
		if err := lease.Extend(ctx, time.Minute); err != nil {
			t.Errorf("%s: %v", k.name, err)
		}
		unlocks(t, lease)
		unlocks(t, arrival(t, k.name, next))
	}
	latch, election := holder.Latch("latch", 1), holder.Election("boss")
	if err := errors.Join(latch.Arrive(ctx, "somebody"), latch.Wait(ctx)); err != nil {
		t.Error(err)
	}
	lease, err := election.Campaign(ctx, "here")
	if err != nil {
		t.Fatal(err)
	}
	if err := election.Proclaim(ctx, lease, "there"); err != nil {
		t.Error(err)
	}
	if leader, err := election.Leader(ctx); err != nil || leader.Value != "there" {
		t.Errorf("%+v, %v", leader, err)
	}
	sem := holder.Semaphore("semaphore", 2)
	if n, err := sem.Available(ctx); err != nil || n != 2 {
		t.Errorf("%d available, %v", n, err)
	}
	if err := sem.Resize(ctx, 3); err != nil {
		t.Error(err)
	}
	if log.said("WARN") {
		t.Errorf("the log complains: %q", log.lines)
	}
}

// subscriptions returns how many connections are subscribed at the masters.
func subscriptions(t testing.TB, ms realMasters) (n int) {
	t.Helper()
	for _, s := range ms {
		n += strings.Count(string(do(t, s, "CLIENT", "LIST", "TYPE", "pubsub").([]byte)), "\n")
	}
	return n
}

// Without the commands of the guards and of the queue a lock still works; what
// cannot be known or done is in the log.
func TestReal_lock_with_next_to_no_rights(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.User("ann", "pw",
		"~orders", "~redlock:queue:orders", "~redlock:wait:orders", "~redlock:marker", "-@all", "+set", "+get", "+mget", "+exists", "+del", "+pexpire", "+pttl", "+eval", "+evalsha"))
	log := &diary{}
	holder, waiter := ms.client(t, redlock.WithLogger(slog.New(log))), ms.client(t)
	lease := lock(t, holder.Mutex("orders"))
	next := lockLater(t, waiter.Mutex("orders"))
	if err := lease.Extend(ctx, time.Minute); err != nil {
		t.Error(err)
	}
	if err := lease.Unlock(ctx); err != nil {
		t.Error(err)
	}
	if err := next().Unlock(ctx); err != nil {
		t.Error(err)
	}
	ms.mustBeFreeSoon(t, "orders")
}

func TestReal_missing_right_is_named(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.User("ann", "pw", append(permissions, "-set")...))
	_, err := ms.client(t, redlock.WithKeyPrefix("app:")).Mutex("orders").TryLock(ctx)
	mustBe(t, err, redlock.ErrNoQuorum)
	mustBe(t, err, &wire.ServerError{Code: "NOPERM"})
	mustName(t, err, []string{ms[0].Addr(), "'set'"})
}

// Nothing can be stored, so there is nothing that Close could wait for.
func TestReal_L39_Close_does_not_wait_for_masters_that_ran_nothing(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.User("ann", "pw", append(permissions, "resetkeys", "~job:*", "~redlock:*")...))
	for what, opts := range map[string][]redlock.MutexOption{"set": nil, "script": {redlock.Fenced()}} {
		c := ms.client(t)
		_, err := c.Mutex("orders", opts...).TryLock(ctx)
		mustBe(t, err, &wire.ServerError{Code: "NOPERM"})
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A master refuses the acquire, since our user must not, and is repaired when he may. Then it refuses the
// release: what the repair has stored must go.
func TestReal_L39_what_a_repair_has_stored_is_owed_though_the_acquire_was_denied(t *testing.T) {
	t.Parallel()
	for what, opts := range map[string][]redlock.MutexOption{"mutex": nil, "fenced": {redlock.Fenced()}, "fair": {redlock.Fair()}} {
		ms := startMasters(t, 3, redistest.User("ann", "pw"))
		c := ms.client(t, redlock.WithTTL(20*time.Second), redlock.WithRestartGuard(0))
		do(t, ms[0], "ACL", "SETUSER", "ann", "-set", "-evalsha", "-eval")
		lease := mustLock(t, c.Mutex("orders", opts...))
		do(t, ms[0], "ACL", "SETUSER", "ann", "+@all")
		eventually(t, "it is repaired", func() bool { return ms.values(t, "orders")[0] == lease.Value() })
		do(t, ms[0], "ACL", "SETUSER", "ann", "-set", "-evalsha", "-eval")
		if err := lease.Unlock(ctx); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		do(t, ms[0], "ACL", "SETUSER", "ann", "+@all")
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if left := ms.left(t); len(left) > 0 {
			t.Errorf("%s: Close left %q", what, left)
		}
	}
}

// Dial says of each address what became of it, and of none the password.
func TestReal_Dial_tells_what_is_wrong_with_each_address(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	ms := startMasters(t, 3)
	locked := startMasters(t, 3, redistest.User("ann", secret))
	secured := startMasters(t, 3, redistest.TLS())
	replicas := startMasters(t, 2)
	for _, s := range replicas {
		host, port, _ := strings.Cut(ms[0].Addr(), ":")
		do(t, s, "REPLICAOF", host, port)
	}
	dead := nobodyListensAt(t, 3)
	with := func(user string, servers realMasters) (addrs []string) {
		for _, s := range servers {
			addrs = append(addrs, "redis://"+user+s.Addr())
		}
		return addrs
	}
	for _, c := range []struct {
		name  string
		addrs []string
		is    []error
		says  []string
	}{
		{"nothing listens", dead,
			[]error{redlock.ErrNoQuorum, node.ErrDown}, []string{dead[0], dead[1], dead[2], "connection refused", "0 of 3 answered, 2 needed"}},
		{"a quorum is impossible", []string{ms[0].Addr(), dead[1], dead[2]},
			[]error{redlock.ErrNoQuorum}, []string{dead[1], dead[2], "connection refused"}},
		{"no credentials", with("", locked),
			[]error{redlock.ErrNoQuorum, &wire.ServerError{Code: "NOAUTH"}}, []string{locked[0].Addr(), locked[2].Addr(), "NOAUTH"}},
		{"wrong password", with("ann:"+secret+"x@", locked),
			[]error{redlock.ErrNoQuorum, &wire.ServerError{Code: "WRONGPASS"}}, []string{locked[0].Addr(), locked[2].Addr(), "WRONGPASS"}},
		{"wrong user", with("bob:"+secret+"@", locked),
			[]error{redlock.ErrNoQuorum, &wire.ServerError{Code: "WRONGPASS"}}, []string{locked[1].Addr()}},
		{"a password that nobody asks for", with(":"+secret+"@", ms),
			[]error{redlock.ErrNoQuorum}, []string{ms[0].Addr(), "without any password configured"}},
		{"replicas", []string{ms[0].URL(), replicas[0].URL(), replicas[1].URL()},
			[]error{redlock.ErrNoQuorum, node.ErrNotMaster}, []string{replicas[0].Addr(), replicas[1].Addr(), "its role is slave"}},
		{"a certificate that nobody vouches for", redistest.URLs(secured),
			[]error{redlock.ErrNoQuorum}, []string{secured[0].Addr(), "certificate"}},
		{"TLS to a server without", []string{"rediss://" + ms[0].Addr(), "rediss://" + ms[1].Addr(), ms[2].Addr()},
			[]error{redlock.ErrNoQuorum}, []string{ms[0].Addr(), ms[1].Addr(), "TLS handshake"}},
		{"no socket", []string{"unix:///nowhere/a", "unix:///nowhere/b", "unix:///nowhere/c"},
			[]error{redlock.ErrNoQuorum}, []string{"unix:/nowhere/a", "unix:/nowhere/c", "no such file"}},
		{"a database that there is not", []string{ms[0].URL() + "/99", ms[1].URL() + "/99", ms[2].URL()},
			[]error{redlock.ErrNoQuorum}, []string{ms[0].Addr(), "DB index is out of range"}},
		{"not a URL", []string{ms[0].URL(), "redis://ann:" + secret + "/%zz@" + ms[1].Addr()}, nil, []string{ms[1].Addr(), "not a URL"}},
		{"an unknown scheme", []string{"http://ann:" + secret + "@" + ms[1].Addr()}, nil, []string{ms[1].Addr(), "http", "rediss"}},
		{"no port number", []string{"redis://ann:" + secret + "@127.0.0.1:none"}, nil, []string{"127.0.0.1:***", "URL"}},
		{"the same address twice", []string{ms[0].URL(), ms[1].URL(), "redis://ann:" + secret + "@" + ms[0].Addr()}, nil, []string{ms[0].Addr(), "listed twice"}},
		{"no addresses", nil, nil, []string{"no nodes", "at least 1"}},
	} {
		limited, cancel := context.WithTimeout(ctx, patience) // Dial must not need it
		client, err := redlock.Dial(limited, c.addrs, redlock.WithLogger(slog.New(slog.DiscardHandler)))
		switch {
		case err == nil:
			t.Errorf("%s: no error", c.name)
			client.Close()
		case limited.Err() != nil:
			t.Errorf("%s: Dial waited for its context: %v", c.name, err)
		case strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: %q has the password or is no line", c.name, err)
		}
		for _, is := range c.is {
			if !errors.Is(err, is) {
				t.Errorf("%s: %v is not %v", c.name, err, is)
			}
		}
		mustName(t, err, c.says)
		cancel()
	}
	for _, s := range append(append(locked, secured...), ms[1]) {
		mustBeUntouched(t, s)
	}
}

// nobodyListensAt returns addresses that refuse connections.
func nobodyListensAt(t testing.TB, n int) (addrs []string) {
	t.Helper()
	for range n {
		p, err := loopback.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

// mustBeUntouched checks that nothing was ever written to a server.
func mustBeUntouched(t testing.TB, s *redistest.Server) {
	t.Helper()
	if n := do(t, s, "DBSIZE"); n != int64(0) {
		t.Errorf("%v keys at %s", n, s.Addr())
	}
	if n := calls(t, s, "set"); n != 0 {
		t.Errorf("%d SETs at %s", n, s.Addr())
	}
}

// Dial does not wait for ever for masters that say nothing.
func TestReal_Dial_ends_with_its_context(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	ms[0].Stop()
	ms[1].Stop()
	limited, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()

	_, err := redlock.Dial(limited, redistest.URLs(ms), redlock.WithLogger(slog.New(slog.DiscardHandler)))

	mustBe(t, err, context.DeadlineExceeded)
	mustName(t, err, []string{ms[0].Addr(), ms[1].Addr()})
}

// A minority may be dead, locked or a replica: Dial goes on without it, and it
// joins when it can.
func TestReal_Dial_needs_no_more_than_a_quorum(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	ms[2].Kill()
	c := ms.client(t)
	lease := lock(t, c.Mutex("orders"))
	ms[:2].mustHold(t, lease)

	ms[2].Restart()

	ms.mustHold(t, lease)
}

// LOADING is no answer and no loss: the server is asked again until it is ready.
func TestReal_LOADING_master_votes_when_it_has_loaded(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3, redistest.AOF(), redistest.Config("key-load-delay", "200"))
	populate(t, ms[2], 10_000)
	c := ms.client(t)
	restarted := make(chan struct{})
	go func() {
		defer close(restarted)
		ms[2].Restart() // returns when it has loaded
	}()

	eventually(t, "an attempt meets LOADING", func() bool {
		do(t, ms[0], "SET", "orders", "somebody else", "PX", 50) // so that the third vote counts
		_, err := c.Mutex("orders").TryLock(ctx)
		return errors.Is(err, &wire.ServerError{Code: "LOADING"})
	})
	lease := lock(t, c.Mutex("orders"))
	if !lease.Valid() {
		t.Error("the others are no quorum")
	}
	arrival(t, "the end of loading", restarted)
	ms.mustHold(t, lease)
}

func TestReal_names_of_any_shape(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	holder := ms.client(t)
	waiter := ms.client(t, redlock.WithRetryInterval(time.Hour)) // only a wake-up hands the lock on
	for _, name := range []string{
		"with spaces", "with:colons", "Schlüssel-鍵-🔒", "line\r\nbreak", "nul\x00byte", "\xff\xfe not UTF-8", "*?[a-z]{}\\", `"quotes"`,
		strings.Repeat("10 KB long", 1024),
	} {
		lease := lock(t, holder.Mutex(name, redlock.TTL(time.Minute)))
		ms.mustHold(t, lease)
		next := lockLater(t, waiter.Mutex(name))
		eventually(t, "the waiter stands in line", func() bool { return ms.queued(t, name) })
		if err := lease.Unlock(ctx); err != nil {
			t.Errorf("%.20q: %v", name, err)
		}
		if err := next().Unlock(ctx); err != nil {
			t.Errorf("%.20q: %v", name, err)
		}
		ms.mustBeFreeSoon(t, name)
	}
}

// queued reports whether somebody stands in line for a lock.
func (ms realMasters) queued(t testing.TB, name string) bool {
	t.Helper()
	for _, s := range ms {
		if do(t, s, "EXISTS", wire.QueueOf("", name).Order) == int64(1) {
			return true
		}
	}
	return false
}

// What the options refuse never reaches a master.
func TestReal_bad_input_writes_nothing(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 3)
	for _, opt := range []redlock.Option{
		redlock.WithTTL(time.Millisecond), redlock.WithNodeTimeout(-1), redlock.WithDriftFactor(2), redlock.WithRetryInterval(0),
		redlock.WithClientID("a/b"), redlock.WithRestartGuard(time.Millisecond), nil,
		redlock.WithDurableNodes("redis://ann:s3cret@elsewhere:1"), redlock.WithDurableNodes("redis://ann:s3cret@elsewhere:none"),
	} {
		c, err := tryDial(redistest.URLs(ms), opt)
		if err == nil {
			c.Close()
			t.Error("no error")
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the password is in %q", err)
		}
	}
	c := ms.client(t)
	good := lock(t, c.Mutex("good"))
	ms.mustHold(t, good) // the last SET has been counted
	before := calls(t, ms[0], "set")
	for what, m := range map[string]*redlock.Mutex{
		"no name":       c.Mutex(""),
		"reserved":      c.Mutex("redlock:marker"),
		"short TTL":     c.Mutex("orders", redlock.TTL(9*time.Millisecond)),
		"long metadata": c.Mutex("orders", redlock.Metadata(strings.Repeat("x", 1025))),
	} {
		if _, err := m.TryLock(ctx); err == nil {
			t.Errorf("%s: no error", what)
		}
		if _, err := m.Lock(ctx); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	mustName(t, good.Extend(ctx, time.Millisecond), []string{"Extend(1ms)", "at least 10ms"})
	if err := good.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	for _, s := range ms {
		eventually(t, "the good lock is gone", func() bool { return do(t, s, "DBSIZE") == int64(0) })
	}
	if after := calls(t, ms[0], "set"); after != before {
		t.Errorf("%d SETs", after-before)
	}
}

// miniredis tells neither its role nor its run, and its keys expire only when
// the test says so. It shows the wire protocol without a Redis.
func TestMiniredis_locks_waits_renews_and_expires(t *testing.T) {
	t.Parallel()
	var addrs []string
	var minis []*miniredis.Miniredis
	for range 5 {
		m := miniredis.RunT(t)
		minis, addrs = append(minis, m), append(addrs, m.Addr())
	}
	events, log := &diary{}, &bytes.Buffer{}
	c := dial(t, addrs, redlock.WithRestartGuard(2*second), redlock.WithObserver(events.observe),
		redlock.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	lease := lock(t, c.Mutex("orders"))
	eventually(t, "it is renewed", func() bool { return events.count(redlock.LeaseRenewed) > 0 })
	next := lockLater(t, c.Mutex("orders"))
	if err := lease.Unlock(ctx); err != nil {
		t.Error(err)
	}
	forgotten := next()
	other := lockLater(t, dial(t, addrs).Mutex("orders"))
	c.Close()
	_ = forgotten

	other()
	for _, m := range minis {
		m.FastForward(2 * second)
		if m.Exists("orders") {
			t.Error("a key without a TTL")
		}
	}
}
