package redlockgocron_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/quorumlock/quorumlock/contrib/redlockgocron"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

const period = 20 * time.Second

// board counts what the schedulers of a test do.
type board struct {
	mu      sync.Mutex
	runs    map[string]int // by scheduler
	refused []error
}

func (b *board) all() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, runs := range b.runs {
		n += runs
	}
	return n
}

func (b *board) of(scheduler string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs[scheduler]
}

// schedule starts a scheduler that runs the report every minute.
func (b *board) schedule(t *testing.T, name string, option gocron.SchedulerOption) {
	t.Helper()
	s, err := gocron.NewScheduler(option)
	must(t, err)
	t.Cleanup(func() { must(t, s.Shutdown()) })
	_, err = s.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.runs[name]++
	}), gocron.WithName("report"), gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.refused = append(b.refused, err)
	})))
	must(t, err)
	s.Start()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Time is that of a bubble, in which ten minutes pass in a moment.
func TestLocker_runs_a_job_once_however_far_the_schedulers_are_apart(t *testing.T) {
	for _, apart := range []time.Duration{0, time.Millisecond, 9 * time.Second, 17 * time.Second} {
		t.Run(apart.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, masters := redlocktest.New(t)
				t.Cleanup(func() { masters.Expire("report") }) // it is kept
				b := board{runs: make(map[string]int)}
				b.schedule(t, "one", gocron.WithDistributedLocker(redlockgocron.NewLocker(client, period)))
				time.Sleep(apart)
				b.schedule(t, "two", gocron.WithDistributedLocker(redlockgocron.NewLocker(masters.Client(), period)))

				time.Sleep(10*time.Minute + 30*time.Second - apart)

				if n := b.all(); n != 10 {
					t.Errorf("the job ran %d times in ten minutes, want 10: %v", n, b.runs)
				}
				if len(b.refused) != 10 {
					t.Errorf("it was refused %d times, want 10", len(b.refused))
				}
				for _, err := range b.refused {
					if !errors.Is(err, redlock.ErrTaken) {
						t.Errorf("refused because of: %v", err)
					}
				}
			})
		})
	}
}

func TestLocker_runs_no_job_without_a_quorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, masters := redlocktest.New(t)
		b := board{runs: make(map[string]int)}
		b.schedule(t, "one", gocron.WithDistributedLocker(redlockgocron.NewLocker(client, period)))
		masters.LoseQuorum()

		time.Sleep(90 * time.Second)

		if b.all() != 0 || len(b.refused) != 1 || !errors.Is(b.refused[0], redlock.ErrNoQuorum) {
			t.Errorf("%d runs, refused with %v", b.all(), b.refused)
		}
	})
}

// So it is where several schedulers begin at the same moment, and none of them gets a majority of
// the masters at its first attempt.
func TestLocker_runs_a_job_that_was_not_granted_at_the_first_attempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, masters := redlocktest.New(t)
		t.Cleanup(func() { masters.Expire("report") }) // it is kept
		b := board{runs: make(map[string]int)}
		b.schedule(t, "one", gocron.WithDistributedLocker(redlockgocron.NewLocker(client, period)))
		masters.LoseQuorum()
		time.Sleep(time.Minute + period/20)

		masters.Heal()
		time.Sleep(period / 20)

		if b.all() != 1 || len(b.refused) != 0 {
			t.Errorf("%d runs, refused with %v", b.all(), b.refused)
		}
	})
}

func TestElector_runs_all_jobs_on_the_leader_until_another_leads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, masters := redlocktest.New(t)
		b := board{runs: make(map[string]int)}
		lead := func(name string, client *redlock.Client) (resign func()) {
			e := redlockgocron.NewElector(client.Election("jobs"))
			if err := e.IsLeader(t.Context()); !errors.Is(err, redlock.ErrNotHeld) {
				t.Errorf("%s leads before it campaigns: %v", name, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan struct{})
			go func() { e.Run(ctx, name); close(over) }()
			b.schedule(t, name, gocron.WithDistributedElector(e))
			resign = sync.OnceFunc(func() { cancel(); <-over })
			t.Cleanup(resign)
			return resign
		}
		resign := lead("one", first)
		synctest.Wait()
		lead("two", masters.Client())

		time.Sleep(5*time.Minute + time.Second)
		if one, two := b.of("one"), b.of("two"); one != 5 || two != 0 {
			t.Errorf("one leads and ran %d jobs, two %d", one, two)
		}
		resign()
		time.Sleep(5 * time.Minute)
		if one, two := b.of("one"), b.of("two"); one != 5 || two != 5 {
			t.Errorf("two leads since, and ran %d jobs; one ran %d", two, one)
		}
	})
}

func Example() {
	ctx := context.Background()
	client, err := redlock.Dial(ctx, []string{"redis-a:6379", "redis-b:6379", "redis-c:6379"})
	if err != nil {
		return
	}
	defer client.Close()
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(redlockgocron.NewLocker(client, 30*time.Second)))
	if err != nil {
		return
	}
	defer scheduler.Shutdown()
	scheduler.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(func() { /* the report */ }), gocron.WithName("nightly-report"))
	scheduler.Start()
}
