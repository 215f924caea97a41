package node

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// do runs a command at the server itself.
func do(t testing.TB, s *redistest.Server, command string, args ...any) any {
	t.Helper()
	v, err := s.Do(command, args...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// lifeOfALock is what every kind of connection must carry.
func lifeOfALock(t *testing.T, m *Master) {
	t.Helper()
	wantValue(t, ask(t, m, wire.Acquire("lock", "v1", time.Minute)), "OK")
	wantValue(t, ask(t, m, wire.Acquire("lock", "v2", time.Minute)), nil)
	r := ask(t, m, wire.Ask("lock", wire.QueueOf("", "lock"), "c/nnnnnnnnnnnnnnnn/v2:0", 1, time.Minute))
	if fields, ok := r.Value.([]any); !ok || fields[0].(int64) <= 0 || fields[0].(int64) > 60_000 || fields[1] != int64(1) {
		t.Errorf("ask: %v, %v", r.Value, r.Err)
	}
	wantValue(t, ask(t, m, wire.Release("lock", wire.QueueOf("", "lock"), "c/nnnnnnnnnnnnnnnn/v2:0", time.Minute)), int64(-1))
	wantValue(t, ask(t, m, wire.Extend("lock", "v1", time.Hour)), int64(1))
	wantValue(t, ask(t, m, wire.Extend("lock", "v2", time.Hour)), int64(-1))
	wantValue(t, ask(t, m, wire.Extend("absent", "v1", time.Hour)), int64(0))
	r = ask(t, m, wire.Inspect("", "lock"))
	if fields, ok := r.Value.([]any); !ok || wire.Text(fields[0]) != "v1" || fields[1].(int64) <= 60_000 {
		t.Errorf("inspect: %v, %v", r.Value, r.Err)
	}
	wantValue(t, ask(t, m, wire.Release("lock", wire.QueueOf("", "lock"), "v2", time.Minute)), int64(-1))
	wantValue(t, ask(t, m, wire.Release("lock", wire.QueueOf("", "lock"), "v1", time.Minute)), int64(1))
	wantValue(t, ask(t, m, wire.Release("lock", wire.QueueOf("", "lock"), "v1", time.Minute)), int64(0))
	wantValue(t, ask(t, m, wire.Ask("lock", wire.QueueOf("", "lock"), "c/nnnnnnnnnnnnnnnn/v3:0", 1, time.Minute)), "OK")
	wantValue(t, ask(t, m, wire.Release("lock", wire.QueueOf("", "lock"), "c/nnnnnnnnnnnnnnnn/v3:0", time.Minute)), int64(1))
	wantValue(t, ask(t, m, wire.Repair("lock", "v4", time.Minute)), "OK")
	wantValue(t, ask(t, m, wire.Release("lock", wire.QueueOf("", "lock"), "v4", time.Minute)), int64(1))
	r = ask(t, m, wire.Inspect("", "lock"))
	if fields, ok := r.Value.([]any); !ok || fields[0] != nil || fields[1] != int64(-2) {
		t.Errorf("inspect: %v, %v", r.Value, r.Err)
	}
}

// guarded is a guard that admits at once what has run for a second.
func guarded(hold time.Duration) Config {
	return Config{Guard: guard.Config{Hold: hold, ClockTolerance: time.Second}}
}

func TestReal_lock_over_every_kind_of_connection(t *testing.T) {
	for name, opts := range map[string][]redistest.Option{
		"plain":                     nil,
		"password":                  {redistest.Password("s3cr@t/?#")},
		"ACL user":                  {redistest.User("ann", "p:w@%")},
		"unix socket":               {redistest.UnixSocket()},
		"unix socket with ACL user": {redistest.UnixSocket(), redistest.User("ann", "pw")},
		"TLS":                       {redistest.TLS()},
		"TLS with ACL user":         {redistest.TLS(), redistest.User("ann", "pw")},
		"ACL user with what a lock needs": {redistest.User("ann", "pw", "resetkeys", "~lock", "~absent", "~redlock:*", "resetchannels", "&redlock:wait:*",
			"-@all", "+set", "+get", "+mget", "+exists", "+del", "+pttl", "+pexpire", "+eval", "+evalsha", "+script|load", "+zadd", "+zrange", "+zrem", "+hset", "+hget", "+hdel", "+publish", "+subscribe", "+unsubscribe", "+ping", "+time", "+role", "+info")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, opts...)
			config := Config{}
			if strings.HasPrefix(s.URL(), "rediss") {
				config.TLS = s.TLSConfig()
			}
			m := connect(t, s.URL(), config)
			lifeOfALock(t, m)
			st := m.Status()
			if st.Role != "master" || len(st.RunID) != 40 || st.Version == "" || st.Uptime < 0 || st.Unknown != nil || st.State != StateConnected {
				t.Errorf("%+v", st)
			}
			listenTo(t, m, "redlock:wait:c/n")
		})
	}
}

