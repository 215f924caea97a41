package node

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// A master that is too busy to be looked at has forgotten nothing by that.
func TestHeartbeat_that_is_refused_is_no_evidence(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), Config{Guard: guard.Config{Hold: time.Hour}, Heartbeat: time.Millisecond})
	s.set(but("EVALSHA", func([]string) string { return "-BUSY Redis is busy running a script\r\n" }))
	eventually(t, "it was refused", func() bool { return errors.Is(m.Status().LastError, &wire.ServerError{Code: "BUSY"}) })
	if st := m.Status(); st.Quarantine != 0 || st.State != StateConnected {
		t.Errorf("%+v", st)
	}
	var looks atomic.Int32
	withMarker := func(marker string) func([]string) string {
		return but("EVALSHA", func([]string) string {
			looks.Add(1)
			return "*5\r\n" + bulk(marker) + bulk("1714564800") + bulk("0") + bulk("") + bulk("")
		})
	}
	s.set(withMarker(s.stored()))
	eventually(t, "it looks again", func() bool { return looks.Load() > 2 })
	if st := m.Status(); st.Quarantine != 0 {
		t.Errorf("%+v", st)
	}
	s.set(withMarker(""))
	eventually(t, "the marker is missed", func() bool { return m.Status().Quarantine > 0 })
}

// One look at a time, however slow the master is.
func TestHeartbeat_waits_for_the_answer_to_the_last_one(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), Config{Heartbeat: time.Hour})
	s.set(but("EVALSHA", func([]string) string { return silence }))
	c := m.live.Load()
	for range 5 {
		m.heartbeat(c)
	}
	if n := m.Status().InFlight; n != 1 {
		t.Errorf("%d looks under way", n)
	}
}

// A master is not looked at while nobody uses its client, and in each heartbeat when somebody does.
func TestHeartbeat_rests_while_nobody_uses_the_client(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), Config{Heartbeat: time.Hour})
	eventually(t, "the first looks are answered", func() bool { return m.Status().InFlight == 0 })
	c, idle := m.live.Load(), false
	m.Idle(func() bool { return idle })
	for _, idle = range []bool{true, false, true} {
		before, want := m.Status().Commands, uint64(10)
		if idle {
			want = 0
		}
		for range 10 {
			m.heartbeat(c)
			eventually(t, "it was answered", func() bool { return m.Status().InFlight == 0 })
		}
		if n := m.Status().Commands - before; n != want {
			t.Errorf("%d looks in 10 heartbeats, idle %v, want %d", n, idle, want)
		}
	}
}

func TestState_has_a_name(t *testing.T) {
	got := fmt.Sprint(StateConnecting, StateConnected, StateDown, StateClosed)
	if want := "connecting connected down closed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
