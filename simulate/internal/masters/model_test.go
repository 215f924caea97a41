package masters

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
	"pgregory.net/rapid"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
)

// begins is what the clocks of the models show.
var begins = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// TestModel_answers_like_Redis compares the model with a real server, command by
// command. Time passes by setting both clocks forward.
func TestModel_answers_like_Redis(t *testing.T) { likeRedis(t, comparison{}) }

// likeRedis compares the model with a real server of its own.
func likeRedis(t *testing.T, with comparison) {
	server := redistest.Start(t, redistest.Faketime())
	conn, err := server.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ear, err := server.Dial()
	if err != nil {
		t.Fatal(err)
	}
	hear(t, ear)
	with.ask = func(name string, args []any) told { return askRedis(t, conn, name, args, with.stored) }
	with.codes, with.pass = true, server.StepClock
	rapid.Check(t, func(t *rapid.T) { compare(t, conn, with) })
}

// told is what a server says of a command.
type told struct {
	before, after int64 // its clock, in microseconds
	reply         any
	err           error
	stored        []string // then, if that is compared
	dumped        int64    // its clock after that
}

// askRedis asks everything in one round trip: most of the time goes into those.
func askRedis(t *testing.T, conn redis.Conn, name string, args []any, stored bool) (a told) {
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(conn.Send("TIME"))
	must(conn.Send(name, args...))
	must(conn.Send("TIME"))
	if stored {
		must(conn.Send("EVAL", dumpScript, 0))
		must(conn.Send("TIME"))
	}
	must(conn.Flush())
	instant := func() int64 {
		now, err := redis.Int64s(conn.Receive())
		must(err)
		return now[0]*1e6 + now[1]
	}
	a.before = instant()
	a.reply, a.err = conn.Receive()
	a.after = instant()
	if stored {
		lines, err := redis.Strings(conn.Receive())
		must(err)
		a.stored, a.dumped = canonical(lines), instant()
	}
	return a
}

// hear subscribes to what the waiters of client c/n are given.
func hear(t *testing.T, ear redis.Conn) {
	t.Cleanup(func() { ear.Close() })
	if _, err := ear.Do("SUBSCRIBE", wire.WaitChannel("", "c/nnnnnnnnnnnnnnnn")); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			if _, err := redis.ReceiveWithTimeout(ear, 0); err != nil {
				return
			}
		}
	}()
}

// TestModel_answers_like_Miniredis is the same with miniredis, whose time stands
// still.
func TestModel_answers_like_Miniredis(t *testing.T) {
	server := miniredis.RunT(t)
	now := begins
	server.SetTime(now)
	conn, err := redis.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ear, err := redis.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	hear(t, ear)
	rapid.Check(t, func(t *rapid.T) {
		compare(t, conn, comparison{
			ask: func(name string, args []any) told {
				reply, err := conn.Do(name, args...)
				return told{before: now.UnixMicro(), after: now.UnixMicro(), reply: reply, err: err}
			},
			// Miniredis takes NX together with XX.
			departs: func(cmd *wire.Command) bool {
				return slices.Contains(cmd.Args, "NX") && slices.Contains(cmd.Args, "XX")
			},
			pass: func(d time.Duration) {
				d += time.Millisecond // miniredis ends a key in the last millisecond of its TTL, Redis after it
				now = now.Add(d)
				server.SetTime(now)
				server.FastForward(d)
			},
		})
	})
}

type comparison struct {
	ask     func(name string, args []any) told
	codes   bool // errors must begin with the same word
	pass    func(time.Duration)
	departs func(*wire.Command) bool     // from Redis, which is what the model follows; nil: nowhere
	draw    func(*rapid.T) *wire.Command // instead of any command
	stored  bool                         // what is stored is compared, too
}

// stall is how long a command may take for the comparison to mean anything: its
// reply may be about any instant while it ran.
const stall = 100 // milliseconds

