package node

import (
	"math/rand/v2"
	"testing"
	"time"
)

// between reports the attempts to connect during an outage of that length, which follows
// on a session that stood for so long, and how long after its end the first one is.
func between(r *Redial, now *time.Duration, stood, outage time.Duration) (attempts int, late time.Duration) {
	*now += stood
	end := *now + outage
	*now += r.Ended(stood, *now, rand.Uint64())
	for *now < end {
		attempts++
		*now += r.Ended(0, *now, rand.Uint64())
	}
	return attempts, *now - end
}

func newRedial() *Redial { return &Redial{Min: 20 * time.Millisecond, Max: 500 * time.Millisecond} }

// L45: however long an outage was, the pause after it is a sixteenth of that, and however
// often there were outages before.
func TestL45_a_connection_comes_back_within_a_sixteenth_of_the_outage(t *testing.T) {
	for _, outage := range []time.Duration{0, 10 * time.Millisecond, 300 * time.Millisecond, 1100 * time.Millisecond, 5 * time.Second, time.Minute} {
		r, now := newRedial(), time.Duration(0)
		for range 1000 {
			attempts, late := between(r, &now, time.Second, outage)
			if most := min(max(outage/16, r.Min), r.Max); late > most {
				t.Fatalf("an outage of %v ended %v before the next attempt, want at most %v", outage, late, most)
			}
			if most := 32 + int(outage/(r.Max/2)) + 2*16*5; attempts > most {
				t.Fatalf("%d attempts in an outage of %v", attempts, outage)
			}
		}
	}
}

// Clients that lost their connections at the same instant do not come back at the same.
func TestL45_clients_do_not_come_back_all_at_once(t *testing.T) {
	var first, last time.Duration = time.Hour, 0
	for range 100 {
		now := time.Duration(0)
		between(newRedial(), &now, time.Second, 4*time.Second)
		first, last = min(first, now), max(last, now)
	}
	if spread := last - first; spread < 100*time.Millisecond {
		t.Errorf("100 clients were back within %v", spread)
	}
}

// A master that accepts a connection and ends it at once is dialled ever more rarely.
func TestRedial_sessions_that_end_at_once_are_no_sessions(t *testing.T) {
	r, now, attempts := newRedial(), time.Duration(0), 0
	for now < time.Minute {
		attempts++
		now += 5 * time.Millisecond
		now += r.Ended(5*time.Millisecond, now, rand.Uint64())
	}
	if attempts > 400 {
		t.Errorf("%d sessions in a minute", attempts)
	}
}

// A client that stood still for long does not take that for an outage of its master.
func TestRedial_a_session_that_stood_for_longer_than_the_pause_was_good(t *testing.T) {
	r, now := newRedial(), time.Duration(0)
	between(r, &now, time.Second, time.Minute)
	if _, late := between(r, &now, 600*time.Millisecond, 0); late > r.Min {
		t.Errorf("%v after a good session, want at most %v", late, r.Min)
	}
}
