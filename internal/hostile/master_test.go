package hostile

import (
	"bufio"
	"fmt"
	"net"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
)

func start(t *testing.T) *Master {
	t.Helper()
	m, err := Start("id", miniredis.RunT(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func TestMaster_is_a_good_one_until_it_is_told_otherwise(t *testing.T) {
	m := start(t)
	c, err := redis.Dial("tcp", m.Addr(), redis.DialPassword("any"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	set := func(r Request) bool { return r[0] == "SET" }
	for _, step := range []struct{ command, want string }{
		{"SET", "OK <nil>"}, {"GET", "[118] <nil>"}, {"misbehave", ""}, {"GET", "[118] <nil>"}, {"SET", "1 <nil>"}, {"behave", ""}, {"SET", "OK <nil>"},
	} {
		switch step.command {
		case "misbehave":
			m.Misbehave(set, Behaviour{act: say(":1\r\n")})
		case "behave":
			if m.Met() != 1 {
				t.Errorf("met %d times", m.Met())
			}
			m.Behave()
		default:
			args := map[string][]any{"SET": {"k", "v"}, "GET": {"k"}}[step.command]
			v, err := c.Do(step.command, args...)
			if got := fmt.Sprint(v, " ", err); got != step.want {
				t.Errorf("%s: %s, want %s", step.command, got, step.want)
			}
		}
	}
}

func TestMaster_passes_messages_on(t *testing.T) {
	m := start(t)
	sub, err := redis.Dial("tcp", m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	psc := redis.PubSubConn{Conn: sub}
	psc.Subscribe("channel")
	if s, ok := psc.Receive().(redis.Subscription); !ok || s.Channel != "channel" {
		t.Fatalf("%v", s)
	}
	pub, err := redis.Dial("tcp", m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close()
	pub.Do("PUBLISH", "channel", "news")
	if msg, ok := psc.Receive().(redis.Message); !ok || string(msg.Data) != "news" {
		t.Errorf("%v", msg)
	}
}

// Every way must be one, and be over when the client or the master is.
func TestBehaviours_are_many_and_end(t *testing.T) {
	names := map[string]bool{}
	for _, b := range Behaviours() {
		if names[b.Name] {
			t.Errorf("%s twice", b.Name)
		}
		names[b.Name] = true
		m := start(t)
		m.Misbehave(func(Request) bool { return true }, b)
		c, err := net.Dial("tcp", m.Addr())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
		if b.Name != "silence" && b.Name != "silence for ever" && b.Name != "silence after doing it" {
			bufio.NewReader(c).ReadByte() // a byte, or the end
		}
		c.Close()
	}
	if len(names) < 80 {
		t.Errorf("only %d", len(names))
	}
}
