package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// run is the goroutine of a Master: one session after another until Close.
func (m *Master) run() {
	defer close(m.life.stopped)
	for redial := m.config.Backoff; ; {
		stood, err := m.session()
		m.down(err)
		if !m.pause(redial.Ended(stood, m.now(), m.threads.Random())) {
			return
		}
	}
}

// pause is sleep until Close.
func (m *Master) pause(d time.Duration) bool { return m.sleep(m.life.ctx, d) }

// sleep waits on the injected clock and reports whether to go on.
func (m *Master) sleep(ctx context.Context, d time.Duration) bool {
	over := make(chan struct{})
	timer := m.config.Clock.AfterFunc(d, func() { close(over) })
	defer timer.Stop()
	return m.threads.Wait(ctx, over) == nil && ctx.Err() == nil
}

// session connects, lets the master vote and reads its answers until the
// connection ends. It returns for how long the connection took commands, and why it
// ended.
func (m *Master) session() (stood time.Duration, err error) {
	c, g, err := m.connect()
	if err != nil {
		return 0, err
	}
	if err := m.trust.guard.Join(m.Addr(), g.RunID); err != nil {
		c.end(err)
		return 0, err
	}
	defer m.trust.guard.Leave()
	timers, err := m.up(c, g)
	if err != nil {
		c.end(err)
		return 0, err
	}
	stopLogin := m.keepLogin(c.socket.expires, c.authenticate)
	began := m.now()
	err = c.cause(c.read())
	stopLogin()
	timers.stop()
	m.abandon(c, err)
	return m.now() - began, err
}

// connect dials and shakes hands within ConnectTimeout, and starts the writer.
func (m *Master) connect() (*conn, serverInfo, error) {
	login, err := m.config.credentials(m.life.ctx, m.address)
	if err != nil {
		return nil, serverInfo{}, err
	}
	ctx, cancel := context.WithCancelCause(m.life.ctx)
	defer cancel(nil)
	late := fmt.Errorf("no connection within %v", m.config.ConnectTimeout)
	timer := m.config.Clock.AfterFunc(m.config.ConnectTimeout, func() { cancel(late) })
	defer timer.Stop()

	w, err := m.config.dial(ctx, m.address, login)
	if err != nil {
		return nil, serverInfo{}, err
	}
	inTime := m.closeAfter(ctx, w)
	g, err := m.greet(&Dialogue{socket: w, ctx: ctx})
	if err == nil && !w.replies.Empty() {
		err = errNotAsked
	}
	if !inTime() {
		err = context.Cause(ctx)
	}
	if err != nil {
		w.Close()
		return nil, serverInfo{}, err
	}
	c := newConn(w, m.Addr(), m.config.MaxInFlight, m.settle, m.witness())
	c.threads = m.threads
	m.threads.Go(c.write)
	return c, g, nil
}

// closeAfter closes w when ctx ends, unless inTime is called before, which
// reports whether it was.
func (m *Master) closeAfter(ctx context.Context, w *socket) (inTime func() bool) {
	done := make(chan struct{})
	m.threads.Go(func() {
		if m.threads.Wait(ctx, done) == nil {
			return
		}
		select {
		case <-done: // and ctx ended after that
		default:
			w.Close()
		}
	})
	return func() bool {
		close(done)
		return ctx.Err() == nil
	}
}

// up lets commands through to a connection, the releases that are owed first.
func (m *Master) up(c *conn, g serverInfo) (timers, error) {
	m.mu.Lock()
	if m.contact.state == StateClosed {
		m.mu.Unlock()
		return nil, ErrClosed
	}
	again := m.contact.state != StateConnecting
	m.contact.state, m.contact.server = StateConnected, g
	if again {
		m.ended.reconnects++
	}
	m.pending.Heard()
	m.pending.Deliver(m.now(), m.payer(c))
	c.closeGathering() // owed releases go before newer commands
	m.live.Store(c)
	m.happened(Event{Kind: EventConnected})
	first := m.firstAttempt()
	level := slog.LevelDebug
	if m.complained.trouble != "" {
		m.complained.trouble, level = "", slog.LevelInfo
	}
	far := m.foundTooFar()
	m.mu.Unlock()

	m.config.Logger.Log(m.life.ctx, level, "redlock: redis master connected", "node", m.Addr(), "run_id", g.RunID, "version", g.Version)
	m.tellPaid() // some may have expired
	if far {
		m.tellTooFar(g.roundTrip)
	}
	for _, done := range first {
		done(nil)
	}
	m.tellRenew(g.forgot)
	if again {
		m.pubsub.missed() // a subscription may have been back before, and had waiters ask in vain
	}
	age := &watch{clock: m.config.Clock, d: m.config.MaxAge / ageSteps, look: func() bool { return m.lookAt(c) }}
	c.watchBy(age)
	beat := m.config.Heartbeat
	return timers{
		newTicker(m.config.Clock, beat, func() { m.heartbeat(c) }),
		newEarlyTicker(m.config.Clock, beat/firstLook, beat, func() { m.lookAgain(c) }), // to know its clock better
		age,
	}, nil
}

