package node

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

func echo(s string) *wire.Command {
	return &wire.Command{Op: wire.OpRead, Name: "ECHO", Args: []string{s}}
}

func TestMaster_answers_in_the_order_of_the_questions(t *testing.T) {
	s := newStub(t, but("ECHO", func(args []string) string { return bulk(args[1]) }))
	m := connect(t, s.addr(), Config{Heartbeat: time.Hour})
	var all sync.WaitGroup
	for caller := range 8 {
		all.Go(func() {
			const n = 200
			answers := make(chan wire.Reply, n)
			for i := range n {
				m.Do(echo(fmt.Sprint(caller, ":", i)), func(r wire.Reply) { answers <- r })
			}
			for i := range n {
				wantValue(t, receiveFrom(t, "an answer", answers), fmt.Sprint(caller, ":", i))
			}
		})
	}
	all.Wait()
	if st := m.Status(); st.Commands != 1600 || st.InFlight != 0 || st.Writes > 1600 {
		t.Errorf("%+v", st)
	}
}

func TestMaster_fails_at_once_while_it_is_not_connected(t *testing.T) {
	s := newStub(t, healthy)
	s.ln.Close()
	m := open(t, s.addr(), Config{})
	if err := firstAttempt(t, m); !errors.Is(err, ErrDown) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("first attempt: %v", err)
	}
	r := ask(t, m, wire.Acquire("k", "v", time.Second))
	wantError(t, r, ErrDown)
	if got := r.Err.Error(); !strings.HasPrefix(got, s.addr()+": acquire: not connected: dial tcp") {
		t.Errorf("error %q does not say why", got)
	}
	if st := m.Status(); st.State != StateDown || st.LastError == nil {
		t.Errorf("%+v", st)
	}
}

func TestMaster_leaves_calls_with_an_unknown_outcome_when_the_connection_breaks(t *testing.T) {
	s := newStub(t, but("SET", func([]string) string { return silence }))
	m := connect(t, s.addr(), Config{})
	first, second := give(m, wire.Acquire("a", "v", time.Second)), give(m, wire.Acquire("b", "v", time.Second))
	eventually(t, "both were sent", func() bool { return len(s.seen()) == 2 })
	s.hangUp()
	wantError(t, receiveFrom(t, "a", first), ErrUnknown)
	wantError(t, receiveFrom(t, "b", second), ErrUnknown)
	eventually(t, "it is connected again", func() bool { return m.Status().State == StateConnected })
	if n := m.Status().Reconnects; n != 1 {
		t.Errorf("%d reconnects", n)
	}
}

// What is not RESP, or half of it, breaks the connection and nothing else.
func TestMaster_survives_answers_that_are_garbage(t *testing.T) {
	for _, garbage := range []string{
		"hello\r\n", "\r\n", ":\r\n", ":x\r\n", "+OK\n", "$abc\r\n", "$-2\r\n", "*-5\r\n", "%1\r\n",
		"$5\r\nabc" + hangUp, "*3\r\n:1\r\n" + hangUp, "+half" + hangUp, hangUp,
		"$3\r\nabcde\r\n", "$9223372036854775807\r\n", "*1000000000000000000\r\n",
		"+OK\r\n+nobody asked\r\n",
		strings.Repeat("x", 100_000) + "\r\n",
	} {
		s := newStub(t, but("GET", func([]string) string { return garbage }))
		m := connect(t, s.addr(), Config{Backoff: Redial{Min: time.Millisecond, Max: time.Millisecond}})
		r := ask(t, m, get("k"))
		if r.Err != nil && !errors.Is(r.Err, ErrUnknown) || r.Err == nil && r.Value != "OK" {
			t.Errorf("%.30q: replied %v, %v", garbage, r.Value, r.Err)
		}
		eventually(t, "it is connected again", func() bool { return m.Status().Reconnects >= 1 })
		wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Second)), "OK")
	}
}

