package node

import "sync"

// quiet is after how many looks without a word a connection is pinged. Many may wait
// for long, and a master that is in trouble shows that on the other connection, which
// is asked all the time.
const quiet = 20

// pulse is whether anything was received in the last period. Like the age of a connection
// it is counted in looks, not in time.
type pulse struct {
	mu     sync.Mutex
	silent int // looks since anything was received
	missed int // pings since then
	heard  int // since the last look
}

// begin forgets what the connection before has received.
func (p *pulse) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent, p.missed, p.heard = 0, 0, 0
}

// feel notes that something was received, and returns how often that was since
// the last look.
func (p *pulse) feel() (heard int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent, p.missed = 0, 0
	p.heard++
	return p.heard
}

// doubt has the next look ask for a sign of life.
func (p *pulse) doubt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = quiet
}

// look reports whether to ask for a sign of life, or that two were asked for and
// none came.
func (p *pulse) look() (ask, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = 0
	if p.silent++; p.silent < quiet {
		return false, false
	}
	p.missed++
	return true, p.missed > 2
}
