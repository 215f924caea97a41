package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// subscriber is the pub/sub side of a Master: one connection for all channels, opened
// for the first user and closed after the last one has been gone for the linger time.
// A channel, too, outlives its last user for that long, since waiters come and go.
type subscriber struct {
	m     *Master
	pulse pulse // of the connection

	mu      sync.Mutex
	topics  map[string]*topic
	box     *writer       // nil: not connected
	asked   int           // requests without an answer
	login   *relogin      // the AUTH among them, or nil
	running chan struct{} // closed when the goroutine ends; nil: no goroutine runs
	closed  bool
}

// topic is one channel.
type topic struct {
	users     []*user       // replaced, never changed, so that it can be walked without the mutex
	confirmed bool          // by the current connection
	left      time.Duration // when the last user went
}

type user struct{ Listener }

func newSubscriber(m *Master) *subscriber {
	return &subscriber{m: m, topics: make(map[string]*topic)}
}

func (s *subscriber) subscribe(channel string, l Listener) (cancel func()) {
	u := &user{l}
	if s.add(channel, u) {
		l.Missed() // no second confirmation will come
	}
	return sync.OnceFunc(func() { s.remove(channel, u) })
}

// add reports whether the channel is already confirmed.
func (s *subscriber) add(channel string, u *user) (confirmed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	t := s.topics[channel]
	if t == nil {
		t = &topic{}
		s.topics[channel] = t
		s.post("SUBSCRIBE", channel)
	}
	t.users = append(t.users[:len(t.users):len(t.users)], u)
	if s.running == nil {
		s.running = make(chan struct{})
		ended := s.running
		s.m.threads.Go(func() { s.run(ended) })
	}
	return t.confirmed
}

func (s *subscriber) remove(channel string, u *user) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	if t == nil {
		return
	}
	rest := make([]*user, 0, len(t.users))
	for _, each := range t.users {
		if each != u {
			rest = append(rest, each)
		}
	}
	t.users, t.left = rest, s.m.now()
}

// post sends a request if there is a connection. The mutex is held.
func (s *subscriber) post(name string, args ...string) {
	s.postAll(&wire.Command{Name: name, Args: args})
}

// postAll is post for several requests, which are written together.
func (s *subscriber) postAll(cmds ...*wire.Command) {
	if s.box == nil {
		return
	}
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	if s.box.err != nil {
		return
	}
	for _, cmd := range cmds {
		s.box.out = wire.Append(s.box.out, cmd, wire.ByHash)
		s.asked++
	}
	s.box.appended()
}

// run is the subscriber's goroutine while there is a user.
func (s *subscriber) run(ended chan struct{}) {
	defer close(ended)
	for redial := s.m.config.Backoff; ; {
		stood, err := s.session()
		if s.done(err) || !s.m.pause(redial.Ended(stood, s.m.now(), s.m.threads.Random())) {
			return
		}
	}
}

// done reports whether the goroutine may end, and makes room for the next one.
func (s *subscriber) done(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	if len(s.topics) > 0 && !s.closed {
		s.m.config.Logger.Debug("redlock: redis subscriber not connected", "node", s.m.Addr(), "err", err)
		return false
	}
	s.running = nil
	return true
}

var (
	errDeaf    = errors.New("no answer to a ping")
	errNoUsers = errors.New("no subscriber is left")
	errFlood   = fmt.Errorf("more than %d messages between two heartbeats", maxMessages)
)

// session connects, subscribes to all channels and tells their users until the
// connection breaks or no user is left. It returns for how long the connection stood.
func (s *subscriber) session() (stood time.Duration, err error) {
	w, err := s.connect()
	if err != nil {
		return 0, err
	}
	began := s.m.now()
	box := newWriter(w)
	box.threads = s.m.threads
	s.m.threads.Go(box.write)
	s.pulse.begin()
	err = s.adopt(box)
	if err == nil {
		tick := newTicker(s.m.config.Clock, s.m.config.Heartbeat, func() { s.tick(box) })
		stopLogin := s.m.keepLogin(w.expires, func(login Credentials) error { return s.authenticate(box, login) })
		err = box.cause(s.listen(w))
		stopLogin()
		tick.stop()
	}
	s.release()
	box.sever(err)
	s.m.threads.Await(box.ended)
	return s.m.now() - began, err
}

func (s *subscriber) connect() (*socket, error) {
	login, err := s.m.config.credentials(s.m.life.ctx, s.m.address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(s.m.life.ctx)
	defer cancel(nil)
	late := fmt.Errorf("no connection within %v", s.m.config.ConnectTimeout)
	timer := s.m.config.Clock.AfterFunc(s.m.config.ConnectTimeout, func() { cancel(late) })
	defer timer.Stop()
	return s.m.config.dial(ctx, s.m.address, login)
}

// adopt makes box the connection and subscribes to the channels that are wanted by now.
func (s *subscriber) adopt(box *writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.box, s.asked = box, 0
	for _, channel := range s.channels() {
		s.post("SUBSCRIBE", channel)
	}
	return nil
}

func (s *subscriber) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.box = nil
	for _, t := range s.topics {
		t.confirmed = false
	}
	if s.login != nil {
		s.login.end(ErrUnknown)
		s.login = nil
	}
}

