package node

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// openGuarded connects to a stub with a guard, and with nothing that looks at the
// marker but votes.
func openGuarded(t *testing.T, s *stub) *Master {
	t.Helper()
	return connect(t, s.addr(), Config{
		Guard: guard.Config{Hold: time.Minute}, Heartbeat: time.Hour, MaxAge: time.Hour, MaxSilence: time.Hour,
	})
}

// forget has a stub lose its memory: no marker, and nobody has looked yet.
func (s *stub) forget(marker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marker = marker
}

func TestS24c_a_vote_counts_when_the_marker_behind_it_is_ours(t *testing.T) {
	s := newStub(t, healthy)
	m := openGuarded(t, s)
	wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Second)), "OK")
}

// The master has forgotten since we looked, or somebody has marked it anew.
func TestS24c_a_vote_with_another_marker_behind_it_is_worth_nothing(t *testing.T) {
	for what, marker := range map[string]string{
		"none":          "",
		"another's":     guard.NewMarker("stub", stubTime).String(),
		"no marker":     "what is this",
		"another run's": guard.NewMarker("other", stubTime).String(),
	} {
		s := newStub(t, healthy)
		m := openGuarded(t, s)
		s.forget(marker)

		r := ask(t, m, wire.Acquire("k", "v", time.Second))

		if wantError(t, r, guard.ErrQuarantined); t.Failed() {
			t.Fatal(what)
		}
		if marker == "what is this" {
			continue // not ours to replace; the guard can go by nothing any more
		}
		eventually(t, "the master was looked at: "+what, func() bool { return m.Status().Quarantine > 0 })
	}
}

// An extension that comes with another marker is not an error: it may be there.
// It does not count yet.
func TestS35_an_extension_with_another_marker_behind_it_is_young(t *testing.T) {
	s := newStub(t, but("EVALSHA", func(args []string) string {
		if args[1] == wire.ScriptExtend.SHA {
			return ":1\r\n"
		}
		return "default"
	}))
	m := openGuarded(t, s)
	if r := ask(t, m, wire.Extend("k", "v", time.Second)); r.Young {
		t.Fatalf("before: %+v", r)
	}
	s.forget("")

	r := ask(t, m, wire.Extend("k", "v", time.Second))

	wantValue(t, r, int64(1))
	if !r.Young {
		t.Error("the extension counts")
	}
}

// Whatever was granted, the connection broke before the marker was read.
func TestS24c_a_vote_whose_marker_is_never_read_is_unknown(t *testing.T) {
	s := newStub(t, but("GET", func([]string) string { return hangUp }))
	m := openGuarded(t, s)
	wantError(t, ask(t, m, wire.Acquire("k", "v", time.Second)), ErrUnknown)
}

// A hundred votes of one write share one look, and what is no vote needs none.
func TestVouching_reads_the_marker_once_for_each_write_with_votes(t *testing.T) {
	acquire, extend := wire.Acquire("k", "v", time.Second), wire.Extend("k", "v", time.Second)
	release, read := wire.Release("k", wire.QueueOf("", "k"), "v", time.Second), get("k")
	for what, c := range map[string]struct {
		cmds  []*wire.Command
		reads int
	}{
		"one acquire":                     {[]*wire.Command{acquire}, 1},
		"three votes":                     {[]*wire.Command{acquire, extend, acquire}, 1},
		"a vote among others":             {[]*wire.Command{read, acquire, release}, 1},
		"releases and reads":              {[]*wire.Command{release, read}, 0},
		"a repair, which no round counts": {[]*wire.Command{wire.Repair("k", "v", time.Second)}, 0},
		"nothing":                         {nil, 0},
	} {
		needed := true
		conn := newConn(&socket{Conn: newHeldConn()}, "addr", 100, nil, witness{
			needed: func() bool { return needed },
			read:   get(wire.MarkerKey("")),
		})
		write := func() string {
			for _, cmd := range c.cmds {
				if err := conn.send(&call{cmd: cmd}); err != nil {
					t.Fatal(err)
				}
			}
			conn.mu.Lock()
			defer conn.mu.Unlock()
			conn.sealBatch()
			written := string(conn.out)
			conn.out = nil
			return written
		}
		look := string(wire.Append(nil, conn.vouching.witness.read, wire.ByHash))
		for range 2 {
			written := write()
			if got := strings.Count(written, look); got != c.reads {
				t.Errorf("%s: the marker is read %d times, want %d", what, got, c.reads)
			}
			if c.reads > 0 && strings.LastIndex(written, look) < lastVote(written) {
				t.Errorf("%s: the marker is read before a vote", what)
			}
		}
		if needed = false; bytes.Contains([]byte(write()), []byte(look)) {
			t.Errorf("%s: the marker is read although there is none to go by", what)
		}
	}
}

// lastVote returns where the last vote in a write begins.
func lastVote(written string) int {
	return max(strings.LastIndex(written, "SET"), strings.LastIndex(written, wire.ScriptExtend.SHA))
}

