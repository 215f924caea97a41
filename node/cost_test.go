package node

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
)

// What a free lock of each kind costs a master is a number of commands, those that
// its scripts call among them.
func TestScripts_call_no_more_commands_than_they_need(t *testing.T) {
	s := redistest.Start(t)
	q, rw, p := wire.QueueOf("", "k"), wire.ReadWriteOf("", "k"), wire.PermitsOf("", "k")
	m := wire.ManyOf("", []string{"a", "b", "c"})
	const value, reader, ttl = "c/nnnnnnnnnnnnnnnn/w:0", "c/nnnnnnnnnnnnnnnn/r:0", time.Minute
	for _, c := range []struct {
		what             string
		acquire, release *wire.Command
		taken, released  int
		beside           *wire.Command // that somebody else has
	}{
		{"plain", wire.Acquire("k", value, ttl), wire.Release("k", q, value, ttl), 1, 4, nil},
		{"fenced", wire.FencedAcquire("k", q, value, ttl, 7), wire.FencedRelease("k", q, value, ttl, 7), 4, 5, nil},
		{"fair", wire.FairAsk("k", q, value, 0, ttl), wire.Release("k", q, value, ttl), 3, 4, nil},
		{"multi", m.Take(wire.OpAcquire, value, ttl, 0, 0, wire.WaitForFirst), m.Release(value, ttl, 0), 5, 4, nil},
		{"write", rw.Write(wire.OpAcquire, value, ttl, 0), rw.Release(value, ttl), 3, 4, nil},
		{"read", rw.Read(wire.OpAcquire, value, ttl, 0), rw.Release(value, ttl), 7, 7, nil},
		{"read beside a reader", rw.Read(wire.OpAcquire, value, ttl, 0), rw.Release(value, ttl), 13, 7, rw.Read(wire.OpAcquire, reader, ttl, 0)},
		{"permit", p.Take(wire.OpAcquire, value, ttl, 0, 5, 1, 0, 0), p.Release(value, ttl), 11, 9, nil},
		{"permit beside another", p.Take(wire.OpAcquire, value, ttl, 0, 5, 1, 0, 0), p.Release(value, ttl), 19, 9, p.Take(wire.OpAcquire, reader, ttl, 0, 5, 1, 0, 0)},
	} {
		do(t, s, "FLUSHALL")
		if c.beside != nil {
			runOn(t, s, c.beside)
		}
		if n := countCalls(t, s, c.acquire); n > c.taken {
			t.Errorf("%s: %d commands to take it, at most %d", c.what, n, c.taken)
		}
		if n := countCalls(t, s, c.release); n > c.released {
			t.Errorf("%s: %d commands to release it, at most %d", c.what, n, c.released)
		}
	}
}

// countCalls runs a command and returns how many the server has run for it.
func countCalls(t *testing.T, s *redistest.Server, cmd *wire.Command) (n int) {
	do(t, s, "CONFIG", "RESETSTAT")
	runOn(t, s, cmd)
	stats, err := redis.String(s.Do("INFO", "commandstats"))
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range regexp.MustCompile(`cmdstat_(\S+):calls=(\d+)`).FindAllStringSubmatch(stats, -1) {
		if of[1] == "config|resetstat" || of[1] == "config" { // the same before Redis 7
			continue
		}
		calls, _ := strconv.Atoi(of[2])
		n += calls
	}
	return n
}

func runOn(t *testing.T, s *redistest.Server, cmd *wire.Command) {
	t.Helper()
	name, args := "EVAL", evalArgs
	if cmd.Script == nil {
		name, args = cmd.Name, plainArgs
	}
	if _, err := s.Do(name, args(cmd)...); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
}

func plainArgs(cmd *wire.Command) (args []any) {
	for _, s := range append(append([]string{}, cmd.Keys...), cmd.Args...) {
		args = append(args, s)
	}
	return args
}
