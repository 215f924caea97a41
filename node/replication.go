package node

import (
	"bytes"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// A server that is made a replica takes another server's keys, and forgets its own. It
// keeps its run_id and its connections, and if the other server was its replica before,
// it may even get the very marker back that it had. Only its replication ID tells (S50):
// a server that is made a master gives itself a new one, and keeps the one before as
// master_replid2.
//
// A master that gets its first replica, or gives up the backlog of its last, gives
// itself a new one as well, but then it has none before.

// freshRole is for how long a server that was a master is taken for a master that still has
// its keys, by its own clock. In less time no server becomes a replica, fetches the keys
// of another and becomes a master again: that takes some ten exchanges between them and a
// fork, and was measured to take 2.6 ms or more between two on one machine that had one
// key, and did nothing else.
const freshRole = time.Millisecond

// roleCheck says behind which votes of a connection INFO replication is read, which takes
// the master longer than a vote. It proves the votes before it, and the votes that came less
// than freshRole after it. A SET that is answered proves as much, if it is proven itself: a
// replica takes none. So a connection with many votes needs no INFO. Of a master whose
// clock we do not read it is read every time.
type roleCheck struct {
	asked    time.Duration // when we last sent a question or a SET, on our clock
	sets     bool          // the batch about to be written has a SET
	set      bool          // one was answered since the clock was read
	proven   time.Time     // the master's clock, read with the last proof
	last     []byte        // that answer
	underway int           // questions without an answer
	unknown  bool          // the master does not tell
}

// due reports whether INFO must be read behind the votes that are written now.
func (r *roleCheck) due(now time.Duration, timed bool) bool {
	due := !r.unknown && (!timed || now-r.asked > freshRole*6/10)
	if r.sets {
		r.asked, r.sets = now, false
	}
	return due
}

// askRole asks for the role. The mutex is held.
func (c *conn) askRole() {
	c.vouching.role.asked = c.vouching.witness.now()
	c.vouching.role.underway++
	c.given++
	c.put(&call{cmd: c.vouching.witness.role, asks: forRole})
}

// roleProven reports whether votes with which the master's clock read that are of a server
// that was a master all the time. If that is not known, it asks, and they have to wait.
func (c *conn) roleProven(at time.Time) bool {
	if c.vouching.witness.role == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	set := c.vouching.role.set
	c.vouching.role.set = false
	if since := at.Sub(c.vouching.role.proven); c.vouching.role.unknown || !c.vouching.role.proven.IsZero() && since >= 0 && since <= freshRole {
		if set {
			c.vouching.role.proven = at
		}
		return true
	}
	if c.vouching.role.underway == 0 && c.err == nil {
		// Behind what vouches for the votes that have gathered: its answer settles them, too.
		if c.sealBatch(); c.vouching.role.underway == 0 {
			c.askRole()
		}
		c.appended()
	}
	return false
}

// tellsRole takes what the master says of its replication, and settles the votes before.
// An error ends the connection.
func (c *conn) tellsRole(answer any) error {
	remained, unknown := false, false
	switch a := answer.(type) {
	case []byte:
		if remained = bytes.Equal(a, c.vouching.role.last) || c.vouching.witness.remains(a); remained {
			c.vouching.role.last = a
		}
	case *wire.ServerError:
		unknown = !notYet(a) // not to be asked every time
		remained = unknown
	default:
		return errShifted
	}
	c.mu.Lock()
	c.vouching.role.underway--
	c.vouching.role.unknown = unknown
	if c.vouching.role.proven = (time.Time{}); remained {
		c.vouching.role.proven = c.vouching.at
	}
	c.mu.Unlock()
	if !remained {
		c.doubtHeld()
	}
	c.settleHeld()
	return nil
}
