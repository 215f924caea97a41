package waiting

import (
	"testing"
	"time"
)

// handed is a lock that is handed over in turns of the same length.
type handed struct {
	yields
	common  time.Duration
	ttl     time.Duration
	held    time.Duration // in all
	left    time.Duration // in pauses
	pauses  int
	longest time.Duration // pause
}

func (h *handed) turn(lasts time.Duration) {
	h.held += lasts
	if d := h.released(lasts, h.ttl, &h.common); d > 0 {
		h.left += d
		h.pauses++
		h.longest = max(h.longest, d)
	}
}

// turns forgets what was before, and has the lock held for so long.
func (h *handed) turns(lasts, all time.Duration) {
	h.held, h.left, h.pauses, h.longest = 0, 0, 0, 0
	for h.held < all {
		h.turn(lasts)
	}
}

// part is what part of the time the pauses are.
func (h *handed) part() float64 { return float64(h.left) / float64(h.held+h.left) }

const ms = time.Millisecond

func TestYields_are_rare_while_everybody_queues(t *testing.T) {
	for _, turn := range []time.Duration{100 * time.Microsecond, 2 * ms, 50 * ms, time.Second, 20 * time.Second} {
		h := handed{ttl: 30 * time.Second}
		rare := func(when string) {
			h.turns(turn, 200*time.Second)
			if h.pauses == 0 || h.longest != 10*ms || h.part() >= 0.01 {
				t.Errorf("turns of %v, %s: %d pauses of up to %v, %.2f %% of the time; want some of 10ms, and less than 1 %%", turn, when, h.pauses, h.longest, 100*h.part())
			}
		}
		rare("at first")

		h.saw()
		h.turns(turn, 20*time.Second)
		if h.pauses < 3 && turn < time.Second || h.left > 2*time.Second {
			t.Errorf("turns of %v, and somebody was seen who does not queue: %d pauses, %v in all; want some, and at most 2s", turn, h.pauses, h.left)
		}
		h.turns(turn, 200*time.Second)
		rare("long after somebody was seen who does not queue")
	}
}

func TestYields_are_half_of_the_time_while_somebody_does_not_queue(t *testing.T) {
	for turn, least := range map[time.Duration]float64{2 * ms: 0.6, 50 * ms: 0.45, 250 * ms: 0.45, time.Second: 0.19} {
		h := handed{ttl: 30 * time.Second}
		for h.held < 20*time.Second {
			h.saw()
			h.turn(turn)
		}
		if h.longest != 250*ms || h.part() < least || h.part() > 0.75 {
			t.Errorf("turns of %v: pauses of up to %v, %.0f %% of the time; want 250ms, and at least %.0f %%", turn, h.longest, 100*h.part(), 100*least)
		}
	}
}

// A waiter asks again when the pause is over. Its registration, of a TTL, must not end before.
func TestYields_are_a_part_of_a_TTL(t *testing.T) {
	h := handed{ttl: 100 * ms}
	h.saw()
	h.turn(time.Second)
	if h.longest != 25*ms {
		t.Errorf("a pause of %v for a TTL of 100ms", h.longest)
	}
}
