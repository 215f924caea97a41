package node

import (
	"bufio"
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"pgregory.net/rapid"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
)

// However calls are folded, each is answered, and leaves the server, as if it had
// come alone.
func TestFold_is_the_same_as_one_by_one(t *testing.T) {
	servers := redistest.StartN(t, 2)
	alone, folded := servers[0], servers[1]
	for name, draw := range map[string]func(t *rapid.T, key string) *wire.Command{
		"releases": func(t *rapid.T, key string) *wire.Command {
			return wire.Release(key, wire.QueueOf("", key), aValue(t), time.Minute)
		},
		"fenced releases": func(t *rapid.T, key string) *wire.Command {
			return wire.FencedRelease(key, wire.QueueOf("", key), aValue(t), time.Minute, aToken(t))
		},
		"fenced acquires": func(t *rapid.T, key string) *wire.Command {
			return wire.FencedAcquire(key, wire.QueueOf("", key), aValue(t), time.Minute, aToken(t))
		},
		"fair acquires": func(t *rapid.T, key string) *wire.Command {
			if rapid.Bool().Draw(t, "fenced") {
				return wire.FencedFairAsk(key, wire.QueueOf("", key), aValue(t), 0, time.Minute, 5)
			}
			return wire.FairAsk(key, wire.QueueOf("", key), aValue(t), 0, time.Minute)
		},
		"writers": func(t *rapid.T, key string) *wire.Command {
			return wire.ReadWriteOf("", key).Write(wire.OpAcquire, aValue(t), time.Minute, 0)
		},
		"readers": func(t *rapid.T, key string) *wire.Command {
			return wire.ReadWriteOf("", key).Read(wire.OpAcquire, aValue(t), time.Minute, 0)
		},
		"releases of both": func(t *rapid.T, key string) *wire.Command {
			return wire.ReadWriteOf("", key).Release(aValue(t), time.Minute)
		},
		"permits": func(t *rapid.T, key string) *wire.Command { return aTake(t, key, wire.OpAcquire, 0) },
		"releases of permits": func(t *rapid.T, key string) *wire.Command {
			return wire.PermitsOf("", key).Release(aValue(t), time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				both := func(cmd string, args ...any) {
					for _, s := range servers {
						s.Do(cmd, args...) // an error, too, is something to begin with
					}
				}
				both("FLUSHALL")
				for range rapid.IntRange(0, 12).Draw(t, "before") {
					cmd, args := before(t)
					both(cmd, args...)
				}
				f := new(fold)
				for range rapid.IntRange(2, wire.MaxFold).Draw(t, "calls") {
					cmd := draw(t, aKey(t))
					if len(f.calls) == 0 {
						f.begin(cmd.Script.Many(), cmd)
					}
					if cmd.Script == wire.ScriptRelease && f.concerns(cmd) {
						continue
					}
					f.add(&call{cmd: cmd})
				}
				if rapid.Bool().Draw(t, "held") {
					// Every release but one finds its lock and its counter.
					both("FLUSHALL")
					other := rapid.IntRange(-1, len(f.calls)-1).Draw(t, "other")
					for i, k := range f.calls {
						value, token := aValue(t), aToken(t)
						if i != other {
							value, token = k.cmd.Args[0], 0
						}
						heldBefore(both, k.cmd, value, token)
					}
					if rapid.IntRange(0, 2).Draw(t, "disturbed") == 0 {
						cmd, args := before(t)
						both(cmd, args...)
					}
				}
				var want []any
				for _, k := range f.calls {
					want = append(want, answerOf(alone.Do("EVAL", evalArgs(k.cmd)...)))
				}
				whole := f.complete()
				for i, cmd := range wire.Unfold(whole) {
					if k := f.calls[i].cmd; !slices.Equal(cmd.Keys, k.Keys) || !slices.Equal(cmd.Args, k.Args) {
						t.Fatalf("call %d is unfolded as %v %v, and was %v %v", i, cmd.Keys, cmd.Args, k.Keys, k.Args)
					}
				}
				said := answerOf(folded.Do("EVAL", evalArgs(whole)...))
				var got []any
				for i := range f.calls {
					if answer, ok := f.answer(said, i); ok {
						got = append(got, answer)
					}
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("folded: %v, one by one: %v", got, want)
				}
				if a, b := stored(t, alone), stored(t, folded); !reflect.DeepEqual(a, b) {
					t.Fatalf("folded it left\n%v\none by one\n%v", b, a)
				}
			})
		})
	}
}

