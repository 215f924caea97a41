// Package redistest runs real redis-server processes for tests, benchmarks and
// commands: each on a free loopback port, in a folder of its own, without
// persistence unless an option asks for it.
//
//	func TestSurvivesTheLossOfAMinority(t *testing.T) {
//		masters := redistest.StartN(t, 5)
//		masters[0].Stop()    // hangs: connections stay open, nothing answers
//		masters[1].Kill()    // is gone: connections are refused
//		...
//		masters[0].Continue()
//		masters[1].Restart() // same address, its keys forgotten
//		held, err := redis.String(masters[0].Do("GET", "name"))
//		...
//	}
//
// A server never outlives its test: it is killed when the test ends, also by a
// panic, and on Linux by the kernel when the test process itself is killed.
// When the test failed, the server's log is printed with it. A running server
// keeps one goroutine: look for leaks with goleak.VerifyTestMain, or after
// Close.
package redistest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/loopback"
)

const (
	startTimeout = 30 * time.Second // generous: a loaded machine starts dozens of servers together
	callTimeout  = 5 * time.Second  // for Do at a server that does not answer
	readyTimeout = 500 * time.Millisecond
	portAttempts = 5
)

// Server is one redis-server. Stop, Continue, Kill, Restart, RestartEmpty,
// Close and the clock's methods are called by one goroutine at a time; all
// other methods are safe for concurrent use with them. A method without an
// error result fails the test immediately, as t.Fatal does; on a server made by
// Run it panics.
type Server struct {
	tb      TB
	config  config
	home    string // the folder of everything below
	port    *loopback.Port
	process atomic.Pointer[process] // the current one, or the last
	clock   *fakeClock              // nil without Faketime
	closed  atomic.Bool
	idle    atomic.Pointer[redis.Conn] // for the next Do
}

// TB is the part of testing.TB that this package uses, so that commands do not
// link package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Start starts a server that lives until t ends.
func Start(t TB, opts ...Option) *Server {
	t.Helper()
	return StartN(t, 1, opts...)[0]
}

// StartN starts n servers, all with the same options, at the same time.
func StartN(t TB, n int, opts ...Option) []*Server {
	t.Helper()
	if t, ok := t.(interface{ Skip(args ...any) }); ok && os.Getenv(serverVariable) == noServer {
		t.Skip("needs a redis-server: make test")
	}
	servers, err := RunN(n, opts...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, s := range servers {
		s.tb = t
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("log of redis-server %s:\n%s", s.Addr(), s.Log())
			}
			s.Close()
		})
	}
	return servers
}

// Run starts a server that lives until Close or the end of the process.
func Run(opts ...Option) (*Server, error) {
	servers, err := RunN(1, opts...)
	if err != nil {
		return nil, err
	}
	return servers[0], nil
}

// RunN starts n servers, all with the same options, at the same time: all of
// them or none.
func RunN(n int, opts ...Option) ([]*Server, error) {
	if n < 1 {
		return nil, fmt.Errorf("redistest: %d servers: want at least 1", n)
	}
	config, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	servers, failures := make([]*Server, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { servers[i], failures[i] = run(config) })
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		for _, s := range servers {
			if s != nil {
				s.Close()
			}
		}
		return nil, err
	}
	return servers, nil
}

