package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// conn is one connection to a master, shared by all callers. Requests leave in
// the order in which they were given and answers come back in the same order,
// so that a queue of the unanswered calls is all the bookkeeping there is.
type conn struct {
	*writer
	socket *socket
	addr   string
	limit  int // of unanswered calls
	settle func(call, wire.Reply)
	silent atomic.Bool // no answer for a while: ask nothing that can wait for one

	looking atomic.Bool // a look at the marker is under way
	placing bool        // see Master.placeClock; guarded by the Master's mutex

	// Guarded by the writer's mutex, which orders calls like their requests.
	calls    ring[call]
	given    uint64         // commands that were accepted
	taken    uint64         // calls that were answered
	loaded   []*wire.Script // beside the common ones
	left     []call         // without an answer when the connection has ended
	folds    folds
	age      age
	vouching vouching
}

// call is a command under way.
type call struct {
	cmd    *wire.Command
	done   func(wire.Reply) // nil: the answer is of no interest
	until  time.Duration    // of a release that is sent again: when it is pointless
	folded *fold            // the calls that this one is made of, or nil
	by     wire.Form
	alone  bool // in no fold

	asks    question      // of our own, for the votes before
	held    bool          // a vote: its answer waits until the marker is read
	sent    time.Duration // when the clock was asked for
	more    bool          // the role is read behind this one
	doubted bool          // a vote had another marker than the one we know
}

// pending is what k leaves to be sent again if it fails.
func (k *call) pending() PendingRelease { return PendingRelease{k.cmd, k.until} }

// maxUnwritten bounds the bytes that wait to be written, since a bound on
// calls is none on their size.
const maxUnwritten = 16 << 20

var (
	errStuck    = errors.New("no answer for too long")
	errNotAsked = errors.New("answer without a question")
	errDemoted  = fmt.Errorf("%w any more", ErrNotMaster)
)

func newConn(socket *socket, addr string, limit int, settle func(call, wire.Reply), w witness) *conn {
	c := &conn{writer: newWriter(socket), socket: socket, addr: addr, limit: limit, settle: settle}
	c.vouching.witness = w
	c.seal = c.sealBatch
	return c
}

// send queues a call. An error means that it was not queued: ErrFull, or why
// the connection takes no more.
func (c *conn) send(k *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue(k)
}

func (c *conn) queue(k *call) error {
	if c.err != nil {
		return c.err
	}
	if c.calls.n >= c.limit || len(c.out) > maxUnwritten {
		return ErrFull
	}
	if s := k.cmd.Script; s != nil && !slices.Contains(wire.Common, s) && !slices.Contains(c.loaded, s) {
		c.loaded = append(c.loaded, s)
		c.load(s) // before it, in the order of the connection
		if many := s.Many(); many != nil {
			c.load(many)
		}
	}
	c.given++
	if many := foldsInto(k); many != nil {
		c.foldIn(k, many)
	} else {
		if c.folds.concern(k.cmd) {
			c.closeFolds(func(f *fold) bool { return f.concerns(k.cmd) })
		}
		c.put(k)
	}
	c.appended()
	return nil
}

// put adds a call to what will be written. The mutex is held.
func (c *conn) put(k *call) {
	if k.cmd.Op.Votes() {
		k.held = c.vouching.witness.needed()
		c.vouching.unread = c.vouching.unread || k.held
		c.vouching.role.sets = c.vouching.role.sets || k.held && k.cmd.Script == nil
	}
	c.out = wire.Append(c.out, k.cmd, k.by)
	c.calls.push(*k)
	if c.age.unwatched {
		c.age.unwatched = false
		c.age.watch.begin()
	}
}

// read receives answers and settles their calls until the connection breaks,
// and returns why. While draining it also ends when every call is settled.
func (c *conn) read() error {
	for {
		answer, err := c.socket.receive()
		if err != nil {
			return err
		}
		k, last, ok := c.next()
		if !ok {
			return errNotAsked
		}
		if err := c.answered(&k, answer); err != nil {
			return err
		}
		if last {
			return ErrClosed
		}
	}
}

// answered settles a call by its answer, which may be an error of the server.
// An error that it returns ends the connection.
func (c *conn) answered(k *call, answer any) error {
	refusal, refused := answer.(*wire.ServerError)
	switch {
	case k.asks == forMarker, k.asks == forMarkerAndTime:
		return c.tellsMarker(k, answer)
	case k.asks == forTime:
		return c.tellsTime(k, answer)
	case k.asks == forRole:
		return c.tellsRole(answer)
	case k.folded != nil:
		return c.unfold(k, answer, refusal)
	case refused:
		return c.refused(k, refusal)
	case k.held:
		c.hold(k, wire.Reply{Value: answer})
		return nil
	}
	c.settle(*k, wire.Reply{Value: answer})
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
	return k, c.calls.n == 0 && len(c.folds.gathering) == 0 && c.err != nil, true
}

