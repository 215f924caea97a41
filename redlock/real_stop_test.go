package redlock_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// leaping is the clock of a machine that is suspended now and then: its timers do not know of it.
type leaping struct {
	clock.Clock
	by atomic.Int64
}

func (l *leaping) Now() time.Time       { return l.Clock.Now().Add(time.Duration(l.by.Load())) }
func (l *leaping) leap(d time.Duration) { l.by.Add(int64(d)) }

// stoppable are the kinds of locks, with StopWithin. The second locks what the first excludes.
var stoppable = []struct {
	name      string
	lock, bar func(context.Context, *redlock.Client, redlock.LockOption) (*redlock.Lease, error)
}{
	{"mutex", mutexWith("mutex"), mutexWith("mutex")},
	{"fenced", mutexWith("fenced", redlock.Fenced()), mutexWith("fenced", redlock.Fenced())},
	{"fair", mutexWith("fair", redlock.Fair()), mutexWith("fair", redlock.Fair())},
	{"reentrant", mutexWith("reentrant", redlock.Reentrant()), mutexWith("reentrant")},
	{"at least", mutexWith("at least", redlock.AtLeast(3*second)), mutexWith("at least")},
	{"multi", multiWith, multiWith},
	{"write", func(ctx context.Context, c *redlock.Client, o redlock.LockOption) (*redlock.Lease, error) {
		return c.RWMutex("write", o).Lock(ctx)
	}, func(ctx context.Context, c *redlock.Client, o redlock.LockOption) (*redlock.Lease, error) {
		return c.RWMutex("write", o).RLock(ctx)
	}},
	{"read", func(ctx context.Context, c *redlock.Client, o redlock.LockOption) (*redlock.Lease, error) {
		return c.RWMutex("read", o).RLock(ctx)
	}, func(ctx context.Context, c *redlock.Client, o redlock.LockOption) (*redlock.Lease, error) {
		return c.RWMutex("read", o).Lock(ctx)
	}},
	{"semaphore", semaphoreWith, semaphoreWith},
	{"election", electionWith, electionWith},
}

func mutexWith(name string, more ...redlock.MutexOption) func(context.Context, *redlock.Client, redlock.LockOption) (*redlock.Lease, error) {
	return func(ctx context.Context, c *redlock.Client, o redlock.LockOption) (*redlock.Lease, error) {
		return c.Mutex(name, append(more[:len(more):len(more)], o)...).Lock(ctx)
	}
}

func multiWith(ctx context.Context, c *redlock.Client, o redlock.LockOption) (*redlock.Lease, error) {
	return c.Multi([]string{"one", "two"}, o).Lock(ctx)
}

func semaphoreWith(ctx context.Context, c *redlock.Client, o redlock.LockOption) (*redlock.Lease, error) {
	return c.Semaphore("semaphore", 3, o).Acquire(ctx, 2)
}

func electionWith(ctx context.Context, c *redlock.Client, o redlock.LockOption) (*redlock.Lease, error) {
	return c.Election("election", o).Campaign(ctx, "here")
}

// Whatever happens to a minority: work that goes on when its context has ended keeps the lock from
// others until it is stopped, and then leaves nothing. The holder's machine is suspended twice.
func TestReal_stop_with_a_minority_of_the_masters_gone(t *testing.T) {
	t.Parallel()
	const grace = 10 * time.Second
	for _, fault := range append(faults, fault{name: "two killed and restarted", while: func(ms realMasters) { kill(2)(ms); revive(2)(ms) }}) {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			masters := startMasters(t, 5)
			happens := func(what func(realMasters)) {
				if what != nil {
					what(masters)
				}
			}
			machine := &leaping{Clock: clock.New()}
			one, other := masters.client(t, redlock.WithTTL(30*second), redlock.WithClock(machine)), masters.client(t, redlock.WithTTL(30*second))
			eventually(t, "all masters are asked", func() bool { return connected(one) == len(masters) && connected(other) == len(masters) })
			happens(fault.before)
			stopped := make([]atomic.Int32, len(stoppable))
			leases := make([]*redlock.Lease, len(stoppable))
			for i, k := range stoppable {
				lease, err := k.lock(ctx, one, redlock.Options(redlock.NoRenew(), redlock.StopWithin(grace, func(cause error) {
					mustBe(t, cause, redlock.ErrExpired)
					if leases[i].Valid() || leases[i].Context().Err() == nil {
						t.Errorf("%s: stopped before its context had ended", k.name)
					}
					stopped[i].Add(1)
				})))
				if err != nil {
					t.Fatalf("%s: %v", k.name, err)
				}
				leases[i] = lease
			}
			if fault.while != nil {
				eventually(t, "all masters have all locks", func() bool { return masters.areAlike(t) })
			}
			happens(fault.while)
			machine.leap(leases[0].Remaining())
			for _, lease := range leases {
				mustEnd(t, lease.Context())
				mustBe(t, context.Cause(lease.Context()), redlock.ErrExpired)
			}
			within, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			got := make(chan error, len(stoppable))
			for i, k := range stoppable {
				go func() {
					lease, err := k.bar(within, other, redlock.NoRenew())
					if n := stopped[i].Load(); err == nil && n != 1 {
						t.Errorf("%s: another client has the lock, and the work was stopped %d times", k.name, n)
					}
					if err == nil {
						err = lease.Unlock(ctx)
					}
					got <- err
				}()
			}

			machine.leap(grace)

			for range stoppable {
				if err := arrival(t, "a lock of the other client", got); err != nil {
					t.Error(err)
				}
			}
			for i, lease := range leases {
				mustBe(t, lease.Unlock(ctx), redlock.ErrExpired)
				if n := stopped[i].Load(); n != 1 {
					t.Errorf("%s: stopped %d times", stoppable[i].name, n)
				}
			}
			happens(fault.after)
			masters.mustKeepNothing(t)
		})
	}
}

