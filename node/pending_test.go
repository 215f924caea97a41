package node

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/wire"
)

func release(key string) *wire.Command {
	return wire.Release(key, wire.QueueOf("", key), "v", time.Minute)
}

// releases returns the keys of the releases that reached the server, and the
// other commands by name, in order.
func (s *stub) releases() (keys []string) {
	for _, line := range s.seen() {
		words := strings.Fields(line)
		if words[0] == "EVALSHA" {
			keys = append(keys, words[3])
		} else {
			keys = append(keys, words[0])
		}
	}
	return keys
}

// L3: a release that found no connection, or whose connection broke, is
// delivered at the next one, before anything newer.
func TestL3_release_is_delivered_on_reconnect_before_newer_commands(t *testing.T) {
	s := newStub(t, but("EVALSHA", func(args []string) string {
		if args[1] == wire.ScriptRelease.SHA {
			return silence
		}
		return "default"
	}))
	m := connect(t, s.addr(), Config{Backoff: Redial{Min: 100 * time.Millisecond}})
	lost := give(m, release("lost"))
	eventually(t, "it was sent", func() bool { return len(s.seen()) == 1 })
	s.hangUp()
	wantError(t, receiveFrom(t, "the lost one", lost), ErrUnknown)
	wantError(t, ask(t, m, release("unsent")), ErrDown)
	s.set(healthy)
	newer := func() bool { return ask(t, m, get("newer")).Err == nil }
	eventually(t, "a newer command gets through", newer)
	want := []string{"lost", "lost", "unsent", "GET"}
	if got := s.releases(); !reflect.DeepEqual(got, want) {
		t.Errorf("the server saw %v, want %v", got, want)
	}
	eventually(t, "nothing is owed", func() bool { return m.Status().Undelivered == 0 })
}

// L30: the server answers whoever logs in with an error, such as a password that was
// changed. That is no answer to the release, which is still owed.
func TestL30_release_that_found_the_login_refused_is_delivered_on_reconnect(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), Config{
		Backoff:     Redial{Min: 10 * time.Millisecond},
		Credentials: func(context.Context, string) (Credentials, error) { return Credentials{Password: "old"}, nil },
	})
	s.set(but("AUTH", func([]string) string { return "-WRONGPASS invalid username-password pair\r\n" }))
	s.hangUp()
	eventually(t, "the login is refused", func() bool {
		now, said := m.Status(), new(wire.ServerError)
		return now.State != StateConnected && errors.As(now.LastError, &said)
	})

	wantError(t, ask(t, m, release("owed")), ErrDown)

	if n := m.Status().Undelivered; n != 1 {
		t.Errorf("%d releases are owed, want 1", n)
	}
	s.set(healthy)
	eventually(t, "it is delivered", func() bool { return m.Status().Undelivered == 0 && slices.Contains(s.releases(), "owed") })
}

func TestL3_release_that_found_the_queue_full_is_delivered_at_a_heartbeat(t *testing.T) {
	let := make(chan string, 1)
	s := newStub(t, but("GET", func([]string) string { return <-let }))
	m := connect(t, s.addr(), Config{MaxInFlight: 1, Heartbeat: 10 * time.Millisecond})
	blocking := give(m, get("k"))
	wantError(t, ask(t, m, release("k")), ErrFull)
	if n := m.Status().Undelivered; n != 1 {
		t.Errorf("%d owed", n)
	}
	let <- "+OK\r\n"
	wantValue(t, receiveFrom(t, "the answer", blocking), "OK")
	eventually(t, "it was delivered", func() bool { return reflect.DeepEqual(s.releases(), []string{"GET", "k"}) })
}

// L5: the reply says that the master would not now.
func TestL5_release_that_was_refused_is_delivered_at_a_heartbeat(t *testing.T) {
	for _, code := range []string{"MISCONF", "NOREPLICAS", "BUSY", "LOADING", "OOM", "NOAUTH", "NOPERM"} {
		s := newStub(t, but("EVALSHA", func(args []string) string {
			if args[1] == wire.ScriptRelease.SHA {
				return "-" + code + " not now\r\n"
			}
			return "default"
		}))
		m := connect(t, s.addr(), Config{Heartbeat: 10 * time.Millisecond})
		wantError(t, ask(t, m, release("k")), &wire.ServerError{Code: code})
		eventually(t, "it was tried again", func() bool { return len(s.releases()) >= 3 })
		s.set(healthy)
		eventually(t, "nothing is owed", func() bool { return m.Status().Undelivered == 0 && m.Status().InFlight == 0 })
	}
}

