package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
)

// sleeper counts how often it is woken.
type sleeper chan struct{}

func newSleeper() sleeper { return make(sleeper, 1000) }

func (s sleeper) wake()          { s <- struct{}{} }
func (s sleeper) Heard(string)   { s.wake() }
func (s sleeper) Doubted(string) { s.wake() }
func (s sleeper) Missed()        { s.wake() }

// woken waits until s was woken once more.
func (s sleeper) woken(t testing.TB, why string) {
	t.Helper()
	receiveFrom(t, why, s)
}

// listenTo returns who is woken by a channel from now on, until the test ends.
func listenTo(t testing.TB, m *Master, channel string) sleeper {
	t.Helper()
	s := newSleeper()
	t.Cleanup(m.Subscribe(channel, s))
	s.woken(t, "the confirmation")
	return s
}

// subscribers returns the number of clients of the server that are subscribed.
func subscribers(t testing.TB, s *redistest.Server, channel string) int64 {
	t.Helper()
	return do(t, s, "PUBSUB", "NUMSUB", channel).([]any)[1].(int64)
}

func TestSubscribe_wakes_on_confirmation_and_on_every_message(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	a, b, other := newSleeper(), newSleeper(), newSleeper()
	defer m.Subscribe("ch", a)()
	defer m.Subscribe("ch", b)()
	defer m.Subscribe("other", other)()
	for _, each := range []sleeper{a, b, other} {
		each.woken(t, "the confirmation")
	}
	for range 3 {
		do(t, s, "PUBLISH", "ch", "")
		a.woken(t, "the message")
		b.woken(t, "the message")
	}
	if n := subscribers(t, s, "ch"); n != 1 {
		t.Errorf("%d connections for two users", n)
	}
	if len(other) != 0 {
		t.Error("woken by a message for another channel")
	}
}

// handed returns who is told what the waiters of client c/n are given.
func handed(t testing.TB, m *Master) chan string {
	t.Helper()
	e := &ear{heard: make(chan string, 100), missed: newSleeper()}
	t.Cleanup(m.Subscribe(wire.WaitChannel("", "c/nnnnnnnnnnnnnnnn"), e))
	e.missed.woken(t, "the confirmation")
	return e.heard
}

// ear keeps what it hears.
type ear struct {
	heard  chan string
	missed sleeper
}

func (e *ear) Missed()        { e.missed.wake() }
func (e *ear) Doubted(string) { e.missed.wake() }
func (e *ear) Heard(message string) {
	said, _ := wire.ParseNotice(message)
	e.heard <- said.Value
}

func askFor(value string, ticket int64) *wire.Command {
	return wire.Ask("k", wire.QueueOf("", "k"), value, ticket, time.Minute)
}

func giveBack(value string) *wire.Command {
	return wire.Release("k", wire.QueueOf("", "k"), value, time.Minute)
}

func TestQueue_release_hands_the_lock_to_the_lowest_ticket(t *testing.T) {
	for name, url := range map[string]string{"redis": redistest.Start(t).URL(), "miniredis": miniredis.RunT(t).Addr()} {
		t.Run(name, func(t *testing.T) {
			m := connect(t, url, Config{})
			heard := handed(t, m)
			wantValue(t, ask(t, m, wire.Acquire("k", "holder", time.Minute)), "OK")
			ask(t, m, askFor("c/nnnnnnnnnnnnnnnn/late:0", 20))
			ask(t, m, askFor("c/nnnnnnnnnnnnnnnn/early:0 metadata", 10))

			wantValue(t, ask(t, m, giveBack("holder")), int64(1))

			if got := receiveFrom(t, "the lock", heard); got != "c/nnnnnnnnnnnnnnnn/early:0 metadata" {
				t.Errorf("given to %q", got)
			}
			wantValue(t, ask(t, m, get("k")), "c/nnnnnnnnnnnnnnnn/early:0 metadata")
			wantValue(t, ask(t, m, giveBack("c/nnnnnnnnnnnnnnnn/early:0")), int64(1))
			if got := receiveFrom(t, "the lock", heard); got != "c/nnnnnnnnnnnnnnnn/late:0" {
				t.Errorf("given to %q", got)
			}
		})
	}
}

