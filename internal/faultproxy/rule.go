package faultproxy

import (
	"slices"
	"sync"
)

// rule is a fault that waits for its command.
type rule struct {
	dir   Direction
	match Match
	act   func(*stream) // called once, with the command at the head of its stream
}

// Match picks a command. A reply is picked by the command that it answers, a
// pub/sub message as a command named by its first element: MESSAGE channel
// payload.
type Match func(Request) bool

// Command matches commands with a name, in upper case, and with key among
// their keys. An empty name or key matches any.
func Command(name, key string) Match {
	return func(r Request) bool {
		return (name == "" || name == r.Name) && (key == "" || slices.Contains(r.Keys(), key))
	}
}

// Hold is a command or reply that stays where it is, with all that follows
// it, until Release.
type Hold struct {
	held, released chan struct{}
	once           sync.Once
}

// Held is closed when the command has come.
func (h *Hold) Held() <-chan struct{} { return h.held }

// Release lets the command go on, or pass without a stop if it comes later.
func (h *Hold) Release() { h.once.Do(func() { close(h.released) }) }

// HoldNext holds the next command, or reply to a command, that matches.
func (p *Proxy) HoldNext(dir Direction, match Match) *Hold {
	h := &Hold{held: make(chan struct{}), released: make(chan struct{})}
	p.next(dir, match, func(s *stream) {
		close(h.held)
		s.await(h.released)
	})
	return h
}

// DropNext drops the next command that matches, so that the server never gets
// it, or the reply to it, so that the client never learns its outcome.
func (p *Proxy) DropNext(dir Direction, match Match) {
	p.next(dir, match, func(s *stream) { s.lost = true })
}

func (p *Proxy) next(dir Direction, match Match, act func(*stream)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, &rule{dir, match, act})
}

// take returns the oldest rule that matches, which is used up by that.
func (p *Proxy) take(dir Direction, r Request) *rule {
	p.mu.Lock()
	rules := slices.Clone(p.rules)
	p.mu.Unlock()
	for _, candidate := range rules {
		if candidate.dir == dir && candidate.match(r) && p.remove(candidate) {
			return candidate
		}
	}
	return nil
}

// remove reports whether the rule was still there.
func (p *Proxy) remove(r *rule) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.rules, r)
	if i < 0 {
		return false
	}
	p.rules = slices.Delete(p.rules, i, i+1)
	return true
}