// heldBefore stores the lock of a release, and its counter: at its own token, or at the
// one given.
func heldBefore(both func(cmd string, args ...any), cmd *wire.Command, value string, token uint64) {
	if cmd.Script != wire.ScriptRelease {
		return
	}
	both("SET", cmd.Keys[0], value, "PX", time.Minute.Milliseconds())
	if len(cmd.Args) > 1 {
		counter := cmd.Args[1]
		if token != 0 {
			counter = strconv.FormatUint(token, 10)
		}
		both("SET", wire.QueueOf("", cmd.Keys[0]).Counter(), counter, "PX", time.Minute.Milliseconds())
	}
}

func aKey(t *rapid.T) string { return fmt.Sprint("key", rapid.IntRange(0, 8).Draw(t, "key")) }

func aValue(t *rapid.T) string {
	return rapid.SampledFrom([]string{"c/nnnnnnnnnnnnnnnn/w:0", "c/nnnnnnnnnnnnnnnn/w:1", "c/nnnnnnnnnnnnnnnn/w:2", "c/nnnnnnnnnnnnnnnn/x:1 with metadata"}).Draw(t, "value")
}

func aToken(t *rapid.T) uint64 {
	return rapid.SampledFrom([]uint64{1, 2, 5, 100_000_000_000_001}).Draw(t, "token")
}

func aTake(t *rapid.T, key string, op wire.Op, ticket int64) *wire.Command {
	total := rapid.SampledFrom([]int{3, 3, 3, 4}).Draw(t, "total")
	return wire.PermitsOf("", key).Take(op, aValue(t), time.Minute, ticket, total, rapid.IntRange(1, 3).Draw(t, "permits"), rapid.IntRange(0, 2).Draw(t, "start"), 0)
}

// before draws what may have happened before.
func before(t *rapid.T) (string, []any) {
	key := aKey(t)
	q, rw, value := wire.QueueOf("", key), wire.ReadWriteOf("", key), aValue(t)
	cmd := rapid.SampledFrom([]*wire.Command{
		wire.Acquire(key, value, time.Minute),
		wire.Acquire(key, "foreign", time.Minute),
		wire.Ask(key, q, value, 1, time.Minute),
		wire.FencedAsk(key, q, value, 1, time.Minute, aToken(t)),
		wire.FencedAcquire(key, q, value, time.Minute, aToken(t)),
		rw.Write(wire.OpAsk, value, time.Minute, 1),
		rw.Read(wire.OpAsk, value, time.Minute, 2),
		rw.Read(wire.OpAcquire, value, time.Minute, 0),
		aTake(t, key, wire.OpAsk, 1),
		aTake(t, key, wire.OpAcquire, 0),
		{Name: "RPUSH", Keys: []string{key}, Args: []string{"x"}},
		{Name: "SET", Keys: []string{q.Counter()}, Args: []string{"no number"}},
		{Name: "SET", Keys: []string{q.Counter()}, Args: []string{"7"}},
	}).Draw(t, "command")
	if cmd.Script != nil {
		return "EVAL", evalArgs(cmd)
	}
	return cmd.Name, plainArgs(cmd)
}