// Whoever has gone has no subscription, and costs nobody any time.
func TestQueue_waiter_that_has_gone_is_passed_over(t *testing.T) {
	m := connect(t, redistest.Start(t).URL(), Config{})
	heard := handed(t, m)
	wantValue(t, ask(t, m, wire.Acquire("k", "holder", time.Minute)), "OK")
	ask(t, m, askFor("gone/nnnnnnnnnnnnnnnn/1:0", 1))
	ask(t, m, askFor("c/nnnnnnnnnnnnnnnn/here:0", 2))

	ask(t, m, giveBack("holder"))

	if got := receiveFrom(t, "the lock", heard); got != "c/nnnnnnnnnnnnnnnn/here:0" {
		t.Errorf("given to %q", got)
	}
}

// An ask gives back what the ask before was given, and hands it on.
func TestQueue_next_ask_yields_to_a_lower_ticket_and_keeps_it_from_none(t *testing.T) {
	m := connect(t, redistest.Start(t).URL(), Config{})
	heard := handed(t, m)
	wantValue(t, ask(t, m, askFor("c/nnnnnnnnnnnnnnnn/late:0", 20)), "OK")
	ask(t, m, askFor("c/nnnnnnnnnnnnnnnn/early:0", 10))

	wantRefused(t, ask(t, m, askFor("c/nnnnnnnnnnnnnnnn/late:1", 20)))

	if got := receiveFrom(t, "the lock", heard); got != "c/nnnnnnnnnnnnnnnn/early:0" {
		t.Errorf("given to %q", got)
	}
	wantValue(t, ask(t, m, askFor("c/nnnnnnnnnnnnnnnn/early:1", 10)), "OK")
	wantValue(t, ask(t, m, get("k")), "c/nnnnnnnnnnnnnnnn/early:1")
}

func TestQueue_late_ask_is_worth_nothing(t *testing.T) {
	m := connect(t, redistest.Start(t).URL(), Config{})
	wantValue(t, ask(t, m, askFor("c/nnnnnnnnnnnnnnnn/w:10", 1)), "OK")

	wantRefused(t, ask(t, m, askFor("c/nnnnnnnnnnnnnnnn/w:9", 1)))

	wantValue(t, ask(t, m, get("k")), "c/nnnnnnnnnnnnnnnn/w:10")
}

func TestQueue_release_of_any_ask_releases_them_all(t *testing.T) {
	m := connect(t, redistest.Start(t).URL(), Config{})
	wantValue(t, ask(t, m, askFor("c/nnnnnnnnnnnnnnnn/w:3", 1)), "OK")

	wantValue(t, ask(t, m, giveBack("c/nnnnnnnnnnnnnnnn/w:7")), int64(1))
	wantValue(t, ask(t, m, giveBack("c/nnnnnnnnnnnnnnnn/w:7")), int64(0))
	for _, key := range []string{"k", "redlock:queue:k", "redlock:wait:k"} {
		wantValue(t, ask(t, m, get(key)), nil)
	}
}

// A master that may have forgotten locks queues, but gives nothing.
func TestQueue_nothing_is_handed_on_where_the_master_is_not_believed(t *testing.T) {
	m := connect(t, redistest.Start(t).URL(), Config{})
	handed(t, m)
	wantRefused(t, ask(t, m, askFor("c/nnnnnnnnnnnnnnnn/w:0", 1).Hold()))
	wantValue(t, ask(t, m, get("k")), nil)
	wantValue(t, ask(t, m, wire.Acquire("k", "holder", time.Minute)), "OK")

	wantValue(t, ask(t, m, giveBack("holder").Hold()), int64(1))

	wantValue(t, ask(t, m, get("k")), nil)
	wantValue(t, ask(t, m, askFor("c/nnnnnnnnnnnnnnnn/w:1", 1)), "OK")
}