func TestMaster_survives_a_handshake_that_is_garbage(t *testing.T) {
	for _, name := range []string{"ROLE", "INFO", "EVAL", "SCRIPT"} {
		for _, garbage := range []string{"hello\r\n", "$9223372036854775807\r\n", "*2\r\n" + hangUp, hangUp} {
			s := newStub(t, but(name, func([]string) string { return garbage }))
			m := open(t, s.addr(), Config{Backoff: Redial{Min: time.Millisecond, Max: time.Millisecond}})
			if err := firstAttempt(t, m); !errors.Is(err, ErrDown) {
				t.Errorf("%s %.30q: %v", name, garbage, err)
			}
			s.set(healthy)
			eventually(t, "it is connected", func() bool { return m.Status().State == StateConnected })
		}
		// Well-formed, but not what was asked for: taken as unknown.
		for _, odd := range []string{":1\r\n", "$-1\r\n", "*0\r\n", "*3\r\n:1\r\n:2\r\n:3\r\n", "*1\r\n*-1\r\n", "-ERR unknown command\r\n"} {
			s := newStub(t, but(name, func([]string) string { return odd }))
			connect(t, s.addr(), Config{})
		}
	}
}

func TestMaster_refuses_more_than_the_calls_in_flight_that_it_may_have(t *testing.T) {
	s := newStub(t, but("GET", func([]string) string { return silence }))
	m := connect(t, s.addr(), Config{MaxInFlight: 2})
	one, two := give(m, get("a")), give(m, get("b"))
	wantError(t, ask(t, m, get("c")), ErrFull)
	s.hangUp()
	wantError(t, receiveFrom(t, "a", one), ErrUnknown)
	wantError(t, receiveFrom(t, "b", two), ErrUnknown)
}

func TestMaster_refuses_more_unwritten_bytes_than_it_may_have(t *testing.T) {
	c := newConn(&socket{Conn: newHeldConn()}, "addr", 1000, nil, noWitness) // nobody writes
	large := echo(strings.Repeat("x", 1<<20))
	for range maxUnwritten >> 20 {
		if err := c.send(&call{cmd: large}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.send(&call{cmd: large}); err != ErrFull {
		t.Errorf("%v", err)
	}
}

// L4: what decides is whether anything moves from look to look, not a time that
// a client which was paused itself would misjudge.
func TestConn_is_given_up_when_its_oldest_call_was_there_at_every_look(t *testing.T) {
	s := newStub(t, but("GET", func([]string) string { return silence }))
	m := connect(t, s.addr(), still)
	c := m.live.Load()
	for range 2 * ageSteps {
		c.checkAge() // idle
	}
	reply := give(m, get("k"))
	for range ageSteps {
		c.checkAge()
	}
	if m.live.Load() != c || c.cause(nil) != nil {
		t.Fatal("given up too early")
	}
	c.checkAge()
	wantError(t, receiveFrom(t, "the verdict", reply), ErrUnknown, errStuck)
}

// still has a master send nothing by itself meanwhile: its heartbeat would take an answer that a test
// means for another question, and break the connection.
var still = Config{MaxAge: time.Hour, Heartbeat: time.Hour}

// look does what a timer does ageSteps times in MaxAge.
func look(m *Master) {
	m.lookAt(m.live.Load())
}

// Where answers take long by nature, one that has not come yet says nothing.
func TestL4_silence_is_longer_than_an_answer_may_take(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), Config{MaxAge: ageSteps * time.Minute, MaxSilence: 3 * time.Minute})
	s.set(func([]string) string { return silence })
	give(m, get("k"))
	for range 3 {
		look(m)
	}
	if m.Status().Silent {
		t.Error("silent after two minutes")
	}
	look(m)
	if !m.Status().Silent {
		t.Error("not silent after three minutes")
	}
}

// L4: a master that hangs is not given, call by call, what it would run when
// nobody wants it any more. What is held there is still looked after.
func TestL4_silent_master_is_spared_acquires_and_their_releases(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), still)
	s.set(func([]string) string { return silence })
	held := give(m, wire.Acquire("held", "v", time.Minute))
	look(m)
	if m.Status().Silent {
		t.Fatal("silent at the first look at a call")
	}
	look(m)

	if err := m.Votes(); !errors.Is(err, ErrSilent) {
		t.Errorf("would vote: %v", err)
	}
	wantError(t, ask(t, m, wire.Acquire("new", "v", time.Minute)), ErrSilent)
	wantError(t, ask(t, m, release("new")), ErrSilent)
	wantError(t, ask(t, m, wire.Repair("held", "v", time.Minute)), ErrSilent)
	extended, released := give(m, wire.Extend("held", "v", time.Minute)), give(m, release("held"))
	want := []string{"SET", "held", "held"}
	eventually(t, "what is held was extended and released", func() bool { return reflect.DeepEqual(s.releases(), want) })

	s.set(but("ECHO", func([]string) string { return "+1\r\n+2\r\n:1\r\n+4\r\n" }))
	wantValue(t, ask(t, m, echo("wake up")), "4")
	wantValue(t, receiveFrom(t, "an answer", held), "1")
	wantValue(t, receiveFrom(t, "an answer", extended), "2")
	wantValue(t, receiveFrom(t, "an answer", released), int64(1))
	look(m)
	if err := m.Votes(); err != nil {
		t.Errorf("it answers again: %v", err)
	}
	wantValue(t, ask(t, m, wire.Acquire("new", "v", time.Minute)), "OK")
	if n := m.Status().Undelivered; n != 0 {
		t.Errorf("%d releases are owed", n)
	}
}

