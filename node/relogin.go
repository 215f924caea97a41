package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// A login that expires is renewed on the living connection, when three quarters to seven
// eighths of its time have passed: at random, so that the masters of a client, and clients that
// began together, do not do it together. If that fails, it is tried again, and the connection
// stays until the master ends it.
//
// Invariant: of the masters that share a Turn, one at a time is asked to renew a login. If
// its connection breaks by that, the next one waits until this one had time to come back. So
// a login that breaks connections costs one vote at a time and never the quorum.

// Turn is given to one connection at a time: the connection that receives the value from the
// channel sends it back.
type Turn chan struct{}

// NewTurn returns a turn that no connection has.
func NewTurn() Turn {
	t := make(Turn, 1)
	t <- struct{}{}
	return t
}

// errNoPassword is why a login that expires is not renewed.
var errNoPassword = errors.New("credentials: Password: must not be empty where the last one expires")

const (
	leastLogin = time.Second // between two logins of one connection
	mostRetry  = time.Minute // after a login that failed
	mostSleep  = time.Minute // without a look at the clock: timers stand still while a machine is suspended
)

// keepLogin renews the login of a connection until stop, with auth, which sends an AUTH and
// waits for its answer. Where the login never expires it does nothing.
func (m *Master) keepLogin(expires time.Time, auth func(Credentials) error) (stop func()) {
	if expires.IsZero() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(m.life.ctx)
	m.life.relogins.Add(1)
	m.threads.Go(func() {
		defer m.life.relogins.Done()
		m.renewLogins(ctx, expires, auth)
	})
	return cancel
}

// renewLogins is the goroutine of keepLogin.
func (m *Master) renewLogins(ctx context.Context, expires time.Time, auth func(Credentials) error) {
	complained := ""
	retry := newRetry()
	due := m.dueBefore(expires)
	for m.until(ctx, due) {
		renewed, err := m.renewLogin(ctx, auth)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			due = m.config.Clock.Now().Round(0).Add(retry.Ended(0, m.now(), m.threads.Random()))
			if complained != trouble(err) {
				complained = trouble(err)
				m.config.Logger.Warn("redlock: login at redis master not renewed", "node", m.Addr(), "expires", expires, "err", err)
			}
			continue
		case complained != "":
			complained = ""
			m.config.Logger.Info("redlock: login at redis master renewed", "node", m.Addr())
		}
		if renewed.Expires.IsZero() {
			return
		}
		expires, retry = renewed.Expires, newRetry()
		due = m.dueBefore(expires)
	}
}

// newRetry has the pauses after logins that failed: from leastLogin to mostRetry.
func newRetry() Redial { return Redial{Min: 2 * leastLogin, Max: mostRetry} }

// dueBefore is when to renew a login that expires then, by the wall clock: it goes on while the
// machine is suspended.
func (m *Master) dueBefore(expires time.Time) time.Time {
	now := m.config.Clock.Now().Round(0)
	left := expires.Sub(now)
	early := left / 8
	if early > 0 {
		early = time.Duration(m.threads.Random() % uint64(early))
	}
	return now.Add(max(left/4*3+early, leastLogin))
}

// until waits for an instant of the wall clock and reports whether ctx still goes on. It waits no
// longer than it takes now, also if the clock is set back.
func (m *Master) until(ctx context.Context, due time.Time) bool {
	began, pause := m.trust.guard.Now(), due.Sub(m.config.Clock.Now())
	for {
		left := pause - m.trust.guard.Now().Sub(began)
		if left <= 0 {
			return ctx.Err() == nil
		}
		if !m.sleep(ctx, min(left, mostSleep)) {
			return false
		}
	}
}

// renewLogin asks for credentials, and logs in with them when it is this connection's turn.
func (m *Master) renewLogin(ctx context.Context, auth func(Credentials) error) (Credentials, error) {
	got, err := m.config.credentials(ctx, m.address)
	switch {
	case err != nil:
		return Credentials{}, err
	case got.Password == "":
		return Credentials{}, errNoPassword
	}
	turn := m.config.LoginTurn
	if err := m.threads.Wait(ctx, turn); err != nil {
		return Credentials{}, err
	}
	defer func() { turn <- struct{}{} }()
	if c := m.live.Load(); c == nil || c.silent.Load() {
		return Credentials{}, ErrSilent // it would hold up the others
	}
	if err := got.check(m.config.Clock.Now()); err != nil {
		return Credentials{}, err // the turn was long in coming
	}
	if err = auth(got); errors.Is(err, ErrUnknown) {
		m.sleep(m.life.ctx, m.config.ConnectTimeout)
	}
	return got, err
}

// authenticate logs the connection in again, behind the commands sent before. If the login is
// refused, everything stays as it was.
func (c *conn) authenticate(login Credentials) error {
	answered := make(chan struct{})
	var reply wire.Reply
	err := c.send(&call{cmd: login.command(), done: func(r wire.Reply) {
		reply = r
		close(answered)
	}})
	if err != nil {
		return err
	}
	c.threads.Await(answered)
	switch {
	case reply.Err != nil:
		return reply.Err
	case reply.Value != "OK":
		c.sever(errShifted)
		return fmt.Errorf("%w: %w", ErrUnknown, errShifted)
	}
	return nil
}

// relogin is an AUTH under way.
type relogin struct {
	place    int // among the answers to come: 1 is the next one
	err      error
	answered chan struct{}
}

// authenticate logs the connection in again. While it is subscribed it may not do that
// (RESP2), so it leaves its channels, logs in and subscribes, in one write. Also if the login is
// refused, it is subscribed again, as before. Messages in between are lost, so the confirmations
// call Missed of the users, as after a new connection, for which a login that is not answered
// within MaxAge makes room.
func (s *subscriber) authenticate(box *writer, login Credentials) error {
	s.mu.Lock()
	if s.box != box {
		s.mu.Unlock()
		return ErrDown
	}
	var leave, subscribe []*wire.Command
	for _, channel := range s.channels() {
		leave = append(leave, &wire.Command{Name: "UNSUBSCRIBE", Args: []string{channel}})
		subscribe = append(subscribe, &wire.Command{Name: "SUBSCRIBE", Args: []string{channel}})
		s.topics[channel].confirmed = false
	}
	under := &relogin{place: s.asked + len(leave) + 1, answered: make(chan struct{})}
	s.login = under
	s.postAll(append(append(leave, login.command()), subscribe...)...)
	s.mu.Unlock()

	timer := s.m.config.Clock.AfterFunc(s.m.config.MaxAge, func() { box.sever(errStuck) })
	defer timer.Stop()
	s.m.threads.Await(under.answered)
	return under.err
}

func (r *relogin) end(err error) {
	r.err = err
	close(r.answered)
}

// loggedIn takes the answer to an AUTH. An error that it returns ends the connection.
func (r *relogin) loggedIn(answer any) error {
	refusal, refused := answer.(*wire.ServerError)
	switch {
	case refused:
		r.end(refusal)
	case answer == "OK":
		r.end(nil)
	default:
		r.end(fmt.Errorf("%w: %w", ErrUnknown, errShifted))
		return errShifted
	}
	return nil
}
