package node

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
)

// What a lease counts on must not end earlier by what its client sends later: a command may
// be late and arrive behind one that asks for more (S66), or the clock of the master may be
// behind when it arrives (S68), which is the same to the master as a shorter TTL.
func TestReal_S68_no_command_of_a_holder_brings_its_end_forward(t *testing.T) {
	const long, short = time.Minute, time.Second
	q, many := wire.QueueOf("", "a").Fenced(), wire.ManyOf("", []string{"a", "b"})
	rw, permits := wire.ReadWriteOf("", "a"), wire.PermitsOf("", "a")
	fair := permits.Take(wire.OpAcquire, aHolder, long, 0, 5, 2, 0, 7)
	locked := wire.Acquire("a", aHolder, long)
	writes, reads := rw.Write(wire.OpAcquire, aHolder, long, 0), rw.Read(wire.OpAcquire, aHolder, long, 0)
	for _, c := range []struct {
		name        string
		held, later *wire.Command
	}{
		{"a mutex is extended", locked, wire.Extend("a", aHolder, short)},
		{"a mutex is repaired", locked, wire.Repair("a", aHolder, short)},
		{"a fenced lock is extended", wire.FencedAcquire("a", q, aHolder, long, 7), wire.FencedExtend("a", q, aHolder, short, 7)},
		{"a fenced lock is repaired", wire.FencedAcquire("a", q, aHolder, long, 7), wire.FencedRepair("a", q, aHolder, short, 7)},
		{"a Multi is extended", many.Take(wire.OpAcquire, aHolder, long, 0, 0, 0), many.Extend(aHolder, short, 0)},
		{"a Multi is repaired", many.Take(wire.OpAcquire, aHolder, long, 0, 0, 0), many.Repair(aHolder, short, 0)},
		{"a writer is extended", writes, rw.ExtendWriter(aHolder, short)},
		{"a writer is repaired", writes, rw.RepairWriter(aHolder, short)},
		{"a writer becomes a reader", writes, rw.ExtendReader(aHolder, short)},
		{"a writer asks late", writes, rw.Write(wire.OpAsk, aHolder, short, 1)},
		{"a reader is extended", reads, rw.ExtendReader(aHolder, short)},
		{"a reader is repaired", reads, rw.RepairReader(aHolder, short)},
		{"a reader asks late", reads, rw.Read(wire.OpAsk, aHolder, short, 1)},
		{"permits are extended", fair, permits.Extend(aHolder, short, "0,1", 5, 7)},
		{"permits are repaired", fair, permits.Repair(aHolder, short, "0,1", 5, 0, 7)},
		{"permits are moved to where they are", fair, permits.Move(aHolder, short, "0,1", 5, 0, 7)},
		{"permits are asked for late", fair, permits.Take(wire.OpAsk, aHolder, short, 1, 5, 2, 0, 7)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			runOn(t, s, c.held)
			before := endOf(t, s)

			runOn(t, s, c.later)

			if after := endOf(t, s); after < before-100 { // ends are read to some milliseconds
				t.Errorf("what is held ends %d ms earlier", before-after)
			}
		})
	}
}

// endOf returns when the first of what is held ends: locks, readers and permits. Keys that
// hold a set end with the last of its members.
func endOf(t *testing.T, s *redistest.Server) (first int64) {
	t.Helper()
	ends, err := redis.Int64s(s.Do("EVAL", `
		local now, ends = redis.call('time'), {}
		for _, key in ipairs({'a', 'b', 'redlock:readers:a', 'redlock:reading:a', 'redlock:slots:a', 'redlock:owners:a', 'redlock:held:a'}) do
			local left = redis.call('pttl', key)
			if left >= 0 then
				ends[#ends + 1] = now[1] * 1000 + math.floor(now[2] / 1000) + left
			end
			if redis.call('type', key).ok == 'zset' then
				ends[#ends + 1] = tonumber(redis.call('zrange', key, 0, 0, 'WITHSCORES')[2])
			end
		end
		return ends`, 0))
	if err != nil || len(ends) == 0 {
		t.Fatalf("nothing is held: %v", err)
	}
	for i, end := range ends {
		if i == 0 || end < first {
			first = end
		}
	}
	return first
}
