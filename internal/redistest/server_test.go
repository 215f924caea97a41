package redistest_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestServers_are_independent_masters(t *testing.T) {
	servers := redistest.StartN(t, 5)

	set(t, servers[0], "name", "value")

	urls := redistest.URLs(servers)
	addrs, pids := map[string]bool{}, map[int]bool{}
	for i, s := range servers {
		addrs[s.Addr()], pids[s.Pid()] = true, true
		if urls[i] != "redis://"+s.Addr() {
			t.Errorf("URL %s of the server at %s", urls[i], s.Addr())
		}
		if i > 0 {
			wantAbsent(t, s, "name")
		}
		role, err := redis.Values(s.Do("ROLE"))
		if err != nil || string(role[0].([]byte)) != "master" {
			t.Errorf("ROLE of %s: %q, %v, want master", s.Addr(), role, err)
		}
	}
	if len(addrs) != 5 || len(pids) != 5 {
		t.Errorf("5 servers have %d addresses and %d pids", len(addrs), len(pids))
	}
}

func TestStopped_server_hangs_and_then_does_what_was_sent(t *testing.T) {
	s := redistest.Start(t)
	conn := dial(t, s, redis.DialReadTimeout(50*time.Millisecond))

	s.Stop()
	_, err := conn.Do("SET", "name", "value")
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("command at a stopped server: %v, want a timeout", err)
	}

	s.Continue()
	eventually(t, "the queued SET is done", func() bool {
		value, _ := redis.String(s.Do("GET", "name"))
		return value == "value"
	})
}

func TestKilled_server_refuses_connections_and_restarts_at_the_same_address(t *testing.T) {
	s := redistest.Start(t)
	addr, pid := s.Addr(), s.Pid()

	s.Kill()
	if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial of a killed server: %v, want connection refused", err)
	}
	s.Kill() // again: nothing happens

	s.Restart()
	if _, err := s.Do("PING"); err != nil {
		t.Fatalf("PING after the restart: %v", err)
	}
	if s.Addr() != addr || s.Pid() == pid {
		t.Fatalf("restarted at %s with pid %d, want %s and a pid other than %d", s.Addr(), s.Pid(), addr, pid)
	}
}

func TestRestart_keeps_what_persistence_kept(t *testing.T) {
	for _, tc := range []struct {
		name    string
		opts    []redistest.Option
		restart func(*redistest.Server)
		want    []string // the keys that are left
	}{
		{"nothing without persistence", nil, (*redistest.Server).Restart, nil},
		{"everything with AOF", []redistest.Option{redistest.AOF()}, (*redistest.Server).Restart, []string{"saved", "unsaved"}},
		{"the last SAVE with Snapshots", []redistest.Option{redistest.Snapshots()}, (*redistest.Server).Restart, []string{"saved"}},
		{"nothing of an AOF when restarted empty", []redistest.Option{redistest.AOF()}, (*redistest.Server).RestartEmpty, nil},
		{"nothing of a snapshot when restarted empty", []redistest.Option{redistest.Snapshots()}, (*redistest.Server).RestartEmpty, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := redistest.Start(t, tc.opts...)
			set(t, s, "saved", "value")
			if _, err := s.Do("SAVE"); err != nil {
				t.Fatal(err)
			}
			set(t, s, "unsaved", "value")

			tc.restart(s)

			for _, key := range []string{"saved", "unsaved"} {
				kept, err := redis.Bool(s.Do("EXISTS", key))
				if want := slices.Contains(tc.want, key); err != nil || kept != want {
					t.Errorf("%s kept: %t, %v, want %t", key, kept, err, want)
				}
			}
		})
	}
}

func TestClose_leaves_nothing_behind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for name, disturb := range map[string]func(*redistest.Server){
		"running": func(*redistest.Server) {},
		"stopped": (*redistest.Server).Stop,
		"killed":  (*redistest.Server).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := redistest.Run(redistest.AOF())
			if err != nil {
				t.Fatal(err)
			}
			disturb(s)

			s.Close()
			s.Close() // again: nothing happens

			if running(s.Pid()) {
				t.Errorf("redis-server %d still runs", s.Pid())
			}
			wantEmpty(t, os.TempDir())
		})
	}
}

func TestPort_taken_meanwhile_is_replaced(t *testing.T) {
	var taken string
	steal := redistest.OnReserve(func(addr string) {
		if taken != "" {
			return
		}
		taken = addr
		listener, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
	})

	s := redistest.Start(t, steal)

	if taken == "" || s.Addr() == taken {
		t.Fatalf("server at %q, somebody else at %q", s.Addr(), taken)
	}
}

func TestStart_says_what_is_missing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("REDISTEST_SERVER", "")
	_, err := redistest.Run()
	if err == nil || !strings.Contains(err.Error(), "make test") || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Fatalf("without redis-server: %v, want how to install it", err)
	}
}

