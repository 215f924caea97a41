package redlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// year2255 is when the microseconds since 1970 are 2^53.
var year2255 = time.UnixMicro(1 << 53)

// lockCall is Lock, TryLock or the like.
type lockCall func(context.Context) (*redlock.Lease, error)

// S53: a client whose clock says 2255 takes part. Tokens go on to rise, one by one, and
// stay near the clock of the masters.
func TestReal_S53_tokens_rise_with_a_client_whose_clock_says_2255(t *testing.T) {
	masters := startMasters(t, 3)
	wrong := masters.client(t, redlock.WithClock(shifted{clock.New(), time.Until(year2255) + time.Hour}))
	right := masters.client(t)
	for name, of := range map[string]func(*redlock.Client) lockCall{
		"mutex": func(c *redlock.Client) lockCall { return c.Mutex("a", redlock.Fenced()).Lock },
		"fair":  func(c *redlock.Client) lockCall { return c.Mutex("b", redlock.Fenced(), redlock.Fair()).Lock },
		"multi": func(c *redlock.Client) lockCall { return c.Multi([]string{"c", "d"}, redlock.Fenced()).Lock },
		"permits": func(c *redlock.Client) lockCall {
			return func(ctx context.Context) (*redlock.Lease, error) {
				return c.Semaphore("e", 1, redlock.Fenced()).Acquire(ctx, 1)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			last, most := uint64(0), uint64(time.Now().Add(48*time.Hour).UnixMicro())
			if name == "permits" {
				most = most / 16 * wire.MaxPermits
			}
			for i := range 12 {
				ctx, cancel := context.WithTimeout(ctx, patience) // a counter that cannot rise is waited for
				lease, err := of([]*redlock.Client{wrong, right, wrong, wrong}[i%4])(ctx)
				cancel()
				if err != nil {
					t.Fatal(err)
				}
				if token := lease.Token(); token <= last || token > most {
					t.Errorf("token %d after %d; at most %d", token, last, most)
				}
				last = lease.Token()
				unlocks(t, lease)
			}
		})
	}
}

// S53: a counter that is at its end, as clients of old versions may have left it, gives no
// token twice: nobody gets the lock, and the error says why.
func TestReal_S53_a_counter_that_cannot_rise_grants_nothing(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		masters.doAll(t, "SET", "redlock:token:"+name, "9007199254740992")
	}
	for kind, try := range map[string]lockCall{
		"mutex": c.Mutex("a", redlock.Fenced()).TryLock,
		"fair":  c.Mutex("b", redlock.Fenced(), redlock.Fair()).TryLock,
		"multi": c.Multi([]string{"c", "d"}, redlock.Fenced()).TryLock,
		"permits": func(ctx context.Context) (*redlock.Lease, error) {
			return c.Semaphore("e", 1, redlock.Fenced()).TryAcquire(ctx, 1)
		},
		"many at once":  manyAtOnce(c.Mutex("a", redlock.Fenced())),
		"those waiting": inTime(c.Mutex("a", redlock.Fenced())),
	} {
		lease, err := try(ctx)
		if err == nil {
			t.Errorf("%s: the lock was granted with the token %d", kind, lease.Token())
			continue
		}
		if !strings.Contains(err.Error(), "counter of this lock cannot rise any more") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		masters.mustBeFreeSoon(t, name)
	}
}

// manyAtOnce has several calls of TryLock in one write to each master.
func manyAtOnce(m *redlock.Mutex) lockCall {
	return func(ctx context.Context) (lease *redlock.Lease, err error) {
		type result struct {
			lease *redlock.Lease
			err   error
		}
		got := make(chan result)
		for range 16 {
			go func() {
				lease, err := m.TryLock(ctx)
				got <- result{lease, err}
			}()
		}
		for range 16 {
			if r := <-got; r.lease != nil || err == nil || strings.Contains(r.err.Error(), "counter") {
				lease, err = r.lease, r.err
			}
		}
		return lease, err
	}
}

// inTime is Lock with little time.
func inTime(m *redlock.Mutex) lockCall {
	return func(ctx context.Context) (*redlock.Lease, error) {
		ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		return m.Lock(ctx)
	}
}
