package node

import "errors"

// A vote is worth something only if the master remembers whom it voted for
// before. So every write that contains votes ends with one more command that
// reads the marker, and the votes are held back until it is answered, which is
// usually in the same read. A master that forgot before it voted answers
// another marker, or none.
//
// The same command notices answers that have shifted. A reply that nobody asked
// for would make every later answer that of the question before: a vote for one
// lock would be counted for another. Then the marker's answer is a vote's, which
// is never a bulk string. The connection ends, and nothing that was under way
// counts.

// witness reads the marker behind the votes of a connection.
type witness struct {
	needed func() bool              // there is a marker to compare with
	knows  func(marker []byte) bool // it is this one
	read   *Command
}

// heldVote is a vote whose marker was not read yet.
type heldVote struct {
	call  call
	reply Reply
}

// noWitness believes every vote.
var noWitness = witness{needed: func() bool { return false }}

func (m *Master) witness() witness {
	return witness{
		needed: func() bool { return m.accepted.Load() != nil },
		knows:  m.knows,
		read:   &Command{Op: OpRead, Name: "GET", Keys: m.look.Keys},
	}
}

// knows reports whether a marker that was read with votes is the one that we
// know. If it is not quite that, the master is looked at.
func (m *Master) knows(marker []byte) bool {
	known := m.accepted.Load()
	if known == nil || string(marker) == *known {
		return true
	}
	if c := m.live.Load(); c != nil {
		m.lookAgain(c)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.guard.Vouched(string(marker))
}

// vouched reports whether a vote counts that came with this marker in a
// message, and not as an answer.
func (m *Master) vouched(marker string) bool {
	if !m.knows([]byte(marker)) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.guard.Hears(marker)
}

// Believes reports whether a grant that comes with this marker would count now.
// It is for those who check what a client does, and changes nothing.
func (m *Master) Believes(marker string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.guard.Hears(marker)
}

// sealBatch completes what is about to be written. The mutex is held.
func (c *conn) sealBatch() {
	c.closeFolds(everyFold)
	if c.unread {
		c.unread = false
		c.given++
		c.put(&call{cmd: c.witness.read, reads: true})
	}
}

// hold keeps a vote until its marker was read.
func (c *conn) hold(k *call, r Reply) { c.held = append(c.held, heldVote{*k, r}) }

// vouch settles the votes that were held back, now that their marker was read.
// An error ends the connection.
func (c *conn) vouch(answer any) error {
	if !mayBeMarker(answer) {
		return errShifted
	}
	marker, _ := answer.([]byte)
	known := c.witness.knows(marker)
	for i := range c.held {
		v := &c.held[i]
		if !known {
			v.call.doubted = true
		}
		c.settle(v.call, v.reply)
	}
	clear(c.held)
	c.held = c.held[:0]
	return nil
}

// errShifted: the answers on a connection are not those to the questions.
var errShifted = errors.New("answer to another question")

// mayBeMarker reports whether a GET of the marker can have that answer.
func mayBeMarker(answer any) bool {
	switch answer.(type) {
	case []byte, nil, *ServerError:
		return true
	}
	return false
}
