package node

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// newVoter returns a stub that may vote for clients with a restart guard.
func newVoter(t *testing.T, answer func(args []string) string) *stub {
	s := newStub(t, answer)
	s.marker = guard.NewMaster("stub", stubTime.Add(-time.Hour), time.Minute, guard.GroupID{}).String()
	return s
}

// L23: a reply that nobody asked for shifts all later ones. No vote is taken for
// another's, whatever the reply is and wherever it comes.
func TestL23_unsolicited_reply_is_never_a_vote(t *testing.T) {
	const free, taken = "+OK\r\n", "$-1\r\n"
	strays := []string{free, taken, ":1\r\n", ":0\r\n", "$0\r\n\r\n", "$2\r\nOK\r\n", "*1\r\n+OK\r\n", "-ERR out of the blue\r\n"}
	guards := []guard.Config{{Hold: time.Minute}, {Hold: time.Minute, ClockTolerance: time.Hour}}
	for i := range len(strays) * len(guards) {
		stray, guarded := strays[i/len(guards)], guards[i%len(guards)]
		for _, truth := range []string{free, taken} {
			s := newVoter(t, but("SET", func(args []string) string {
				if args[1] == "first" {
					return stray + truth
				}
				return taken
			}))
			s.setForward(time.Since(stubTime))
			m := connect(t, s.addr(), Config{Guard: guarded, Heartbeat: time.Hour, Backoff: Redial{Min: time.Millisecond, Max: time.Millisecond}})
			first := ask(t, m, wire.Acquire("first", "v", time.Minute))
			second := ask(t, m, wire.Acquire("second", "v", time.Minute))
			if first.Value == "OK" && truth == taken || second.Value == "OK" {
				t.Errorf("%q before %q: the votes are %v and %v", stray, truth, first, second)
			}
			if truth == free && errors.Is(first.Err, guard.ErrQuarantined) {
				t.Errorf("%q before %q: %v, but the master has lost nothing", stray, truth, first.Err)
			}
			eventually(t, "the connection was given up: "+stray+truth, func() bool { return m.Status().Reconnects > 0 })
			if err := m.Status().LastError; !errors.Is(err, errShifted) && !errors.Is(err, errNotAsked) {
				t.Errorf("%q before %q: the last error is %v", stray, truth, err)
			}
			if rest := m.Status().Quarantine; rest > 0 {
				t.Errorf("%q before %q: in quarantine for %v", stray, truth, rest)
			}
			s.set(healthy)
			eventually(t, "it votes again", func() bool { return ask(t, m, wire.Acquire("third", "v", time.Minute)).Value == "OK" })
		}
	}
}

func TestL23_reply_behind_the_handshake_ends_the_connection(t *testing.T) {
	var n atomic.Int32
	s := newStub(t, but("SCRIPT", func([]string) string {
		if n.Add(1) == int32(len(wire.Common)) {
			return bulk("sha") + "+OK\r\n"
		}
		return bulk("sha")
	}))
	m := open(t, s.addr(), Config{Backoff: Redial{Min: time.Millisecond, Max: time.Millisecond}})
	eventually(t, "it is connected", func() bool { return m.Status().State == StateConnected && n.Load() > int32(len(wire.Common)) })
	if err := m.Status().LastError; err == nil || !strings.Contains(err.Error(), errNotAsked.Error()) {
		t.Errorf("the last error is %v", err)
	}
}

// What a look is answered by must be a marker and a time: else a shifted answer
// would look like a master that cannot be marked, and votes would count as they
// come.
func TestL23_look_that_is_answered_by_something_else_ends_the_connection(t *testing.T) {
	s := newVoter(t, healthy)
	m := connect(t, s.addr(), Config{Guard: guard.Config{Hold: time.Minute}, Heartbeat: time.Hour})
	s.set(but("EVALSHA", func([]string) string { return "+OK\r\n" }))
	m.heartbeat(m.live.Load())
	eventually(t, "the connection was given up", func() bool { return errors.Is(m.Status().LastError, errShifted) })
}