func compare(t *rapid.T, conn redis.Conn, c comparison) {
	var now int64
	ks := NewKeyspace(func() int64 { return now })
	ks.Listens = func(channel string) bool { return channel == wire.WaitChannel("", "c/nnnnnnnnnnnnnnnn") }
	ks.Publish = func(channel, _ string) int64 {
		if ks.Listens(channel) {
			return 1
		}
		return 0
	}
	forget := func() {
		ks.Flush()
		if _, err := conn.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
	}
	forget()
	run := func(draw func(*rapid.T) *wire.Command) func(*rapid.T) {
		return func(t *rapid.T) {
			cmd := draw(t)
			if c.departs != nil && c.departs(cmd) {
				return
			}
			name, args := request(cmd)
			said := c.ask(name, args)
			now = said.before
			if said.after != now && doubtful(ks, now/1000-stall, said.after/1000) {
				forget() // nobody can say what the reply should have been
				return
			}
			want, wantErr := said.reply, said.err
			got, gotErr := ks.Exec(cmd)
			if refusal, ok := wantErr.(redis.Error); ok {
				if gotErr == nil || c.codes && gotErr.Code != wire.Server(string(refusal)).Code {
					t.Fatalf("%s: the server refuses with %q, the model with %v (reply %v)", show(cmd), refusal, gotErr, got)
				}
				return
			}
			if wantErr != nil {
				t.Fatal(wantErr)
			}
			if gotErr != nil || !sameReply(cmd, got, want) {
				t.Fatalf("%s: the server answers %s, the model %s (error %v)", show(cmd), text(want), text(got), gotErr)
			}
			if !c.stored {
				return
			}
			now = said.after
			if doubtful(ks, now/1000-stall, said.dumped/1000) {
				return // the dump would forget what has just ended
			}
			if modeled := dump(ks); !slices.Equal(modeled, said.stored) {
				t.Fatalf("after %s the server stores\n%s\nand the model\n%s", show(cmd), strings.Join(said.stored, "\n"), strings.Join(modeled, "\n"))
			}
		}
	}
	steps := map[string]func(*rapid.T){
		"command":    run(anyCommand),
		"contention": run(contention),
		"time passes": func(t *rapid.T) {
			c.pass(time.Duration(rapid.IntRange(1, 6).Draw(t, "half seconds")) * time.Second / 2)
		},
	}
	if c.draw != nil {
		delete(steps, "contention")
		for i := range 4 {
			steps["command"+strings.Repeat("'", i)] = run(c.draw)
		}
	}
	t.Repeat(steps)
}

// doubtful reports whether the server was too slow between two instants, or a
// key came to its end there.
func doubtful(ks *Keyspace, from, to int64) bool {
	for _, e := range ks.Keys {
		if e.Until >= from && e.Until <= to {
			return true
		}
		for _, text := range e.Texts {
			word, _, _ := strings.Cut(text, " ")
			if deadline, _ := strconv.ParseInt(word, 10, 64); deadline >= from && deadline <= to {
				return true
			}
		}
		for _, m := range e.Queue { // some are sorted by when they end
			if m.Score >= from && m.Score <= to {
				return true
			}
		}
	}
	return to-from > 2*stall
}

// contention draws what those who want one lock send.
func contention(t *rapid.T) *wire.Command {
	waiter := rapid.SampledFrom([]string{"c/nnnnnnnnnnnnnnnn/x", "c/nnnnnnnnnnnnnnnn/Cy", "gone/nnnnnnnnnnnnnnnn/z", "gone/nnnnnnnnnnnnnnnn/Cz"}).Draw(t, "waiter")
	value := fmt.Sprintf("%s:%d", waiter, rapid.IntRange(0, 3).Draw(t, "n"))
	if rapid.Bool().Draw(t, "with a date") {
		value += "@mhx7k2"
	}
	if rapid.Bool().Draw(t, "with metadata") {
		value += " what for:1"
	}
	ttl := 5 * time.Second
	q := wire.QueueOf("", "a")
	ask := wire.Ask("a", q, value, int64(rapid.IntRange(1, 3).Draw(t, "ticket")), ttl)
	release := wire.Release("a", q, value, ttl)
	return rapid.SampledFrom([]*wire.Command{
		ask, ask, ask, ask, release, release, ask.Hold(), release.Hold(),
		wire.Acquire("a", value, ttl),
		wire.ExtendCached("a", q, value, ttl),
		wire.Acquire("a", foreign(t), ttl),
		wire.Release("a", q, foreign(t), ttl),
	}).Draw(t, "command")
}

