package masters

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorumlock/quorumlock/node/wire"
)

// TestModel_answers_like_Redis_for_every_kind compares the models of the scripts of every
// kind of lock with a real server: what they answer, and what they have stored.
func TestModel_answers_like_Redis_for_every_kind(t *testing.T) {
	t.Parallel()
	for name, draw := range map[string]func(*rapid.T) *wire.Command{
		"fenced": fencedCommand, "fair": fairCommand, "multi": multiCommand, "read-write": rwCommand, "semaphore": permitCommand,
		"latch": latchCommand, "kept": keptCommand, "election": electionCommand, "request": requestCommand, "transfer": transferCommand,
		"yielding": yieldingCommand,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			likeRedis(t, comparison{draw: draw, stored: true})
		})
	}
}

// aValue draws a value of one of few waiters, of which the last two are gone.
func aValue(t *rapid.T) string {
	waiter := rapid.SampledFrom([]string{"c/nnnnnnnnnnnnnnnn/x", "c/nnnnnnnnnnnnnnnn/y", "c/nnnnnnnnnnnnnnnn/z", "c/nnnnnnnnnnnnnnnn/Cz", "gone/nnnnnnnnnnnnnnnn/y", "gone/nnnnnnnnnnnnnnnn/z"}).Draw(t, "waiter")
	return fmt.Sprintf("%s:%d", waiter, rapid.IntRange(0, 3).Draw(t, "n"))
}

// foreign draws a value of another library.
func foreign(t *rapid.T) string {
	return rapid.SampledFrom([]string{"foreign", "host:1", "host:2", "team/app/web:1", "team/app/web:2"}).Draw(t, "foreign")
}

func aTTL(t *rapid.T) time.Duration {
	return time.Duration(rapid.IntRange(1, 10).Draw(t, "ttl")) * time.Second
}

// aKeep draws for how long a lock is kept. A release compares that with the TTL of the lock: it is never
// the same but for the milliseconds that the commands take.
func aKeep(t *rapid.T) time.Duration { return aTTL(t) + time.Second/4 }

func aTicket(t *rapid.T) int64 { return int64(rapid.IntRange(1, 4).Draw(t, "ticket")) }

// aToken draws a token or proposal, small or of as many digits as a clock has. It is not
// ahead of the server's clock, which would count instead.
func aToken(t *rapid.T) uint64 {
	return rapid.SampledFrom([]uint64{1, 2, 3, 5, 100_000_000_000_001, 100_000_000_000_002}).Draw(t, "token")
}

// oneOf draws a command, as it is or for a master that is not to be believed.
func oneOf(t *rapid.T, cmds ...*wire.Command) *wire.Command {
	cmd := rapid.SampledFrom(cmds).Draw(t, "command")
	if (cmd.Op == wire.OpAsk || cmd.Op == wire.OpRelease) && rapid.IntRange(0, 5).Draw(t, "hold") == 0 {
		return cmd.Hold()
	}
	return cmd
}

func fencedCommand(t *rapid.T) *wire.Command {
	value, ttl, token, q := aValue(t), aTTL(t), aToken(t), wire.QueueOf("", "a")
	return oneOf(t,
		wire.FencedAcquire("a", q, value, ttl, token),
		wire.FencedAsk("a", q, value, aTicket(t), ttl, token),
		wire.FencedAsk("a", q, value, aTicket(t), ttl, token),
		wire.FencedRaise("a", q, value, token),
		wire.FencedExtend("a", q, value, ttl, token),
		wire.FencedRepair("a", q, value, ttl, token),
		wire.FencedRelease("a", q, value, ttl, token),
		wire.Inspect("", "a"),
		wire.Release("a", q, value, ttl),
	)
}

func fairCommand(t *rapid.T) *wire.Command {
	value, ttl, q := aValue(t), aTTL(t), wire.QueueOf("", "a")
	least := int64(rapid.IntRange(0, 4).Draw(t, "least")) // 0: not to queue
	return oneOf(t,
		wire.FairAsk("a", q, value, least, ttl),
		wire.FairAsk("a", q, value, least, ttl),
		wire.FencedFairAsk("a", q, value, least, ttl, aToken(t)),
		wire.Ask("a", q, value, aTicket(t), ttl),
		wire.FencedAsk("a", q, value, aTicket(t), ttl, aToken(t)),
		wire.Release("a", q, value, ttl),
		wire.Acquire("a", foreign(t), ttl),
		wire.Release("a", q, foreign(t), ttl),
	)
}