// L39: what our user must not do was not done, so there is nothing to give back. What was done before is.
func TestL39_a_release_is_not_owed_where_nothing_was_acquired(t *testing.T) {
	denied := wire.Server("NOPERM No permissions to access a key")
	d := NewPendingReleases(50)
	d.Failed(PendingRelease{Cmd: wire.Acquire("denied", "v", time.Minute)}, denied)
	d.Heard() // it answers on another connection
	for _, key := range []string{"denied", "denied", "acquired"} {
		d.Failed(PendingRelease{Cmd: release(key)}, denied)
	}
	d.Failed(PendingRelease{Cmd: wire.Acquire("halfway", "v", time.Minute)}, wire.Server("ERR ACL failure in script: No permissions to access a key"))
	d.Failed(PendingRelease{Cmd: release("halfway")}, denied)
	for _, key := range []string{"denied again", "asked later"} {
		d.Failed(PendingRelease{Cmd: wire.Acquire(key, "w/1:0", time.Minute)}, denied)
		second := wire.Ask(key, wire.QueueOf("", key), "w/1:1", 1, time.Minute)
		if key == "asked later" {
			d.Ran(second)
		} else {
			d.Failed(PendingRelease{Cmd: second}, denied)
		}
		d.Failed(PendingRelease{Cmd: wire.Release(key, wire.QueueOf("", key), "w/1:1", time.Minute)}, denied)
	}
	again := []*wire.Command{
		wire.Repair("repaired", "v", time.Minute),
		wire.Acquire("sent again", "v", time.Minute).Repeated(),
		wire.Ask("asked", wire.QueueOf("", "asked"), "v:1", 1, time.Minute),
		{Op: wire.OpCommit, Keys: []string{"moved"}, Args: []string{"v"}},
		wire.Repair("perhaps repaired", "v", time.Minute),
	}
	for i, cmd := range again {
		d.Failed(PendingRelease{Cmd: wire.Acquire(cmd.Keys[0], "v", time.Minute)}, denied)
		if i < len(again)-1 {
			d.Ran(cmd)
		} else {
			d.Failed(PendingRelease{Cmd: cmd}, ErrDown)
		}
		d.Failed(PendingRelease{Cmd: release(cmd.Keys[0])}, denied)
	}
	d.Failed(PendingRelease{Cmd: wire.Acquire("only extended", "v", time.Minute)}, denied)
	d.Ran(wire.Extend("only extended", "v", time.Minute))
	d.Failed(PendingRelease{Cmd: release("only extended")}, denied)
	var owed []string
	for _, cmd := range d.Commands() {
		owed = append(owed, cmd.Keys[0])
	}
	if want := []string{"acquired", "halfway", "asked later", "repaired", "sent again", "asked", "moved", "perhaps repaired"}; !reflect.DeepEqual(owed, want) {
		t.Errorf("owed: %q, want %q", owed, want)
	}
	for i := range 2 * mostDenied {
		d.Failed(PendingRelease{Cmd: wire.Acquire(fmt.Sprint(i), "v", time.Minute)}, denied)
	}
	if n := len(d.denied); n > mostDenied {
		t.Errorf("%d that were denied are remembered", n)
	}
}

// L5: whatever answered, it does not say what has become of the key.
func TestL5_release_that_was_answered_oddly_is_delivered_at_a_heartbeat(t *testing.T) {
	for _, answer := range []string{"+QUEUED\r\n", ":7\r\n", "$-1\r\n", "*0\r\n"} {
		s := newStub(t, but("EVALSHA", func(args []string) string {
			if args[1] == wire.ScriptRelease.SHA {
				return answer
			}
			return "default"
		}))
		m := connect(t, s.addr(), Config{Heartbeat: 10 * time.Millisecond})
		var odd *wire.ReplyError
		if err := ask(t, m, release("k")).Err; !errors.As(err, &odd) {
			t.Errorf("answered %q: %v", answer, err)
		}
		eventually(t, "it was tried again", func() bool { return len(s.releases()) >= 3 })
		s.set(healthy)
		eventually(t, "nothing is owed", func() bool { return m.Status().Undelivered == 0 && m.Status().InFlight == 0 })
	}
}

func TestL5_release_refused_for_good_is_not_tried_again(t *testing.T) {
	s := newStub(t, but("EVALSHA", func(args []string) string {
		if args[1] == wire.ScriptRelease.SHA {
			return "-WRONGTYPE Operation against a key\r\n"
		}
		return "default"
	}))
	m := connect(t, s.addr(), Config{})
	wantError(t, ask(t, m, release("k")), &wire.ServerError{Code: "WRONGTYPE"})
	if n := m.Status().Undelivered; n != 0 {
		t.Errorf("%d owed", n)
	}
}

