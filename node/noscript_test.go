package node

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

const noScript = "-NOSCRIPT No matching script. Please use EVAL.\r\n"

// forgetful is a master whose script cache is empty. It holds back its answers
// to the first so many scripts until all of them have arrived, and then says
// that it knows only those named.
func forgetful(hold int, knows ...*wire.Script) func([]string) string {
	var held strings.Builder
	return func(args []string) string {
		if ofHandshake(args) || args[0] != "EVALSHA" {
			return "default"
		}
		reply := noScript
		for _, s := range knows {
			if args[1] == s.SHA {
				reply = ":1\r\n"
			}
		}
		held.WriteString(reply)
		if hold--; hold > 0 {
			return silence
		}
		defer held.Reset()
		return held.String()
	}
}

// evals returns the names of the scripts that were sent by source.
func (s *stub) evals() (names []string) {
	for _, line := range s.seen() {
		for _, script := range wire.Scripts {
			if strings.HasPrefix(line, "EVAL "+script.Source) {
				names = append(names, script.Name)
			}
		}
	}
	return names
}

// L11: SCRIPT FLUSH, or a restart behind a proxy.
func TestL11_script_that_the_master_forgot_is_sent_by_its_source(t *testing.T) {
	for _, cmd := range []*wire.Command{
		wire.Ask("k", wire.QueueOf("", "k"), "c/nnnnnnnnnnnnnnnn/v:0", 1, time.Second), wire.Extend("k", "v", time.Second), wire.Release("k", wire.QueueOf("", "k"), "v", time.Second), wire.Inspect("", "k"),
	} {
		s := newStub(t, forgetful(1))
		m := connect(t, s.addr(), Config{})
		want := any("OK")
		if cmd.Op == wire.OpRelease {
			want = int64(1)
		}
		wantValue(t, ask(t, m, cmd), want)
		if got := s.evals(); len(got) != 1 || got[0] != cmd.Script.Name {
			t.Errorf("%s: sent %v by source", cmd.Script.Name, got)
		}
	}
}

// L3, L11: sent again it would run after its release and leave an orphan.
func TestL11_acquire_never_runs_after_its_own_release(t *testing.T) {
	s := newStub(t, forgetful(2, wire.ScriptRelease))
	m := connect(t, s.addr(), Config{})
	probe := give(m, wire.Ask("k", wire.QueueOf("", "k"), "c/nnnnnnnnnnnnnnnn/v:0", 1, time.Second))
	release := give(m, wire.Release("k", wire.QueueOf("", "k"), "v", time.Second))
	wantError(t, receiveFrom(t, "the probe", probe), &wire.ServerError{Code: "NOSCRIPT"})
	wantValue(t, receiveFrom(t, "the release", release), int64(1))
	wantValue(t, ask(t, m, get("k")), "OK")
	if got := s.evals(); len(got) != 0 {
		t.Errorf("sent %v by source", got)
	}
}

func TestL11_extension_never_takes_back_a_later_one(t *testing.T) {
	s := newStub(t, forgetful(2, wire.ScriptRelease))
	m := connect(t, s.addr(), Config{})
	short, long := give(m, wire.Extend("k", "v", time.Second)), give(m, wire.Extend("k", "v", time.Minute))
	wantError(t, receiveFrom(t, "the short one", short), &wire.ServerError{Code: "NOSCRIPT"})
	wantValue(t, receiveFrom(t, "the long one", long), "OK")
}

func TestL11_commands_for_other_keys_may_be_passed(t *testing.T) {
	s := newStub(t, forgetful(2, wire.ScriptRelease))
	m := connect(t, s.addr(), Config{})
	extend, release := give(m, wire.Extend("k", "v", time.Second)), give(m, wire.Release("other", wire.QueueOf("", "other"), "v", time.Second))
	wantValue(t, receiveFrom(t, "the release", release), int64(1))
	wantValue(t, receiveFrom(t, "the extension", extend), "OK")
}

