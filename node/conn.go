package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// conn is one connection to a master, shared by all callers. Requests leave in
// the order in which they were given and answers come back in the same order,
// so that a queue of the unanswered calls is all the bookkeeping there is.
type conn struct {
	*outbox
	wire    *wire
	replies redis.Conn // only for Receive: its other methods would write, or read too
	addr    string
	limit   int // of unanswered calls
	settle  func(call, Reply)

	// Guarded by the outbox's mutex, which orders calls like their requests.
	calls     ring[call]
	given     uint64 // commands that were accepted
	taken     uint64 // calls that were answered
	gathering *fold  // releases for the next write, or nil
	spare     []*fold

	// Used by the age check only.
	seen    uint64
	unmoved int
}

// call is a command under way.
type call struct {
	cmd    *Command
	done   func(Reply)   // nil: nobody asks
	until  time.Duration // of a release that is sent again: when it is pointless
	by     form
	folded *fold // the releases that this call is made of, or nil
}

// debt is k as what it leaves behind if it fails.
func (k *call) debt() Debt { return Debt{k.cmd, k.until} }

// pay queues a release that is owed. Nobody asks for its answer.
func (c *conn) pay(what Debt) error {
	return c.send(call{cmd: what.Cmd, until: what.Until})
}

// maxUnwritten bounds the bytes that wait to be written, since a bound on
// calls is none on their size.
const maxUnwritten = 16 << 20

var (
	errStuck    = errors.New("no answer for too long")
	errNotAsked = errors.New("answer without a question")
	errDemoted  = fmt.Errorf("%w any more", ErrNotMaster)
)

func newConn(w *wire, replies redis.Conn, addr string, limit int, settle func(call, Reply)) *conn {
	c := &conn{outbox: newOutbox(w), wire: w, replies: replies, addr: addr, limit: limit, settle: settle}
	c.seal = c.closeFold
	return c
}

// send queues a call. An error means that it was not queued: ErrFull, or why
// the connection takes no more.
func (c *conn) send(k call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue(k)
}

func (c *conn) queue(k call) error {
	if c.err != nil {
		return c.err
	}
	if c.calls.n >= c.limit || len(c.out) > maxUnwritten {
		return ErrFull
	}
	c.given++
	if folds(k) {
		c.foldIn(k)
	} else {
		if c.gathering.concerns(k.cmd) {
			c.closeFold()
		}
		c.put(k)
	}
	c.appended()
	return nil
}

// put adds a call to what will be written. The mutex is held.
func (c *conn) put(k call) {
	c.out = appendCommand(c.out, k.cmd, k.by)
	c.calls.push(k)
}

// read receives answers and settles their calls until the connection breaks,
// and returns why. While draining it also ends when every call is settled.
func (c *conn) read() error {
	for {
		value, err := receive(c.replies)
		refusal, isRefusal := err.(redis.Error)
		if err != nil && !isRefusal {
			return err
		}
		k, last, ok := c.next()
		if !ok {
			return errNotAsked
		}
		var answer any = value
		if isRefusal {
			answer = refusal
		}
		if err := c.answered(k, answer); err != nil {
			return err
		}
		if last {
			return ErrClosed
		}
	}
}

// answered settles a call by its answer, which may be an error of the server.
// An error that it returns ends the connection.
func (c *conn) answered(k call, answer any) error {
	refusal, refused := answer.(redis.Error)
	switch {
	case k.folded != nil && refused:
		return c.unfold(k.folded, nil, Server(string(refusal)))
	case k.folded != nil:
		return c.unfold(k.folded, answer, nil)
	case refused:
		return c.refused(k, Server(string(refusal)))
	}
	c.settle(k, Reply{Value: answer})
	return nil
}

// next takes the call off the queue whose answer has come. It was the last one
// if nothing is under way any more and nothing more is accepted.
func (c *conn) next() (k call, last, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls.n == 0 {
		return call{}, false, false
	}
	k = c.calls.pop()
	c.taken++
	return k, c.calls.n == 0 && c.gathering == nil && c.err != nil, true
}