// A server that the environment gives a file forgets all the same what it was not
// asked to keep.
func TestThe_environment_gives_servers_a_file(t *testing.T) {
	t.Setenv("REDISTEST_APPENDFSYNC", "everysec")
	s := redistest.Start(t)
	for setting, want := range map[string]string{"appendonly": "yes", "appendfsync": "everysec"} {
		if got, err := redis.Strings(s.Do("CONFIG", "GET", setting)); err != nil || !slices.Equal(got, []string{setting, want}) {
			t.Errorf("%s is %s, %v; want %s", setting, got, err, want)
		}
	}
	set(t, s, "name", "value")
	s.Restart()
	wantAbsent(t, s, "name")
}

func TestThe_environment_names_the_server(t *testing.T) {
	t.Setenv("REDISTEST_SERVER", "another-server")
	if _, err := redistest.Run(); err == nil || !strings.Contains(err.Error(), "another-server") {
		t.Errorf("%v, want that the other server is missing", err)
	}
}

func TestStart_shows_why_the_server_refused(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := redistest.RunN(3, redistest.Config("maxmemory", "lots"))
	if err == nil || !strings.Contains(err.Error(), "maxmemory") {
		t.Fatalf("with a bad directive: %v, want the server's own words", err)
	}
	wantEmpty(t, os.TempDir())
}

func TestOptions_that_cannot_be_are_refused_by_name(t *testing.T) {
	for _, tc := range []struct {
		want string
		opts []redistest.Option
	}{
		{"UnixSocket", []redistest.Option{redistest.TLS(), redistest.UnixSocket()}},
		{"Password", []redistest.Option{redistest.Password("p"), redistest.User("u", "p")}},
		{`User("", "p")`, []redistest.Option{redistest.User("", "p")}},
		{`User("default", "p")`, []redistest.Option{redistest.User("default", "p")}},
		{`User("u", "")`, []redistest.Option{redistest.User("u", "")}},
	} {
		if _, err := redistest.Run(tc.opts...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Run: %v, want an error that names %s", err, tc.want)
		}
	}
	if _, err := redistest.RunN(0); err == nil {
		t.Error("RunN(0): no error")
	}
}

func TestFailed_test_shows_the_log(t *testing.T) {
	tb := &failing{}
	s := redistest.Start(tb)
	tb.finish()

	if !strings.Contains(tb.said, s.Addr()) || !strings.Contains(tb.said, "Server initialized") {
		t.Errorf("the failed test said %q, want the server's address and log", tb.said)
	}
	if running(s.Pid()) {
		t.Errorf("redis-server %d still runs", s.Pid())
	}
}

func TestMethod_that_fails_stops_the_test(t *testing.T) {
	tb := &failing{}
	s := redistest.Start(tb)
	defer tb.finish()
	s.Kill()

	for name, method := range map[string]func(){
		"stop":         s.Stop,
		"continue":     s.Continue,
		"TIME":         func() { s.Time() },
		"StepClock":    func() { s.StepClock(time.Second) },
		"SetClockRate": func() { s.SetClockRate(2) },
	} {
		tb.said = ""
		stopped := func() (stopped bool) {
			defer func() { stopped = recover() == errFatal }()
			method()
			return false
		}()
		if !stopped || !strings.Contains(tb.said, name) {
			t.Errorf("%s of a killed server without Faketime: stopped the test: %t, said %q", name, stopped, tb.said)
		}
	}
}

func TestMethod_that_fails_without_a_test_panics(t *testing.T) {
	s, err := redistest.Run()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Kill()

	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "stop "+s.Addr()) {
			t.Errorf("panic: %s, want the method and the address", said)
		}
	}()
	s.Stop()
}

// failing is a test that has failed.
type failing struct {
	said     string
	cleanups []func()
}

var errFatal = errors.New("fatal")

func (f *failing) Helper()          {}
func (f *failing) Failed() bool     { return true }
func (f *failing) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *failing) Logf(format string, args ...any) {
	f.said += fmt.Sprintf(format, args...)
}
func (f *failing) Fatalf(format string, args ...any) {
	f.Logf(format, args...)
	panic(errFatal)
}

func (f *failing) finish() {
	for _, c := range f.cleanups {
		c()
	}
}

func dial(t *testing.T, s *redistest.Server, opts ...redis.DialOption) redis.Conn {
	t.Helper()
	conn, err := s.Dial(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func set(t *testing.T, s *redistest.Server, key, value string, more ...any) {
	t.Helper()
	if _, err := s.Do("SET", append([]any{key, value}, more...)...); err != nil {
		t.Fatal(err)
	}
}

func wantAbsent(t *testing.T, s *redistest.Server, key string) {
	t.Helper()
	if there, err := redis.Bool(s.Do("EXISTS", key)); err != nil || there {
		t.Errorf("EXISTS %s at %s: %t, %v, want false", key, s.Addr(), there, err)
	}
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", dir, left, err)
	}
}

// running reports whether a process does: a zombie, which only waits to be
// reaped by somebody, has no command line.
func running(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && len(line) > 0
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// make quick has no server: the tests that need one are skipped there.
func TestWithout_a_server_a_test_is_skipped(t *testing.T) {
	t.Setenv("REDISTEST_SERVER", "none")
	var skipped bool
	t.Run("that needs one", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		redistest.Start(t)
		t.Error("it goes on")
	})
	if !skipped {
		t.Error("it was not skipped")
	}
}
