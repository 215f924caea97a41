package redlock_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/redlock"
)

func TestReal_latch_opens_for_all_who_wait_when_so_many_have_arrived(t *testing.T) {
	masters := startMasters(t, 5)
	const jobs = 8
	var waiting, all sync.WaitGroup
	for range 3 {
		l := masters.client(t).Latch("jobs", jobs)
		waiting.Go(func() {
			if err := l.Wait(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range jobs {
		l := masters.client(t).Latch("jobs", jobs)
		all.Go(func() {
			for range 2 { // the answer may have been lost
				if err := l.Arrive(ctx, fmt.Sprint("job ", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	waiting.Wait()

	l := masters.client(t).Latch("jobs", jobs)
	if n, err := l.Count(ctx); n != jobs || err != nil {
		t.Errorf("%d have arrived, %v", n, err)
	}
	if err := l.Wait(ctx); err != nil {
		t.Errorf("who comes late: %v", err)
	}
	if n, err := l.Generation("2").Count(ctx); n != 0 || err != nil {
		t.Errorf("the next generation: %d, %v", n, err)
	}
}

// One after the other every master loses its memory; each is told again by a count.
func TestReal_latch_counts_never_go_back_when_masters_forget_one_by_one(t *testing.T) {
	masters := startMasters(t, 5)
	l := masters.client(t).Latch("jobs", 10)
	for i := range 4 {
		if err := l.Arrive(ctx, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range masters {
		do(t, s, "FLUSHALL")
		other := masters[(i+1)%5]
		other.Stop()
		n, err := l.Count(ctx)
		other.Continue()
		if n != 4 || err != nil {
			t.Fatalf("after master %d forgot: %d have arrived, %v", i, n, err)
		}
	}
}

func TestReal_latch_bad_input(t *testing.T) {
	c := startMasters(t, 3).client(t)
	for _, err := range []error{
		c.Latch("x", 0).Arrive(ctx, "a"), c.Latch("", 1).Arrive(ctx, "a"), c.Latch("x", 1).Arrive(ctx, ""), c.Latch("x", 1).Arrive(ctx, "."),
		c.Latch("x", 1, redlock.Fair()).Arrive(ctx, "a"), c.Latch("x", 0).Wait(ctx),
	} {
		if err == nil {
			t.Error("accepted")
		}
	}
	done := make(chan error)
	go func() { done <- c.Latch("x", 1).Wait(ctx) }()
	c.Close()
	if err := arrival(t, "Wait returns", done); !errors.Is(err, redlock.ErrClosed) {
		t.Errorf("%v, want closed", err)
	}
}

// A name and a generation must not come to the key of another latch.
func TestReal_latch_generation_with_a_colon_is_refused(t *testing.T) {
	c := startMasters(t, 1).client(t)
	l := c.Latch("c", 1).Generation("a:b")
	for _, err := range []error{l.Arrive(ctx, "x"), l.Wait(ctx)} {
		mustName(t, err, []string{`Generation("a:b")`, "colon"})
	}
}

// More arrivals than Lua can pass on at once.
func TestReal_latch_counts_ten_thousand_arrivals_where_the_masters_differ(t *testing.T) {
	masters := startMasters(t, 3)
	l := masters.client(t).Latch("jobs", redlock.MaxArrivals)
	if err := l.Arrive(ctx, "0"); err != nil {
		t.Fatal(err)
	}
	ids := redis.Args{"redlock:latch::jobs"}
	for i := range 9_999 {
		ids = ids.Add(fmt.Sprint("job ", i))
	}
	do(t, masters[0], "SADD", ids...)
	do(t, masters[1], "SADD", ids...)

	n, err := l.Count(ctx)

	if n != 10_000 || err != nil {
		t.Errorf("%d have arrived, %v", n, err)
	}
}
