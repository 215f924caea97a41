package node

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"pgregory.net/rapid"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// However releases are folded, each is answered, and leaves the server, as if it
// had come alone. Only that a key is no string is not told.
func TestFold_is_the_same_as_one_by_one(t *testing.T) {
	servers := redistest.StartN(t, 2)
	alone, folded := servers[0], servers[1]
	both := func(cmd string, args ...any) {
		for _, s := range servers {
			do(t, s, cmd, args...)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		both("FLUSHALL")
		f := newFold()
		for range rapid.IntRange(2, maxFold).Draw(t, "releases") {
			key := fmt.Sprint("key", rapid.IntRange(0, 8).Draw(t, "key"))
			value := rapid.SampledFrom([]string{"mine", "an earlier one", "c/n/w:1", "c/n/w:2"}).Draw(t, "value")
			if rapid.Bool().Draw(t, "with a queue") {
				q := QueueOf("", key)
				both("ZADD", q.Order, 1, "c/n/w", 2, "gone/n/x")
				both("HSET", q.Entries, "c/n/w", "99999999999999 - c/n/w:1", "gone/n/x", "99999999999999 - gone/n/x:1")
			}
			switch rapid.SampledFrom([]string{"held", "foreign", "absent", "no string"}).Draw(t, "state") {
			case "held":
				both("SET", key, value)
			case "foreign":
				both("SET", key, "theirs")
			case "no string":
				both("DEL", key)
				both("RPUSH", key, "x")
			}
			f.add(call{cmd: Release(key, QueueOf("", key), value, time.Minute)})
		}
		var want []any
		for _, k := range f.calls {
			reply, err := alone.Do("EVAL", evalArgs(k.cmd)...)
			if err != nil && Server(err.Error()).Code == "WRONGTYPE" {
				reply = int64(0)
			}
			want = append(want, reply)
		}
		got, err := redis.Values(folded.Do("EVAL", evalArgs(f.complete())...))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("folded: %v, one by one: %v", got, want)
		}
		for i := range 9 {
			key := fmt.Sprint("key", i)
			for _, k := range []string{key, QueueOf("", key).Order, QueueOf("", key).Entries} {
				a, _ := alone.Do("DUMP", k)
				b, _ := folded.Do("DUMP", k)
				if !reflect.DeepEqual(a, b) {
					t.Fatalf("%s is left differently", k)
				}
			}
		}
	})
}

// The release of an earlier attempt comes twice, and the one that deletes
// between them: it is told so, and hands the lock on.
func TestFold_a_release_of_somebody_else_does_not_hide_ours(t *testing.T) {
	s := redistest.StartN(t, 1)[0]
	do(t, s, "SET", "k", "v2")
	q := QueueOf("", "k")
	do(t, s, "ZADD", q.Order, 1, "gone/n/w")
	do(t, s, "HSET", q.Entries, "gone/n/w", "99999999999999 - gone/n/w:0")
	f := newFold()
	for _, value := range []string{"v1", "v2", "v2"} {
		f.add(call{cmd: Release("k", q, value, time.Minute)})
	}

	got, err := redis.Int64s(s.Do("EVAL", evalArgs(f.complete())...))

	if err != nil || !reflect.DeepEqual(got, []int64{-1, 1, 0}) {
		t.Errorf("answers %v, %v; want -1, 1, 0", got, err)
	}
	if left, err := redis.Int(s.Do("EXISTS", "k", q.Order, q.Entries)); err != nil || left != 0 {
		t.Errorf("%d keys left, %v: the lock is gone, and so is the waiter that has left", left, err)
	}
}

func evalArgs(cmd *Command) []any {
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
	for _, cmd := range []*Command{
		Acquire("a", "1", time.Minute), Release("a", QueueOf("", "a"), "1", time.Minute),
		Release("b", QueueOf("", "b"), "1", time.Minute), Acquire("c", "1", time.Minute),
		Acquire("b", "2", time.Minute), Release("c", QueueOf("", "c"), "1", time.Minute), get("end"),
	} {
		if err := c.queue(call{cmd: cmd}); err != nil {
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

func TestFold_breaks_with_its_connection_into_releases(t *testing.T) {
	s := newStub(t, but("EVALSHA", func(args []string) string {
		if args[1] == ScriptMarker.SHA {
			return "default"
		}
		return silence
	}))
	m := connect(t, s.addr(), Config{MinBackoff: time.Minute, MaxBackoff: time.Minute})
	c := m.live.Load()
	replies := make(chan Reply, 3)
	c.mu.Lock()
	for _, key := range []string{"a", "b", "c"} {
		c.queue(call{cmd: release(key), done: func(r Reply) { replies <- r }})
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
	var replies []<-chan Reply
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
		var replies []<-chan Reply
		for range 2 {
			replies = append(replies, give(m, release("k")))
		}
		for _, reply := range replies {
			wantValue(t, receiveFrom(t, "an answer", reply), int64(0))
		}
		return do(t, s, "SCRIPT", "EXISTS", scriptReleases.SHA).([]any)[0] == int64(1)
	})
}

// L11: what is sent again must not pass a release that still waits for others.
func TestFold_counts_as_given_when_a_call_is_sent_again(t *testing.T) {
	c := newConn(&wire{Conn: newHeldConn()}, "addr", 10, nil, noWitness)
	if err := c.send(call{cmd: release("k")}); err != nil {
		t.Fatal(err)
	}
	if c.again(call{cmd: Ask("k", QueueOf("", "k"), "c/n/v:0", 1, time.Second)}) {
		t.Error("the acquire runs after its release")
	}
	if n := c.underway(); n != 2 {
		t.Errorf("%d calls under way, want the release and the script", n)
	}
}