// areAlike reports whether all masters store the same keys.
func (ms realMasters) areAlike(t testing.TB) bool {
	t.Helper()
	first := slices.Sorted(slices.Values(keysOf(t, ms[0])))
	for _, s := range ms[1:] {
		if !slices.Equal(first, slices.Sorted(slices.Values(keysOf(t, s)))) {
			return false
		}
	}
	return true
}

// The end of a lock that a majority has forgotten is told to its work immediately, with all of the
// validity left.
func TestReal_stop_comes_immediately_when_a_majority_has_lost_the_lock(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	stopped := make(chan error, 2)
	lease := lock(t, ms.client(t).Mutex("orders", redlock.NoRenew(), redlock.TTL(time.Hour), redlock.StopWithin(time.Minute, func(cause error) { stopped <- cause })))
	ms.mustHold(t, lease)
	ms[:3].doAll(t, "DEL", "orders")

	mustBe(t, lease.Extend(ctx, time.Hour), redlock.ErrLost)

	mustBe(t, arrival(t, "stop", stopped), redlock.ErrLost)
	mustBe(t, context.Cause(lease.Context()), redlock.ErrLost)
	ms.mustBeFreeSoon(t, "orders")
}

// A Close that has waited for the grace does not give the lock to others while stop runs.
func TestReal_stop_keeps_the_lock_from_others_until_it_has_returned(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	seldom := redlock.WithTTL(time.Minute)
	holder, other := ms.client(t, seldom), ms.client(t, seldom)
	runs, returns, closed := make(chan error, 1), make(chan struct{}), make(chan error, 1)
	lease := lock(t, holder.Mutex("orders", redlock.StopWithin(10*time.Millisecond, func(cause error) {
		runs <- cause
		<-returns
	})))
	ms.mustHold(t, lease)
	next := lockLater(t, other.Mutex("orders"))
	eventually(t, "the other client waits", func() bool { return ms.queuedFor(t, "orders", 1) })

	go func() { closed <- holder.Close() }()

	mustBe(t, arrival(t, "stop", runs), redlock.ErrClosed)
	time.Sleep(200 * time.Millisecond) // a Close that waits for the grace alone would release it meanwhile
	if got := ms.values(t, "orders"); !slices.Equal(got, slices.Repeat([]string{lease.Value()}, len(ms))) {
		t.Errorf("the masters have %q, and stop has not returned", got)
	}
	close(returns)
	if err := arrival(t, "the end of Close", closed); err != nil {
		t.Error(err)
	}
	unlocks(t, next())
	ms.mustKeepNothing(t)
}

// The lock that a process holds when it ends by Exit goes to the next when its TTL is over.
func TestReal_stop_by_Exit_ends_the_process(t *testing.T) {
	t.Parallel()
	ms := startMasters(t, 5)
	for name, says := range map[string]bool{"says why": true, "whose standard error nobody reads": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			defer write.Close()
			if !says {
				write.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
				if n, err := write.Write(make([]byte, 1<<22)); err == nil {
					t.Fatalf("%d bytes do not fill a pipe", n)
				}
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), processAddrs+"="+strings.Join(redistest.URLs(ms), ","), processTTL+"=2s")
			cmd.Stderr = write
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(in, "exit at the end of "+name)

			err = cmd.Wait()

			if cmd.ProcessState.ExitCode() != 7 {
				t.Fatalf("ended with %v, want exit status 7", err)
			}
			if says {
				write.Close()
				text, _ := io.ReadAll(read)
				if want := `redlock: hold "says why": expired: its work has not ended in time, so the process ends` + "\n"; !strings.HasSuffix(string(text), want) {
					t.Errorf("said %q, want %q", text, want)
				}
			}
			unlocks(t, lock(t, ms.client(t).Mutex(name)))
		})
	}
}
