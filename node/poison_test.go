package node

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// poison is what killed clients, or cost them gigabytes.
var poison = []struct{ name, reply string }{
	{"an array of 2^31-1", "*2147483647\r\n"},
	{"an array of 10^11", "*100000000000\r\n"},
	{"a bulk string of a terabyte", "$1099511627776\r\n"},
	{"a bulk string of 2 GB", "$2147483647\r\n" + pour + "x"},
	{"arrays in arrays without end", pour + "*1\r\n"},
	{"arrays in arrays, each of a million", pour + "*1000000\r\n"},
	{"a line without end", "+" + pour + "x"},
	{"an error without end", "-ERR " + pour + "x"},
	{"no line end at all", pour + "\x00"},
	{"large strings without end", "*65536\r\n" + pour + "$8\r\nxxxxxxxx\r\n"},
	{"answers without end", pour + "+OK\r\n"},
	{"empty arrays without end", pour + "*0\r\n"},
}

// costs returns how many bytes f made the process allocate.
func costs(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// bearable is how much one master may cost in all, including the stub.
const bearable = 32 << 20

func TestL23_poisonous_reply_costs_one_connection(t *testing.T) {
	for _, p := range poison {
		s := newStub(t, but("GET", func([]string) string { return p.reply }))
		m := connect(t, s.addr(), Config{Backoff: Redial{Min: time.Millisecond, Max: time.Millisecond}})
		used := costs(func() {
			r := ask(t, m, get("k"))
			if r.Err != nil && !errors.Is(r.Err, ErrUnknown) || r.Err != nil && !strings.HasPrefix(r.Err.Error(), s.addr()+": read: connection lost, outcome unknown: ") {
				t.Errorf("%s: %v, want an unknown outcome at that master", p.name, r.Err)
			}
			eventually(t, "it is connected again", func() bool { return m.Status().Reconnects >= 1 })
		})
		if used > bearable {
			t.Errorf("%s: cost %d MB", p.name, used>>20)
		}
		wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Second)), "OK")
		// Where a heartbeat was asked meanwhile, it gets what nobody asked for.
		if err := m.Status().LastError; !errors.Is(err, wire.ErrUnreadable) && !errors.Is(err, errNotAsked) && !errors.Is(err, errShifted) {
			t.Errorf("%s: the last error is %v", p.name, err)
		}
	}
}

// Those to whom it happens in the login or the handshake are down, and say why.
func TestL23_poisonous_handshake_costs_an_attempt(t *testing.T) {
	for _, name := range []string{"AUTH", "SELECT", "ROLE", "INFO", "SCRIPT"} {
		for _, p := range poison {
			s := newStub(t, but(name, func([]string) string { return p.reply }))
			used := costs(func() {
				m := open(t, "redis://:password@"+s.addr()+"/3", Config{Backoff: Redial{Min: time.Hour, Max: time.Hour}})
				err := firstAttempt(t, m)
				if err == nil {
					return // it began like an answer; the connection ends later
				}
				if !errors.Is(err, ErrDown) || !strings.HasPrefix(err.Error(), s.addr()+": not connected: ") {
					t.Errorf("%s in %s: %v", p.name, name, err)
				}
				m.Close()
			})
			if used > bearable {
				t.Errorf("%s in %s: cost %d MB", p.name, name, used>>20)
			}
		}
	}
}

func TestL23_poisonous_message_costs_a_subscription(t *testing.T) {
	for _, p := range poison {
		s := newStub(t, but("SUBSCRIBE", func([]string) string { return p.reply }))
		m := connect(t, s.addr(), Config{Backoff: Redial{Min: time.Millisecond, Max: time.Millisecond}})
		used := costs(func() {
			w := newSleeper()
			defer m.Subscribe("ch", w)()
			eventually(t, "it was answered", func() bool { return len(s.seen()) > 0 })
			wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Second)), "OK")
			s.set(but("SUBSCRIBE", func(args []string) string { return "*3\r\n" + bulk("subscribe") + bulk(args[1]) + ":1\r\n" }))
			w.woken(t, "the confirmation after "+p.name)
		})
		if used > bearable {
			t.Errorf("%s: cost %d MB", p.name, used>>20)
		}
	}
}

// L23: nothing that a master sends keeps Close from ending.
func TestL23_Close_ends_in_the_midst_of_a_flood(t *testing.T) {
	for _, p := range poison {
		s := newStub(t, healthy)
		m := connect(t, s.addr(), Config{})
		s.set(func([]string) string { return p.reply })
		reply := give(m, get("k"))
		closed := make(chan error, 1)
		go func() { closed <- m.Close() }()
		if err := receiveFrom(t, "the end of Close: "+p.name, closed); err != nil {
			t.Error(err)
		}
		receiveFrom(t, "a verdict", reply)
	}
}

// L23: a master that sends messages without end is heard no more than others are.
func TestL23_flood_of_messages_ends_the_subscription(t *testing.T) {
	flood := "*3\r\n" + bulk("message") + bulk("other") + bulk("")
	s := newStub(t, but("SUBSCRIBE", func([]string) string { return pour + flood }))
	m := connect(t, s.addr(), Config{Heartbeat: time.Hour, Backoff: Redial{Min: time.Millisecond, Max: time.Millisecond}})
	w := newSleeper()
	defer m.Subscribe("ch", w)()
	eventually(t, "the flood was left", func() bool { return s.dialled() > 2 }) // and one for commands
	s.set(but("SUBSCRIBE", func(args []string) string { return "*3\r\n" + bulk("subscribe") + bulk(args[1]) + ":1\r\n" }))
	w.woken(t, "the confirmation")
}
