package node

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// S82: what a master refuses for a moment must not weaken the guard, neither then nor afterwards.

// isLook reports whether a request is a look that writes nothing.
func isLook(args []string) bool {
	return strings.HasPrefix(args[0], "EVAL") && args[3] == wire.MarkerKey("") && args[5] == ""
}

// A look that is refused in a later handshake proves nothing, and the marker that we know goes on to
// count: otherwise a master that was flushed while we were away votes.
func TestS82_refusal_of_a_look_in_a_later_handshake_leaves_the_marker_that_we_know(t *testing.T) {
	for _, refusal := range []string{
		"NOPERM this user has no permissions to run the 'eval' command",
		"CLUSTERDOWN The cluster is down",
		"ERR Error running script (call to f_1): @user_script:1: Can not execute the command on a stale replica",
		"WRONGTYPE Operation against a key holding the wrong kind of value",
	} {
		s := newStub(t, healthy)
		m := openGuarded(t, s)
		wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Second)), "OK")
		s.forget("") // FLUSHALL
		s.set(func(args []string) string {
			if isLook(args) {
				return "-" + refusal + "\r\n"
			}
			return "default"
		})
		s.hangUp()
		eventually(t, "it is connected again", func() bool { return s.dialled() > 1 && m.Status().State == StateConnected })

		if r := ask(t, m, wire.Acquire("k", "v", time.Second)); !errors.Is(r.Err, guard.ErrQuarantined) {
			t.Errorf("%.12s: the vote counts: %v %v", refusal, r.Value, r.Err)
		}
	}
}

// Between ROLE and the look a master becomes a replica.
func TestS82_refusal_replica_that_only_the_look_shows_does_not_vote(t *testing.T) {
	var looks atomic.Int32
	s := newStub(t, func(args []string) string {
		if isLook(args) && looks.Add(1) == 1 {
			return "*5\r\n" + bulk("") + bulk("1714564800") + bulk("0") + bulk("role:slave\r\n") + bulk("")
		}
		return "default"
	})
	m := open(t, s.addr(), Config{Guard: guard.Config{Hold: time.Minute}, Heartbeat: time.Hour, MaxAge: time.Hour, MaxSilence: time.Hour})
	if err := firstAttempt(t, m); err == nil {
		r := ask(t, m, wire.Acquire("k", "v", time.Second)) // it is a master again
		t.Errorf("connected to a replica; its vote: %v %v", r.Value, r.Err)
	}
}

// A user who may see the marker, but may not write it for a moment.
func TestS82_refusal_of_the_marker_by_an_ACL_is_no_blindness(t *testing.T) {
	s := newStub(t, func(args []string) string {
		if len(args) > 5 && args[3] == wire.MarkerKey("") && args[5] != "" {
			return "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
		}
		return "default"
	})
	m := openGuarded(t, s)
	if err := m.Votes(); err == nil {
		s.forget("") // FLUSHALL
		r := ask(t, m, wire.Acquire("k", "v", time.Second))
		t.Errorf("it votes, unknown to others is our restart guard; after a flush: %v %v", r.Value, r.Err)
	}
}

// An ACL that lacks INFO for a moment.
func TestS82_refusal_of_the_role_for_once_is_forgotten_with_the_next_look(t *testing.T) {
	for _, episode := range []bool{false, true} {
		s := newStub(t, healthy)
		m := openGuarded(t, s)
		if episode {
			s.set(but("INFO", func([]string) string { return "-NOPERM this user has no permissions\r\n" }))
		}
		wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Second)), "OK")
		s.set(healthy)
		before := m.Status().Commands
		s.mu.Lock()
		s.replication = "role:master\r\nmaster_replid:aa\r\nmaster_replid2:00\r\n"
		s.mu.Unlock()
		m.Look()
		eventually(t, "looked", func() bool { return m.Status().Commands > before && m.Status().InFlight == 0 })
		time.Sleep(5 * time.Millisecond)

		s.mu.Lock() // a replica and back, with the marker of before
		s.replication = "role:master\r\nmaster_replid:bb\r\nmaster_replid2:aa\r\n"
		s.mu.Unlock()
		if r := ask(t, m, wire.Acquire("k", "v", time.Second)); !errors.Is(r.Err, guard.ErrQuarantined) {
			t.Errorf("NOPERM before %v: the vote counts: %v %v", episode, r.Value, r.Err)
		}
	}
}

