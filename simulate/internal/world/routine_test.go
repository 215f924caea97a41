package world

import (
	"context"
	"testing"
	"time"
)

func TestA_process_waits_in_virtual_time(t *testing.T) {
	w := New()
	h := NewHost(w, 1, "host")
	var woke []time.Duration
	h.Start("sleeper", func(p *Routine) {
		for range 3 {
			p.Sleep(context.Background(), time.Hour)
			woke = append(woke, w.Now)
		}
	})
	began := time.Now()
	w.Run(24*time.Hour, func() bool { return false })
	if len(woke) != 3 || woke[2] != 3*time.Hour {
		t.Errorf("woke at %v, want after 1h, 2h and 3h", woke)
	}
	if real := time.Since(began); real > time.Minute {
		t.Errorf("took %v of real time", real)
	}
}

func TestA_crash_unwinds_the_process(t *testing.T) {
	w := New()
	h := NewHost(w, 1, "host")
	var unwound, wentOn bool
	h.Start("victim", func(p *Routine) {
		defer func() {
			unwound = true
			p.Sleep(context.Background(), time.Second) // must not hang the crash
			wentOn = true
		}()
		p.Sleep(context.Background(), time.Hour)
		wentOn = true
	})
	w.At(time.Minute, nil, Action(h.Crash))
	w.Run(2*time.Hour, func() bool { return false })
	if !unwound {
		t.Error("deferred functions did not run")
	}
	if wentOn {
		t.Error("the process went on after the crash")
	}
}

func TestA_paused_host_catches_up_in_order(t *testing.T) {
	w := New()
	h := NewHost(w, 1, "host")
	var got []int
	for i := range 3 {
		w.At(time.Duration(i+1)*time.Second, h, Action(func() { got = append(got, i) }))
	}
	w.At(500*time.Millisecond, nil, Action(h.Pause))
	w.At(10*time.Second, nil, Action(func() {
		if len(got) != 0 {
			t.Errorf("a paused host did %v", got)
		}
		h.Resume()
	}))
	w.Run(time.Minute, func() bool { return false })
	if len(got) != 3 || got[0] != 0 || got[1] != 1 || got[2] != 2 {
		t.Errorf("caught up with %v, want [0 1 2]", got)
	}
}

func TestNo_coroutine_is_left(t *testing.T) {
	// Given processes that wait for what never happens; goleak looks when the
	// tests are over.
	w := New()
	h := NewHost(w, 1, "host")
	for range 10 {
		h.Start("waiter", func(p *Routine) { p.Wait(context.Background(), nil) })
	}
	w.Run(time.Second, func() bool { return false })
	w.End()
}