// run tries again with another port when another process took the port.
func run(c config) (s *Server, err error) {
	for range portAttempts {
		if s, err = runOnce(c); !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
	return nil, err
}

func runOnce(c config) (*Server, error) {
	s := &Server{tb: orPanic{}, config: c}
	err := s.settle()
	if err == nil {
		err = s.start()
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("redistest: %w", err)
	}
	return s, nil
}

// settle gives the server its lasting properties: folder, address, settings.
func (s *Server) settle() (err error) {
	if s.home, err = os.MkdirTemp("", "redistest-"); err != nil {
		return err
	}
	if s.port, err = s.config.reserve(); err != nil {
		return err
	}
	if s.config.faketime != "" {
		s.clock = newFakeClock(s.path("clock"), s.config.faketime)
	}
	return s.config.write(s)
}

// start launches a process and waits until it answers.
func (s *Server) start() error {
	if !s.config.persistent() { // SAVE and replication leave a snapshot that would be loaded
		if err := os.RemoveAll(s.Dir()); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(s.Dir(), 0o700); err != nil {
		return err
	}
	p, err := s.launch()
	if err != nil {
		return err
	}
	s.process.Store(p)
	if err := s.awaitReady(p); err != nil {
		return fmt.Errorf("redis-server at %s: %w; its log:\n%s", s.Addr(), err, s.Log())
	}
	if s.clock != nil {
		return s.clock.calibrate(s.time)
	}
	return nil
}

func (s *Server) launch() (*process, error) {
	log, err := os.OpenFile(s.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var env []string
	if s.clock != nil {
		if env, err = s.clock.prepare(); err != nil {
			return nil, err
		}
	}
	return launch(s.config.binary, s.path("redis.conf"), s.Dir(), env, log)
}

func (s *Server) awaitReady(p *process) error {
	return poll(startTimeout, func() (bool, error) {
		if p.ended() {
			return false, s.startFailure()
		}
		return s.ready(p), nil
	})
}

// ready asks for the process id too, lest another server answers.
func (s *Server) ready(p *process) bool {
	conn, err := s.Dial(redis.DialReadTimeout(readyTimeout))
	if err != nil {
		return false
	}
	defer conn.Close()
	if _, err := conn.Do("PING"); err != nil { // LOADING
		return false
	}
	info, _ := redis.String(conn.Do("INFO", "server"))
	return strings.Contains(info, fmt.Sprintf("\nprocess_id:%d\r\n", p.pid()))
}

var (
	errPortTaken = errors.New("somebody else took the port")
	errEnded     = errors.New("it ended instead of starting")
)

func (s *Server) startFailure() error {
	if strings.Contains(s.Log(), "Address already in use") {
		return errPortTaken
	}
	return errEnded
}

// Stop makes the server hang (SIGSTOP): its connections stay open, and
// commands wait. It returns when the server has stopped running.
func (s *Server) Stop() {
	s.tb.Helper()
	if err := s.process.Load().stop(); err != nil {
		s.tb.Fatalf("redistest: stop %s: %v", s.Addr(), err)
	}
}

// Continue ends a Stop (SIGCONT).
func (s *Server) Continue() {
	s.tb.Helper()
	if err := s.process.Load().resume(); err != nil {
		s.tb.Fatalf("redistest: continue %s: %v", s.Addr(), err)
	}
}

// Kill ends the server (SIGKILL), also a stopped one, without a chance to save
// anything. It returns when the process is gone; the address stays reserved
// and refuses connections until Restart. Killing a dead server does nothing.
func (s *Server) Kill() {
	p := s.process.Load()
	if p == nil {
		return
	}
	p.kill()
	if kept := s.idle.Swap(nil); kept != nil {
		(*kept).Close()
	}
	if s.clock != nil {
		forgetFaketime(p.pid())
	}
}

// Restart kills the server if it runs and starts it again at the same address,
// with what its persistence kept: everything with AOF, the last SAVE with
// Snapshots, otherwise nothing. Its settings are those of its options.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	if err := s.start(); err != nil {
		s.tb.Fatalf("redistest: restart: %v", err)
	}
}

// RestartEmpty is Restart without data, whatever the persistence.
func (s *Server) RestartEmpty() {
	s.tb.Helper()
	s.Kill()
	if err := os.RemoveAll(s.Dir()); err != nil {
		s.tb.Fatalf("redistest: restart empty: %v", err)
	}
	s.Restart()
}

// Close kills the server and removes its files. Only the first call counts.
func (s *Server) Close() {
	if s.closed.Swap(true) {
		return
	}
	s.Kill()
	if s.port != nil {
		s.port.Close()
	}
	os.RemoveAll(s.home)
}

// Network and Addr return what net.Dial takes: "tcp" and host:port, or "unix"
// and the socket's path with UnixSocket. They stay the same over a Restart.
func (s *Server) Network() string {
	if s.config.unixSocket {
		return "unix"
	}
	return "tcp"
}

// Addr: see Network.
func (s *Server) Addr() string {
	if s.config.unixSocket {
		return s.path("redis.sock")
	}
	return s.port.Addr()
}

// URL returns the address with the credentials of the options, as
// redis://user:password@host:port, rediss:// with TLS, unix:///path with
// UnixSocket.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr(), User: s.config.userinfo()}
	switch {
	case s.config.unixSocket:
		u.Scheme, u.Host, u.Path = "unix", "", s.Addr()
	case s.config.tls:
		u.Scheme = "rediss"
	}
	return u.String()
}

// URLs returns the URL of each server, as a client takes them.
func URLs(servers []*Server) []string {
	urls := make([]string, len(servers))
	for i, s := range servers {
		urls[i] = s.URL()
	}
	return urls
}

// Pid returns the process id of the current redis-server, or of the last one.
func (s *Server) Pid() int { return s.process.Load().pid() }

// Dir returns the folder with the server's data files. It stays the same over
// a Restart.
func (s *Server) Dir() string { return s.path("data") }

// Log returns what the server has logged so far, over all restarts.
func (s *Server) Log() string {
	log, err := os.ReadFile(s.path("log"))
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// Do runs one command with full rights, for assertions and to break things. It gives up after 5
// seconds. It keeps its connection for the next one: to dial costs more than most commands.
func (s *Server) Do(command string, args ...any) (any, error) {
	if kept := s.idle.Swap(nil); kept != nil {
		reply, err := s.doOn(*kept, command, args)
		if timeout := net.Error(nil); (*kept).Err() == nil || errors.As(err, &timeout) && timeout.Timeout() {
			return reply, err
		}
		// It had ended: the server was restarted, or told to end its clients.
	}
	conn, err := s.Dial()
	if err != nil {
		return nil, err
	}
	return s.doOn(conn, command, args)
}

// doOn keeps the connection if it stands, and closes it otherwise.
func (s *Server) doOn(conn redis.Conn, command string, args []any) (any, error) {
	reply, err := conn.Do(command, args...)
	if conn.Err() != nil || !s.idle.CompareAndSwap(nil, &conn) {
		conn.Close()
	}
	return reply, err
}

// Dial opens a connection with full rights. Reads and writes time out after
// 5 seconds unless opts say otherwise.
func (s *Server) Dial(opts ...redis.DialOption) (redis.Conn, error) {
	all := []redis.DialOption{
		redis.DialConnectTimeout(callTimeout), redis.DialReadTimeout(callTimeout), redis.DialWriteTimeout(callTimeout),
	}
	if s.config.secured() {
		all = append(all, redis.DialUsername(adminName), redis.DialPassword(s.config.adminPassword))
	}
	if s.config.tls {
		all = append(all, redis.DialUseTLS(true), redis.DialTLSConfig(s.TLSConfig()))
	}
	return redis.Dial(s.Network(), s.Addr(), append(all, opts...)...)
}

func (s *Server) path(name string) string { return filepath.Join(s.home, name) }

// orPanic stands in for a test.
type orPanic struct{}

func (orPanic) Helper()                           {}
func (orPanic) Cleanup(func())                    {}
func (orPanic) Failed() bool                      { return false }
func (orPanic) Logf(string, ...any)               {}
func (orPanic) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
