package node

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// Master is a Node over the network: one connection that all callers share, made in
// the background and made again whenever it breaks.
//
// A command that is given without a connection fails immediately with ErrDown and the
// reason; a command that was under way when the connection broke fails with ErrUnknown.
// A release that met either is delivered later, before any newer command, until its
// key has certainly expired.
//
// A Master has one goroutine, a second one while connected, two more while it has a
// subscriber, and one while an observer gets events; one more for each connection whose
// login expires. It is safe for concurrent use.
type Master struct {
	address address
	config  Config
	threads seam.Threads
	life    life
	pubsub  *subscriber
	live    atomic.Pointer[conn] // nil: not connected, or not admitted yet

	mu         sync.Mutex // guards the fields below that are not atomic
	trust      trust
	contact    contact
	pending    *PendingReleases
	seen       seen
	listeners  listeners
	events     events
	complained complained
	ended      totals // of connections that have ended
}

// life is from Open to Close.
type life struct {
	ctx     context.Context // ends when Close begins
	end     context.CancelCauseFunc
	stopped chan struct{} // closed when the goroutine has ended

	relogins sync.WaitGroup // goroutines that renew logins
}

// contact is whether we are connected to a master.
type contact struct {
	state     State
	outage    *outage // why live is nil
	ending    *conn   // its unanswered calls are not settled yet, or nil
	server    serverInfo
	lastError error
}

// listeners get events; each may be nil.
type listeners struct {
	renew func(all bool) // see Renewing
	idle  func() bool    // see Resting
	paid  atomic.Pointer[func()]
	first []func(error) // the first attempt to connect has ended
}

// complained is what the log was told.
type complained struct {
	trouble   string // until it is over
	tooFar    bool   // for the votes of the master to count
	otherList bool   // the group may be another one
}

// totals are counts of connections.
type totals struct{ reconnects, commands, writes uint64 }

var (
	_ Node       = (*Master)(nil)
	_ Observable = (*Master)(nil)
	_ Clocked    = (*Master)(nil)
	_ Owing      = (*Master)(nil)
	_ Renewing   = (*Master)(nil)
	_ Resting    = (*Master)(nil)
	_ Watching   = (*Master)(nil)
)

// Open returns the master at the given address and connects to it in the
// background. An error means that address or config is wrong, and names what.
//
// Addresses are host:port, redis://user:password@host:port/db, rediss:// for
// TLS and unix:///path?db=1.
func Open(addr string, config Config) (*Master, error) {
	return openOn(addr, config, seam.System)
}

func openOn(addr string, config Config, on seam.Threads) (*Master, error) {
	a, err := parseAddress(addr)
	if err != nil {
		return nil, err
	}
	config, err = config.Checked()
	if err != nil {
		return nil, err
	}
	m := &Master{
		address: a,
		config:  config,
		threads: on,
		pending: NewPendingReleases(config.MaxUndelivered),
	}
	m.trust.look = wire.Look(config.KeyPrefix)
	m.trust.guard = guard.New(config.Guard, config.Clock, config.Group)
	m.contact.outage = newOutage(m.Addr(), errNotYet)
	m.life.stopped = make(chan struct{})
	m.life.ctx, m.life.end = context.WithCancelCause(context.Background())
	m.pubsub = newSubscriber(m)
	config.Group.Warn(m.trust.doubt.raise)
	m.threads.Go(m.run)
	return m, nil
}

// now is what the clock of all guards of a group says, which cannot be set.
func (m *Master) now() time.Duration { return m.trust.guard.Now().Monotonic() }

// Addr returns host:port, or unix:path. It never has the password.
func (m *Master) Addr() string { return m.address.String() }

// Do is described at Node.
func (m *Master) Do(cmd *wire.Command, done func(wire.Reply)) {
	k := call{cmd: cmd, done: done}
	if c := m.live.Load(); c != nil && !c.silent.Load() && (!m.trust.doubt.any() || !cmd.Op.Grants() && !cmd.HandsOn()) && !cmd.Recalls {
		if c.send(&k) == nil {
			return
		}
	}
	if err := m.admit(k); err != nil {
		done(wire.Reply{Err: err})
	}
}