func TestReal_database_number(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL()+"/3", Config{})
	wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Minute)), "OK")
	c, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Do("SELECT", 3); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Do("EXISTS", "k"); err != nil || v != int64(1) {
		t.Errorf("in database 3: %v, %v", v, err)
	}
	if err := firstAttempt(t, open(t, s.URL()+"/99", Config{})); err == nil || !strings.Contains(err.Error(), "DB index is out of range") {
		t.Errorf("%v", err)
	}
}

func TestReal_refused_connections_say_why(t *testing.T) {
	withUser := redistest.Start(t, redistest.User("ann", "pw"))
	withTLS := redistest.Start(t, redistest.TLS())
	plain := redistest.Start(t)
	for name, c := range map[string]struct {
		addr string
		want string
	}{
		"no credentials":          {"redis://" + withUser.Addr(), "NOAUTH"},
		"wrong password":          {"redis://ann:nope@" + withUser.Addr(), "WRONGPASS"},
		"unknown user":            {"redis://bob:pw@" + withUser.Addr(), "WRONGPASS"},
		"password, none wanted":   {"redis://:pw@" + plain.Addr(), "without any password configured"},
		"plain to TLS":            {"redis://" + withTLS.Addr(), ""},
		"unknown authority":       {"rediss://" + withTLS.Addr(), "certificate"},
		"TLS to plain":            {"rediss://" + plain.Addr(), "TLS handshake"},
		"no socket":               {"unix:///nowhere/redis.sock", "no such file"},
		"not a Redis unix socket": {"unix:///tmp", "connect"},
	} {
		patience := time.Minute
		if name == "TLS to plain" {
			patience = 200 * time.Millisecond // the server waits for the end of a line
		}
		err := firstAttempt(t, open(t, c.addr, Config{ConnectTimeout: patience}))
		if !errors.Is(err, ErrDown) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "nope") {
			t.Errorf("%s: the password is in the error: %v", name, err)
		}
	}
}

// S1: a replica does not vote; when it is promoted it has been replaced.
func TestS1_replica_is_refused_and_quarantined_when_promoted(t *testing.T) {
	servers := redistest.StartN(t, 2)
	host, port, _ := strings.Cut(servers[0].Addr(), ":")
	do(t, servers[1], "REPLICAOF", host, port)
	m := open(t, servers[1].URL(), guarded(time.Hour))
	if err := firstAttempt(t, m); !errors.Is(err, ErrNotMaster) || !strings.Contains(err.Error(), "slave") {
		t.Errorf("%v", err)
	}
	wantError(t, ask(t, m, wire.Acquire("k", "v", time.Minute)), ErrDown, ErrNotMaster)
	do(t, servers[1], "REPLICAOF", "NO", "ONE")
	eventually(t, "it is a master", func() bool { return m.Status().State == StateConnected })
	wantError(t, ask(t, m, wire.Acquire("k", "v", time.Minute)), guard.ErrQuarantined)
}

// S1, L5: READONLY tells that the master was demoted.
func TestS1_master_that_turns_replica_is_left(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Hour)), "OK")
	do(t, s, "REPLICAOF", "127.0.0.1", "1") // nobody is there, so the replica keeps its keys
	wantError(t, ask(t, m, release("k")), &wire.ServerError{Code: "READONLY"})
	eventually(t, "its role is known", func() bool { return errors.Is(ask(t, m, get("k")).Err, ErrNotMaster) })
	do(t, s, "REPLICAOF", "NO", "ONE")
	eventually(t, "the release was delivered", func() bool {
		st := m.Status()
		return st.State == StateConnected && st.Undelivered == 0
	})
}

// L5: the release comes through when the master takes writes again.
func TestL5_NOREPLICAS(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{Heartbeat: 10 * time.Millisecond})
	wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Hour)), "OK")
	do(t, s, "CONFIG", "SET", "min-replicas-to-write", "1")
	wantError(t, ask(t, m, wire.Release("k", wire.QueueOf("", "k"), "v", time.Hour)), &wire.ServerError{Code: "NOREPLICAS"})
	do(t, s, "CONFIG", "SET", "min-replicas-to-write", "0")
	eventually(t, "the key is gone", func() bool { return do(t, s, "EXISTS", "k") == int64(0) })
}

