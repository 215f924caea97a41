package node

import (
	"errors"
	"math"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// A vote counts only if the master remembers for whom it voted before. So
// every write that contains votes ends with two more commands, which read the clock
// and the marker. The votes are held back until these are answered, usually in the
// same read. A master that forgot before it voted answers another marker, or none. A
// master whose clock was set forward, and so expired the keys of others, answers an
// impossible time. A master that was a replica in between may answer the same marker: a third
// command asks for its replication, unless that is known (S50).
//
// The same commands notice answers that have shifted. One reply too many would make
// every later answer that of the question before: a vote for one lock would be counted
// for another. Then the marker's answer is a vote's, which is never a bulk string. The
// connection ends, and nothing that was under way counts.

// witness reads the marker, the clock and the role behind the votes of a connection.
type witness struct {
	needed func() bool // there is a marker to compare with
	// knows reports whether this is the accepted marker, and whether the clock can have read
	// this time if it was asked at the instant sent.
	knows func(marker []byte, at time.Time, sent time.Duration) bool
	now   func() time.Duration // for sent
	clock *wire.Command        // nil: it is not watched
	read  *wire.Command

	role    *wire.Command          // nil: it is not watched
	remains func(info []byte) bool // it was a master all the time, if it says that
}

// question is what we ask behind the votes.
type question uint8

const (
	none             question = iota // it is a caller's
	forMarker                        // alone: the clock is not read behind it
	forMarkerAndTime                 // the clock is read behind it
	forTime
	forRole
)

// vouching has the votes of a connection until they count.
type vouching struct {
	witness  witness
	unread   bool // there are votes to be written, and no marker is read behind them yet
	timeless bool // we may not ask for the clock
	role     roleCheck

	held   []heldVote // by the goroutine that reads
	marker []byte     // behind them
	at     time.Time  // what the clock read with it; zero: it was not read
}

// heldVote is a vote whose marker was not read yet.
type heldVote struct {
	call  call
	reply wire.Reply
}

// noWitness believes every vote.
var noWitness = witness{needed: func() bool { return false }}

func (m *Master) witness() witness {
	w := witness{
		needed: func() bool { return m.trust.accepted.Load() != nil },
		knows:  m.knows,
		now:    m.now,
		read:   &wire.Command{Op: wire.OpRead, Name: "GET", Keys: []string{wire.MarkerKey(m.config.KeyPrefix)}},
	}
	if m.config.Guard.Hold > 0 {
		w.role, w.remains = &wire.Command{Op: wire.OpRead, Name: "INFO", Args: []string{"replication"}}, m.remains
	}
	if m.config.Guard.ClockTolerance > 0 {
		w.clock = &wire.Command{Op: wire.OpRead, Name: "TIME"}
	}
	return w
}

// knows reports whether a marker that was read with votes is the known marker, and
// the clock that was read with it has not been set forward. If not, the master is
// looked at.
func (m *Master) knows(marker []byte, at time.Time, sent time.Duration) bool {
	known := m.trust.accepted.Load()
	if known == nil {
		return true
	}
	m.mu.Lock()
	var timely bool
	if sent == notAsked {
		timely = m.trust.guard.Timely(at)
	} else {
		timely = m.trust.guard.TimelyVote(at, sent)
	}
	vouched := timely && (string(marker) == *known || m.trust.guard.Vouched(string(marker)))
	m.mu.Unlock()
	if c := m.live.Load(); c != nil && (!timely || string(marker) != *known) {
		m.lookAgain(c)
	}
	return vouched
}

// remains reports whether a master that answers with this INFO was one all the time since
// we last looked. If not, it is looked at.
func (m *Master) remains(info []byte) bool {
	replica, promotion := wire.ReadReplication(string(info))
	m.mu.Lock()
	remained := m.trust.guard.Remained(replica, promotion)
	m.mu.Unlock()
	if c := m.live.Load(); c != nil && !remained {
		m.lookAgain(c)
	}
	return remained
}

// notAsked stands for the instant of a question that was not asked: a master tells its
// time in a message.
const notAsked = time.Duration(math.MinInt64)

// vouched reports whether a vote counts that came with this proof in a message instead
// of an answer.
func (m *Master) vouched(proof string) bool {
	marker, at := wire.ParseProof(proof)
	return m.knows([]byte(marker), at, notAsked) && m.Believes(proof)
}

// Believes reports whether a grant that comes with this proof would count now. It is
// for checking what a client does, and changes nothing.
func (m *Master) Believes(proof string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trust.guard.Hears(proof)
}

// sealBatch completes the batch that is about to be written. The mutex is held.
func (c *conn) sealBatch() {
	c.closeFolds(everyFold)
	if !c.vouching.unread {
		return
	}
	c.vouching.unread = false
	timed := c.vouching.witness.clock != nil && !c.vouching.timeless
	role := c.vouching.witness.role != nil && c.vouching.role.due(c.vouching.witness.now(), timed)
	c.given++
	marker := forMarker
	if timed {
		marker = forMarkerAndTime
	}
	c.put(&call{cmd: c.vouching.witness.read, asks: marker, more: role})
	if timed {
		c.given++
		c.put(&call{cmd: c.vouching.witness.clock, asks: forTime, sent: c.vouching.witness.now(), more: role})
	}
	if role {
		c.askRole()
	}
}

// hold keeps a vote until its marker was read.
func (c *conn) hold(k *call, r wire.Reply) {
	c.vouching.held = append(c.vouching.held, heldVote{*k, r})
	c.vouching.role.set = c.vouching.role.set || k.cmd.Script == nil
}

// tellsMarker takes the marker that was read behind the votes. An error ends the
// connection.
func (c *conn) tellsMarker(k *call, answer any) error {
	if !mayBeMarker(answer) {
		return errShifted
	}
	c.vouching.marker, _ = answer.([]byte)
	if k.asks == forMarker {
		c.vouch(k, time.Time{})
		return nil
	}
	c.socket.replies.AwaitClock()
	return nil
}

// tellsTime takes what the clock read behind the votes. An error ends the connection.
func (c *conn) tellsTime(k *call, answer any) error {
	switch a := answer.(type) {
	case *wire.ServerError:
		if a.Code == "NOPERM" { // not to be asked, and logged by the master, every time
			c.mu.Lock()
			c.vouching.timeless = true
			c.mu.Unlock()
		}
		if notYet(a) {
			c.doubtHeld() // a moment later it would tell
		}
		c.vouch(k, time.Time{}) // it is not known
		return nil
	case *wire.ClockReading:
		if at, ok := a.Time(); ok {
			c.vouch(k, at)
			return nil
		}
	}
	return errShifted
}

// tells has what a look tells be asked again behind votes: the user may ask for it now.
func (c *conn) tells(seen wire.Seen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vouching.timeless = c.vouching.timeless && seen.Time.IsZero()
	c.vouching.role.unknown = c.vouching.role.unknown && !seen.Role
}

// vouch judges the votes that were held back, now that the marker and the clock were
// read; zero: the clock was not. It settles them unless the role has to be read first.
func (c *conn) vouch(k *call, at time.Time) {
	c.vouching.at = at
	if !c.vouching.witness.knows(c.vouching.marker, at, k.sent) {
		c.doubtHeld()
	}
	if !k.more && c.roleProven(at) {
		c.settleHeld()
	}
}

// doubtHeld has the votes that were held back count for nothing.
func (c *conn) doubtHeld() {
	for i := range c.vouching.held {
		c.vouching.held[i].call.doubted = true
	}
}

// settleHeld ends the calls of the votes that were held back.
func (c *conn) settleHeld() {
	for i := range c.vouching.held {
		c.settle(c.vouching.held[i].call, c.vouching.held[i].reply)
	}
	clear(c.vouching.held)
	c.vouching.held = c.vouching.held[:0]
}

// errShifted: the answers on a connection are not those to the questions.
var errShifted = errors.New("answer to another question")

// mayBeMarker reports whether a GET of the marker can have that answer.
func mayBeMarker(answer any) bool {
	switch answer.(type) {
	case []byte, nil, *wire.ServerError:
		return true
	}
	return false
}
