package simulate

import (
	"slices"
	"testing"
	"time"
)

func TestWhat_is_stopped_in_the_middle_goes_on_later(t *testing.T) {
	// Given an event that is stopped in the middle for a second.
	w := newWorld()
	h := newHost(w, 1, "host")
	var got []string
	w.at(time.Second, h, action(func() {
		got = append(got, "begins")
		h.rest(time.Second)
		got = append(got, "ends")
	}))
	// And another of the same host meanwhile.
	w.at(1500*time.Millisecond, h, action(func() { got = append(got, "another") }))
	w.run(time.Minute, never)
	w.end()
	if want := []string{"begins", "another", "ends"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestA_crash_ends_what_is_stopped_in_the_middle(t *testing.T) {
	w := newWorld()
	h := newHost(w, 1, "host")
	unwound, wentOn := false, false
	w.at(time.Second, h, action(func() {
		defer func() {
			unwound = true
			h.clock.AfterFunc(time.Second, func() { wentOn = true })
		}()
		h.rest(time.Hour)
		wentOn = true
	}))
	w.at(time.Minute, nil, action(func() {
		h.crash()
		h.down = false // started anew
	}))
	w.run(2*time.Hour, never)
	w.end()
	if !unwound || wentOn {
		t.Errorf("unwound %v, went on %v: want the one and not the other", unwound, wentOn)
	}
}