// A release compares the value: it may run after whatever came behind it.
func TestL11_release_is_sent_again_in_any_case(t *testing.T) {
	s := newStub(t, forgetful(2, wire.ScriptInspect))
	m := connect(t, s.addr(), Config{})
	release, inspect := give(m, wire.Release("k", wire.QueueOf("", "k"), "v", time.Second)), give(m, wire.Inspect("", "k"))
	wantValue(t, receiveFrom(t, "the other", inspect), int64(1))
	wantValue(t, receiveFrom(t, "the release", release), int64(1))
	if got := s.evals(); len(got) != 1 || got[0] != "release" {
		t.Errorf("sent %v by source", got)
	}
}

// Unlock sends a release, and a message that comes just then has the departed waiter withdrawn by
// another release, of another script. The first one is sent again, so that the other runs before
// it and deletes the key.
func TestS79_a_release_that_is_sent_again_is_answered_by_the_one_that_ran_before_it(t *testing.T) {
	knowsOne := forgetful(2, wire.ScriptRelease)
	s := newStub(t, func(args []string) string {
		if args[0] == "EVAL" {
			return ":0\r\n"
		}
		return knowsOne(args)
	})
	m := connect(t, s.addr(), Config{})
	const value = "c/nnnnnnnnnnnnnnnn/W1:1"
	unlock := give(m, wire.ReadWriteOf("", "k").Release(value, time.Second))
	withdrawal := give(m, wire.Withdraw("", wire.Notice{Key: "k", Value: value}, time.Second))

	wantValue(t, receiveFrom(t, "the release of Unlock", unlock), int64(1))
	wantValue(t, receiveFrom(t, "the withdrawal", withdrawal), int64(0))
}

// The call that may not be sent again leaves the script behind for the next.
func TestL11_script_is_loaded_also_when_its_call_fails(t *testing.T) {
	s := newStub(t, forgetful(2, wire.ScriptRelease))
	m := connect(t, s.addr(), Config{})
	probe := give(m, wire.Ask("k", wire.QueueOf("", "k"), "c/nnnnnnnnnnnnnnnn/v:0", 1, time.Second))
	give(m, wire.Release("k", wire.QueueOf("", "k"), "v", time.Second))
	wantError(t, receiveFrom(t, "the probe", probe), &wire.ServerError{Code: "NOSCRIPT"})
	eventually(t, "the script was loaded", func() bool { return s.loads(wire.ScriptAsk) == 2 })
}

func TestL11_search_for_overtaken_commands_is_bounded(t *testing.T) {
	c := newConn(&socket{Conn: newHeldConn()}, "addr", 10_000, nil, noWitness)
	for range farBehind {
		if err := c.send(&call{cmd: get("other")}); err != nil {
			t.Fatal(err)
		}
	}
	if c.overtakes(wire.Extend("k", "v", time.Second)) {
		t.Error("passes nothing that has its key, but is said to")
	}
	c.send(&call{cmd: get("other")})
	if !c.overtakes(wire.Extend("k", "v", time.Second)) {
		t.Error("beyond the bound anything counts")
	}
}

// Scripts that few clients need are not loaded at every connection.
func TestA_script_of_a_kind_is_loaded_before_its_first_use_only(t *testing.T) {
	s := newStub(t, func(r []string) string {
		if r[0] == "EVALSHA" {
			return "+OK\r\n"
		}
		return healthy(r)
	})
	m := connect(t, s.addr(), Config{})
	read := wire.ReadWriteOf("", "k").Read(wire.OpAcquire, "c/nnnnnnnnnnnnnnnn/v:0", time.Second, 0)
	if n := s.loads(wire.ScriptRead); n != 0 {
		t.Fatalf("loaded %d times before it is used", n)
	}

	for range 3 {
		wantValue(t, ask(t, m, read), "OK")
	}

	if n := s.loads(wire.ScriptRead); n != 1 {
		t.Errorf("loaded %d times", n)
	}
	seen := strings.Join(s.seen(), "\n")
	if strings.Index(seen, "SCRIPT LOAD "+wire.ScriptRead.Source) > strings.Index(seen, "EVALSHA "+wire.ScriptRead.SHA) {
		t.Error("loaded behind its first use")
	}
}