// answerOf is an answer as it is to be compared: without what stands behind the
// first word of an error, and without how long something lasts.
func answerOf(v any, err error) any {
	if err != nil {
		v = err
	}
	switch v := v.(type) {
	case error:
		return wire.Server(v.Error()).Code
	case []byte:
		return string(v)
	case int64:
		// The calls of a fold have one moment, so a remaining time may exceed the TTL by a few ms.
		if v > 1000 && v <= time.Minute.Milliseconds()+1000 {
			return "a while"
		}
	case []any:
		for i := range v {
			v[i] = answerOf(v[i], nil)
		}
	}
	return v
}

// stored lists what a server has, without the times.
func stored(t *rapid.T, s *redistest.Server) []string {
	const script = `local all = {}
for _, key in ipairs(redis.call('keys', '*')) do
  local read = {string = {'mget'}, list = {'lrange', 0, -1}, hash = {'hgetall'}, zset = {'zrange', 0, -1, 'WITHSCORES'}}
  local how = read[redis.call('type', key).ok]
  table.insert(how, 2, key)
  local parts = redis.call(unpack(how))
  all[#all + 1] = key .. (redis.call('pttl', key) > 0 and ' stays for a while' or ' stays')
  for i = 1, #parts, 2 do
    all[#all + 1] = key .. ' ' .. parts[i] .. ' ' .. (parts[i + 1] or '')
  end
end
return all`
	lines, err := redis.Strings(s.Do("EVAL", script, 0))
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		lines[i] = instant.ReplaceAllString(lines[i], "T")
	}
	slices.Sort(lines)
	return lines
}

// instant is a time in milliseconds.
var instant = regexp.MustCompile(`\b[12]\d{12}\b`)

// The release of an earlier attempt comes first, and the one that deletes behind
// it: they are two calls.
func TestFold_releases_no_lock_twice(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	do(t, s, "SET", "k", "v2")
	c := m.live.Load()
	replies := make(chan wire.Reply, 4)
	c.mu.Lock()
	for _, cmd := range []*wire.Command{release("other"), release("k"), wire.Release("k", wire.QueueOf("", "k"), "v2", time.Minute), release("k")} {
		c.queue(&call{cmd: cmd, done: func(r wire.Reply) { replies <- r }})
	}
	c.mu.Unlock()
	for _, want := range []int64{0, -1, 1, 0} {
		wantValue(t, receiveFrom(t, "an answer", replies), want)
	}
}