// firstLook is which part of a heartbeat after a handshake a master is looked at again.
const firstLook = 20

// lookAt notes whether the master at the end of c is silent, and reports whether there
// is a call to look after.
func (m *Master) lookAt(c *conn) (busy bool) {
	between := m.config.MaxAge / ageSteps
	looks := c.checkAge()
	silent := time.Duration(looks-1)*between >= m.config.MaxSilence
	if c.silent.Load() != silent {
		m.fallSilent(c, silent)
	}
	return looks > 0
}

func (m *Master) fallSilent(c *conn, silent bool) {
	m.mu.Lock()
	news := m.live.Load() == c && c.silent.Load() != silent
	heard := news && !silent
	switch {
	case heard:
		c.silent.Store(false)
		m.pending.Heard()
		m.happened(Event{Kind: EventAnswering})
	case news:
		c.silent.Store(true)
		m.happened(m.fellSilent())
	}
	m.mu.Unlock()
	if heard {
		m.pubsub.missed() // what waiters asked meanwhile was not sent
	}
}

// abandon settles what a broken connection leaves unanswered.
func (m *Master) abandon(c *conn, err error) {
	if errors.Is(err, errDemoted) {
		m.mu.Lock()
		run := m.contact.server.RunID
		m.mu.Unlock()
		m.judge(guard.Evidence{Replica: true, RunID: run}) // run is empty where INFO is hidden
	}
	m.mu.Lock()
	why := ErrClosed
	if m.contact.state != StateClosed {
		why = fmt.Errorf("%w: %w", ErrUnknown, err)
		m.disconnected(err)
	}
	m.live.CompareAndSwap(c, nil)
	m.contact.ending = c
	m.mu.Unlock()

	left := c.end(err)
	m.mu.Lock()
	m.ended.commands += c.accepted()
	m.ended.writes += c.writes.Load()
	m.mu.Unlock()
	for _, k := range left {
		m.settle(k, wire.Reply{Err: &wire.Error{Node: m.Addr(), Op: k.cmd.Op, Err: why}})
	}
	m.mu.Lock()
	m.contact.ending = nil // owed releases are pending now
	m.mu.Unlock()
	m.tellPaid()
}

// down notes why the connection is missing, and logs it if it is news.
func (m *Master) down(err error) {
	m.mu.Lock()
	news := false
	if m.contact.state != StateClosed {
		m.disconnected(err)
		m.contact.lastError = err
		news = m.complained.trouble != trouble(err)
		m.complained.trouble = trouble(err)
	}
	failure := m.contact.outage.failure(0)
	first := m.firstAttempt()
	m.mu.Unlock()

	if news {
		m.config.Logger.Warn("redlock: redis master not connected", "node", m.Addr(), "err", err)
	}
	for _, done := range first {
		done(failure)
	}
}

// disconnected notes once that the connection is lost, and why; each attempt may add
// to the reason. The mutex is held.
func (m *Master) disconnected(err error) {
	before := m.contact.state
	m.contact.state, m.contact.outage = StateDown, newOutage(m.Addr(), err)
	if before != StateDown {
		m.pubsub.pulse.doubt() // its connection may have broken with this one, and not know it
		m.happened(Event{Kind: EventDisconnected, Err: m.contact.outage.failure(0)})
	}
}

// trouble is the text of err without the port that was ours at that attempt, and without when
// credentials have expired, so that the same trouble is logged once.
func trouble(err error) string {
	if errors.Is(err, errExpired) {
		return errExpired.Error()
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}

// firstAttempt returns the callbacks that wait for the result of the first attempt.
// The mutex is held.
func (m *Master) firstAttempt() []func(error) {
	first := m.listeners.first
	m.listeners.first = nil
	return first
}

// timers are the clocks of a session.
type timers []interface{ stop() }

func (t timers) stop() {
	for _, each := range t {
		each.stop()
	}
}
