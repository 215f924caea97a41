package waiting

import (
	"testing"
	"time"
)

func TestA_pause_grows_up_to_its_bound_however_long_it_is(t *testing.T) {
	for _, shortest := range []time.Duration{time.Millisecond, time.Hour, 3 * time.Hour, 1 << 44, forever / 2, forever} {
		w := newMachine(3).Waiter
		w.failed = ErrTaken
		w.lock.(*plain).options = Options{TTL: forever, Poll: &Polling{shortest, forever}}
		w.queue.all.trip = shortest // a split pause lasts up to a third of the TTL
		var polls, splits time.Duration
		for n := range 200 {
			w.backoff.rounds, w.backoff.splits = n+1, n
			split, poll := w.splitPause(), w.rest(w.ask.sent).around
			if poll < max(shortest, polls) || split < max(min(shortest, forever/3), splits) {
				t.Fatalf("%v, %d times: polls after %v, which was %v before; asks about a split after %v, %v before", shortest, n, poll, polls, split, splits)
			}
			polls, splits = poll, split
		}
		if polls != forever || splits != forever/3 {
			t.Errorf("%v: polls after %v, asks about a split after %v in the end", shortest, polls, splits)
		}
	}
}

// While no quorum answers, the pauses grow up to ten retry intervals.
func TestA_pause_after_an_ask_without_a_quorum_is_bounded(t *testing.T) {
	w := newMachine(3).Waiter
	w.failed = ErrNoQuorum
	for n := range 2 * maxMisses {
		want := time.Duration(min(n+1, maxMisses)) * w.queue.all.RetryInterval
		if p := w.rest(w.ask.sent); p.around != want {
			t.Errorf("after %d misses: %v, want %v", n+1, p.around, want)
		}
	}
}