// What a user may not do with one lock does not concern the others of a fold.
func TestFold_a_lock_that_is_forbidden_does_not_concern_the_others(t *testing.T) {
	s := redistest.Start(t, redistest.User("ann", "pw", "resetkeys", "~mine*", "~redlock:*", "+@all"))
	m := connect(t, s.URL(), Config{})
	for _, f := range []func(key string) *wire.Command{
		func(key string) *wire.Command {
			return wire.FencedAcquire(key, wire.QueueOf("", key), "v", time.Minute, 7)
		},
		func(key string) *wire.Command {
			return wire.FencedRelease(key, wire.QueueOf("", key), "v", time.Minute, 7)
		},
	} {
		c := m.live.Load()
		replies := make(chan wire.Reply, 3)
		c.mu.Lock()
		for _, key := range []string{"mine 1", "theirs", "mine 2"} {
			c.queue(&call{cmd: f(key), done: func(r wire.Reply) { replies <- r }})
		}
		c.mu.Unlock()
		refused := 0
		for range 3 {
			if r := receiveFrom(t, "an answer", replies); r.Err != nil {
				wantError(t, r, &wire.ServerError{Code: "NOPERM"})
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%d of three were refused, want one", refused)
		}
	}
}

// A release whose counter is none fails, as it would alone, and no other does.
func TestFold_a_release_that_fails_does_not_concern_the_others(t *testing.T) {
	s := redistest.Start(t)
	do(t, s, "RPUSH", wire.QueueOf("", "a").Counter(), "no counter")
	f := new(fold).begin(wire.ScriptReleases, wire.FencedRelease("a", wire.QueueOf("", "a"), "v", time.Minute, 1))
	for _, key := range []string{"a", "b"} {
		do(t, s, "SET", key, "v")
		f.add(&call{cmd: wire.FencedRelease(key, wire.QueueOf("", key), "v", time.Minute, 1)})
	}

	got := answerOf(s.Do("EVAL", evalArgs(f.complete())...))

	if want := []any{"WRONGTYPE", int64(1)}; !reflect.DeepEqual(got, want) {
		t.Errorf("answers %v, want %v", got, want)
	}
	if left := do(t, s, "EXISTS", "a", "b"); left != int64(1) {
		t.Errorf("%v locks left, want that of which the counter could not be raised", left)
	}
}

// The counters of a fold are read at once, and each of them moves all the same: also one
// that is at what was proposed, or above.
func TestFold_fenced_acquires_give_no_token_twice(t *testing.T) {
	s, a, b := redistest.Start(t), wire.QueueOf("", "a"), wire.QueueOf("", "b")
	do(t, s, "MSET", a.Counter(), 7, b.Counter(), 9)

	got := answerOf(s.Do("EVAL", evalArgs(folded(wire.FencedAcquire("a", a, "v", time.Minute, 7), wire.FencedAcquire("b", b, "v", time.Minute, 7)))...))

	if want := []any{int64(8), int64(10)}; !reflect.DeepEqual(got, want) {
		t.Errorf("tokens %v, want %v", got, want)
	}
}

// A lock that has run out is handed on by its release, also beside others that have not.
func TestFold_a_release_hands_on_what_has_run_out(t *testing.T) {
	s, b := redistest.Start(t), wire.QueueOf("", "b")
	told := listenIn(t, s)
	do(t, s, "MSET", "a", aHolder, "b", aHolder)
	do(t, s, "EVAL", evalArgs(wire.Ask("b", b, "c/nnnnnnnnnnnnnnnn/w:1", 1, time.Minute))...)
	do(t, s, "DEL", "b")

	do(t, s, "EVAL", evalArgs(folded(wire.Release("a", wire.QueueOf("", "a"), aHolder, time.Minute), wire.Release("b", b, aHolder, time.Minute)))...)

	if said := told(); len(said) != 1 || said[0].Value != "c/nnnnnnnnnnnnnnnn/w:1" {
		t.Errorf("told: %v, want who waits", said)
	}
}

// One number stands for all answers only where it says that all are deleted.
func TestFold_a_number_is_the_answer_to_all_releases_only_if_it_is_theirs(t *testing.T) {
	f := new(fold).begin(wire.ScriptReleases, release("a"))
	for _, key := range []string{"a", "b"} {
		f.add(&call{cmd: release(key)})
	}
	for value, want := range map[any]bool{int64(2): true, int64(1): false, int64(0): false, int64(3): false, "OK": false} {
		if answer, ok := f.answer(value, 0); ok != want || want && answer != int64(1) {
			t.Errorf("%v is taken for the answer %v, %v", value, answer, ok)
		}
	}
	others := new(fold).begin(wire.ScriptFair.Many(), wire.FairAsk("a", wire.QueueOf("", "a"), "v", 0, time.Minute))
	others.add(&call{cmd: wire.FairAsk("a", wire.QueueOf("", "a"), "v", 0, time.Minute)})
	if answer, ok := others.answer(int64(1), 0); ok {
		t.Errorf("a number is taken for the answer %v to what are no releases", answer)
	}
}

func evalArgs(cmd *wire.Command) []any {
	args := []any{cmd.Script.Source, len(cmd.Keys)}
	for _, k := range cmd.Keys {
		args = append(args, k)
	}
	for _, a := range cmd.Args {
		args = append(args, a)
	}
	return args
}

// Releases are held back for others to join, but never behind what is said
// about the same key.
func TestFold_keeps_the_order_of_each_key(t *testing.T) {
	s := newStub(t, healthy)
	m := connect(t, s.addr(), Config{})
	c := m.live.Load()
	c.mu.Lock()
	for _, cmd := range []*wire.Command{
		wire.Acquire("a", "1", time.Minute), wire.Release("a", wire.QueueOf("", "a"), "1", time.Minute),
		wire.Release("b", wire.QueueOf("", "b"), "1", time.Minute), wire.Acquire("c", "1", time.Minute),
		wire.Acquire("b", "2", time.Minute), wire.Release("c", wire.QueueOf("", "c"), "1", time.Minute), get("end"),
	} {
		if err := c.queue(&call{cmd: cmd}); err != nil {
			t.Fatal(err)
		}
	}
	c.mu.Unlock()
	want := []string{"SET", "SET", "a", "b", "SET", "GET", "c"}
	eventually(t, "all of it was sent", func() bool { return len(s.releases()) == len(want) })
	if got := s.releases(); !reflect.DeepEqual(got, want) {
		t.Errorf("the server saw %v, want %v", got, want)
	}
}

// Calls of each script are gathered by themselves, and those that are votes are
// believed with the marker that is read behind them.
func TestFold_is_of_one_script_and_goes_before_the_marker(t *testing.T) {
	c := newConn(&socket{Conn: newHeldConn()}, "addr", 100, nil, witness{
		needed: func() bool { return true },
		read:   get(wire.MarkerKey("")),
	})
	c.loaded = []*wire.Script{wire.ScriptFencedAcquire, wire.ScriptRead} // and not to be loaded here
	for _, cmd := range []*wire.Command{
		wire.FencedAcquire("a", wire.QueueOf("", "a"), "v", time.Minute, 7),
		wire.FencedAcquire("b", wire.QueueOf("", "b"), "v", time.Minute, 7),
		wire.ReadWriteOf("", "r").Read(wire.OpAcquire, "v", time.Minute, 0),
		wire.FencedRelease("a", wire.QueueOf("", "a"), "v", time.Minute, 7), // after a was acquired
		wire.FencedRelease("c", wire.QueueOf("", "c"), "v", time.Minute, 7),
		release("d"), // has no token
		wire.FencedAcquire("c", wire.QueueOf("", "c"), "w", time.Minute, 8),
		wire.Extend("d", "w", time.Minute),
		wire.ReadWriteOf("", "s").Read(wire.OpAcquire, "v", time.Minute, 0),
		wire.Release("e", wire.QueueOf("", "e"), "v", time.Minute).Hold(), // is told to hand on nothing
	} {
		if err := c.send(&call{cmd: cmd}); err != nil {
			t.Fatal(err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealBatch()
	var got []string
	for r := bufio.NewReader(bytes.NewReader(c.out)); ; {
		args, err := readRequest(r)
		if err != nil {
			break
		}
		for _, s := range wire.Scripts {
			if len(args) > 3 && args[1] == s.SHA {
				args = []string{s.Name, args[3], args[4]}
			}
		}
		got = append(got, strings.Join(args, " "))
	}
	want := []string{
		"fenced_acquires a b", "releases a c", "release d redlock:queue:d", "extend d w",
		"release e redlock:queue:e", "reads r redlock:queue:r", "fenced_acquire c redlock:token:c", "GET redlock:marker",
	}
	if !slices.Equal(got, want) {
		t.Errorf("written:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if held := c.calls.at(0).held; !held {
		t.Error("votes in a fold do not wait for the marker")
	}
}

// A fold of votes is several votes: each waits for the marker.
func TestFold_holds_its_votes_until_the_marker_is_read(t *testing.T) {
	var settled []string
	c := newConn(&socket{Conn: newHeldConn()}, "addr", 100, func(k call, r wire.Reply) {
		settled = append(settled, fmt.Sprint(k.cmd.Keys[0], " ", r.Value, " ", r.Err != nil, " ", k.doubted))
	}, witness{
		needed: func() bool { return true },
		knows:  func(marker []byte, _ time.Time, _ time.Duration) bool { return string(marker) == "known" },
		read:   get(wire.MarkerKey("")),
	})
	for _, key := range []string{"a", "b"} {
		if err := c.send(&call{cmd: wire.FencedAcquire(key, wire.QueueOf("", key), "v", time.Minute, 7)}); err != nil {
			t.Fatal(err)
		}
	}
	c.mu.Lock()
	c.sealBatch()
	c.mu.Unlock()
	answers := []any{[]byte("sha"), []byte("sha"), []any{int64(7), wire.Server("WRONGTYPE no counter")}, []byte("another")}
	for i, answer := range answers {
		if i == len(answers)-1 && len(settled) != 1 {
			t.Fatalf("settled before the marker was read: %q, want only what failed", settled)
		}
		k, _, ok := c.next()
		if !ok {
			t.Fatalf("answer %d is to no call", i)
		}
		if k.cmd.Name == "SCRIPT" {
			continue
		}
		if err := c.answered(&k, answer); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"b <nil> true false", "a 7 false true"}; !slices.Equal(settled, want) {
		t.Errorf("settled %q, want %q", settled, want)
	}
}

func TestFold_breaks_with_its_connection_into_releases(t *testing.T) {
	s := newStub(t, but("EVALSHA", func(args []string) string {
		if args[1] == wire.ScriptMarker.SHA {
			return "default"
		}
		return silence
	}))
	// A heartbeat would be answered, and its answer taken for one to the releases.
	m := connect(t, s.addr(), Config{Heartbeat: time.Minute, Backoff: Redial{Min: time.Minute, Max: time.Minute}})
	c := m.live.Load()
	replies := make(chan wire.Reply, 3)
	c.mu.Lock()
	for _, key := range []string{"a", "b", "c"} {
		c.queue(&call{cmd: release(key), done: func(r wire.Reply) { replies <- r }})
	}
	c.mu.Unlock()
	eventually(t, "they were sent", func() bool { return len(s.seen()) > 0 })
	s.hangUp()
	for range 3 {
		wantError(t, receiveFrom(t, "a verdict", replies), ErrUnknown)
	}
	if n := m.Status().Undelivered; n != 3 {
		t.Errorf("%d releases are owed, want 3", n)
	}
}

// L11 for folds: a server that lost its scripts gets each release by its source.
func TestFold_after_SCRIPT_FLUSH(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	do(t, s, "SCRIPT", "FLUSH")
	var replies []<-chan wire.Reply
	for i := range 10 {
		key := fmt.Sprint(i)
		do(t, s, "SET", key, "v")
		replies = append(replies, give(m, release(key)))
	}
	for _, reply := range replies {
		wantValue(t, receiveFrom(t, "an answer", reply), int64(1))
	}
}

func TestFold_is_known_again_after_SCRIPT_FLUSH(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{})
	do(t, s, "SCRIPT", "FLUSH")
	eventually(t, "a fold was refused and its script loaded", func() bool {
		var replies []<-chan wire.Reply
		for _, key := range []string{"k", "l"} {
			replies = append(replies, give(m, release(key)))
		}
		for _, reply := range replies {
			wantValue(t, receiveFrom(t, "an answer", reply), int64(0))
		}
		return do(t, s, "SCRIPT", "EXISTS", wire.ScriptReleases.SHA).([]any)[0] == int64(1)
	})
}

// L11: what is sent again must not pass a release that still waits for others.
func TestFold_counts_as_given_when_a_call_is_sent_again(t *testing.T) {
	c := newConn(&socket{Conn: newHeldConn()}, "addr", 10, nil, noWitness)
	if err := c.send(&call{cmd: release("k")}); err != nil {
		t.Fatal(err)
	}
	if c.again(&call{cmd: wire.Ask("k", wire.QueueOf("", "k"), "c/nnnnnnnnnnnnnnnn/v:0", 1, time.Second)}) {
		t.Error("the acquire runs after its release")
	}
	if n := c.underway(); n != 2 {
		t.Errorf("%d calls under way, want the release and the script", n)
	}
}