// An ACL that lacks TIME for a moment.
func TestS82_refusal_of_the_time_for_once_is_forgotten_with_the_next_look(t *testing.T) {
	for _, episode := range []bool{false, true} {
		s := newStub(t, healthy)
		m := openTimed(t, s)
		if episode {
			s.set(but("TIME", func([]string) string { return "-NOPERM this user has no permissions\r\n" }))
		}
		wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Second)), "OK")
		s.set(healthy)
		before := m.Status().Commands
		m.Look()
		eventually(t, "looked", func() bool { return m.Status().Commands > before && m.Status().InFlight == 0 })

		s.setForward(time.Hour)
		if r := ask(t, m, wire.Acquire("k", "v", time.Second)); !errors.Is(r.Err, guard.ErrQuarantined) {
			t.Errorf("NOPERM before %v: the vote counts: %v %v", episode, r.Value, r.Err)
		}
	}
}

// Another group's master whose look is refused for once has us lock with the others.
func TestS82_refusal_of_a_look_leaves_another_groups_master_where_it_was(t *testing.T) {
	ours := guard.GroupOf("", "a", "b", "c")
	group := guard.NewGroup(ours)
	config := Config{Group: group, Guard: guard.Config{Hold: time.Minute}, Heartbeat: time.Hour, MaxAge: time.Hour, MaxSilence: time.Hour}
	a, c := newStub(t, healthy), newStub(t, healthy)
	run := func(s *stub, name string) {
		s.set(but("INFO", func([]string) string { return bulk("run_id:" + name + "\r\nredis_version:7.0.0\r\n") }))
	}
	run(a, "a")
	a.forget(guard.NewMaster("a", stubTime, time.Minute, ours).String())
	c.forget(guard.NewMaster("c", stubTime, time.Minute, guard.GroupOf("", "c", "d", "e", "f", "g")).String())
	first := connect(t, a.addr(), config)
	stranger := open(t, c.addr(), config)
	if err := firstAttempt(t, stranger); !errors.Is(err, guard.ErrOtherGroup) {
		t.Fatalf("%v", err)
	}
	if err := first.Votes(); !errors.Is(err, guard.ErrOtherGroup) {
		t.Fatalf("%v", err)
	}
	c.set(func(args []string) string {
		if isLook(args) {
			return "-NOPERM this user has no permissions to run the 'eval' command\r\n"
		}
		if args[0] == "INFO" {
			return bulk("run_id:c\r\nredis_version:7.0.0\r\n")
		}
		return "default"
	})
	n := c.dialled()
	eventually(t, "the stranger is asked again", func() bool { return c.dialled() > n+1 || stranger.Status().State == StateConnected })
	if err := first.Votes(); !errors.Is(err, guard.ErrOtherGroup) {
		t.Errorf("we lock with the other masters (%v)", err)
	}
}

// A server whose INFO is hidden was a replica: a vote said so.
func TestS82_refusal_READONLY_is_evidence_that_the_server_was_a_replica(t *testing.T) {
	hidden := func(args []string) string {
		if args[0] == "INFO" {
			return "-NOPERM this user has no permissions\r\n"
		}
		return "default"
	}
	s := newStub(t, hidden)
	m := openGuarded(t, s)
	wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Second)), "OK")
	s.set(func(args []string) string {
		if args[0] == "SET" {
			return "-READONLY You can't write against a read only replica.\r\n"
		}
		return hidden(args)
	})
	wantError(t, ask(t, m, wire.Acquire("k", "v", time.Second)), &wire.ServerError{Code: "READONLY"})
	s.set(hidden) // a master again, with the marker that it had
	eventually(t, "it is connected again", func() bool { return s.dialled() > 1 && m.Status().State == StateConnected })
	if r := ask(t, m, wire.Acquire("k", "v", time.Second)); r.Err == nil {
		t.Errorf("the vote counts: %v", r.Value)
	}
}

// The server was a replica when its marker was to be written: a handshake said so.
func TestS82_refusal_by_a_replica_of_the_marker_is_evidence(t *testing.T) {
	for _, refusal := range []string{"-READONLY You can't write against a read only replica.\r\n", "-MASTERDOWN Link with MASTER is down\r\n"} {
		var refuses atomic.Bool
		s := newStub(t, func(args []string) string {
			switch {
			case args[0] == "INFO":
				return "-NOPERM this user has no permissions\r\n"
			case len(args) > 5 && args[3] == wire.MarkerKey("") && args[5] != "" && refuses.CompareAndSwap(true, false):
				return refusal // and then it is a master again
			}
			return "default"
		})
		before := s.stored()
		m := openGuarded(t, s)
		wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Second)), "OK")
		s.forget(before) // the keys are another server's, and the marker lacks our restart guard
		refuses.Store(true)
		s.hangUp()
		eventually(t, "it is connected again", func() bool { return s.dialled() > 1 && m.Status().State == StateConnected })
		m.Look() // writes the marker
		eventually(t, "it is marked", func() bool { return s.stored() != before && m.Status().InFlight == 0 })
		if r := ask(t, m, wire.Acquire("k", "v", time.Second)); !errors.Is(r.Err, guard.ErrQuarantined) {
			t.Errorf("the vote counts after %q: %v %v", refusal, r.Value, r.Err)
		}
	}
}

