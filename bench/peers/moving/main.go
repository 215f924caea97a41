// Moving measures a fleet that moves from redsync to this library: three callers of each want
// one lock, on the masters in REDLOCK_NODES. It prints how many turns each side gets, for holds
// and pauses from short to long; beside redsync, and beside callers of this library that poll.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	redigopool "github.com/go-redsync/redsync/v4/redis/redigo"
	redigo "github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/redlock"
)

const callers = 3 // of each side

// pace is what every caller does: it holds the lock, then pauses.
type pace struct{ hold, pause time.Duration }

// load is how much of the time one side alone would hold the lock, if nobody ever waited.
func (p pace) load() float64 { return callers * p.hold.Seconds() / (p.hold + p.pause).Seconds() }

var paces = []pace{
	{2 * time.Millisecond, 3 * time.Millisecond},
	{50 * time.Millisecond, 20 * time.Millisecond},
	{time.Second, 2 * time.Second},
	{50 * time.Millisecond, 150 * time.Millisecond},
	{50 * time.Millisecond, 250 * time.Millisecond},
	{50 * time.Millisecond, 1200 * time.Millisecond},
}

// locker returns a lock function that a side calls, and what ends the side.
type locker func(ctx context.Context, name string) (unlock func(), err error)

var (
	lasts = flag.Duration("lasts", 10*time.Second, "how long each cell is measured, but at least 40 holds")
	only  = flag.String("only", "", "measure only the sides whose title contains this")
	some  = flag.Int("pace", 0, "measure only this pace, from 1")
	procs = flag.Int("clients", 1, "how many clients the callers of this library belong to, as if each were a process")
)

func main() {
	flag.Parse()
	masters := os.Getenv("REDLOCK_NODES")
	if masters == "" {
		log.Fatal("REDLOCK_NODES is not set: give it masters of your own, such as a:6379,b:6379,c:6379")
	}
	if err := measureAll(strings.Split(masters, ",")); err != nil {
		log.Fatal(err)
	}
}

func measureAll(addrs []string) error {
	ctx := context.Background()
	clients := make([]*redlock.Client, *procs+1)
	for i := range clients {
		c, err := redlock.Dial(ctx, addrs)
		if err != nil {
			return err
		}
		defer c.Close()
		clients[i] = c
	}
	var pools []redis.Pool
	for _, addr := range addrs {
		pool := &redigo.Pool{MaxIdle: callers, Dial: func() (redigo.Conn, error) { return redigo.Dial("tcp", addr) }}
		defer pool.Close()
		pools = append(pools, redigopool.NewPool(pool))
	}
	ours, other := clients[1:], clients[:1]
	polling := redlock.Polling(10*time.Millisecond, 50*time.Millisecond)
	for _, sides := range []struct {
		title        string
		ours, others locker
	}{
		{"alone", handedOver(ours), nil},
		{"redsync alone", nil, retrying(pools)},
		{"beside redsync", handedOver(ours), retrying(pools)},
		{"Polling beside redsync", handedOver(ours, polling), retrying(pools)},
		{"beside Polling", handedOver(ours), handedOver(other, polling)},
		{"beside TryLock", handedOver(ours), trying(other[0])},
	} {
		if !strings.Contains(sides.title, *only) {
			continue
		}
		for i, p := range paces {
			if *some != 0 && *some != i+1 {
				continue
			}
			if err := measure(ctx, sides.title, p, sides.ours, sides.others); err != nil {
				return err
			}
		}
	}
	return nil
}

func handedOver(clients []*redlock.Client, opts ...redlock.MutexOption) locker {
	var next atomic.Int64
	return func(ctx context.Context, name string) (func(), error) {
		lease, err := clients[int(next.Add(1))%len(clients)].Mutex(name, opts...).Lock(ctx)
		if err != nil {
			return nil, err
		}
		return lease.Release, nil
	}
}

// trying calls TryLock as often as redsync tries.
func trying(client *redlock.Client) locker {
	return func(ctx context.Context, name string) (func(), error) {
		lease, err := client.Mutex(name).TryLock(ctx)
		if err != nil {
			time.Sleep(50*time.Millisecond + rand.N(200*time.Millisecond))
			return nil, err
		}
		return lease.Release, nil
	}
}

func retrying(pools []redis.Pool) locker {
	rs := redsync.New(pools...)
	return func(ctx context.Context, name string) (func(), error) {
		m := rs.NewMutex(name) // 32 tries, 50 to 250 ms apart
		if err := m.LockContext(ctx); err != nil {
			return nil, err
		}
		return func() { m.Unlock() }, nil
	}
}

var cells int

// measure prints one line: whose turns how many were.
func measure(ctx context.Context, title string, p pace, ours, others locker) error {
	span := max(*lasts, 40*p.hold)
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	cells++
	name := fmt.Sprintf("moving:%d:%d", os.Getpid(), cells)
	turns := section{}
	turns.callers(ctx, name, p, &turns.ours, ours)
	turns.callers(ctx, name, p, &turns.theirs, others)
	turns.all.Wait()
	if turns.together.Load() {
		return errors.New("two callers had the lock at the same time")
	}
	our, their := turns.ours.Load(), turns.theirs.Load()
	fmt.Printf("%-24s hold %4v pause %5v load %.2f: %5d and %5d of the others, %5.1f %%, %7.1f/s, held %4.1f %%, longest wait %v and %v\n", title, p.hold, p.pause, p.load(),
		our, their, 100*float64(their)/float64(max(1, our+their)), float64(our+their)/span.Seconds(),
		100*float64(our+their)*p.hold.Seconds()/span.Seconds(),
		time.Duration(turns.ours.longest.Load()).Round(time.Millisecond), time.Duration(turns.theirs.longest.Load()).Round(time.Millisecond))
	return nil
}

// section is what one caller at a time may be in.
type section struct {
	all          sync.WaitGroup
	inside       atomic.Int64
	together     atomic.Bool
	ours, theirs side
}

// side counts turns, and keeps the longest wait.
type side struct {
	atomic.Int64
	longest atomic.Int64
}

// callers starts callers that take turns until the context ends.
func (s *section) callers(ctx context.Context, name string, p pace, turns *side, lock locker) {
	if lock == nil {
		return
	}
	for range callers {
		s.all.Go(func() {
			since := time.Now()
			for ctx.Err() == nil {
				unlock, err := lock(ctx, name)
				waited := int64(time.Since(since))
				for old := turns.longest.Load(); waited > old && !turns.longest.CompareAndSwap(old, waited); old = turns.longest.Load() {
				}
				if err != nil {
					continue // it gave up, or the time is over
				}
				if s.inside.Add(1) > 1 {
					s.together.Store(true)
				}
				time.Sleep(p.hold)
				s.inside.Add(-1)
				turns.Add(1)
				unlock()
				time.Sleep(p.pause)
				since = time.Now()
			}
		})
	}
}