func keptCommand(t *rapid.T) *wire.Command {
	value, ttl, q := aValue(t), aTTL(t), wire.QueueOf("", "a")
	return oneOf(t,
		wire.Acquire("a", value, ttl),
		wire.Acquire("a", value, ttl),
		wire.Acquire("a", foreign(t), ttl),
		wire.Keep("a", q, value, aKeep(t)),
		wire.Keep("a", q, value, aKeep(t)),
		wire.Extend("a", value, ttl),
		wire.Ask("a", q, value, aTicket(t), ttl),
		wire.Ask("a", q, value, aTicket(t), ttl),
		wire.FencedAsk("a", q, value, aTicket(t), ttl, aToken(t)),
		wire.Release("a", q, value, ttl).Keeping(),
		wire.Release("a", q, value, ttl).Keeping(),
		wire.FencedRelease("a", q, value, ttl, aToken(t)).Keeping(),
		wire.Release("a", q, value, ttl).KeepingNothing(),
		wire.FencedRelease("a", q, value, ttl, aToken(t)).KeepingNothing(),
		wire.Release("a", q, value, ttl),
	)
}

// yieldingCommand draws what locks of several kinds do while a mutex of that name yields.
func yieldingCommand(t *rapid.T) *wire.Command {
	value, ttl, q := aValue(t), aTTL(t), wire.QueueOf("", "a")
	passing := rapid.SampledFrom([]string{"c/nnnnnnnnnnnnnnnn/P1:0", "c/nnnnnnnnnnnnnnnn/0P1:2", "c/nnnnnnnnnnnnnnnn/Pp:0@1 text", "c/nnnnnnnnnnnnnnnn/C1:0", "c/nn/C1:0", "c/nn/P1:0", "c/nnnnnnnnnnnnnnnn/P1", "host:1"}).Draw(t, "passing")
	m, rw := wire.ManyOf("", []string{"a", "b"}), wire.ReadWriteOf("", "a")
	return oneOf(t,
		wire.Yield("a", q, value, ttl),
		wire.Yield("a", q, value, ttl),
		wire.Ask("a", q, value, aTicket(t), ttl),
		wire.Ask("a", q, value, aTicket(t), ttl),
		wire.FencedAsk("a", q, value, aTicket(t), ttl, aToken(t)),
		wire.Release("a", q, value, ttl),
		wire.Release("a", q, value, ttl),
		wire.Release("a", q, value, ttl).Keeping(),
		wire.Keep("a", q, value, aKeep(t)),
		wire.FencedRelease("a", q, value, ttl, aToken(t)).HandTo(wire.WaiterOf(aValue(t))),
		wire.FairAsk("a", q, value, int64(rapid.IntRange(0, 4).Draw(t, "least")), ttl),
		wire.Acquire("a", passing, ttl),
		wire.Release("a", q, passing, ttl),
		m.Take(wire.OpAsk, value, ttl, aTicket(t), 0, rapid.IntRange(wire.WaitForEach, 2).Draw(t, "wait for")),
		m.Release(value, ttl, 0),
		rw.Write(wire.OpAsk, value, ttl, aTicket(t)),
		rw.Read(wire.OpAsk, value, ttl, aTicket(t)),
		rw.Release(value, ttl),
		wire.Inspect("", "a"),
	)
}

func requestCommand(t *rapid.T) *wire.Command {
	values := rapid.SampledFrom([][]string{{"a"}, {"a", "b"}, {"b", "c/nnnnnnnnnnnnnnnn/x:1 two words"}}).Draw(t, "values")
	number := rapid.SampledFrom([]int64{1, 2, 10, 1_700_000_000_000_001, 1_700_000_000_000_002}).Draw(t, "number")
	client := rapid.SampledFrom([]string{"c", "d"}).Draw(t, "client")
	return oneOf(t,
		wire.MakeRequest("", values, wire.Request{Number: number, Client: client, Reason: "please let go"}, aTTL(t)),
		wire.Requested("", values[0]),
	)
}