// admit gives k to the connection, or says why not.
//
// It does so under the mutex under which connections come and go, so that a
// release that finds no connection is kept before the next connection delivers
// the kept releases.
func (m *Master) admit(k call) *wire.Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	op := k.cmd.Op
	if m.contact.state == StateClosed {
		return m.contact.outage.failure(op)
	}
	allowed, err := m.trust.guard.Allow(k.cmd)
	if err != nil && m.contact.state == StateConnected {
		return &wire.Error{Node: m.Addr(), Op: op, Err: err}
	}
	if allowed == k.cmd {
		m.trust.reconsider()
	}
	k.cmd = allowed
	failure := m.contact.outage.failure(op)
	if c := m.live.Load(); c != nil {
		if c.silent.Load() && m.pending.Spare(k.cmd) {
			return &wire.Error{Node: m.Addr(), Op: op, Err: ErrSilent}
		}
		var err error
		if op.Votes() {
			err = m.placeClock(c)
		}
		if err == nil {
			err = c.send(&k)
		}
		if err == nil {
			return nil
		}
		if err == ErrFull {
			m.pending.Failed(k.pending(), err)
			return &wire.Error{Node: m.Addr(), Op: op, Err: err}
		}
		failure = &wire.Error{Node: m.Addr(), Op: op, Err: fmt.Errorf("%w: %w", ErrDown, err)}
	}
	m.pending.NotSent(k.pending(), failure.Err)
	return failure
}

// Votes is described at Voting.
func (m *Master) Votes() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, why := m.live.Load(), error(nil)
	switch {
	case c == nil:
		return m.contact.outage.failure(wire.OpAcquire)
	case c.silent.Load():
		why = ErrSilent
	default:
		why = m.trust.guard.Admit(wire.OpAcquire)
	}
	if why == nil {
		return nil
	}
	return &wire.Error{Node: m.Addr(), Op: wire.OpAcquire, Err: why}
}

// payer queues releases that are owed. Their answers are of no interest. The mutex is
// held while it is used.
func (m *Master) payer(c *conn) func(PendingRelease) error {
	return func(what PendingRelease) error {
		cmd, err := m.trust.guard.Allow(what.Cmd)
		if err != nil {
			return err
		}
		return c.send(&call{cmd: cmd, until: what.Until})
	}
}

// settle ends a call. It runs on the goroutine that reads.
func (m *Master) settle(k call, r wire.Reply) {
	if r.Err == nil && k.cmd.Op == wire.OpRelease && !Releases(r.Value) {
		r = wire.Reply{Err: &wire.Error{Node: m.Addr(), Op: wire.OpRelease, Err: &wire.ReplyError{Value: r.Value}}}
	}
	if k.cmd.Op.Votes() {
		m.voted(k.cmd.Op, r)
	}
	if r.Err != nil || storesMore(k.cmd) {
		m.mu.Lock()
		if r.Err != nil {
			m.pending.Failed(k.pending(), r.Err.Err)
		} else {
			m.pending.Ran(k.cmd)
		}
		m.mu.Unlock()
	}
	if r.Err == nil && k.cmd.Op.Votes() && (k.doubted || m.trust.doubt.any()) {
		r = m.weigh(k, r)
	}
	if k.done != nil {
		k.done(r)
	}
	if k.cmd.Op == wire.OpRelease {
		m.tellPaid()
	}
}

// weigh asks the guard whether a vote counts.
func (m *Master) weigh(k call, r wire.Reply) wire.Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	young, err := m.trust.guard.Weigh(k.cmd.Op, !k.doubted)
	if err != nil {
		return wire.Reply{Err: &wire.Error{Node: m.Addr(), Op: k.cmd.Op, Err: err}}
	}
	r.Young = young
	return r
}