// openTimed is openGuarded with an eye on the clock.
func openTimed(t *testing.T, s *stub) *Master {
	t.Helper()
	s.setForward(time.Since(stubTime))
	return connect(t, s.addr(), Config{
		Guard:     guard.Config{Hold: time.Minute, ClockTolerance: time.Minute},
		Heartbeat: time.Hour, MaxAge: time.Hour, MaxSilence: time.Hour,
	})
}

// setForward sets the clock of a stub, and nobody has looked yet.
func (s *stub) setForward(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

// shown returns what the clock of a stub shows, with that much added.
func (s *stub) shown(more time.Duration) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return stubTime.Add(s.ahead + more)
}

// The master's clock was set forward since we looked: it may have ended keys before
// their time.
func TestS2_a_vote_with_a_clock_that_was_set_forward_is_worth_nothing(t *testing.T) {
	s := newStub(t, healthy)
	m := openTimed(t, s)
	s.setForward(30 * time.Second)
	wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Second)), "OK") // within what is tolerated
	s.setForward(time.Hour)

	r := ask(t, m, wire.Acquire("k", "v", time.Second))

	wantError(t, r, guard.ErrQuarantined)
	eventually(t, "the master was looked at", func() bool { return m.Status().Quarantine > 0 })
}

// A vote counts although the clock cannot be read. A user who may not read it is not
// refused, and logged by the master, with every vote.
func TestS2_a_vote_counts_without_a_clock_that_could_be_read(t *testing.T) {
	for refusal, want := range map[string]int32{"-NOPERM this user has no permissions": 1, "-ERR unknown command 'TIME'": 3} {
		var asked atomic.Int32
		s := newStub(t, but("TIME", func([]string) string {
			asked.Add(1)
			return refusal + "\r\n"
		}))
		m := openTimed(t, s)
		for range 3 {
			wantValue(t, ask(t, m, wire.Acquire("k", "v", time.Second)), "OK")
		}
		if n := asked.Load(); n != want {
			t.Errorf("%s: asked for the time %d times, want %d", refusal, n, want)
		}
	}
}

func TestS2_a_message_with_a_clock_that_was_set_forward_is_not_heard(t *testing.T) {
	s := newStub(t, healthy)
	m := openTimed(t, s)
	l := &listener{heard: make(chan string, 1), doubted: make(chan string, 1), missed: make(chan bool, 1)}

	m.tell([]*user{{l}}, wire.Proof(s.stored(), s.shown(30*time.Second))+"\n3 keyvalue")
	if got := receiveFrom(t, "the message", l.heard); got != "3 keyvalue" {
		t.Errorf("heard %q", got)
	}
	m.tell([]*user{{l}}, wire.Proof(s.stored(), s.shown(time.Hour))+"\n3 keyvalue")
	if got := receiveFrom(t, "the doubted message", l.doubted); got != "3 keyvalue" {
		t.Errorf("doubted %q", got)
	}
}

func TestProof_is_read_as_it_was_written(t *testing.T) {
	at := time.UnixMicro(1_700_000_000_000_123).UTC()
	for proof, want := range map[string]struct {
		marker string
		at     time.Time
	}{
		wire.Proof("run 1 2 -", at): {"run 1 2 -", at},
		wire.Proof("", at):          {"", at},
		"run 1 2 -":                 {"run 1 2 -", time.Time{}},
		"run\t1700000000":           {"run", time.Time{}},
		"run\tx y":                  {"run", time.Time{}},
		"":                          {"", time.Time{}},
	} {
		if marker, at := wire.ParseProof(proof); marker != want.marker || !at.Equal(want.at) {
			t.Errorf("%q: %q at %v, want %q at %v", proof, marker, at, want.marker, want.at)
		}
	}
}

// What a waiter is told is believed if it comes with the marker that we know.
func TestS24c_a_message_with_another_marker_is_not_heard(t *testing.T) {
	s := newStub(t, healthy)
	m := openGuarded(t, s)
	l := &listener{heard: make(chan string, 1), doubted: make(chan string, 1), missed: make(chan bool, 1)}

	m.tell([]*user{{l}}, s.stored()+"\n3 keyvalue")
	if got := receiveFrom(t, "the message", l.heard); got != "3 keyvalue" {
		t.Errorf("heard %q", got)
	}
	for _, message := range []string{"\n3 keyvalue", guard.NewMarker("stub", stubTime).String() + "\n3 keyvalue"} {
		m.tell([]*user{{l}}, message)
		if got := receiveFrom(t, "the doubted message", l.doubted); got != "3 keyvalue" {
			t.Errorf("doubted %q", got)
		}
	}
	m.tell([]*user{{l}}, "3 keyvalue")
	receiveFrom(t, "that something was missed", l.missed)
	if len(l.heard) > 0 {
		t.Errorf("heard %q", <-l.heard)
	}
}

type listener struct {
	heard, doubted chan string
	missed         chan bool
}

func (l *listener) Heard(message string)   { l.heard <- message }
func (l *listener) Doubted(message string) { l.doubted <- message }
func (l *listener) Missed()                { l.missed <- true }