// refused settles a call that was answered by an error. An error that it
// returns ends the connection.
func (c *conn) refused(k *call, e *wire.ServerError) error {
	if e.Code == "NOSCRIPT" && k.by == wire.ByHash && k.cmd.Script != nil && c.again(k) {
		return nil
	}
	c.settle(*k, wire.Reply{Err: &wire.Error{Node: c.addr, Op: k.cmd.Op, Err: e}})
	if e.Demoted() {
		return errDemoted
	}
	return nil
}

// again sends a call once more whose script the master did not know, now by its
// source, and reports whether it could. If it could not, it sends the script alone.
func (c *conn) again(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mayMove(k) {
		c.load(k.cmd.Script)
		return false
	}
	k.by = wire.BySource
	return c.queue(k) == nil
}

// alone sends a call once more that was refused together with the others of its fold, and
// reports whether it could.
func (c *conn) alone(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mayMove(k) {
		return false
	}
	k.alone = true
	return c.queue(k) == nil
}

// mayMove reports whether a call may be sent once more, and so run behind later ones. A release
// always may: it compares the value, and of the later calls only another release of the same
// waiter needs the key to be there. Any other command must not pass a command for the same key: an
// acquire would run after its own release and leave an orphan (L3). The mutex is held.
func (c *conn) mayMove(k *call) bool {
	if k.cmd.Op == wire.OpRelease {
		c.tradeAnswers(k)
		return true
	}
	return !c.overtakes(k.cmd)
}

// tradeAnswers has a release that moves behind another one of the same waiter trade answers
// with it: the first release to run finds the key, and the caller of the first release must
// learn of that (S79). The mutex is held.
func (c *conn) tradeAnswers(k *call) {
	for i := range min(c.calls.n, farBehind) {
		later := c.calls.at(i)
		if later.cmd.Op == wire.OpRelease && sameGrant(later.cmd, k.cmd) {
			k.done, later.done = later.done, k.done
			return
		}
	}
}

func sameGrant(a, b *wire.Command) bool {
	x, ok := grantOf(a)
	y, _ := grantOf(b)
	return ok && x == y
}

// load has the master learn a script, if not now then at the next connection.
// The mutex is held.
func (c *conn) load(s *wire.Script) {
	_ = c.queue(&call{cmd: &wire.Command{Op: wire.OpRead, Name: "SCRIPT", Args: []string{"LOAD", s.Source}}})
}

// farBehind bounds the search among the unanswered calls. Beyond it any call
// counts as one for the same key.
const farBehind = 1024

// overtakes reports whether a call that is unanswered shares a key with cmd.
func (c *conn) overtakes(cmd *wire.Command) bool {
	if c.calls.n > farBehind || c.folds.concern(cmd) {
		return true
	}
	for i := range c.calls.n {
		if shareKey(c.calls.at(i).cmd.Keys, cmd.Keys) {
			return true
		}
	}
	return false
}

// shareKey reports whether two commands are about the same lock. The marker,
// which goes with many of them, does not count.
func shareKey(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y && !strings.HasSuffix(x, wire.MarkerName) {
				return true
			}
		}
	}
	return false
}

// drain accepts no more calls and gives the calls under way a last chance: it writes
// the queued calls, and reads answers until all have come or grace is over.
func (c *conn) drain(now time.Time, grace time.Duration) {
	c.refuse(ErrClosed)
	c.mu.Lock()
	if c.calls.n == 0 && len(c.folds.gathering) == 0 {
		grace = 0
	}
	c.mu.Unlock()
	// A deadline of the socket: this is about the network, not about leases,
	// and must also work when the injected clock stands still.
	c.socket.Conn.SetDeadline(now.Add(grace))
}

// end closes the connection, waits for the writer and returns the calls that
// will never be answered.
func (c *conn) end(err error) []call {
	if !errors.Is(err, ErrClosed) {
		c.socket.abort() // there may be a next connection
	}
	c.sever(err)
	c.threads.Await(c.ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeFolds(everyFold)
	c.left = make([]call, 0, len(c.vouching.held)+c.calls.n)
	for _, v := range c.vouching.held {
		c.left = append(c.left, v.call)
	}
	for c.calls.n > 0 {
		if k := c.calls.pop(); k.folded != nil {
			c.left = append(c.left, k.folded.calls...)
		} else {
			c.left = append(c.left, k)
		}
	}
	return c.left
}

// eachRelease calls f for every unanswered release, until it returns false.
func (c *conn) eachRelease(f func(*wire.Command) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	each := func(calls ...call) bool {
		return !slices.ContainsFunc(calls, func(k call) bool { return owed(k.cmd, ErrUnknown) && !f(k.cmd) })
	}
	for i := range c.calls.n {
		k := c.calls.at(i)
		if goOn := k.folded == nil && each(*k) || k.folded != nil && each(k.folded.calls...); !goOn {
			return
		}
	}
	for _, g := range c.folds.gathering {
		if !each(g.calls...) {
			return
		}
	}
	each(c.left...)
}

// underway returns the number of unanswered calls; those in one fold are one.
func (c *conn) underway() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls.n + len(c.folds.gathering)
}

// accepted returns the number of commands that were queued so far.
func (c *conn) accepted() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.given
}