func TestL5_MISCONF(t *testing.T) {
	s := redistest.Start(t, redistest.Config("stop-writes-on-bgsave-error", "yes"), redistest.Config("save", "3600", "1"))
	m := connect(t, s.URL(), Config{Heartbeat: 10 * time.Millisecond})
	wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Hour)), "OK")
	if err := os.MkdirAll(filepath.Join(s.Dir(), "dump.rdb", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	do(t, s, "BGSAVE")
	eventually(t, "the master refuses", func() bool {
		return errors.Is(ask(t, m, wire.Acquire("probe", "v", time.Minute)).Err, &wire.ServerError{Code: "MISCONF"})
	})
	wantError(t, ask(t, m, wire.Release("k", wire.QueueOf("", "k"), "v", time.Hour)), &wire.ServerError{Code: "MISCONF"})
	do(t, s, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
	eventually(t, "the key is gone", func() bool { return do(t, s, "EXISTS", "k") == int64(0) })
}

func TestL5_BUSY(t *testing.T) {
	s := redistest.Start(t, redistest.Config("lua-time-limit", "1"))
	m := connect(t, s.URL(), Config{Heartbeat: 10 * time.Millisecond, MaxAge: time.Minute})
	wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Hour)), "OK")
	c, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go c.Do("EVAL", "while true do end", 0)
	eventually(t, "the master is busy", func() bool {
		return errors.Is(ask(t, m, get("k")).Err, &wire.ServerError{Code: "BUSY"})
	})
	wantError(t, ask(t, m, wire.Release("k", wire.QueueOf("", "k"), "v", time.Hour)), &wire.ServerError{Code: "BUSY"})
	do(t, s, "SCRIPT", "KILL")
	eventually(t, "the key is gone", func() bool {
		n, err := s.Do("EXISTS", "k") // still busy for a moment
		return err == nil && n == int64(0)
	})
}

// L5: OOM refuses what needs memory; a release does not.
func TestL5_OOM_does_not_refuse_the_release(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Hour)), "OK")
	do(t, s, "CONFIG", "SET", "maxmemory", 1)
	wantError(t, ask(t, m, wire.Acquire("other", "v", time.Hour)), &wire.ServerError{Code: "OOM"})
	wantValue(t, ask(t, m, wire.Release("k", wire.QueueOf("", "k"), "v", time.Hour)), int64(1))
}

// L4, L3: a hung server costs no caller anything, and runs what it had in its
// socket when it comes back; the release comes after that.
func TestL3_server_that_hangs_and_returns_keeps_no_orphan(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{MaxAge: 200 * time.Millisecond, ConnectTimeout: 200 * time.Millisecond})
	s.Stop()
	acquire := give(m, wire.Acquire("k", "v", time.Hour))
	wantError(t, receiveFrom(t, "the verdict", acquire), ErrUnknown, errStuck)
	for range 1000 {
		select {
		case r := <-give(m, wire.Acquire("k", "v2", time.Hour)):
			wantError(t, r, ErrDown)
		default:
			t.Fatal("a call to a dead master is not answered before it returns")
		}
	}
	wantError(t, ask(t, m, wire.Release("k", wire.QueueOf("", "k"), "v", time.Hour)), ErrDown)
	s.Continue()
	eventually(t, "the release was delivered", func() bool {
		st := m.Status()
		return st.State == StateConnected && st.Undelivered == 0 && st.InFlight == 0
	})
	if n := do(t, s, "EXISTS", "k"); n != int64(0) {
		t.Errorf("an orphan is left")
	}
}

// L4: what waits for a server that hangs does not grow with the callers.
func TestL4_server_that_hangs_for_a_moment_is_not_flooded_when_it_returns(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{MaxAge: time.Minute, Heartbeat: time.Hour})
	pair := func(value string) {
		m.Do(wire.Acquire("k", value, time.Hour), func(wire.Reply) {})
		m.Do(wire.Release("k", wire.QueueOf("", "k"), value, time.Hour), func(wire.Reply) {})
	}
	s.Stop()
	pair("before")
	look(m)
	look(m)
	for i := range 1000 {
		pair(fmt.Sprint(i))
	}
	if n := m.Status().InFlight; n > 2 {
		t.Errorf("%d commands wait for the server", n)
	}
	s.Continue()
	eventually(t, "it is asked again", func() bool { look(m); return !m.Status().Silent })
	wantValue(t, ask(t, m, wire.Acquire("k", "after", time.Hour)), "OK")
}

