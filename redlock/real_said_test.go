package redlock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/redlock"
)

// wandering is a clock whose wall time can be set.
type wandering struct {
	clock.Clock
	ahead *atomic.Int64
}

func (w wandering) Now() time.Time { return w.Clock.Now().Add(time.Duration(w.ahead.Load())) }

// L50: what Proclaim said nil about is what others see, though a process whose clock was
// ahead has said something before.
func TestReal_L50_what_was_proclaimed_is_seen(t *testing.T) {
	masters := startMasters(t, 3)
	ahead := masters.client(t, redlock.WithClock(shifted{clock.New(), time.Hour}))
	c, observer := masters.client(t), masters.client(t)
	e := ahead.Election("boss", redlock.NoRenew())
	first, err := e.Campaign(ctx, "campaign")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Proclaim(ctx, first, "by the clock that is ahead"); err != nil {
		t.Fatal(err)
	}
	adopted, err := c.Election("boss").Adopt(ctx, first.Value())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // each by a handle of its own
		said := fmt.Sprint("said ", i)
		if err := c.Election("boss").Proclaim(ctx, adopted, said); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			leader, err := observer.Election("boss").Leader(ctx)
			if err != nil || leader.Value != said {
				t.Fatalf("the leader says %q, %v; it has proclaimed %q", leader.Value, err, said)
			}
		}
	}
	unlocks(t, adopted)
	if err := c.Election("boss").Proclaim(ctx, adopted, "too late"); err == nil {
		t.Error("who does not lead has proclaimed something")
	}
}

// L50: the leader's clock is set back between two handles.
func TestReal_L50_what_was_proclaimed_is_seen_when_the_clock_was_set_back(t *testing.T) {
	masters := startMasters(t, 3)
	hour := new(atomic.Int64)
	c := masters.client(t, redlock.WithClock(wandering{clock.New(), hour}))
	lease, err := c.Election("boss").Campaign(ctx, "campaign")
	if err != nil {
		t.Fatal(err)
	}
	for i, ahead := range []time.Duration{0, -20 * time.Second, -40 * time.Second} {
		hour.Store(int64(ahead))
		said := fmt.Sprint("said ", i)
		if err := c.Election("boss").Proclaim(ctx, lease, said); err != nil {
			t.Fatal(err)
		}
		if leader, err := c.Election("boss").Leader(ctx); err != nil || leader.Value != said {
			t.Errorf("the leader says %q, %v; it has proclaimed %q", leader.Value, err, said)
		}
	}
}

// L50: the masters count up to the leader's token after it was seen. It is the same leader.
func TestReal_L50_a_leader_is_yielded_once_though_its_token_rises(t *testing.T) {
	masters := startMasters(t, 3)
	c := masters.client(t)
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lead := func(value string, token int) {
		masters.doAll(t, "SET", "boss", value)
		masters.doAll(t, "SET", "redlock:token:boss", token)
		masters.doAll(t, "PUBLISH", "redlock:leader:boss", "leader")
	}
	lead("first/aaaaaaaaaaaaaaaa/1:0 one", 5)
	var seen []string
	told := make(chan struct{})
	for leader := range c.Election("boss").Observe(within) {
		seen = append(seen, leader.Client)
		switch len(seen) {
		case 1:
			lead("first/aaaaaaaaaaaaaaaa/1:0 one", 6)
			eventually(t, "the client looks again", func() bool {
				l, err := c.Election("boss").Leader(within)
				return err == nil && l.Token == 6
			})
			go func() {
				defer close(told)
				time.Sleep(300 * time.Millisecond) // in which it may be yielded once more
				lead("second/aaaaaaaaaaaaaaaa/1:0 two", 7)
			}()
		default:
			cancel()
		}
	}
	<-told
	if fmt.Sprint(seen) != "[first second]" {
		t.Errorf("seen: %v, want the first leader and the second, each once", seen)
	}
}
