package world

import (
	"slices"
	"testing"
	"time"
)

func TestWhat_is_stopped_in_the_middle_goes_on_later(t *testing.T) {
	// Given an event that is stopped in the middle for a second.
	w := New()
	h := NewHost(w, 1, "host")
	var got []string
	w.At(time.Second, h, Action(func() {
		got = append(got, "begins")
		h.Rest(time.Second)
		got = append(got, "ends")
	}))
	// And another of the same host meanwhile.
	w.At(1500*time.Millisecond, h, Action(func() { got = append(got, "another") }))
	w.Run(time.Minute, never)
	w.End()
	if want := []string{"begins", "another", "ends"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestA_crash_ends_what_is_stopped_in_the_middle(t *testing.T) {
	w := New()
	h := NewHost(w, 1, "host")
	unwound, wentOn := false, false
	w.At(time.Second, h, Action(func() {
		defer func() {
			unwound = true
			h.Clock.AfterFunc(time.Second, func() { wentOn = true })
		}()
		h.Rest(time.Hour)
		wentOn = true
	}))
	w.At(time.Minute, nil, Action(func() {
		h.Crash()
		h.Down = false // started anew
	}))
	w.Run(2*time.Hour, never)
	w.End()
	if !unwound || wentOn {
		t.Errorf("unwound %v, went on %v: want the one and not the other", unwound, wentOn)
	}
}

func never() bool { return false }
