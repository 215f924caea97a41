package seam

import "sync"

// Mutex is a sync.Mutex whose users can be stopped before it is locked and after
// it is unlocked: by the simulator, so that callers and callbacks interleave
// there as threads do. No holder of a Mutex is stopped.
//
// The zero Mutex is an ordinary one, and costs a comparison with nil more.
type Mutex struct {
	mu    sync.Mutex
	steps *Steps
}

// Steps is where the code of one client may be stopped.
type Steps struct {
	Stop func()
	held int // mutexes, by the one who runs
}

// In makes every use of the mutex one of the steps; nil: none. It is called
// before the mutex is used.
func (m *Mutex) In(s *Steps) { m.steps = s }

// Lock locks m.
func (m *Mutex) Lock() {
	if m.steps != nil {
		m.steps.enter()
	}
	m.mu.Lock()
}

// Unlock unlocks m.
func (m *Mutex) Unlock() {
	m.mu.Unlock()
	if m.steps != nil {
		m.steps.leave()
	}
}

// Free reports whether no mutex is held.
func (s *Steps) Free() bool { return s.held == 0 }

func (s *Steps) enter() {
	if s.held == 0 {
		s.Stop()
	}
	s.held++
}

func (s *Steps) leave() {
	s.held--
	if s.held == 0 {
		s.Stop()
	}
}