// S18: once a master is asked again, a repair may put there what its acquire
// could not; the release is not pointless then.
func TestL3_release_of_what_was_repaired_between_two_silences_is_sent(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), still)
	fallSilent := func() {
		s.set(func([]string) string { return silence })
		before := len(s.seen())
		give(m, get("k"))
		eventually(t, "it was asked", func() bool { return len(s.seen()) > before })
		look(m)
		look(m)
	}
	fallSilent()
	wantError(t, ask(t, m, wire.Acquire("k", "v", time.Minute)), ErrSilent)
	s.set(but("ECHO", func([]string) string { return "+1\r\n+2\r\n" }))
	wantValue(t, ask(t, m, echo("wake up")), "2")
	look(m)
	wantValue(t, ask(t, m, wire.Repair("k", "v", time.Minute)), "OK")
	fallSilent()

	give(m, release("k"))

	want := []string{"GET", "ECHO", "SET", "GET", "k"}
	eventually(t, "the release was sent", func() bool { return reflect.DeepEqual(s.releases(), want) })
}

// L3: the kernel must not go on delivering what was given up.
func TestL3_connection_that_is_given_up_is_reset(t *testing.T) {
	s := newStub(t, but("GET", func([]string) string { return silence }))
	m := connect(t, s.addr(), still)
	reply := give(m, get("k"))
	for range ageSteps + 1 {
		m.live.Load().checkAge()
	}
	wantError(t, receiveFrom(t, "the verdict", reply), errStuck)
	eventually(t, "the server knows", func() bool { return len(s.ended()) > 0 })
	if err := s.ended()[0]; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server read %v, want a reset", err)
	}
}

func TestConn_that_answers_slowly_but_steadily_is_kept(t *testing.T) {
	var n int
	s := newStub(t, but("GET", func([]string) string {
		n++
		if n%2 == 1 {
			return silence
		}
		return "+late\r\n+OK\r\n"
	}))
	m := connect(t, s.addr(), still)
	c := m.live.Load()
	for range 10 {
		late := give(m, get("k"))
		for range ageSteps {
			c.checkAge()
		}
		wantValue(t, ask(t, m, get("k")), "OK")
		wantValue(t, receiveFrom(t, "the late one", late), "late")
	}
	if st := m.Status(); st.Reconnects != 0 {
		t.Errorf("%+v", st)
	}
}

func TestMaster_gives_up_a_handshake_without_answers(t *testing.T) {
	s := newStub(t, func([]string) string { return silence })
	mock := clock.NewMock()
	m := open(t, s.addr(), Config{Clock: mock, ConnectTimeout: 3 * time.Second})
	result := make(chan error, 1)
	m.Connected(func(err error) { result <- err })
	eventually(t, "it dialled", func() bool { return s.dialled() == 1 })
	wantError(t, ask(t, m, get("k")), ErrDown, errNotYet)
	mock.Add(3 * time.Second)
	err := receiveFrom(t, "the first attempt", result)
	if !errors.Is(err, ErrDown) || !strings.Contains(err.Error(), "no connection within 3s") {
		t.Errorf("%v", err)
	}
}

func TestMaster_says_once_that_it_is_down_and_once_that_it_is_back(t *testing.T) {
	for _, refusal := range []string{"-LOADING Redis is loading the dataset in memory\r\n", hangUp} {
		s := newStub(t, but("ROLE", func([]string) string { return refusal }))
		log := &journal{}
		m := open(t, s.addr(), Config{Logger: slog.New(log), Backoff: Redial{Min: time.Millisecond, Max: time.Millisecond}})
		eventually(t, "it tried often", func() bool { return s.dialled() > 5 })
		s.set(healthy)
		eventually(t, "it is connected", func() bool { return m.Status().State == StateConnected })
		if n := log.count("WARN", "not connected", s.addr()); n < 1 || n > 2 { // EOF, or reset by the peer
			t.Errorf("told of the trouble %d times: %q", n, log.lines)
		}
		eventually(t, "the log tells of its end", func() bool { return log.count("INFO", "master connected", s.addr()) == 1 })
	}
}