// The TTL of a key may have started when the connection came back and no sooner,
// since a server that hung runs the acquire then.
func TestL3_release_is_worth_delivering_until_its_key_has_expired(t *testing.T) {
	s := newStub(t, healthy)
	mock := clock.NewMock()
	m := connect(t, s.addr(), Config{Clock: mock})
	s.set(func([]string) string { return hangUp })
	s.hangUp()
	eventually(t, "it is down", func() bool { return m.Status().State == StateDown })
	wantError(t, ask(t, m, wire.Release("short", wire.QueueOf("", "short"), "v", time.Second)), ErrDown)
	wantError(t, ask(t, m, wire.Release("long", wire.QueueOf("", "long"), "v", time.Hour)), ErrDown)
	mock.Add(time.Minute)
	s.set(but("EVALSHA", func(args []string) string {
		if args[1] == wire.ScriptRelease.SHA {
			return "-MISCONF not now\r\n"
		}
		return "default"
	}))
	eventually(t, "it is connected again", func() bool {
		mock.Add(time.Second)
		return m.Status().State == StateConnected
	})
	eventually(t, "the longer one is tried again and again", func() bool {
		mock.Add(time.Second)
		return len(s.releases()) >= 5
	})
	s.set(healthy)
	eventually(t, "nothing is owed", func() bool {
		mock.Add(time.Second)
		return m.Status().Undelivered == 0 && m.Status().InFlight == 0
	})
	got := s.releases()
	if want := append([]string{"short"}, slices.Repeat([]string{"long"}, len(got)-1)...); !slices.Equal(got, want) {
		t.Errorf("the server saw %v, want %v", got, want)
	}
}

// What fails again keeps its first deadline.
func TestL3_release_that_fails_again_is_not_kept_for_longer(t *testing.T) {
	m := &Master{pending: NewPendingReleases(10)}
	m.pending.Failed(PendingRelease{release("k"), 5}, ErrDown)
	if owed := m.pending.list.pop(); owed.Until != 5 {
		t.Errorf("kept until %v", owed.Until)
	}
}

func TestL3_only_releases_are_kept(t *testing.T) {
	for _, cmd := range []*wire.Command{
		wire.Acquire("k", "v", time.Minute), wire.Repair("k", "v", time.Minute), wire.Ask("k", wire.QueueOf("", "k"), "c/nnnnnnnnnnnnnnnn/v:0", 1, time.Minute),
		wire.Extend("k", "v", time.Minute), wire.Inspect("", "k"), wire.Release("k", wire.QueueOf("", "k"), "v", 0),
	} {
		if owed(cmd, ErrDown) {
			t.Errorf("%v %v is kept", cmd.Op, cmd.Keep)
		}
	}
	if owed(release("k"), ErrClosed) {
		t.Error("kept by a closed master")
	}
}

// A lock that is taken elsewhere during an outage owes this master nothing, and
// must not drive out what is owed to it.
func TestL3_release_of_an_acquire_that_was_never_sent_is_not_kept(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), Config{Backoff: Redial{Min: time.Millisecond, Max: time.Millisecond}, MaxUndelivered: 4})
	s.set(func([]string) string { return hangUp })
	s.hangUp()
	eventually(t, "it is down", func() bool { return m.Status().State == StateDown })
	wantError(t, ask(t, m, release("held")), ErrDown)
	for i := range 100 {
		key := fmt.Sprint(i)
		wantError(t, ask(t, m, wire.Acquire(key, "v", time.Minute)), ErrDown)
		wantError(t, ask(t, m, release(key)), ErrDown)
	}
	wantError(t, ask(t, m, wire.Acquire("taken", "other value", time.Minute)), ErrDown)
	wantError(t, ask(t, m, release("taken")), ErrDown)
	wantError(t, ask(t, m, wire.Acquire("repaired", "v", time.Minute)), ErrDown)
	s.set(healthy)
	eventually(t, "it is connected again", func() bool { return ask(t, m, wire.Repair("repaired", "v", time.Minute)).Err == nil })
	s.set(func([]string) string { return hangUp })
	s.hangUp()
	eventually(t, "it is down", func() bool { return m.Status().State == StateDown })
	wantError(t, ask(t, m, release("repaired")), ErrDown)
	s.set(healthy)
	eventually(t, "it is connected again", func() bool { return ask(t, m, get("k")).Err == nil })
	want := []string{"held", "taken", "SET", "repaired", "GET"}
	if got := s.releases(); !reflect.DeepEqual(got, want) {
		t.Errorf("the server saw %v, want %v", got, want)
	}
}

