package node

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/wire"
)

// pair is one lock and unlock at one node.
type pair struct{ acquire, release *wire.Command }

func newPair(caller int) pair {
	key := fmt.Sprint("bench:", caller)
	return pair{wire.Acquire(key, "value-of-this-caller", time.Minute), wire.Release(key, wire.QueueOf("", key), "value-of-this-caller", time.Minute)}
}

// caller asks a master and waits, without allocating.
type caller struct {
	m       *Master
	replies chan wire.Reply
	done    func(wire.Reply)
}

func newCaller(m *Master) *caller {
	c := &caller{m: m, replies: make(chan wire.Reply, 1)}
	c.done = func(r wire.Reply) { c.replies <- r }
	return c
}

func (c *caller) ask(cmd *wire.Command) wire.Reply {
	c.m.Do(cmd, c.done)
	return <-c.replies
}

// Steady traffic must not allocate: ten masters' worth of garbage per lock is
// what the collector would have to find.
func TestMaster_allocates_nothing_per_call(t *testing.T) {
	s := redistest.Start(t)
	m := connect(t, s.URL(), Config{Heartbeat: time.Hour})
	c, p := newCaller(m), newPair(0)
	extend := wire.Extend(p.acquire.Keys[0], "value-of-this-caller", time.Minute)
	n := testing.AllocsPerRun(1000, func() {
		for _, cmd := range []*wire.Command{p.acquire, extend, p.release} {
			if r := c.ask(cmd); r.Err != nil {
				t.Error(r.Err)
			}
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for acquire, extend and release", n)
	}
}

func TestMaster_allocates_nothing_per_call_while_it_is_down(t *testing.T) {
	s := newStub(t, healthy)
	s.ln.Close()
	m := open(t, s.addr(), Config{Backoff: Redial{Min: time.Hour, Max: time.Hour}})
	_ = firstAttempt(t, m)
	c, p := newCaller(m), newPair(0)
	if n := testing.AllocsPerRun(1000, func() { c.ask(p.acquire) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkPair locks and unlocks on one master, over one shared connection and
// over a redigo pool with a connection for each caller.
func BenchmarkPair(b *testing.B) {
	s := redistest.Start(b)
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("multiplexed/%d", callers), func(b *testing.B) {
			m := connect(b, s.URL(), Config{})
			run(b, callers, func(i int) func() error {
				c, p := newCaller(m), newPair(i)
				return func() error {
					if r := c.ask(p.acquire); r.Err != nil {
						return r.Err
					}
					if r := c.ask(p.release); r.Err != nil {
						return r.Err
					}
					return nil
				}
			})
			st := m.Status()
			b.ReportMetric(float64(st.Commands)/float64(st.Writes), "commands/write")
		})
		b.Run(fmt.Sprintf("redigo-pool/%d", callers), func(b *testing.B) {
			pool := &redis.Pool{MaxIdle: callers, Dial: func() (redis.Conn, error) { return redis.Dial("tcp", s.Addr()) }}
			defer pool.Close()
			script := redis.NewScript(1, wire.ScriptRelease.Source)
			run(b, callers, func(i int) func() error {
				p := newPair(i)
				key, value := p.acquire.Keys[0], p.acquire.Args[0]
				return func() error {
					c := pool.Get()
					defer c.Close()
					if _, err := c.Do("SET", key, value, "NX", "PX", 60_000); err != nil {
						return err
					}
					_, err := script.Do(c, key, value, "")
					return err
				}
			})
		})
	}
}

// run times b.N operations by so many callers, and the CPU that they cost us.
func run(b *testing.B, callers int, prepare func(i int) func() error) {
	ops := make([]func() error, callers)
	for i := range ops {
		ops[i] = prepare(i)
		if err := ops[i](); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	began := cpu()
	var all sync.WaitGroup
	for _, op := range ops {
		all.Go(func() {
			for range (b.N + callers - 1) / callers {
				if err := op(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
	b.ReportMetric(float64((cpu()-began).Microseconds())/float64(b.N), "cpu-µs/pair")
}

func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