// S15: one server under two addresses, which hides its run_id in one of the handshakes.
func TestS82_refusal_of_the_run_leaves_one_server_one_vote(t *testing.T) {
	for _, hidden := range []func(int) bool{func(i int) bool { return i == 0 }, func(i int) bool { return i == 1 }, func(int) bool { return true }} {
		marker := ""
		config := Config{Group: guard.NewGroup(guard.GroupID{}), Guard: guard.Config{Hold: time.Minute}, Heartbeat: time.Hour, MaxAge: time.Hour, MaxSilence: time.Hour}
		for i := range 2 {
			s := newStub(t, healthy) // each says run_id:stub
			if hidden(i) {
				s.set(but("INFO", func([]string) string { return "-NOPERM this user has no permissions\r\n" }))
			}
			if i == 0 {
				connect(t, s.addr(), config)
				marker = s.stored()
				continue
			}
			s.forget(marker)
			if err := firstAttempt(t, open(t, s.addr(), config)); !errors.Is(err, guard.ErrSameNode) {
				t.Errorf("run_id hidden from the first %v, from the second %v: %v", hidden(0), hidden(1), err)
			}
		}
	}
}

// isMark reports whether a request is a look that writes the marker.
func isMark(args []string) bool {
	return strings.HasPrefix(args[0], "EVAL") && args[3] == wire.MarkerKey("") && args[5] != ""
}

// seenWith is the answer to a look.
func seenWith(marker, replication string) string {
	return "*5\r\n" + bulk(marker) + bulk("1714564800") + bulk("0") + bulk(replication) + bulk("")
}

// A server that a handshake finds to be a replica votes a restart guard when it is a master again, with
// the marker that it had: it may have another server's keys.
func TestS82_replica_of_a_handshake_is_known_to_have_been_one(t *testing.T) {
	const slave = "role:slave\r\n"
	for name, asReplica := range map[string]func(args []string) string{
		"ROLE": but("ROLE", func([]string) string { return "*1\r\n" + bulk("slave") }),
		"the look": func(args []string) string {
			if isLook(args) {
				return seenWith("", slave)
			}
			return "default"
		},
		"the answer to the marker": func(args []string) string {
			if isMark(args) {
				return seenWith("", slave)
			}
			return "default"
		},
	} {
		s := newStub(t, asReplica)
		m := open(t, s.addr(), Config{Guard: guard.Config{Hold: time.Minute}, Heartbeat: time.Hour, MaxAge: time.Hour, MaxSilence: time.Hour})
		if err := firstAttempt(t, m); !errors.Is(err, ErrNotMaster) {
			t.Errorf("%s tells a replica: %v", name, err)
		}
		s.set(healthy)
		eventually(t, "it is connected", func() bool { return m.Status().State == StateConnected })
		if r := ask(t, m, wire.Acquire("k", "v", time.Second)); !errors.Is(r.Err, guard.ErrQuarantined) {
			t.Errorf("%s has told a replica: the vote counts: %v %v", name, r.Value, r.Err)
		}
	}
}

// Nothing is written on another group's master, whose clients would wait for our restart guard.
func TestHandshake_leaves_the_marker_of_another_groups_master(t *testing.T) {
	s := newStub(t, healthy)
	s.forget(guard.NewMaster("stub", stubTime, time.Second, guard.GroupOf("", "c", "d", "e", "f", "g")).String())
	before := s.stored()
	m := open(t, s.addr(), Config{Group: guard.NewGroup(guard.GroupOf("", "a", "b", "c")), Guard: guard.Config{Hold: time.Minute}})
	if err := firstAttempt(t, m); !errors.Is(err, guard.ErrOtherGroup) {
		t.Fatal(err)
	}
	if now := s.stored(); now != before {
		t.Errorf("the marker was %q, and is %q", before, now)
	}
}

// Another client marks the master at the same time.
func TestHandshake_marks_a_master_that_another_client_has_just_marked(t *testing.T) {
	for _, often := range []int32{1, 1000} {
		var marks atomic.Int32
		var s *stub
		s = newStub(t, func(args []string) string {
			if n := marks.Load() + 1; isMark(args) && n <= often {
				marks.Store(n)
				s.marker = guard.NewMaster("stub", stubTime, time.Duration(n)*time.Second, guard.GroupID{}).String()
				return seenWith(s.marker, "")
			}
			return "default"
		})
		m := openGuarded(t, s)
		if err := m.Votes(); (err == nil) != (often == 1) {
			t.Errorf("%d others: votes: %v", often, err)
		}
	}
}