// What was asked once, and could not be asked again, was asked none the less.
func TestL3_release_of_an_ask_that_was_only_not_repeated_is_kept(t *testing.T) {
	const first, second = "c/nnnnnnnnnnnnnnnn/v:0", "c/nnnnnnnnnnnnnnnn/v:1"
	q := wire.QueueOf("", "k")
	for name, again := range map[string]*wire.Command{
		"the same ask":       wire.Ask("k", q, first, 1, time.Minute).Repeated(),
		"the next ask":       wire.Ask("k", q, second, 1, time.Minute),
		"the same, if fair":  wire.FairAsk("k", q, first, 1, time.Minute).Repeated(),
		"the next, if fair":  wire.FairAsk("k", q, second, 1, time.Minute),
		"one with metadata":  wire.FairAsk("k", q, second+" orders:0", 1, time.Minute),
		"one that was given": wire.Acquire("k", first, time.Minute).Repeated(),
	} {
		d := NewPendingReleases(10)
		if !d.Spare(again) {
			t.Errorf("%s: sent to a master that is silent", name)
		}
		if d.Spare(wire.Release("k", q, again.Args[0], time.Minute)) {
			t.Errorf("%s: its release is not sent to a master that is silent", name)
		}
		d.NotSent(PendingRelease{Cmd: again}, ErrDown)
		d.NotSent(PendingRelease{Cmd: wire.Release("k", q, again.Args[0], time.Minute)}, ErrDown)
		if d.Len() != 1 {
			t.Errorf("%s: its release is not owed to a master that is down", name)
		}
	}
}

func TestL3_acquires_that_were_never_sent_are_remembered_within_bounds(t *testing.T) {
	d := NewPendingReleases(3)
	for i := range 10 {
		d.NotSent(PendingRelease{Cmd: wire.Acquire(fmt.Sprint(i), "v", time.Minute)}, ErrDown)
	}
	if n := len(d.unsent); n > 3 {
		t.Errorf("%d", n)
	}
	if !d.pointless(release("9")) || d.pointless(release("9")) || d.pointless(release("0")) {
		t.Error("what was forgotten must be kept, and the newest is not forgotten")
	}
	d.NotSent(PendingRelease{Cmd: &wire.Command{Op: wire.OpAcquire}}, ErrDown)
	if d.pointless(&wire.Command{Op: wire.OpRelease}) {
		t.Error("a command without key or value says nothing")
	}
}

func TestL3_the_newest_releases_are_kept(t *testing.T) {
	d := NewPendingReleases(3)
	for i := range 5 {
		d.Failed(PendingRelease{release(fmt.Sprint(i)), time.Hour}, ErrDown)
	}
	var got []string
	d.Deliver(0, func(what PendingRelease) error { got = append(got, what.Cmd.Keys[0]); return nil })
	if !reflect.DeepEqual(got, []string{"2", "3", "4"}) || d.dropped != 2 || d.Len() != 0 {
		t.Errorf("kept %v, dropped %d, left %d", got, d.dropped, d.Len())
	}
}

func TestDebts_without_a_limit_keep_one(t *testing.T) {
	var d PendingReleases
	d.Failed(PendingRelease{Cmd: release("old")}, ErrDown)
	d.Failed(PendingRelease{Cmd: release("new")}, ErrDown)
	d.Deliver(0, func(what PendingRelease) error {
		if what.Cmd.Keys[0] != "new" {
			t.Errorf("kept %v", what.Cmd.Keys)
		}
		return nil
	})
}

func TestMaster_Close_tries_what_is_owed_once_more(t *testing.T) {
	s := newStub(t, but("EVALSHA", func(args []string) string {
		if args[1] == wire.ScriptRelease.SHA {
			return "-MISCONF not now\r\n"
		}
		return "default"
	}))
	m := connect(t, s.addr(), Config{Heartbeat: time.Hour})
	wantError(t, ask(t, m, release("k")), &wire.ServerError{Code: "MISCONF"})
	m.Close()
	if got := s.releases(); len(got) != 2 {
		t.Errorf("the server saw %v", got)
	}
}

// Ten thousand locks are taken and given back while a master hangs. It may run all of that
// that it has got, or a part, so every release is owed to it when its connection is given up.
func TestL52_all_that_was_under_way_is_owed_when_the_connection_breaks(t *testing.T) {
	const many = 10_000
	s := newStub(t, healthy)
	m := connect(t, s.addr(), Config{MaxAge: time.Hour, MaxSilence: time.Hour, Backoff: Redial{Min: time.Hour, Max: time.Hour}})
	s.set(func(args []string) string {
		if ofHandshake(args) {
			return "default"
		}
		return silence
	})
	for i := range many {
		key := fmt.Sprint(i)
		m.Do(wire.Acquire(key, "v", time.Hour), nil)
		m.Do(release(key), nil)
	}
	s.hangUp()
	eventually(t, "every release is kept", func() bool { return m.Status().Undelivered == many && len(m.Owed()) == many })
}
