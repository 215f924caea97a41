// Moving measures a fleet that moves from redsync to this library: four callers of each want
// one lock all the time, on the masters in REDLOCK_NODES, and keep it for 5 ms. It prints how
// many turns each library gets in 20 s, with the lock handed over and with Polling.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
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

const (
	callers = 4 // of each library
	work    = 5 * time.Millisecond
	lasts   = 20 * time.Second
)

func main() {
	masters := os.Getenv("REDLOCK_NODES")
	if masters == "" {
		log.Fatal("REDLOCK_NODES is not set: give it masters of your own, such as a:6379,b:6379,c:6379")
	}
	addrs := strings.Split(masters, ",")
	for _, err := range []error{
		measure(addrs, "handed over"),
		measure(addrs, "Polling(10ms, 50ms)", redlock.Polling(10*time.Millisecond, 50*time.Millisecond)),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}
}

// measure prints one line: whose turns how many were.
func measure(addrs []string, title string, opts ...redlock.MutexOption) error {
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	client, err := redlock.Dial(ctx, addrs)
	if err != nil {
		return err
	}
	defer client.Close()
	var pools []redis.Pool
	for _, addr := range addrs {
		pool := &redigo.Pool{MaxIdle: callers, Dial: func() (redigo.Conn, error) { return redigo.Dial("tcp", addr) }}
		defer pool.Close()
		pools = append(pools, redigopool.NewPool(pool))
	}
	theirs := redsync.New(pools...)
	name := fmt.Sprintf("moving:%d:%s", os.Getpid(), title)

	turns := section{}
	turns.callers(ctx, &turns.ours, func() (unlock func(), err error) {
		lease, err := client.Mutex(name, opts...).Lock(ctx)
		if err != nil {
			return nil, err
		}
		return func() { lease.Unlock(context.Background()) }, nil
	})
	turns.callers(ctx, &turns.theirs, func() (unlock func(), err error) {
		m := theirs.NewMutex(name) // 32 tries, 50 to 250 ms apart
		if err := m.LockContext(ctx); err != nil {
			return nil, err
		}
		return func() { m.Unlock() }, nil
	})
	turns.all.Wait()
	if turns.together.Load() {
		return errors.New("two callers had the lock at the same time")
	}
	our, their := turns.ours.Load(), turns.theirs.Load()
	fmt.Printf("%-20s %5d turns of this library, %5d of redsync: %.0f %%\n", title, our, their, 100*float64(their)/float64(max(1, our+their)))
	return nil
}

// section is what one caller at a time may be in.
type section struct {
	all          sync.WaitGroup
	inside       atomic.Int64
	together     atomic.Bool
	ours, theirs atomic.Int64
}

// callers starts callers that take turns until the context ends.
func (s *section) callers(ctx context.Context, turns *atomic.Int64, lock func() (unlock func(), err error)) {
	for range callers {
		s.all.Go(func() {
			for ctx.Err() == nil {
				unlock, err := lock()
				if err != nil {
					continue // redsync gave up, or the time is over
				}
				if s.inside.Add(1) > 1 {
					s.together.Store(true)
				}
				time.Sleep(work)
				s.inside.Add(-1)
				turns.Add(1)
				unlock()
			}
		})
	}
}