// anyCommand draws a command that the model knows, right or wrong.
func anyCommand(t *rapid.T) *wire.Command {
	key := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
	value := rapid.SampledFrom([]string{"x", "y", ""}).Draw(t, "value")
	ttl := time.Duration(rapid.IntRange(1, 10).Draw(t, "ttl")) * time.Second / 2
	ms := fmt.Sprint(ttl.Milliseconds())
	plain := func(name string, args ...string) *wire.Command {
		return &wire.Command{Name: name, Keys: []string{key}, Args: args}
	}
	script := func(s *wire.Script, args ...string) *wire.Command {
		return &wire.Command{Script: s, Keys: []string{key}, Args: args}
	}
	return rapid.SampledFrom([]*wire.Command{
		wire.Acquire(key, value, ttl),
		wire.Extend(key, value, ttl),
		wire.Release(key, wire.QueueOf("", key), value, ttl),
		wire.Release(key, wire.QueueOf("", key), "c/nnnnnnnnnnnnnnnn/w:1", ttl),
		wire.Ask(key, wire.QueueOf("", key), "c/nnnnnnnnnnnnnnnn/w:1", 1, ttl),
		wire.Inspect("", key),
		script(wire.ScriptMarker, "", ""),
		script(wire.ScriptMarker, value, "x"),
		script(wire.ScriptMarker, "", "y"),
		script(wire.ScriptMarker, "", "", "", ""),
		script(wire.ScriptMarker, value, "x", "", "run:1:2:3"),
		script(wire.ScriptMarker, "", "", "run:1:2:3", value),
		{Name: "SET", Keys: []string{"clock"}, Args: []string{value}},
		script(ScriptEnter, value, ms),
		script(ScriptLeave, value, ms),
		script(ScriptStay, value, ms),
		plain("SET", value),
		plain("SET", value, "PX", ms),
		plain("SET", value, "XX", "PX", ms),
		plain("SET", value, "NX"),
		plain("SET", value, "PX", "0"),
		plain("SET", value, "PX", "-1"),
		plain("SET", value, "PX", "soon"),
		plain("SET", value, "PX"),
		plain("SET", value, "NX", "XX"),
		plain("SET", value, "GREEN"),
		plain("SETNX", value),
		plain("GET"),
		plain("DEL"),
		plain("EXISTS"),
		plain("PTTL"),
		plain("PEXPIRE", ms),
		plain("PEXPIRE", "0"),
		plain("PEXPIRE", "-5"),
		plain("PEXPIRE", "soon"),
		{Name: "DEL", Keys: []string{"a", "b", "a"}},
		{Name: "EXISTS", Keys: []string{"a", "b", "a"}},
		{Name: "PUBLISH", Args: []string{"channel", "message"}},
		{Name: "PING"},
		{Name: "FLUSHALL"},
	}).Draw(t, "command")
}

// request is how a command is sent: its name and its arguments.
func request(cmd *wire.Command) (name string, args []any) {
	name = cmd.Name
	if cmd.Script != nil {
		name = "EVAL"
		args = append(args, cmd.Script.Source, len(cmd.Keys))
	}
	for _, k := range cmd.Keys {
		args = append(args, k)
	}
	for _, a := range cmd.Args {
		args = append(args, a)
	}
	return name, args
}

// sameReply compares the replies to a command.
func sameReply(cmd *wire.Command, got, want any) bool {
	switch cmd.Script {
	case wire.ScriptMarker: // and TIME: that of the server is its own
		g, w := got.([]any), want.([]any)
		return len(g) == 5 && len(w) == 5 && same(g[0], w[0]) && same(g[4], w[4])
	case wire.ScriptInspect: // a hash has no order, and neither have those who end at once
		return same(inOrder(got.([]any)), inOrder(want.([]any)))
	}
	if cmd.Script == wire.ScriptPermit { // what is taken is told in the order of its end, which may be the same or not
		return same(slotsInOrder(got), slotsInOrder(want))
	}
	if cmd.Script == wire.ScriptLatchRead { // a set has no order
		return text(sorted(got.([]any))) == text(sorted(want.([]any)))
	}
	return same(got, want)
}

func sorted(members []any) []any {
	return slices.SortedFunc(slices.Values(members), func(a, b any) int { return strings.Compare(text(a), text(b)) })
}

// slotsInOrder sorts the slots that are taken, the last field of a grant after a Resize.
func slotsInOrder(reply any) any {
	fields, ok := reply.([]any)
	if !ok || len(fields) != 5 {
		return reply
	}
	return append(slices.Clone(fields[:4]), inOrderOfSlots(fields[4]))
}

func inOrderOfSlots(list any) []byte {
	text, _ := list.([]byte)
	slots := strings.Split(string(text), ",")
	slices.Sort(slots)
	return []byte(strings.Join(slots, ","))
}

// inOrder sorts what is told of holders by their values, and the slots that are taken.
func inOrder(reply []any) []any {
	const head, taken = 9, 6
	reply = slices.Clone(reply)
	reply[taken] = inOrderOfSlots(reply[taken])
	parts := slices.Collect(slices.Chunk(reply[head:], 3))
	slices.SortFunc(parts, func(a, b []any) int { return strings.Compare(text(a[0]), text(b[0])) })
	return slices.Concat(reply[:head], slices.Concat(parts...))
}

// same compares replies. Large integers are times, which are not known better
// than how long a command takes.
func same(got, want any) bool {
	switch want := want.(type) {
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return false
		}
		for i := range list {
			if !same(list[i], want[i]) {
				return false
			}
		}
		return true
	case int64:
		n, ok := got.(int64)
		return ok && (n == want || n > 10 && want > 10 && max(n-want, want-n) <= 2*stall)
	}
	return text(got) == text(want)
}

func text(v any) string { return fmt.Sprintf("%T %q", v, v) }

func show(cmd *wire.Command) string {
	name := cmd.Name
	if cmd.Script != nil {
		name = "script " + cmd.Script.Name
	}
	return fmt.Sprintf("%s %q %q", name, cmd.Keys, cmd.Args)
}