// refused settles a call that was answered by an error. An error that it
// returns ends the connection.
func (c *conn) refused(k call, e *ServerError) error {
	if e.Code == "NOSCRIPT" && k.by == byHash && k.cmd.Script != nil && c.again(k) {
		return nil
	}
	c.settle(k, Reply{Err: &Error{Node: c.addr, Op: k.cmd.Op, Err: e}})
	if e.Code == "READONLY" || e.Code == "MASTERDOWN" {
		return errDemoted
	}
	return nil
}

// again sends a call whose script the master did not know once more, by its
// source, and reports whether it could.
//
// That moves the command behind those that were given after it. A release may
// always move: it compares the value, and nothing that was given after it needs
// the key to be there. Anything else must not pass a command for the same key:
// an acquire would run after its own release and leave an orphan (L3), an
// extension would take back a longer one. Such a call fails instead, and only
// its script is sent.
func (c *conn) again(k call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.cmd.Op != OpRelease && c.overtakes(k.cmd) {
		c.load(k.cmd.Script)
		return false
	}
	k.by = bySource
	return c.queue(k) == nil
}

// load has the master learn a script, if not now then at the next connection.
// The mutex is held.
func (c *conn) load(s *Script) {
	_ = c.queue(call{cmd: &Command{Op: OpRead, Name: "SCRIPT", Args: []string{"LOAD", s.Source}}})
}

// farBehind bounds the search among the unanswered calls. Beyond it any call
// counts as one for the same key.
const farBehind = 1024

// overtakes reports whether a call that is unanswered shares a key with cmd.
func (c *conn) overtakes(cmd *Command) bool {
	if c.calls.n > farBehind || c.gathering.concerns(cmd) {
		return true
	}
	for i := range c.calls.n {
		if shareKey(c.calls.at(i).cmd.Keys, cmd.Keys) {
			return true
		}
	}
	return false
}

func shareKey(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				return true
			}
		}
	}
	return false
}

// ageSteps is how many looks without progress make a connection too old.
const ageSteps = 20

// checkAge is called ageSteps times in the age that is allowed and severs the
// connection if its oldest call was there all the time. It returns at how many
// looks in a row that call was there. Counting looks instead of comparing times
// keeps a client that was paused itself from blaming the master: the pause is
// one look.
func (c *conn) checkAge() (looks int) {
	c.mu.Lock()
	waiting, answered := c.calls.n > 0, c.taken
	c.mu.Unlock()
	if !waiting || answered != c.seen {
		c.seen, c.unmoved = answered, 0
	}
	if waiting {
		c.unmoved++
	}
	if c.unmoved > ageSteps {
		c.wire.abort()
		c.sever(errStuck)
	}
	return c.unmoved
}

// drain accepts no more calls and gives those under way a last chance: what is
// queued is written, and answers are read until all have come or grace is over.
func (c *conn) drain(grace time.Duration) {
	c.refuse(ErrClosed)
	c.mu.Lock()
	if c.calls.n == 0 && c.gathering == nil {
		grace = 0
	}
	c.mu.Unlock()
	// A deadline of the socket: this is about the network, not about leases,
	// and must also work when the injected clock stands still.
	c.wire.Conn.SetDeadline(time.Now().Add(grace))
}

// end closes the connection, waits for the writer and returns the calls that
// will never be answered.
func (c *conn) end(err error) []call {
	c.sever(err)
	<-c.ended
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeFold()
	left := make([]call, 0, c.calls.n)
	for c.calls.n > 0 {
		if k := c.calls.pop(); k.folded != nil {
			left = append(left, k.folded.calls...)
		} else {
			left = append(left, k)
		}
	}
	return left
}

// underway returns the number of unanswered calls; releases in one call are one.
func (c *conn) underway() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gathering != nil {
		return c.calls.n + 1
	}
	return c.calls.n
}

// accepted returns the number of commands that were queued so far.
func (c *conn) accepted() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.given
}

// receive reads one answer. What is no RESP at all can make redigo panic on a
// length.
func receive(replies redis.Conn) (value any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("unreadable answer: %v", r)
		}
	}()
	return replies.Receive()
}