func TestMaster_connects_again_after_LOADING(t *testing.T) {
	for _, name := range []string{"ROLE", "INFO", "EVAL"} {
		s := newStub(t, but(name, func([]string) string { return "-LOADING Redis is loading the dataset in memory\r\n" }))
		m := open(t, s.addr(), Config{})
		if err := firstAttempt(t, m); !errors.Is(err, &wire.ServerError{Code: "LOADING"}) {
			t.Errorf("%s: %v", name, err)
		}
		s.set(healthy)
		eventually(t, "it is connected", func() bool { return m.Status().State == StateConnected })
	}
}

// A server that sends why it does not want us and hangs up.
func TestMaster_reports_why_a_server_hung_up(t *testing.T) {
	s := newStub(t, func([]string) string { return "-ERR max number of clients reached\r\n" + hangUp })
	m := open(t, s.addr(), Config{})
	if err := firstAttempt(t, m); err == nil || !strings.Contains(err.Error(), "max number of clients") {
		t.Errorf("%v", err)
	}
}

func TestMaster_reads_the_role_from_INFO_where_ROLE_is_forbidden(t *testing.T) {
	s := newStub(t, func(args []string) string {
		switch strings.Join(args, " ") {
		case "ROLE":
			return "-NOPERM this user has no permissions to run the 'role' command\r\n"
		case "INFO replication":
			return bulk("# Replication\r\nrole:slave\r\n")
		}
		return "default"
	})
	if err := firstAttempt(t, open(t, s.addr(), Config{})); !errors.Is(err, ErrNotMaster) {
		t.Errorf("%v", err)
	}
}

// Managed services forbid most of the handshake.
func TestMaster_that_tells_nothing_works_and_says_what_is_unknown(t *testing.T) {
	s := newStub(t, func(args []string) string {
		if ofHandshake(args) {
			return "-NOPERM this user has no permissions\r\n"
		}
		return "default"
	})
	log := &journal{}
	m := connect(t, s.addr(), Config{Guard: guard.Config{Hold: 50 * time.Millisecond, ClockTolerance: time.Second}, Heartbeat: time.Millisecond, Logger: slog.New(log)})
	// Nothing proves its memory, so that it waits for the hold to pass.
	eventually(t, "it may vote", func() bool { return ask(t, m, wire.Acquire("k", "v", time.Second)).Err == nil })
	if got := strings.Join(m.Status().Unknown, " "); got != "role run_id uptime version marker time" {
		t.Errorf("unknown: %s", got)
	}
	if log.count("WARN", "quarantined", "its marker cannot be read") == 0 {
		t.Errorf("log %q", log.lines)
	}
}

// S15: one server under two addresses.
func TestS15_same_server_twice(t *testing.T) {
	a, b := newStub(t, healthy), newStub(t, healthy) // both say run_id:stub
	group := guard.NewGroup(guard.GroupID{})
	first := connect(t, a.addr(), Config{Group: group})
	second := open(t, b.addr(), Config{Group: group})
	err := firstAttempt(t, second)
	if !errors.Is(err, guard.ErrSameNode) || !strings.Contains(err.Error(), a.addr()) || !strings.Contains(err.Error(), b.addr()) {
		t.Errorf("%v", err)
	}
	wantError(t, ask(t, second, get("k")), ErrDown, guard.ErrSameNode)
	connect(t, b.addr(), Config{Group: guard.NewGroup(guard.GroupID{})}) // another client
	first.Close()
	eventually(t, "the other may be it", func() bool { return second.Status().State == StateConnected })
}

func TestMaster_Connected_reports_once_to_each(t *testing.T) {
	s := newStub(t, healthy)
	m := open(t, s.addr(), Config{})
	results := make(chan error, 10)
	m.Connected(func(err error) { results <- err })
	m.Connected(func(err error) { results <- err })
	for range 2 {
		if err := receiveFrom(t, "a result", results); err != nil {
			t.Error(err)
		}
	}
	m.Connected(func(err error) { results <- err })
	if err := <-results; err != nil {
		t.Error(err)
	}
	m.Close()
	m.Connected(func(err error) { results <- err })
	if err := <-results; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if len(results) > 0 {
		t.Errorf("reported again: %v", <-results)
	}
}