// Renew is described at Renewing.
func (m *Master) Renew(f func(all bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listeners.renew = f
}

// Idle is described at Resting.
func (m *Master) Idle(idle func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listeners.idle = idle
}

// MasterTime is described at Clocked.
func (m *Master) MasterTime() (now time.Time, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen.began.Add(m.now()), !m.seen.began.IsZero()
}

// Pace is described at Watching.
func (m *Master) Pace() float64 { return m.config.Group.Pace() }

// Unnoticed is described at Watching.
func (m *Master) Unnoticed() time.Duration { return m.config.Guard.Unnoticed() }

// Connected calls done once: with the result of the first attempt to connect,
// or, once that is known, with how things stand now. The result is nil, or the
// reason of the failure; an attempt that failed is followed by others. A
// quarantined master is connected. done must not block; it is called from any
// goroutine, possibly before Connected returns.
func (m *Master) Connected(done func(error)) {
	m.mu.Lock()
	if m.contact.state == StateConnecting {
		m.listeners.first = append(m.listeners.first, done)
		m.mu.Unlock()
		return
	}
	err := m.outageError()
	m.mu.Unlock()
	done(err)
}

// outageError is why the master is not connected, or nil. The mutex is held.
func (m *Master) outageError() error {
	if m.live.Load() != nil {
		return nil
	}
	return m.contact.outage.failure(0)
}

// Subscribe is described at Node. Some time after the last user of a channel has left,
// the channel is left and the connection is closed.
func (m *Master) Subscribe(channel string, l Listener) (cancel func()) {
	return m.pubsub.subscribe(channel, l)
}

// Subscribed is described at the interface of that name.
func (m *Master) Subscribed(channel string) bool { return m.pubsub.confirms(channel) }

// Owed is described at Owing.
func (m *Master) Owed() []*wire.Command {
	m.mu.Lock()
	defer m.mu.Unlock()
	cmds := m.pending.Commands()
	m.eachUnanswered(func(cmd *wire.Command) bool {
		cmds = append(cmds, cmd)
		return true
	})
	return cmds
}

// eachUnanswered goes through the releases that were sent, until f returns false. The mutex
// is held.
func (m *Master) eachUnanswered(f func(*wire.Command) bool) {
	for _, c := range []*conn{m.live.Load(), m.contact.ending} {
		if c != nil {
			c.eachRelease(f)
		}
	}
}

// Paid is described at Owing.
func (m *Master) Paid(f func()) { m.listeners.paid.Store(&f) }

// tellPaid is called whenever something may be owed no more.
func (m *Master) tellPaid() {
	f := m.listeners.paid.Load()
	if f == nil {
		return
	}
	m.mu.Lock()
	owes := m.pending.Len() > 0
	if !owes {
		m.eachUnanswered(func(*wire.Command) bool {
			owes = true
			return false
		})
	}
	m.mu.Unlock()
	if !owes {
		(*f)()
	}
}

// closeGrace is how long Close waits for answers to commands that are under way.
const closeGrace = 100 * time.Millisecond

// Close sends the queued commands, with the releases that are still owed, waits
// up to 100 ms for the answers, closes the connections and waits for the
// goroutines to end. A command without an answer then fails with ErrClosed, and
// releases that could not be delivered are dropped: their keys expire. Close
// must not be called from a callback.
func (m *Master) Close() error {
	m.beginClose()
	m.pubsub.close()
	m.threads.Await(m.life.stopped)
	m.life.relogins.Wait() // afterwards no session begins
	m.awaitTold()
	return nil
}

// beginClose is the part of Close that does not wait.
func (m *Master) beginClose() {
	m.mu.Lock()
	if m.contact.state != StateClosed {
		m.contact.state = StateClosed
		m.contact.outage = newOutage(m.Addr(), ErrClosed)
		if c := m.live.Swap(nil); c != nil {
			m.pending.Deliver(m.now(), m.payer(c))
			if m.trust.guard.Unlisted() && !c.silent.Load() {
				m.placeClock(c) // no look comes that would
			}
			c.drain(m.threads.Now(), closeGrace)
		}
	}
	m.mu.Unlock()
	m.life.end(ErrClosed)
}