// A client that quarantines every master, such as one whose own clock was set, is first in the queue: it
// is handed a lock that it does not take. Its release has the next waiter ask.
func TestL92_who_trusts_no_master_hands_a_lock_on_by_having_the_next_one_ask(t *testing.T) {
	k, both, rw := wire.QueueOf("", "k"), wire.ManyOf("", []string{"k", "l"}), wire.ReadWriteOf("", "k")
	permits := wire.PermitsOf("", "k")
	first, second := "c/nnnnnnnnnnnnnnnn/first:0", "c/nnnnnnnnnnnnnnnn/second:0"
	for name, kind := range map[string]struct{ take, distrusts, waits, release *wire.Command }{
		"mutex": {wire.Acquire("k", first, time.Minute), nil, askFor(second, 2), giveBack(first)},
		"fenced": {
			wire.FencedAcquire("k", k, first, time.Minute, 1), nil,
			wire.FencedAsk("k", k, second, 2, time.Minute, 1), wire.FencedRelease("k", k, first, time.Minute, 1),
		},
		"transfer": {
			wire.FencedAcquire("k", k, first, time.Minute, 1), nil,
			wire.FencedAsk("k", k, second, 2, time.Minute, 1),
			wire.FencedRelease("k", k, first, time.Minute, 1).HandTo("c/nnnnnnnnnnnnnnnn/gone"),
		},
		"handed on meanwhile": {wire.Acquire("k", "holder", time.Minute), askFor(first, 1).Hold(), askFor(second, 2), giveBack(first)},
		"multi": {
			both.Take(wire.OpAcquire, first, time.Minute, 0, 0, 0), nil, askFor(second, 2),
			both.Release(first, time.Minute, 0),
		},
		"writer": {
			rw.Write(wire.OpAcquire, first, time.Minute, 0), nil,
			rw.Read(wire.OpAsk, second, time.Minute, 2), rw.Release(first, time.Minute),
		},
		"permit": {
			permits.Take(wire.OpAcquire, first, time.Minute, 0, 1, 1, 0, 0), nil,
			permits.Take(wire.OpAsk, second, time.Minute, 2, 1, 1, 0, 0), permits.Release(first, time.Minute),
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := connect(t, redistest.Start(t).URL(), Config{})
			heard := handed(t, m)
			mustAnswer(t, ask(t, m, kind.take))
			if kind.distrusts != nil {
				mustAnswer(t, ask(t, m, kind.distrusts))
			}
			mustAnswer(t, ask(t, m, kind.waits))
			if kind.distrusts != nil {
				wantValue(t, ask(t, m, giveBack("holder")), int64(1)) // which hands the lock to the first
				receiveFrom(t, "the lock", heard)
			}

			mustAnswer(t, ask(t, m, kind.release.Hold()))

			if got := receiveFrom(t, "the notice to ask", heard); got != second {
				t.Errorf("%q is notified", got)
			}
			if got := ask(t, m, get("k")).Value; got != nil {
				t.Errorf("k is %s: it was handed on", got)
			}
		})
	}
}

// The script that hands the lock on cannot look whether the master was a replica.
func TestQueue_a_user_without_INFO_is_handed_the_lock_as_any_other(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	do(t, s, "SET", "redlock:marker", "the marker")
	heard := handed(t, m)
	wantValue(t, ask(t, m, wire.Acquire("k", "holder", time.Minute)), "OK")
	wantRefused(t, ask(t, m, askFor("c/nnnnnnnnnnnnnnnn/w:0", 1)))
	do(t, s, "ACL", "SETUSER", "default", "-info")

	wantValue(t, ask(t, m, giveBack("holder")), int64(1))

	if got := receiveFrom(t, "the lock", heard); got != "c/nnnnnnnnnnnnnnnn/w:0" {
		t.Errorf("%q is handed the lock", got)
	}
}

func mustAnswer(t testing.TB, r wire.Reply) {
	t.Helper()
	if r.Err != nil || r.Refused() != nil {
		t.Fatal(r.Err, r.Refused())
	}
}

func wantRefused(t testing.TB, r wire.Reply) {
	t.Helper()
	if fields, ok := r.Value.([]any); !ok || len(fields) != 2 {
		t.Errorf("%v, %v; want a refusal", r.Value, r.Err)
	}
}

// Nothing would confirm it again, and the message may have been before.
func TestSubscribe_to_a_confirmed_channel_wakes_at_once(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	first, second := newSleeper(), newSleeper()
	cancel := m.Subscribe("ch", first)
	first.woken(t, "the confirmation")
	cancel()
	defer m.Subscribe("ch", second)()
	if len(second) != 1 {
		t.Errorf("woken %d times before Subscribe returned", len(second))
	}
	do(t, s, "PUBLISH", "ch", "")
	second.woken(t, "the confirmation")
	second.woken(t, "the message")
	if len(first) != 0 {
		t.Error("woken after cancel")
	}
	cancel() // a second time does nothing
	do(t, s, "PUBLISH", "ch", "")
	second.woken(t, "the message")
}

// heart lets one heartbeat of the subscriber's connection happen.
func (m *Master) heart() {
	m.pubsub.mu.Lock()
	box := m.pubsub.box
	m.pubsub.mu.Unlock()
	m.pubsub.tick(box)
}