func TestMaster_Close_fails_what_is_under_way(t *testing.T) {
	s := newStub(t, but("GET", func([]string) string { return silence }))
	m := connect(t, s.addr(), Config{Clock: clock.NewMock()}) // Close does not need the clock
	reply := give(m, get("k"))
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	wantError(t, receiveFrom(t, "the verdict", reply), ErrClosed)
	wantError(t, ask(t, m, get("k")), ErrClosed)
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if st := m.Status(); st.State != StateClosed {
		t.Errorf("%+v", st)
	}
}

func TestMaster_Close_delivers_what_was_given_before(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), Config{})
	var replies []<-chan wire.Reply
	for range 100 {
		replies = append(replies, give(m, wire.Release("k", wire.QueueOf("", "k"), "v", time.Minute)))
	}
	m.Close()
	for _, reply := range replies {
		wantValue(t, receiveFrom(t, "an answer", reply), int64(1))
	}
}

// What is under way is given time to be answered; nothing is under way on an
// idle connection.
func TestMaster_Close_of_an_idle_master_does_not_wait(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, test := range map[string]struct {
		calls []*wire.Command
		want  time.Time
	}{
		"idle":      {nil, now},
		"a call":    {[]*wire.Command{get("k")}, now.Add(closeGrace)},
		"a release": {[]*wire.Command{wire.Release("k", wire.QueueOf("", "k"), "v", time.Minute)}, now.Add(closeGrace)},
	} {
		d := &deadlined{}
		c := newConn(&socket{Conn: d}, "addr", 100, nil, noWitness)
		for _, cmd := range test.calls {
			if err := c.send(&call{cmd: cmd}); err != nil {
				t.Fatal(err)
			}
		}
		c.drain(now, closeGrace)
		if !d.at.Equal(test.want) {
			t.Errorf("%s: the connection ends %v after Close, want %v", name, d.at.Sub(now), test.want.Sub(now))
		}
	}
}

// deadlined is a connection that keeps its deadline.
type deadlined struct {
	net.Conn
	at time.Time
}

func (d *deadlined) SetDeadline(at time.Time) error {
	d.at = at
	return nil
}

func TestMaster_Close_ends_an_attempt_to_connect(t *testing.T) {
	s := newStub(t, func([]string) string { return silence })
	m := open(t, s.addr(), Config{ConnectTimeout: time.Hour})
	eventually(t, "it dialled", func() bool { return s.dialled() == 1 })
	m.Close()
	if err := firstAttempt(t, m); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestMaster_Close_ends_a_backoff(t *testing.T) {
	s := newStub(t, healthy)
	s.ln.Close()
	m := open(t, s.addr(), Config{Backoff: Redial{Min: time.Hour, Max: time.Hour}})
	_ = firstAttempt(t, m)
	m.Close()
}

func TestMaster_has_two_goroutines(t *testing.T) {
	s := newStub(t, healthy)
	connect(t, s.addr(), Config{})
	const creator = "created by github.com/quorumlock/quorumlock/internal/seam."
	eventually(t, "only two goroutines are left", func() bool { // those of earlier tests are ending
		all := stacks()
		return strings.Count(all, creator) == 2
	})
}

func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

func TestConfig_names_what_is_wrong(t *testing.T) {
	for want, c := range map[string]Config{
		"Guard.Hold -1s":           {Guard: guard.Config{Hold: -time.Second}},
		"Guard.ClockTolerance -1s": {Guard: guard.Config{ClockTolerance: -time.Second}},
		"ConnectTimeout -1s":       {ConnectTimeout: -time.Second},
		"MaxAge -1s":               {MaxAge: -time.Second},
		"MaxSilence -1s":           {MaxSilence: -time.Second},
		"Heartbeat -1s":            {Heartbeat: -time.Second},
		"Backoff.Min -1s":          {Backoff: Redial{Min: -time.Second}},
		"Backoff.Min 1s: must not exceed Backoff.Max 500ms": {Backoff: Redial{Min: time.Second}},
		"Backoff.Max -1s":   {Backoff: Redial{Max: -time.Second}},
		"Linger -1s":        {Linger: -time.Second},
		"MaxInFlight -1":    {MaxInFlight: -1},
		"MaxUndelivered -1": {MaxUndelivered: -1},
	} {
		if _, err := Open("127.0.0.1:1", c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
