package node

import (
	"fmt"
	"sync"
)

// Group is what the masters of one client have in common: each of them must be
// a server of its own, or one server would vote twice (S15). Masters of one
// client share one Group; it is safe for concurrent use.
type Group struct {
	mu   sync.Mutex
	runs map[string]*Master
}

// NewGroup returns an empty group.
func NewGroup() *Group { return &Group{runs: make(map[string]*Master)} }

// join enters a connected master, or says which other one is the same server.
// Only connected masters are entered, so that a server may move to another
// address.
func (g *Group) join(m *Master, runID string) error {
	if g == nil || runID == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if other := g.runs[runID]; other != nil && other != m {
		return fmt.Errorf("%w: %s (run_id %s)", ErrSameNode, other.Addr(), runID)
	}
	g.runs[runID] = m
	return nil
}

func (g *Group) leave(m *Master, runID string) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.runs[runID] == m {
		delete(g.runs, runID)
	}
}