func (m *Master) subscriberRuns() bool {
	m.pubsub.mu.Lock()
	defer m.pubsub.mu.Unlock()
	return m.pubsub.running != nil
}

func TestSubscribe_opens_its_connection_for_the_first_user_and_closes_it_after_the_last(t *testing.T) {
	s := redistest.Start(t)
	mock := clock.NewMock()
	m := connect(t, s.URL(), Config{Clock: mock, Linger: 3 * time.Second, Heartbeat: time.Hour})
	if m.subscriberRuns() {
		t.Error("a subscriber runs without users")
	}
	w := newSleeper()
	one, two := m.Subscribe("one", w), m.Subscribe("two", w)
	w.woken(t, "the confirmation")
	w.woken(t, "the confirmation")
	one()
	mock.Add(2 * time.Second)
	if m.heart(); subscribers(t, s, "one") != 1 {
		t.Error("left without linger")
	}
	mock.Add(time.Second)
	m.heart()
	eventually(t, "it left the channel", func() bool { return subscribers(t, s, "one") == 0 })
	if subscribers(t, s, "two") != 1 {
		t.Error("left a channel that is in use")
	}
	two()
	mock.Add(3 * time.Second)
	m.heart()
	eventually(t, "the connection is closed", func() bool { return subscribers(t, s, "two") == 0 })
	eventually(t, "its goroutine is gone", func() bool { return !m.subscriberRuns() })
	defer m.Subscribe("one", w)() // and again
	w.woken(t, "the confirmation")
}

// Who may not subscribe is not subscribed, until it may: an ACL can change.
func TestL35_a_channel_that_was_refused_is_asked_for_again(t *testing.T) {
	s := redistest.Start(t, redistest.User("ann", "pw", "~*", "&*", "+@all", "-subscribe"))
	m := connect(t, s.URL(), Config{Heartbeat: 10 * time.Millisecond})
	e := newSleeper()
	defer m.Subscribe("ch", e)()
	eventually(t, "it is refused", func() bool {
		m.pubsub.mu.Lock()
		defer m.pubsub.mu.Unlock()
		return m.pubsub.box != nil && m.pubsub.asked == 0
	})
	if m.Subscribed("ch") {
		t.Error("it is subscribed")
	}

	do(t, s, "ACL", "SETUSER", "ann", "+subscribe")

	e.woken(t, "the confirmation")
	if !m.Subscribed("ch") {
		t.Error("it is not subscribed")
	}
}

// L12: messages may have been missed while there was no connection.
func TestL12_users_are_woken_when_the_connection_is_back(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	a, b := listenTo(t, m, "a"), listenTo(t, m, "b")
	do(t, s, "CLIENT", "KILL", "TYPE", "pubsub")
	a.woken(t, "the new subscription")
	b.woken(t, "the new subscription")
	do(t, s, "PUBLISH", "a", "")
	a.woken(t, "the message")
	s.Restart()
	a.woken(t, "the new subscription")
	b.woken(t, "the new subscription")
}

// L62: whoever asked when the subscription was back, and the connection for commands was not, asks
// again.
func TestL62_users_are_woken_when_commands_can_be_sent_again(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	w := listenTo(t, m, "ch")
	do(t, s, "CLIENT", "KILL", "TYPE", "normal")
	w.woken(t, "the connection for commands")
}

// L12: a connection that is dead without saying so.
func TestL12_dead_connection_is_noticed_by_its_pings(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{Heartbeat: 20 * time.Millisecond, MaxAge: 100 * time.Millisecond, ConnectTimeout: 50 * time.Millisecond})
	w := newSleeper()
	defer m.Subscribe("ch", w)()
	w.woken(t, "the confirmation")
	s.Stop()
	eventually(t, "it is given up", func() bool {
		m.pubsub.mu.Lock()
		defer m.pubsub.mu.Unlock()
		return m.pubsub.box == nil
	})
	s.Continue()
	w.woken(t, "the new subscription")
}

// pings returns how often the server was asked for a pong.
func pings(t testing.TB, s *redistest.Server) (n int) {
	t.Helper()
	_, stats, _ := strings.Cut(wire.Text(do(t, s, "INFO", "commandstats")), "cmdstat_ping:calls=")
	fmt.Sscan(stats, &n)
	return n
}

