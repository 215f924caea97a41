package node

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// sleeper counts how often it is woken.
type sleeper chan struct{}

func newSleeper() sleeper { return make(sleeper, 1000) }

func (s sleeper) wake() { s <- struct{}{} }

// woken waits until s was woken once more.
func (s sleeper) woken(t testing.TB, why string) {
	t.Helper()
	receiveFrom(t, why, s)
}

// listenTo returns who is woken by a channel from now on, until the test ends.
func listenTo(t testing.TB, m *Master, channel string) sleeper {
	t.Helper()
	s := newSleeper()
	t.Cleanup(m.Subscribe(channel, s.wake))
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
	defer m.Subscribe("ch", a.wake)()
	defer m.Subscribe("ch", b.wake)()
	defer m.Subscribe("other", other.wake)()
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

func TestSubscribe_release_wakes_those_who_wait(t *testing.T) {
	s := miniredis.RunT(t)
	m := connect(t, s.Addr(), Config{})
	w := newSleeper()
	defer m.Subscribe("ch", w.wake)()
	w.woken(t, "the confirmation")
	wantValue(t, ask(t, m, Acquire("k", "v", time.Minute)), "OK")
	ask(t, m, ProbeInLine("k", "w", time.Minute, Line{Key: "line", Channel: "gone", Stay: time.Minute}))
	ask(t, m, ProbeInLine("k", "w", time.Minute, Line{Key: "line", Channel: "ch", Stay: time.Minute}))
	wantValue(t, ask(t, m, Release("k", "v", "line", time.Minute)), int64(1))
	w.woken(t, "the release")
}

// L2: between a release and the attempt of who was woken by it, the gate is not
// open to others, or the vote is split. It opens again if nothing comes.
func TestL2_who_was_woken_is_not_overtaken(t *testing.T) {
	for name, c := range map[string]struct {
		asks []string
		want []any
	}{
		"by one who holds it next": {[]string{"other", "woken"}, []any{int64(25), "OK"}},
		"for ever":                 {[]string{"other", "third", "other"}, []any{int64(25), int64(25), "OK"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			m := connect(t, s.URL(), Config{})
			w := listenTo(t, m, "woken")
			probe := func(who string) Reply {
				return ask(t, m, ProbeInLine("k", who, time.Minute, Line{Key: "line", Channel: who, Stay: time.Minute}))
			}
			wantValue(t, ask(t, m, Acquire("k", "holder", time.Minute)), "OK")
			probe("woken")
			wantValue(t, ask(t, m, Release("k", "holder", "line", time.Minute)), int64(1))
			w.woken(t, "the release")

			for i, who := range c.asks {
				wantValue(t, probe(who), c.want[i])
			}
		})
	}
}

// The turn of who was woken does not keep the line from being served.
func TestL2_an_old_turn_is_passed_over(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	first, second := listenTo(t, m, "first"), listenTo(t, m, "second")
	do(t, s, "ZADD", "line", 1, "first", 2, "second")
	for _, w := range []sleeper{first, second} {
		wantValue(t, ask(t, m, Acquire("k", "holder", time.Minute)), "OK")
		wantValue(t, ask(t, m, Release("k", "holder", "line", time.Minute)), int64(1))
		w.woken(t, "the release")
	}
	wantValue(t, ask(t, m, Acquire("k", "holder", time.Minute)), "OK")
	wantValue(t, ask(t, m, Release("k", "holder", "line", time.Minute)), int64(1))
	if n := do(t, s, "EXISTS", "line"); n != int64(0) {
		t.Error("the last turn outlives the next release")
	}
}

// Nothing would confirm it again, and the message may have been before.
func TestSubscribe_to_a_confirmed_channel_wakes_at_once(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	first, second := newSleeper(), newSleeper()
	cancel := m.Subscribe("ch", first.wake)
	first.woken(t, "the confirmation")
	cancel()
	defer m.Subscribe("ch", second.wake)()
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
	one, two := m.Subscribe("one", w.wake), m.Subscribe("two", w.wake)
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
	defer m.Subscribe("one", w.wake)() // and again
	w.woken(t, "the confirmation")
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

// L12: a connection that is dead without saying so.
func TestL12_dead_connection_is_noticed_by_its_pings(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{Heartbeat: 20 * time.Millisecond, MaxAge: 100 * time.Millisecond, ConnectTimeout: 50 * time.Millisecond})
	w := newSleeper()
	defer m.Subscribe("ch", w.wake)()
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

func TestSubscribe_pings_keep_a_quiet_connection(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{Heartbeat: time.Hour})
	w := newSleeper()
	defer m.Subscribe("ch", w.wake)()
	w.woken(t, "the confirmation")
	for range 10 {
		m.heart()
		eventually(t, "the pong", func() bool {
			m.pubsub.pulse.mu.Lock()
			defer m.pubsub.pulse.mu.Unlock()
			return m.pubsub.pulse.missed == 0
		})
	}
	if len(w) != 0 {
		t.Error("the connection was not kept")
	}
}

func TestSubscribe_before_the_master_is_there(t *testing.T) {
	s := redistest.Start(t)
	s.Kill()
	m := open(t, s.URL(), Config{})
	w := newSleeper()
	defer m.Subscribe("ch", w.wake)()
	s.Restart()
	w.woken(t, "the confirmation")
}

func TestSubscribe_channel_that_is_forbidden_hurts_no_other(t *testing.T) {
	s := redistest.Start(t, redistest.User("ann", "pw", "allkeys", "allcommands", "resetchannels", "&allowed"))
	m := connect(t, s.URL(), Config{})
	forbidden, allowed := newSleeper(), newSleeper()
	defer m.Subscribe("forbidden", forbidden.wake)()
	defer m.Subscribe("allowed", allowed.wake)()
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
	cancel := m.Subscribe("ch", w.wake)
	w.woken(t, "the confirmation")
	m.Close()
	cancel()
	m.Subscribe("ch", w.wake)()
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
		m := connect(t, s.addr(), Config{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
		w := newSleeper()
		defer m.Subscribe("ch", w.wake)()
		eventually(t, "it was answered", func() bool { return len(s.seen()) > 0 })
		s.set(but("SUBSCRIBE", func(args []string) string { return "*3\r\n" + bulk("subscribe") + bulk(args[1]) + ":1\r\n" }))
		w.woken(t, "the confirmation")
	}
}
