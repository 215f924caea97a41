package seam

import (
	"sync"
	"testing"
)

func TestNobody_is_stopped_with_a_mutex_held(t *testing.T) {
	var a, b Mutex
	stops := 0
	steps := &Steps{}
	steps.Stop = func() {
		if !steps.Free() {
			t.Error("stopped with a mutex held")
		}
		stops++
	}
	a.In(steps)
	b.In(steps)
	a.Lock()
	b.Lock()
	locked := stops
	b.Unlock()
	a.Unlock()
	if locked != 1 {
		t.Errorf("%d stops before anything was unlocked, want one", locked)
	}
	if stops != 2 {
		t.Errorf("%d stops, want one before the first mutex is locked and one after it is unlocked", stops)
	}
}

func BenchmarkMutex(b *testing.B) {
	guarded := 0
	b.Run("sync", func(b *testing.B) {
		var m sync.Mutex
		for b.Loop() {
			m.Lock()
			guarded++
			m.Unlock()
		}
	})
	b.Run("seam", func(b *testing.B) {
		var m Mutex
		for b.Loop() {
			m.Lock()
			guarded++
			m.Unlock()
		}
	})
}
