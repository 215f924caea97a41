package node

import (
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// twoMasters are two real masters, and the run_id of the second.
func twoMasters(t *testing.T, options ...redistest.Option) (a, b *redistest.Server, run string) {
	a, b = redistest.Start(t, options...), redistest.Start(t)
	declareNew(t, a.URL(), b.URL())
	return a, b, wire.InfoField(wire.Text(do(t, b, "INFO", "server")), "run_id")
}

// watchBoth is a client of two masters that looks often.
func watchBoth(t *testing.T, a, b *redistest.Server) *Master {
	config := ofBoth(a, b, 10*time.Millisecond)
	connect(t, b.URL(), config)
	return connect(t, a.URL(), config)
}

func ofBoth(a, b *redistest.Server, heartbeat time.Duration) Config {
	return Config{
		Guard:     guard.Config{Hold: time.Hour, ClockTolerance: time.Second},
		Group:     guard.NewGroup(guard.GroupOf("", a.URL(), b.URL())),
		Heartbeat: heartbeat,
	}
}

// knownOf reports whether a master stores how far its clock is ahead of that of a run.
func knownOf(t *testing.T, s *redistest.Server, run string) bool {
	if do(t, s, "TYPE", "redlock:clock") != "string" {
		return false
	}
	return strings.Contains(wire.Text(do(t, s, "GET", "redlock:clock")), run+":")
}

// S58: what is known of a master's clock stands beside its marker, for those who come later, and for
// as long as the marker (S74). Whoever does not know of it, or may not touch it, misses nothing else.
func TestReal_S58_what_is_known_of_a_clock_stands_beside_the_marker(t *testing.T) {
	t.Parallel()
	a, b, run := twoMasters(t)
	marker := wire.Text(do(t, a, "GET", "redlock:marker"))
	watchBoth(t, a, b)
	eventually(t, "it is written", func() bool { return knownOf(t, a, run) })
	for _, garbage := range []string{"'set', KEYS[1], 'what is this'", "'rpush', KEYS[1], 'x'"} {
		// One script, or the client writes it in between.
		do(t, a, "EVAL", "redis.call('del', KEYS[1]) return redis.call("+garbage+")", 1, "redlock:clock")
		eventually(t, "garbage is replaced", func() bool { return knownOf(t, a, run) })
	}
	if left := do(t, a, "PTTL", "redlock:clock").(int64); left != -1 {
		t.Errorf("stays for %d ms only", left)
	}
	memory, err := guard.ParseMarker(wire.Text(do(t, a, "GET", "redlock:marker")))
	if before, _ := guard.ParseMarker(marker); err != nil || memory.Memory() != before.Memory() {
		t.Errorf("marker %v, was %v", memory, before)
	}
}

// S75: nobody looks at b again after a was read, and b is asked for a vote. It is written before that where
// b's clock is, also if b has forgotten its scripts.
func TestReal_S75_where_a_clock_is_is_written_before_the_first_vote(t *testing.T) {
	t.Parallel()
	for _, flush := range []bool{false, true} {
		b, a, run := twoMasters(t)
		config := ofBoth(a, b, time.Hour)
		m := connect(t, b.URL(), config)
		connect(t, a.URL(), config)
		if knownOf(t, b, run) {
			t.Fatal("it is written already")
		}
		if flush {
			do(t, b, "SCRIPT", "FLUSH")
		}
		executed := monitor(t, b)
		if r := ask(t, m, wire.Acquire("k", "v", time.Minute)); r.Err != nil {
			t.Error(r.Err)
		}
		for line := executed(); !strings.Contains(line, `lua] "set" "redlock:clock"`); line = executed() {
			if strings.Contains(line, `"SET" "k"`) {
				t.Fatalf("scripts forgotten: %v: the vote came first", flush)
			}
		}
	}
}

// monitor returns what a master executes from now on, line by line.
func monitor(t *testing.T, s *redistest.Server) func() string {
	conn, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Do("MONITOR"); err != nil {
		t.Fatal(err)
	}
	return func() string {
		line, err := redis.String(redis.ReceiveWithTimeout(conn, 10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
}

// S58: a user who may not touch it is denied by the handshake, and not by every look: the
// master logs it each time.
func TestReal_S58_a_user_without_the_right_to_it_fills_no_log(t *testing.T) {
	t.Parallel()
	a, b, _ := twoMasters(t)
	do(t, a, "ACL", "SETUSER", "default", "resetkeys", "~redlock:marker", "~k")
	do(t, a, "ACL", "LOG", "RESET")
	m := watchBoth(t, a, b)
	looks := m.Status().Commands
	eventually(t, "it was looked at many times", func() bool { return m.Status().Commands > looks+20 })
	if r := ask(t, m, wire.Acquire("k", "v", time.Minute)); r.Err != nil {
		t.Error(r.Err)
	}
	denied := int64(0)
	for _, entry := range do(t, a, "ACL", "LOG").([]any) {
		denied += entry.([]any)[1].(int64)
	}
	if denied == 0 || denied > 3 {
		t.Errorf("denied %d times", denied)
	}
}
