package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
)

// L29: a waiter that has gone is told that it is its turn, since its client still
// listens for others, and is withdrawn. Then everybody is told whose turn it is now, as
// by the release of the lock itself: nobody else would tell them.
func TestReal_L29_a_withdrawal_tells_everybody_whose_turn_it_is(t *testing.T) {
	const ttl = time.Minute
	q, rw, p := wire.QueueOf("", "a"), wire.ReadWriteOf("", "a"), wire.PermitsOf("", "a")
	take := func(op wire.Op, value string, ticket int64, n int) *wire.Command {
		return p.Take(op, value, ttl, ticket, 3, n, 0, 0)
	}
	for name, c := range map[string]struct {
		before []*wire.Command // the first of those who wait is c/n/gone:1
		free   *wire.Command
		want   []string // who is told by the withdrawal
	}{
		"readers behind a writer": {
			[]*wire.Command{
				rw.Write(wire.OpAcquire, aHolder, ttl, 0), rw.Write(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/gone:1", ttl, 1),
				rw.Read(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/r1:1", ttl, 2), rw.Read(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/r2:1", ttl, 3), rw.Write(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/w:1", ttl, 4), rw.Read(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/r3:1", ttl, 5),
			}, rw.Release(aHolder, ttl), []string{"c/nnnnnnnnnnnnnnnn/r1:1", "c/nnnnnnnnnnnnnnnn/r2:1"},
		},
		"readers behind a reader and a writer whose client has gone, too": {
			[]*wire.Command{
				rw.Write(wire.OpAcquire, aHolder, ttl, 0), rw.Read(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/gone:1", ttl, 1), rw.Write(wire.OpAsk, "dead/nnnnnnnnnnnnnnnn/w:1", ttl, 2),
				rw.Read(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/r1:1", ttl, 3), rw.Read(wire.OpAsk, "dead/nnnnnnnnnnnnnnnn/r:1", ttl, 4), rw.Read(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/r2:1", ttl, 5),
			}, rw.Release(aHolder, ttl), []string{"c/nnnnnnnnnnnnnnnn/r1:1", "c/nnnnnnnnnnnnnnnn/r2:1"},
		},
		"writers behind a writer": {
			[]*wire.Command{
				rw.Write(wire.OpAcquire, aHolder, ttl, 0), rw.Write(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/gone:1", ttl, 1),
				rw.Write(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/w1:1", ttl, 2), rw.Write(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/w2:1", ttl, 3),
			}, rw.Release(aHolder, ttl), []string{"c/nnnnnnnnnnnnnnnn/w1:1"},
		},
		"permits": {
			[]*wire.Command{
				take(wire.OpAcquire, aHolder, 0, 2), take(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/gone:1", 1, 3),
				take(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/p1:1", 2, 1), take(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/p2:1", 3, 2), take(wire.OpAsk, "c/nnnnnnnnnnnnnnnn/p3:1", 4, 1),
			}, p.Release(aHolder, ttl), []string{"c/nnnnnnnnnnnnnnnn/p1:1", "c/nnnnnnnnnnnnnnnn/p2:1"},
		},
		"mutexes": {
			[]*wire.Command{
				wire.Acquire("a", aHolder, ttl), wire.Ask("a", q, "c/nnnnnnnnnnnnnnnn/gone:1", 1, ttl),
				wire.Ask("a", q, "c/nnnnnnnnnnnnnnnn/m1:1", 2, ttl), wire.Ask("a", q, "c/nnnnnnnnnnnnnnnn/m2:1", 3, ttl),
			}, wire.Release("a", q, aHolder, ttl), []string{"c/nnnnnnnnnnnnnnnn/m1:1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			told := listenIn(t, s)
			for _, cmd := range c.before {
				runOn(t, s, cmd)
			}
			told()
			runOn(t, s, c.free)
			said := told()
			if len(said) == 0 || said[0].Value != "c/nnnnnnnnnnnnnnnn/gone:1" {
				t.Fatalf("told: %v, want first the waiter that has gone", said)
			}

			runOn(t, s, wire.Withdraw("", said[0], ttl))

			var got []string
			for _, n := range told() {
				got = append(got, n.Value)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("told: %q, want %q", got, c.want)
			}
		})
	}
}

// listenIn hears what the waiters of client c/n are told. The function that it returns
// returns what that was since it was called last.
func listenIn(t *testing.T, s *redistest.Server) func() []wire.Notice {
	t.Helper()
	channel := wire.WaitChannel("", "c/nnnnnnnnnnnnnnnn")
	ear, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ear.Close() })
	if _, err := ear.Do("SUBSCRIBE", channel); err != nil {
		t.Fatal(err)
	}
	return func() (all []wire.Notice) {
		t.Helper()
		do(t, s, "PUBLISH", channel, "all")
		for {
			message, err := redis.Strings(ear.Receive())
			if err != nil {
				t.Fatal(err)
			}
			if message[2] == "all" {
				return all
			}
			_, text, _ := strings.Cut(message[2], "\n") // behind the marker and the clock
			said, ok := wire.ParseNotice(text)
			if !ok {
				t.Fatalf("no notice: %q", message[2])
			}
			all = append(all, said)
		}
	}
}