// L3: whatever happens to connections and to the script cache, in the end every
// key that was asked for has been released.
func TestL3_no_orphan_is_left_by_connections_that_break_at_random(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{Heartbeat: 10 * time.Millisecond, Backoff: Redial{Min: time.Millisecond, Max: 5 * time.Millisecond}})
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprint(caller, ":", i)
				acquired := give(m, wire.Ask(key, wire.QueueOf("", key), "c/nnnnnnnnnnnnnnnn/v:0", 1, time.Hour))
				if i%2 == 0 {
					<-acquired
				}
				<-give(m, wire.Release(key, wire.QueueOf("", key), "c/nnnnnnnnnnnnnnnn/v:0", time.Hour))
			}
		})
	}
	for range 100 {
		before := m.Status().Commands
		do(t, s, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		do(t, s, "SCRIPT", "FLUSH")
		eventually(t, "the callers go on", func() bool { return m.Status().Commands > before+50 })
	}
	close(stop)
	callers.Wait()
	eventually(t, "nothing is owed", func() bool {
		st := m.Status()
		return st.State == StateConnected && st.Undelivered == 0 && st.InFlight == 0
	})
	if st := m.Status(); st.Reconnects < 10 || st.Dropped > 0 {
		t.Fatalf("hardly anything happened, or too much: %+v", st)
	}
	if n := do(t, s, "DBSIZE"); n != int64(0) {
		t.Errorf("%d orphans: %.200s", n, do(t, s, "KEYS", "*"))
	}
}

func TestL11_SCRIPT_FLUSH(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	for range 3 {
		do(t, s, "SCRIPT", "FLUSH")
		lifeOfALock(t, m)
	}
}

// S3: killed and started again without its keys.
func TestS3_restarted_master_may_not_grant_but_be_repaired(t *testing.T) {
	s := redistest.Start(t)
	log := &journal{}
	config := guarded(time.Hour)
	config.Logger = slog.New(log)
	m := connect(t, s.URL(), config)
	s.Restart()
	eventually(t, "the restart is noticed", func() bool { return strings.Contains(m.Status().Reason, "lost its marker") })
	eventually(t, "it is connected", func() bool { return m.Status().State == StateConnected })
	wantError(t, ask(t, m, wire.Acquire("k", "v2", time.Minute)), guard.ErrQuarantined)
	if st := m.Status(); st.Quarantine <= 0 {
		t.Errorf("%+v", st)
	}
	// A holder may put its key back and use it.
	wantValue(t, ask(t, m, wire.Repair("k", "v", time.Minute)), "OK")
	wantValue(t, ask(t, m, wire.Extend("k", "v", time.Minute)), int64(1))
	wantValue(t, ask(t, m, wire.Release("k", wire.QueueOf("", "k"), "v", time.Minute)), int64(1))
	if log.count("WARN", "quarantined", s.Addr(), "lost its marker") != 1 {
		t.Errorf("log %q", log.lines)
	}
}

func TestS3_restarted_master_may_grant_when_the_hold_is_over(t *testing.T) {
	const hold = time.Second
	s := redistest.Start(t)
	log := &journal{}
	config := guarded(hold)
	config.Logger = slog.New(log)
	m := connect(t, s.URL(), config)
	granted := func() bool { return ask(t, m, wire.Acquire("k", "v", time.Minute)).Err == nil }
	eventually(t, "its first start is over", granted)
	began := time.Now()
	s.Restart()
	eventually(t, "the quarantine is over", granted)
	if took := time.Since(began); took < hold {
		t.Errorf("granted %v after the restart", took)
	}
	eventually(t, "the log says so", func() bool { return log.count("INFO", "out of quarantine", s.Addr()) > 0 })
}

func TestS3_durable_master_comes_back_at_once(t *testing.T) {
	s := redistest.Start(t, redistest.AOF())
	config := guarded(time.Hour)
	config.Guard.Durable = true
	declareNew(t, s.URL())
	m := connect(t, s.URL(), config)
	wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Minute)), "OK")
	run := m.Status().RunID
	s.Restart()
	eventually(t, "it is connected again", func() bool { st := m.Status(); return st.State == StateConnected && st.RunID != run })
	wantValue(t, ask(t, m, wire.Acquire("k", "v2", time.Minute)), nil)
	s.RestartEmpty()
	eventually(t, "it is quarantined", func() bool {
		return errors.Is(ask(t, m, wire.Acquire("k", "v2", time.Minute)).Err, guard.ErrQuarantined)
	})
}

