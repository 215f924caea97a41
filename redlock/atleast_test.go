package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// takesAtLeast has a caller try to take a lock of five masters that is to be kept for so long.
func takesAtLeast(t *testing.T, d time.Duration, opts ...redlock.Option) (masters []*scripted, got <-chan *redlock.Lease, failed <-chan error) {
	t.Helper()
	told := make(chan error, 1)
	masters, got = scriptedClient(t, func(ctx context.Context, c *redlock.Client) (*redlock.Lease, error) {
		lease, err := c.Mutex("nightly", redlock.AtLeast(d)).TryLock(ctx)
		if err != nil {
			told <- err
		}
		return lease, err
	}, opts...)
	return masters, got, told
}

// S73: masters granted the lock, and lost it before they were asked to keep it. Those that keep it
// are no majority: they forget it again, or nobody would get the lock until then.
func TestS73_no_lease_without_a_majority_that_keeps_the_lock(t *testing.T) {
	masters, _, failed := takesAtLeast(t, 8*time.Second)
	for _, q := range questions(t, masters, wire.OpAcquire) {
		q.answer(wire.Reply{Value: "OK"})
	}
	for i, q := range questions(t, masters, wire.OpCommit) {
		if want := "8000"; q.cmd.Args[1] != want {
			t.Errorf("asked to keep it for %s ms, want %s", q.cmd.Args[1], want)
		}
		q.answer(wire.Reply{Value: int64(i / 3)}) // the first three do not have it
	}

	for i, q := range questions(t, masters, wire.OpRelease) {
		if args := q.cmd.Args; len(args) != 3 || args[2] != "-" {
			t.Errorf("master %d is asked to release with %q, and goes on to keep the lock", i, args)
		}
		q.answer(wire.Reply{Value: int64(1)})
	}
	for _, q := range questions(t, masters, wire.OpRead) {
		q.answer(wire.Reply{Value: int64(0)})
	}
	mustBe(t, arrival(t, "the error", failed), redlock.ErrTaken)
}

// L56: a release does not say for how long the lock stays, however early it is: it may arrive late.
// Each master knows, if it was asked to keep the lock.
func TestL56_a_release_leaves_it_to_the_masters_for_how_long_the_lock_stays(t *testing.T) {
	masters, got, _ := takesAtLeast(t, 8*time.Second)
	for _, q := range questions(t, masters, wire.OpAcquire) {
		q.answer(wire.Reply{Value: "OK"})
	}
	for _, q := range questions(t, masters, wire.OpCommit) {
		q.answer(wire.Reply{Value: int64(1)})
	}
	lease := arrival(t, "the lease", got)

	go lease.Release()

	for i, q := range questions(t, masters, wire.OpRelease) {
		if args := q.cmd.Args; len(args) != 3 || args[2] != wire.KeepArg {
			t.Errorf("master %d is asked to release with %q", i, args)
		}
		q.answer(wire.Reply{Value: int64(1)})
	}
}

// S73: a release is worth delivering for as long as the lock may last: for the TTL or AtLeast,
// whichever is longer.
func TestS73_for_how_long_a_release_is_owed(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{5 * time.Second: 8 * time.Second, 9 * time.Second: 9 * time.Second} {
		masters, _, failed := takesAtLeast(t, 8*time.Second, redlock.WithTTL(ttl), redlock.WithRestartGuard(10*time.Second))
		for i, q := range questions(t, masters, wire.OpAcquire) {
			q.answer([]wire.Reply{{Value: "OK"}, {}}[min(1, i/2)]) // two of five grant it
		}
		for i, q := range questions(t, masters[:2], wire.OpRelease) {
			if q.cmd.Keep != want {
				t.Errorf("TTL %v: master %d is owed the release of an attempt for %v, want %v", ttl, i, q.cmd.Keep, want)
			}
			q.answer(wire.Reply{Value: int64(1)})
		}
		for _, q := range questions(t, masters, wire.OpRead) {
			q.answer(wire.Reply{Value: int64(1000)})
		}
		mustBe(t, arrival(t, "the error", failed), redlock.ErrTaken)

		masters, got, _ := takesAtLeast(t, 8*time.Second, redlock.WithTTL(ttl), redlock.WithRestartGuard(10*time.Second))
		for _, q := range questions(t, masters, wire.OpAcquire) {
			q.answer(wire.Reply{Value: "OK"})
		}
		for _, q := range questions(t, masters, wire.OpCommit) {
			q.answer(wire.Reply{Value: int64(1)})
		}
		lease := arrival(t, "the lease", got)
		go lease.Release()
		for i, q := range questions(t, masters, wire.OpRelease) {
			if q.cmd.Keep != want {
				t.Errorf("TTL %v: master %d is owed the release of a lease for %v, want %v", ttl, i, q.cmd.Keep, want)
			}
			q.answer(wire.Reply{Value: int64(1)})
		}
	}
}

// S73: the table of how long a lock is kept from who was refused, by what masters answer.
func TestS73_for_how_long_at_most_a_lock_is_kept(t *testing.T) {
	const none, forever, fails, odd = -2, -1, -3, -4 // there is no such key, it has no end, the master fails, or says something else
	for name, c := range map[string]struct {
		left [5]int64
		want time.Duration
	}{
		"until all that answer are free": {[...]int64{fails, fails, 5000, 9000, 2000}, 9 * time.Second},
		"where some are free already":    {[...]int64{fails, fails, none, 9000, none}, 9 * time.Second},
		"where all are free":             {[...]int64{fails, fails, none, none, none}, 0},
		"where some answer oddly":        {[...]int64{odd, odd, 5000, 9000, 2000}, 9 * time.Second},
		"where most do not answer":       {[...]int64{fails, fails, fails, 8000, 2000}, 0},
		"where one keeps it for ever":    {[...]int64{fails, fails, forever, 9000, 2000}, 0},
	} {
		masters, _, failed := takesAtLeast(t, 8*time.Second)
		for _, q := range questions(t, masters, wire.OpAcquire) {
			q.answer(wire.Reply{}) // somebody has it
		}
		for _, m := range masters {
			m.drops(t)
		}
		for i, q := range questions(t, masters, wire.OpRead) {
			reply := wire.Reply{Value: c.left[i]}
			switch c.left[i] {
			case fails:
				reply = wire.Reply{Err: &wire.Error{Err: errors.New("is not there")}}
			case odd:
				reply = wire.Reply{Value: "what is this"}
			}
			if q.answer(reply); i == 2 {
				time.Sleep(20 * time.Millisecond) // no majority has answered yet
			}
		}
		err := arrival(t, "the error", failed)
		refused := new(redlock.Error)
		if mustBe(t, err, redlock.ErrTaken); errors.As(err, &refused) && refused.Remaining != c.want {
			t.Errorf("%s: for %v, want %v", name, refused.Remaining, c.want)
		}
	}
}
