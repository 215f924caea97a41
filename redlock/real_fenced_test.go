package redlock_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/redlock"
)

// tokens collects fencing tokens in the order in which the lock was held: it is
// written to by holders only.
type tokens struct{ all []uint64 }

func (k *tokens) mustRise(t *testing.T, want int) {
	t.Helper()
	for i := 1; i < len(k.all); i++ {
		if k.all[i] <= k.all[i-1] {
			t.Fatalf("token %d after %d", k.all[i], k.all[i-1])
		}
	}
	if len(k.all) != want || want > 0 && k.all[0] == 0 {
		t.Errorf("%d tokens, the first %v; want %d", len(k.all), k.all[:min(1, len(k.all))], want)
	}
}

func TestReal_S9_tokens_rise_from_holder_to_holder_also_by_hand_over(t *testing.T) {
	masters := startMasters(t, 5)
	var held tokens
	var all sync.WaitGroup
	for range 3 {
		m := masters.client(t).Mutex("fenced", redlock.Fenced())
		for range 2 {
			all.Go(func() {
				for range 20 {
					lease, err := m.Lock(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					held.all = append(held.all, lease.Token())
					if err := lease.Unlock(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	held.mustRise(t, 120)
}

func TestReal_S9_tokens_rise_with_clients_whose_clocks_differ_by_an_hour(t *testing.T) {
	masters := startMasters(t, 5)
	ahead := masters.client(t, redlock.WithClock(shifted{clock.New(), time.Hour})).Mutex("fenced", redlock.Fenced())
	behind := masters.client(t, redlock.WithClock(shifted{clock.New(), -time.Hour})).Mutex("fenced", redlock.Fenced())
	var held tokens

	for range 20 {
		for _, m := range []*redlock.Mutex{ahead, behind} {
			lease := lock(t, m)
			held.all = append(held.all, lease.Token())
			if err := lease.Unlock(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}

	held.mustRise(t, 40)
}

// shifted is a clock that is ahead.
type shifted struct {
	clock.Clock
	by time.Duration
}

func (s shifted) Now() time.Time                  { return s.Clock.Now().Add(s.by) }
func (s shifted) Since(t time.Time) time.Duration { return s.Now().Sub(t) }
func (s shifted) Until(t time.Time) time.Duration { return t.Sub(s.Now()) }

// The counters differ: a majority must step to the highest before anybody has it.
func TestReal_S30_a_token_is_raised_where_it_was_granted_lower(t *testing.T) {
	masters := startMasters(t, 5)
	far := time.Now().Add(time.Hour).UnixMicro()
	do(t, masters[0], "SET", "redlock:token:fenced", far)
	m := masters.client(t).Mutex("fenced", redlock.Fenced())
	masters[3].Stop()
	masters[4].Stop()
	defer masters[3].Continue()
	defer masters[4].Continue()

	lease := lock(t, m)

	if got := lease.Token(); got <= uint64(far) {
		t.Errorf("token %d, want one above the highest counter %d", got, far)
	}
	want := strconv.FormatUint(lease.Token(), 10)
	for i, got := range masters[:3].values(t, "redlock:token:fenced") {
		if got != want {
			t.Errorf("master %d counts %s, want the token %s", i, got, want)
		}
	}
}