// S24: the heartbeat misses the marker.
func TestS24_FLUSHALL_is_noticed_by_the_heartbeat(t *testing.T) {
	s := redistest.Start(t)
	declareNew(t, s.URL())
	m := connect(t, s.URL(), Config{Guard: guard.Config{Hold: time.Hour}, Heartbeat: 10 * time.Millisecond})
	wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Minute)), "OK")
	do(t, s, "FLUSHALL")
	eventually(t, "it is quarantined", func() bool {
		return errors.Is(ask(t, m, wire.Acquire("k", "v", time.Minute)).Err, guard.ErrQuarantined)
	})
	eventually(t, "the marker is back", func() bool { return do(t, s, "EXISTS", wire.MarkerKey("")) == int64(1) })
}

// S34: only the master knows when a marker is written that it lacked.
func TestS34_marker_begins_when_the_master_writes_it(t *testing.T) {
	s := redistest.Start(t)
	write := func(over, marker string) guard.Evidence {
		v := do(t, s, "EVAL", wire.ScriptMarker.Source, 1, wire.MarkerKey(""), over, marker)
		return guard.EvidenceOf(wire.Host{}, wire.Reply{Value: v})
	}
	e := write("", "run 0 5")
	if want := guard.NewMarker("run", e.Time); e.Marker.Memory() != want.Memory() || e.Marker.Hold != 5*time.Microsecond || e.Time.IsZero() {
		t.Errorf("marker %v, want one that begins at %v", e.Marker, e.Time)
	}
	written := e.Marker
	if e = write("", "run 0 7"); e.Marker != written {
		t.Errorf("marker %v was written over %v, which nobody had seen", e.Marker, written)
	}
	if e = write(written.String(), "run +7 0"); e.Marker.String() != "run +7 0" {
		t.Errorf("marker %v, want the one that was asked for", e.Marker)
	}
}

// S2: the heartbeat sees the clock step.
func TestS2_clock_step_is_noticed_by_the_heartbeat(t *testing.T) {
	s := redistest.Start(t, redistest.Faketime())
	config := Config{Guard: guard.Config{Hold: time.Hour, ClockTolerance: time.Second}, Heartbeat: 10 * time.Millisecond}
	declareNew(t, s.URL())
	m := connect(t, s.URL(), config)
	wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Millisecond)), "OK")
	s.StepClock(2 * time.Minute)
	eventually(t, "it is quarantined", func() bool {
		r := ask(t, m, wire.Acquire("k", "v", time.Millisecond))
		return r.Err != nil && errors.Is(r.Err, guard.ErrQuarantined) && strings.Contains(r.Err.Error(), "ahead of ours")
	})
	if off := m.Status().ClockOffset; off < 119*time.Second || off > 121*time.Second {
		t.Errorf("offset %v", off)
	}
	if took := m.Status().Latency; took <= 0 {
		t.Errorf("latency %v", took)
	}
}

func TestGuard_leaves_a_users_key_alone(t *testing.T) {
	for name, set := range map[string][]any{"a string": {"SET", "redlock:marker", "mine"}, "a list": {"RPUSH", "redlock:marker", "mine"}} {
		s := redistest.Start(t)
		do(t, s, set[0].(string), set[1:]...)
		m := connect(t, s.URL(), Config{Guard: guard.Config{Hold: time.Hour}, Heartbeat: time.Millisecond})
		if got := m.Status().Unknown; len(got) == 0 || got[0] != "marker" {
			t.Errorf("%s: unknown %v", name, got)
		}
		wantError(t, ask(t, m, wire.Acquire("k", "v", time.Minute)), guard.ErrQuarantined)
		if n := do(t, s, "DEL", "redlock:marker"); n != int64(1) {
			t.Errorf("%s: overwritten", name)
		}
	}
}

// miniredis knows neither ROLE nor INFO server.
func TestMiniredis_works_and_says_what_is_unknown(t *testing.T) {
	s := miniredis.RunT(t)
	declareNewBehind(t, "p:", s.Addr(), guard.GroupID{})
	m := connect(t, s.Addr(), Config{Guard: guard.Config{Hold: time.Hour, ClockTolerance: time.Second}, KeyPrefix: "p:", Heartbeat: 10 * time.Millisecond})
	lifeOfALock(t, m)
	if got := strings.Join(m.Status().Unknown, " "); got != "role run_id uptime version" {
		t.Errorf("unknown: %s", got)
	}
	if got, _ := s.Get("p:redlock:marker"); !strings.HasPrefix(got, "- ") {
		t.Errorf("marker %q", got)
	}
	s.FlushAll()
	eventually(t, "it is quarantined", func() bool {
		return errors.Is(ask(t, m, wire.Acquire("lock", "v", time.Minute)).Err, guard.ErrQuarantined)
	})
}