func multiCommand(t *rapid.T) *wire.Command {
	value, ttl := aValue(t), aTTL(t)
	names := rapid.SampledFrom([][]string{{"a"}, {"a", "b"}, {"b", "c"}, {"a", "b", "c"}}).Draw(t, "names")
	m, token := wire.ManyOf("", names), uint64(0)
	if rapid.Bool().Draw(t, "fenced") {
		token = aToken(t)
	}
	q := wire.QueueOf("", "b")
	return oneOf(t,
		m.Take(wire.OpAcquire, value, ttl, 0, token, wire.WaitForFirst),
		m.Take(wire.OpAsk, value, ttl, aTicket(t), token, rapid.IntRange(wire.WaitForEach, len(names)).Draw(t, "wait for")),
		m.Take(wire.OpAsk, value, ttl, aTicket(t), token, wire.WaitForFirst),
		m.Take(wire.OpAsk, value, ttl, aTicket(t), token, wire.WaitForEach),
		m.Raise(value, aToken(t)),
		m.Extend(value, ttl, token),
		m.Repair(value, ttl, token),
		m.Release(value, ttl, token),
		m.Release(value, ttl, token),
		wire.Ask("b", q, value, aTicket(t), ttl),
		wire.Release("b", q, value, ttl),
		wire.Acquire("b", foreign(t), ttl),
		wire.Release("b", q, foreign(t), ttl),
		m.Release(foreign(t), ttl, token),
	)
}

func rwCommand(t *rapid.T) *wire.Command {
	value, ttl, rw := strings.Replace(aValue(t), "/z", "/Wz", 1), aTTL(t), wire.ReadWriteOf("", "a")
	return oneOf(t,
		rw.Write(wire.OpAcquire, value, ttl, 0),
		rw.Write(wire.OpAsk, value, ttl, aTicket(t)),
		rw.Read(wire.OpAcquire, value, ttl, 0),
		rw.Read(wire.OpAsk, value, ttl, aTicket(t)),
		rw.ExtendWriter(value, ttl),
		rw.ExtendReader(value, ttl),
		rw.RepairWriter(value, ttl),
		rw.RepairReader(value, ttl),
		rw.Release(value, ttl),
		rw.Release(value, ttl),
		wire.Acquire("a", foreign(t), ttl),
		rw.Release(foreign(t), ttl),
		wire.Release("a", wire.QueueOf("", "a"), value, ttl), // of a waiter that has gone, whose client knows no more than its key
		wire.Inspect("", "a"),
	)
}

func permitCommand(t *rapid.T) *wire.Command {
	value, ttl, p := aValue(t), aTTL(t), wire.PermitsOf("", "a")
	total := rapid.SampledFrom([]int{3, 3, 3, 2}).Draw(t, "total")
	n := rapid.IntRange(1, total).Draw(t, "how many")
	start := rapid.IntRange(0, total-1).Draw(t, "start")
	slots := rapid.SampledFrom([]wire.Slots{"0", "1", "2", "0,1", "2,0", "1,2"}).Draw(t, "slots")
	token, order := uint64(0), int64(rapid.IntRange(0, 3).Draw(t, "order"))
	if rapid.Bool().Draw(t, "fenced") {
		token = aToken(t)
	}
	return oneOf(t,
		p.Take(wire.OpAcquire, value, ttl, 0, total, n, start, token),
		p.Take(wire.OpAsk, value, ttl, aTicket(t), total, n, start, token),
		p.Take(wire.OpAsk, value, ttl, aTicket(t), total, n, start, token),
		p.Move(value, ttl, slots, total, order, token),
		p.Extend(value, ttl, slots, total, token),
		p.Repair(value, ttl, slots, total, order, token),
		p.Release(value, ttl),
		p.Release(value, ttl),
		p.Raise(value, slots, aToken(t)),
		p.Resize(total, order),
		wire.Inspect("", "a"),
	)
}

