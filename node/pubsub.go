package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// subscriber is the pub/sub side of a Master: one connection for all channels,
// opened for the first user and closed after the last one has been gone for the
// linger time. A channel, too, outlives its last user for that long, since
// those who wait for a lock come and go.
type subscriber struct {
	m     *Master
	pulse pulse // of the connection

	mu      sync.Mutex
	topics  map[string]*topic
	box     *outbox       // nil: not connected
	running chan struct{} // closed when the goroutine ends; nil: there is none
	closed  bool
}

// topic is one channel.
type topic struct {
	users     []*user       // replaced, never changed, so that it can be walked without the mutex
	confirmed bool          // by the current connection
	left      time.Duration // when the last user went
}

type user struct{ wake func() }

func newSubscriber(m *Master) *subscriber {
	return &subscriber{m: m, topics: make(map[string]*topic)}
}

func (s *subscriber) subscribe(channel string, wake func()) (cancel func()) {
	u := &user{wake}
	if s.add(channel, u) {
		wake() // nothing will confirm again what is confirmed already
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
		go s.run(s.running)
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
	t.users, t.left = rest, s.m.clock.now()
}

// post sends a request if there is a connection. The mutex is held.
func (s *subscriber) post(name string, args ...string) {
	if s.box == nil {
		return
	}
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	if s.box.err == nil {
		s.box.out = appendCommand(s.box.out, &Command{Name: name, Args: args}, byHash)
		s.box.appended()
	}
}

// run is the subscriber's goroutine while anybody is subscribed.
func (s *subscriber) run(ended chan struct{}) {
	defer close(ended)
	for failures := 0; ; failures++ {
		began := s.m.clock.now()
		err := s.session()
		if s.m.clock.now()-began > s.m.config.MaxBackoff+s.m.config.ConnectTimeout {
			failures = 0
		}
		if s.done(err) || !s.m.pause(backoff(failures, s.m.config)) {
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
		s.m.config.Logger.Debug("redis subscriber not connected", "node", s.m.Addr(), "err", err)
		return false
	}
	s.running = nil
	return true
}

var (
	errDeaf    = errors.New("no answer to a ping")
	errNoUsers = errors.New("nobody is subscribed any more")
)

// session connects, subscribes to all channels and wakes their users until the
// connection breaks or nobody is left.
func (s *subscriber) session() error {
	box, replies, err := s.connect()
	if err != nil {
		return err
	}
	go box.write()
	s.pulse.feel()
	err = s.adopt(box)
	if err == nil {
		tick := newTicker(s.m.config.Clock, s.m.config.Heartbeat, func() { s.tick(box) })
		err = box.cause(s.listen(replies))
		tick.stop()
	}
	s.release()
	box.sever(err)
	<-box.ended
	return err
}

func (s *subscriber) connect() (*outbox, redis.Conn, error) {
	ctx, cancel := context.WithCancelCause(s.m.ctx)
	defer cancel(nil)
	late := fmt.Errorf("no connection within %v", s.m.config.ConnectTimeout)
	timer := s.m.config.Clock.AfterFunc(s.m.config.ConnectTimeout, func() { cancel(late) })
	defer timer.Stop()
	w, replies, err := s.m.address.dial(ctx, s.m.config.TLS)
	if err != nil {
		return nil, nil, err
	}
	return newOutbox(w), replies, nil
}

// adopt makes box the connection and subscribes to what is wanted by now.
func (s *subscriber) adopt(box *outbox) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.box = box
	for channel := range s.topics {
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
}

// listen wakes users until the connection breaks.
func (s *subscriber) listen(replies redis.Conn) error {
	for {
		v, err := receive(replies)
		s.pulse.feel()
		if _, refused := err.(redis.Error); refused {
			continue // a channel that an ACL forbids: its users have a timer
		}
		if err != nil {
			return err
		}
		fields, _ := v.([]any)
		if len(fields) < 2 {
			continue // a pong without any channel subscribed
		}
		switch text(fields[0]) {
		case "message":
			wake(s.users(text(fields[1])))
		case "subscribe":
			wake(s.confirm(text(fields[1])))
		}
	}
}

func wake(users []*user) {
	for _, u := range users {
		u.wake()
	}
}

func (s *subscriber) users(channel string) []*user {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[channel]; t != nil {
		return t.users
	}
	return nil
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

// tick pings, leaves channels that nobody uses, and ends the connection when
// none is left or nothing comes back.
func (s *subscriber) tick(box *outbox) {
	if s.pulse.gone() {
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
	s.post("PING")
}

// sweep leaves the channels whose last user has been gone for long. The mutex
// is held.
func (s *subscriber) sweep() {
	now := s.m.clock.now()
	for channel, t := range s.topics {
		if len(t.users) == 0 && now-t.left >= s.m.config.Linger {
			delete(s.topics, channel)
			s.post("UNSUBSCRIBE", channel)
		}
	}
}

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
		<-running
	}
}

// pulse is whether anything was received lately. Like the age of a connection
// it is counted in looks, not in time.
type pulse struct {
	mu     sync.Mutex
	missed int
}

func (p *pulse) feel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missed = 0
}

// gone reports whether two pings were sent and nothing came.
func (p *pulse) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missed++
	return p.missed > 2
}