// answered waits until the subscriber's connection owes no pong.
func (m *Master) answered(t testing.TB) {
	t.Helper()
	eventually(t, "the pong", func() bool {
		m.pubsub.pulse.mu.Lock()
		defer m.pubsub.pulse.mu.Unlock()
		return m.pubsub.pulse.missed == 0
	})
}

func TestSubscribe_a_quiet_connection_is_kept_by_a_ping_now_and_then(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{Heartbeat: time.Hour})
	w := newSleeper()
	defer m.Subscribe("ch", w)()
	w.woken(t, "the confirmation")
	before := pings(t, s)
	for range 3 * quiet {
		m.heart()
		m.answered(t)
	}
	if n := pings(t, s) - before; n != 3 {
		t.Errorf("%d pings at %d heartbeats", n, 3*quiet)
	}
	if len(w) != 0 {
		t.Error("the connection was not kept")
	}
}

// L12: what breaks one connection to a master often breaks the other, too.
func TestL12_a_subscription_is_pinged_when_the_master_is_in_trouble(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{Heartbeat: time.Hour})
	w := newSleeper()
	defer m.Subscribe("ch", w)()
	w.woken(t, "the confirmation")
	do(t, s, "CLIENT", "KILL", "TYPE", "normal")
	eventually(t, "it connects again", func() bool { return m.Status().Reconnects > 0 })
	before := pings(t, s) // the handshake has one
	m.heart()
	eventually(t, "the ping", func() bool { return pings(t, s) > before })
}

func TestSubscribe_before_the_master_is_there(t *testing.T) {
	s := redistest.Start(t)
	s.Kill()
	m := open(t, s.URL(), Config{})
	w := newSleeper()
	defer m.Subscribe("ch", w)()
	s.Restart()
	w.woken(t, "the confirmation")
}

func TestSubscribe_channel_that_is_forbidden_hurts_no_other(t *testing.T) {
	s := redistest.Start(t, redistest.User("ann", "pw", "allkeys", "allcommands", "resetchannels", "&allowed"))
	m := connect(t, s.URL(), Config{})
	forbidden, allowed := newSleeper(), newSleeper()
	defer m.Subscribe("forbidden", forbidden)()
	defer m.Subscribe("allowed", allowed)()
	allowed.woken(t, "the confirmation")
	do(t, s, "PUBLISH", "allowed", "")
	allowed.woken(t, "the message")
	if len(forbidden) != 0 {
		t.Error("woken on a channel that is forbidden")
	}
}

func TestSubscribe_after_Close_does_nothing(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	w := newSleeper()
	cancel := m.Subscribe("ch", w)
	w.woken(t, "the confirmation")
	m.Close()
	cancel()
	m.Subscribe("ch", w)()
	if n := subscribers(t, s, "ch"); n != 0 {
		t.Errorf("%d subscribers", n)
	}
}

func TestSubscribe_survives_answers_that_are_garbage(t *testing.T) {
	for _, garbage := range []string{
		"hello\r\n", "$9223372036854775807\r\n", "*3\r\n$7\r\nmess" + hangUp,
		"*0\r\n*1\r\n:1\r\n*2\r\n:1\r\n:2\r\n:5\r\n$-1\r\n*2\r\n$-1\r\n*0\r\n" + hangUp,
	} {
		s := newStub(t, but("SUBSCRIBE", func([]string) string { return garbage }))
		m := connect(t, s.addr(), Config{Backoff: Redial{Min: time.Millisecond, Max: time.Millisecond}})
		w := newSleeper()
		defer m.Subscribe("ch", w)()
		eventually(t, "it was answered", func() bool { return len(s.seen()) > 0 })
		s.set(but("SUBSCRIBE", func(args []string) string { return "*3\r\n" + bulk("subscribe") + bulk(args[1]) + ":1\r\n" }))
		w.woken(t, "the confirmation")
	}
}

// What is asked anew has the same order each time, or a schedule of the simulator is not what its seed says.
func TestPubsub_missed_is_told_in_the_order_of_the_channels(t *testing.T) {
	s := newSubscriber(nil)
	want, told := strings.Split("abcdefghijklmnopqrst", ""), []string(nil)
	for _, channel := range want {
		s.topics[channel] = &topic{users: []*user{{missing(func() { told = append(told, channel) })}}}
	}

	s.missed()

	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// missing is a listener that is only told that it missed something.
type missing func()

func (f missing) Missed()      { f() }
func (missing) Doubted(string) { panic("doubted") }
func (missing) Heard(string)   { panic("heard") }