func latchCommand(t *rapid.T) *wire.Command {
	l, keep := wire.LatchOf("", "a", ""), aTTL(t)
	ids := []string{"x", "y", "z"}
	return rapid.SampledFrom([]*wire.Command{
		l.Arrive(rapid.SampledFrom(ids).Draw(t, "who"), keep, rapid.IntRange(2, 3).Draw(t, "most")),
		l.Count(keep),
		l.Write(ids[:rapid.IntRange(0, 3).Draw(t, "how many")], keep),
		l.Write(ids[:rapid.IntRange(0, 3).Draw(t, "how many remember")], keep).For("run 1 n"),
		wire.Acquire(wire.MarkerKey(""), rapid.SampledFrom([]string{"run +1 5 3 abc - n", "run 2", "run 1 5 3 abc - n more"}).Draw(t, "marker"), keep),
		wire.Release(wire.MarkerKey(""), wire.QueueOf("", "a"), "run 2", keep),
		l.Read(),
	}).Draw(t, "command")
}

func electionCommand(t *rapid.T) *wire.Command {
	value, ttl, l, q := aValue(t), aTTL(t), wire.LeadershipOf("", "a"), wire.QueueOf("", "a")
	number := rapid.SampledFrom([]string{"1", "2", "10"}).Draw(t, "number")
	return oneOf(t,
		l.Proclaim(value, number, "text "+number, ttl),
		l.Proclaim(value, number, "text "+number, ttl),
		l.Leader(),
		l.Leader(),
		l.Announce(),
		wire.FencedAcquire("a", q, value, ttl, aToken(t)),
		wire.Release("a", q, value, ttl),
	)
}

// transferCommand draws what a leader and those who wait send: the leader is always the same.
func transferCommand(t *rapid.T) *wire.Command {
	ttl, q, leader := aTTL(t), wire.QueueOf("", "a"), "c/nnnnnnnnnnnnnnnn/l:0"
	return oneOf(t,
		wire.Acquire("a", leader, ttl),
		wire.FencedAsk("a", q, aValue(t), aTicket(t), ttl, aToken(t)),
		wire.FencedAsk("a", q, aValue(t), aTicket(t), ttl, aToken(t)),
		wire.Ask("a", q, aValue(t), aTicket(t), ttl),
		wire.FencedRelease("a", q, leader, ttl, aToken(t)).HandTo(wire.WaiterOf(aValue(t))),
		wire.FencedRelease("a", q, leader, ttl, aToken(t)).HandTo(wire.WaiterOf(aValue(t))),
		wire.Release("a", q, aValue(t), ttl),
	)
}

// instant is a time in milliseconds or longer: no two clocks are read at once.
var instant = regexp.MustCompile(`\b[12]\d{12}\b`)

// dump lists what the model stores.
func dump(ks *Keyspace) []string {
	var lines []string
	for key, e := range ks.Copy() {
		switch {
		case e.IsString():
			lines = append(lines, key+" = "+e.Value)
		case e.Texts != nil:
			for field, text := range e.Texts {
				lines = append(lines, key+" "+field+": "+text)
			}
		default:
			for _, m := range e.Queue {
				lines = append(lines, fmt.Sprintf("%s %s at %d", key, m.Member, m.Score))
			}
		}
	}
	return canonical(lines)
}

// dumpScript lists what a server stores.
const dumpScript = `local all = {}
for _, key in ipairs(redis.call('keys', '*')) do
  local kind = redis.call('type', key).ok
  if kind == 'string' then
    all[#all + 1] = key .. ' = ' .. redis.call('get', key)
  else
    local parts = {}
    if kind == 'hash' then
      parts = redis.call('hgetall', key)
    elseif kind == 'zset' then
      parts = redis.call('zrange', key, 0, -1, 'WITHSCORES')
    else
      for _, member in ipairs(redis.call('smembers', key)) do
        parts[#parts + 1] = member
        parts[#parts + 1] = ''
      end
    end
    for i = 1, #parts, 2 do
      all[#all + 1] = key .. ' ' .. parts[i] .. (kind == 'zset' and ' at ' or ': ') .. parts[i + 1]
    end
  end
end
return all`

// canonical sorts lines, and takes the times out of them.
func canonical(lines []string) []string {
	for i := range lines {
		lines[i] = instant.ReplaceAllString(lines[i], "T")
	}
	slices.Sort(lines)
	return lines
}
