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

// A master that is full, or cannot save its data, takes no marker. It must not vote as one does whose marker
// nobody may see.
func TestS81_a_master_that_refuses_the_marker_in_the_handshake_is_guarded_all_the_same(t *testing.T) {
	for _, refusal := range []string{"MISCONF Redis is configured to save RDB snapshots", "OOM command not allowed"} {
		s := newStub(t, func(args []string) string {
			if len(args) > 5 && args[3] == wire.MarkerKey("") && args[5] != "" {
				return "-" + refusal + "\r\n"
			}
			return "default"
		})
		m := connect(t, s.addr(), Config{Guard: guard.Config{Hold: time.Hour}, Heartbeat: time.Hour})
		if err := m.Votes(); !errors.Is(err, guard.ErrQuarantined) {
			t.Errorf("%s: it votes (%v), and other clients do not know our restart guard", refusal, err)
		}
	}
}

// A look shows that the master has become a replica, or belongs to another group.
func TestHeartbeat_leaves_a_replica_and_another_groups_master(t *testing.T) {
	theirs := guard.NewMaster("stub", stubTime, time.Minute, guard.GroupOf("", "c", "d", "e", "f", "g")).String()
	for _, c := range []struct {
		replication, marker string
		want                error
	}{{"role:slave\r\n", "", ErrNotMaster}, {"", theirs, guard.ErrOtherGroup}} {
		s := newStub(t, healthy)
		m := connect(t, s.addr(), Config{
			Group: guard.NewGroup(guard.GroupOf("", "a", "b", "c")), Guard: guard.Config{Hold: time.Minute},
			Heartbeat: time.Hour, MaxAge: time.Hour, MaxSilence: time.Hour,
		})
		s.mu.Lock()
		s.replication, s.marker = c.replication, c.marker
		s.mu.Unlock()
		m.Look()
		eventually(t, "it is left for that", func() bool {
			st := m.Status()
			return st.State == StateDown && errors.Is(st.LastError, c.want)
		})
	}
}

// Leases are renewed when a master is connected again: all of them if it has forgotten.
func TestHandshake_tells_whether_the_master_has_forgotten(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		s := newStub(t, healthy)
		m := openGuarded(t, s)
		told := make(chan bool, 10)
		m.Renew(func(all bool) {
			if s.dialled() > 1 {
				told <- all
			}
		})
		if forgets {
			s.forget("")
		}
		s.hangUp()
		if all := receiveFrom(t, "a word on it", told); all != forgets {
			t.Errorf("forgets %v: all are renewed: %v", forgets, all)
		}
	}
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

// L5: a client at rest owes what it did before.
func TestHeartbeat_delivers_owed_releases_while_nobody_uses_the_client(t *testing.T) {
	s := newStub(t, but("EVALSHA", func(args []string) string {
		if args[1] == wire.ScriptRelease.SHA {
			return "-MISCONF not now\r\n"
		}
		return "default"
	}))
	m := connect(t, s.addr(), Config{Heartbeat: 10 * time.Millisecond})
	m.Idle(func() bool { return true })
	wantError(t, ask(t, m, release("k")), &wire.ServerError{Code: "MISCONF"})
	s.set(healthy)
	eventually(t, "nothing is owed", func() bool { return m.Status().Undelivered == 0 && m.Status().InFlight == 0 })
}

// A client that was suspended looks at all masters when it is asked whether it is idle.
func TestHeartbeat_lets_the_client_look_when_it_is_asked_whether_it_is_idle(t *testing.T) {
	m := connect(t, newStub(t, healthy).addr(), Config{Heartbeat: time.Hour})
	m.Idle(func() bool { m.Look(); return true })
	over := make(chan bool, 1)
	go func() { m.heartbeat(m.live.Load()); over <- true }()
	receiveFrom(t, "the end of the heartbeat", over)
}

// A look that was asked for is one, also while nobody uses the client; there is none where there is no
// connection.
func TestLook_looks_at_the_master_if_it_is_connected(t *testing.T) {
	m := connect(t, newStub(t, healthy).addr(), Config{Heartbeat: time.Hour})
	m.Idle(func() bool { return true })
	eventually(t, "the first looks are answered", func() bool { return m.Status().InFlight == 0 })
	before := m.Status().Commands
	eventually(t, "it is looked at", func() bool { m.Look(); return m.Status().Commands > before })
	m.Close()
	m.Look()
}

func TestState_has_a_name(t *testing.T) {
	got := fmt.Sprint(StateConnecting, StateConnected, StateDown, StateClosed)
	if want := "connecting connected down closed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
