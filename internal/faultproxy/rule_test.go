package faultproxy_test

import (
	"testing"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

var setName = faultproxy.Command("SET", "name")

func TestHeld_command_holds_its_connection_and_no_other(t *testing.T) {
	server, p := start(t)
	c, other := connect(t, p), connect(t, p)
	hold := p.HoldNext(faultproxy.Requests, setName)

	c.send(t, "SET", "another", "value")
	c.wants(t, "+OK")
	c.send(t, "SET", "name", "first")
	c.send(t, "PING")
	<-hold.Held()
	c.wantsSilence(t)
	other.send(t, "SET", "name", "second") // only the next one is held
	other.wants(t, "+OK")

	hold.Release()
	hold.Release() // again: nothing happens
	c.wants(t, "+OK", "+PONG")
	if value, _ := server.Get("name"); value != "first" {
		t.Errorf("the value is %q, want that of the command that arrived last", value)
	}
}

func TestHeld_reply_is_of_a_command_that_was_done(t *testing.T) {
	server, p := start(t)
	c := connect(t, p)
	hold := p.HoldNext(faultproxy.Replies, setName)

	c.send(t, "PING")
	c.send(t, "SET", "name", "value")
	c.wants(t, "+PONG")
	<-hold.Held()
	if !server.Exists("name") {
		t.Error("the command was not done")
	}
	c.wantsSilence(t)

	hold.Release()
	c.wants(t, "+OK")
}

func TestHold_released_beforehand_holds_nothing(t *testing.T) {
	_, p := start(t)
	c := connect(t, p)
	hold := p.HoldNext(faultproxy.Requests, setName)
	hold.Release()
	c.send(t, "SET", "name", "value")
	c.wants(t, "+OK")
	<-hold.Held()
}

func TestHolds_are_used_in_their_order(t *testing.T) {
	_, p := start(t)
	c := connect(t, p)
	first := p.HoldNext(faultproxy.Requests, setName)
	second := p.HoldNext(faultproxy.Requests, setName)

	c.send(t, "SET", "name", "1")
	<-first.Held()
	first.Release()
	c.wants(t, "+OK")
	c.send(t, "SET", "name", "2")
	<-second.Held()
	second.Release()
	c.wants(t, "+OK")
}

func TestHeal_forgets_faults_that_have_not_come_yet(t *testing.T) {
	_, p := start(t)
	c := connect(t, p)
	p.DropNext(faultproxy.Requests, setName)
	p.Heal()
	c.send(t, "SET", "name", "value")
	c.wants(t, "+OK")
}

func TestDropped_request_is_not_done_and_dropped_reply_is(t *testing.T) {
	for name, dir := range eachWay {
		t.Run(name, func(t *testing.T) {
			server, p := start(t)
			c := connect(t, p)
			p.DropNext(dir, setName)

			c.send(t, "SET", "name", "value")
			c.send(t, "PING")
			c.wantsSilence(t) // nor the answer to PING, which would be taken for that to SET
			if done, want := server.Exists("name"), dir == faultproxy.Replies; done != want {
				t.Errorf("the command was done: %t, want %t", done, want)
			}
			connect(t, p)
		})
	}
}

func TestRule_matches(t *testing.T) {
	script := faultproxy.Request{Name: "EVALSHA", Args: []string{"hash", "2", "a", "b", "value"}}
	for _, tc := range []struct {
		name, key string
		request   faultproxy.Request
		want      bool
	}{
		{"SET", "a", faultproxy.Request{Name: "SET", Args: []string{"a", "b"}}, true},
		{"SET", "b", faultproxy.Request{Name: "SET", Args: []string{"a", "b"}}, false},
		{"GET", "a", faultproxy.Request{Name: "SET", Args: []string{"a", "b"}}, false},
		{"", "a", faultproxy.Request{Name: "SET", Args: []string{"a", "b"}}, true},
		{"SET", "", faultproxy.Request{Name: "SET", Args: []string{"a", "b"}}, true},
		{"", "", faultproxy.Request{Name: "PING"}, true},
		{"PING", "a", faultproxy.Request{Name: "PING"}, false},
		{"EVALSHA", "a", script, true},
		{"EVALSHA", "b", script, true},
		{"EVALSHA", "value", script, false},
		{"EVALSHA", "hash", script, false},
		{"EVAL", "a", faultproxy.Request{Name: "EVAL", Args: []string{"return 1", "9", "a"}}, true},
		{"EVAL", "a", faultproxy.Request{Name: "EVAL", Args: []string{"return 1", "x", "a"}}, false},
		{"EVAL", "a", faultproxy.Request{Name: "EVAL", Args: []string{"return 1"}}, false},
	} {
		if got := faultproxy.Command(tc.name, tc.key)(tc.request); got != tc.want {
			t.Errorf("Command(%q, %q) matches %q: %t, want %t", tc.name, tc.key, tc.request, got, tc.want)
		}
	}
}

func TestMessage_is_matched_by_its_channel(t *testing.T) { // L12
	server := redistest.Start(t)
	p := faultproxy.Start(t, server.Addr())
	c := connect(t, p)
	c.send(t, "SUBSCRIBE", "one", "two")
	c.wants(t, "*3", "$9", "subscribe", "$3", "one", ":1", "*3", "$9", "subscribe", "$3", "two", ":2")
	publish := func(channel, payload string) {
		t.Helper()
		if _, err := server.Do("PUBLISH", channel, payload); err != nil {
			t.Fatal(err)
		}
	}

	hold := p.HoldNext(faultproxy.Replies, faultproxy.Command("MESSAGE", "two"))
	publish("one", "a")
	c.wants(t, "*3", "$7", "message", "$3", "one", "$1", "a")
	publish("two", "b")
	<-hold.Held()
	publish("one", "c")
	c.wantsSilence(t)

	hold.Release()
	c.wants(t, "*3", "$7", "message", "$3", "two", "$1", "b", "*3", "$7", "message", "$3", "one", "$1", "c")
}