// A refusal of the marker is about the marker: it is asked for once, and looks go on to ask for what stands
// beside it.
func TestS81_a_refusal_of_the_marker_is_about_nothing_else(t *testing.T) {
	var marks, looks, short atomic.Int32
	beside := len(wire.Look("").Args)
	s := newStub(t, func(args []string) string {
		switch {
		case isMark(args):
			marks.Add(1)
			return "-OOM command not allowed\r\n"
		case isLook(args):
			looks.Add(1)
			if len(args)-4 < beside {
				short.Add(1)
			}
		}
		return "default"
	})
	m := openGuarded(t, s)
	if n := marks.Load(); n != 1 {
		t.Errorf("asked to take the marker %d times", n)
	}
	m.Look()
	eventually(t, "it is looked at again", func() bool { return looks.Load() > 1 })
	if n := short.Load(); n > 0 {
		t.Errorf("%d of %d looks ask for the marker alone", n, looks.Load())
	}
}

// What a look tells no more than a vote is asked for as before: not at all if it was denied, since a master
// logs that, and else with every vote.
func TestS82_refusal_of_what_no_look_tells_either_is_not_repeated(t *testing.T) {
	isTime := func(args []string) bool { return args[0] == "TIME" }
	isRole := func(args []string) bool { return args[0] == "INFO" && args[1] == "replication" }
	for name, c := range map[string]struct {
		open   func(*testing.T, *stub) *Master
		asks   func([]string) bool
		denied bool
		want   int32
	}{
		"the time, denied":  {openTimed, isTime, true, 1},
		"the time, allowed": {openTimed, isTime, false, 2},
		"the role, denied":  {openGuarded, isRole, true, 1},
		"the role, allowed": {openGuarded, isRole, false, 2},
	} {
		s := newStub(t, healthy)
		m := c.open(t, s)
		eventually(t, "all is answered", func() bool { return m.Status().InFlight == 0 })
		var asked, looks atomic.Int32
		s.set(func(args []string) string {
			switch {
			case isLook(args):
				looks.Add(1)
				return "*5\r\n" + bulk(s.marker) + bulk("") + bulk("") + bulk("") + bulk("")
			case c.asks(args):
				asked.Add(1)
				if c.denied {
					return "-NOPERM this user has no permissions\r\n"
				}
			}
			return "default"
		})
		wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Second)), "OK")
		m.Look()
		eventually(t, "it is looked at", func() bool { return looks.Load() > 0 && m.Status().InFlight == 0 })
		wantValue(t, ask(t, m, wire.Acquire("l", "v", time.Second)), "OK")
		if n := asked.Load(); n != c.want {
			t.Errorf("%s: asked for %d times with two votes, want %d", name, n, c.want)
		}
	}
}

// A script begins between a vote and the clock that is read behind it: the clock may have been set.
func TestS82_refusal_of_the_time_for_a_moment_is_no_vote(t *testing.T) {
	s := newStub(t, healthy)
	m := openTimed(t, s)
	wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Second)), "OK")
	s.set(but("TIME", func([]string) string { return "-BUSY Redis is busy running a script\r\n" }))
	wantError(t, ask(t, m, wire.Acquire("k", "v", time.Second)), guard.ErrQuarantined)
	s.set(healthy)
	eventually(t, "it votes again", func() bool { return ask(t, m, wire.Acquire("k", "v", time.Second)).Err == nil })
}

// L88: a refusal to store a lock counts for ten seconds. Without another vote nobody learns when the master
// stores locks again.
func TestL88_a_refusal_to_store_counts_for_ten_seconds(t *testing.T) {
	s := newStub(t, but("SET", func([]string) string { return "-OOM command not allowed when used memory > 'maxmemory'.\r\n" }))
	clk := clock.NewMock()
	m := connect(t, s.addr(), Config{Clock: clk, Heartbeat: time.Hour, MaxAge: time.Hour, MaxSilence: time.Hour})
	if err := m.Stores(); err != nil {
		t.Errorf("before it was asked: %v", err)
	}
	ask(t, m, wire.Acquire("k", "v", time.Second))
	clk.Add(10*time.Second - 1)
	if err := m.Stores(); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("within ten seconds: %v, want OOM", err)
	}
	clk.Add(1)
	if err := m.Stores(); err != nil {
		t.Errorf("after ten seconds: %v", err)
	}
}