// listen tells users until the connection breaks.
func (s *subscriber) listen(w *socket) error {
	for {
		v, err := w.receive()
		if err != nil {
			return err
		}
		if s.pulse.feel() > maxMessages {
			return errFlood
		}
		kind, channel, said := message(v)
		if kind == "message" {
			s.m.tell(s.users(channel), said)
			continue
		}
		asked, login := s.answered()
		if !asked {
			return errNotAsked
		}
		if login != nil {
			if err := login.loggedIn(v); err != nil {
				return err
			}
			continue
		}
		// Else it is a pong, or an ACL forbids the channel: its users have a timer, and it is
		// asked for again.
		if kind == "subscribe" {
			missed(s.confirm(channel))
		}
	}
}

// message takes apart a message that comes on a subscription, if it is one.
func message(v any) (kind, channel, said string) {
	fields, _ := v.([]any)
	if len(fields) < 2 {
		return "", "", ""
	}
	if len(fields) > 2 {
		said = wire.Text(fields[2])
	}
	return wire.Text(fields[0]), wire.Text(fields[1]), said
}

// answered counts an answer, and reports whether one was to come, and the login if it is to that.
func (s *subscriber) answered() (asked bool, login *relogin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked--
	if s.login != nil {
		if s.login.place--; s.login.place == 0 {
			login, s.login = s.login, nil
		}
	}
	return s.asked >= 0, login
}

func missed(users []*user) {
	for _, u := range users {
		u.Missed()
	}
}

// tell passes a message on without the proof that it begins with. A master that lost
// its memory since we accepted its marker is doubted, and so is one whose clock was
// set forward.
func (m *Master) tell(users []*user, message string) {
	proof, text, ok := strings.Cut(message, "\n")
	believed := ok && m.vouched(proof)
	for _, u := range users {
		switch {
		case believed:
			u.Heard(text)
		case ok:
			u.Doubted(text)
		default:
			u.Missed()
		}
	}
}

// missed tells all users that the master grants again.
func (s *subscriber) missed() {
	s.mu.Lock()
	var all []*user
	for _, channel := range s.channels() {
		all = append(all, s.topics[channel].users...)
	}
	s.mu.Unlock()
	missed(all)
}

func (s *subscriber) users(channel string) []*user {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[channel]; t != nil {
		return t.users
	}
	return nil
}

// confirms reports whether the current connection has confirmed a channel.
func (s *subscriber) confirms(channel string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	return t != nil && t.confirmed
}

func (s *subscriber) confirm(channel string) []*user {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[channel]
	if t == nil {
		return nil
	}
	t.confirmed = true
	return t.users
}

// tick asks a quiet connection for a pong, leaves channels without users, asks again for
// refused channels, since an ACL can change, and ends the connection when no channel
// is left or nothing comes back.
func (s *subscriber) tick(box *writer) {
	ask, gone := s.pulse.look()
	if gone {
		box.sever(errDeaf)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	if len(s.topics) == 0 {
		box.sever(errNoUsers)
		return
	}
	if s.asked == 0 { // else a confirmation may be under way
		s.resubscribe()
	}
	if ask {
		s.post("PING")
	}
}

// resubscribe asks again for the channels that were refused. The mutex is held.
func (s *subscriber) resubscribe() {
	for _, channel := range s.channels() {
		if !s.topics[channel].confirmed {
			s.post("SUBSCRIBE", channel)
		}
	}
}

// sweep leaves the channels whose last user has been gone for long. The mutex
// is held.
func (s *subscriber) sweep() {
	now := s.m.now()
	for _, channel := range s.channels() {
		if t := s.topics[channel]; len(t.users) == 0 && now-t.left >= s.m.config.Linger {
			delete(s.topics, channel)
			s.post("UNSUBSCRIBE", channel)
		}
	}
}

// channels returns all channels, always in the same order. The mutex is held.
func (s *subscriber) channels() []string { return slices.Sorted(maps.Keys(s.topics)) }

func (s *subscriber) close() {
	s.mu.Lock()
	s.closed = true
	clear(s.topics)
	running := s.running
	if s.box != nil {
		s.box.sever(ErrClosed)
	}
	s.mu.Unlock()
	if running != nil {
		s.m.threads.Await(running)
	}
}

// maxMessages bounds how busy one master can keep us with messages: from one
// look to the next. It is far above what handing over locks needs.
const maxMessages = 100_000
