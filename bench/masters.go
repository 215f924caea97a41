package bench

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/monitor"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

// Masters are the servers of a run.
type Masters struct {
	Kind string // for the report
	all  []Master
	slow bool // a script takes them many times longer than Redis

	lines *lines // nil before Extend
}

// Master is one server.
type Master interface {
	URL() string
}

// Breakable is a Master that the run started itself and may break.
type Breakable interface {
	Master
	Stop()     // hangs: connections stay open, nothing answers
	Continue() // ends Stop
	Kill()     // is gone: connections are refused
	Restart()  // at the same address, without its keys
	Pid() int
	Close()
}

// Given are servers of another owner. They are not broken, and the
// CPU time that they use is not known.
func Given(urls []string) *Masters {
	m := &Masters{Kind: "given"}
	for _, url := range urls {
		m.all = append(m.all, given(url))
	}
	return m
}

type given string

func (g given) URL() string { return string(g) }

// Real starts redis-server processes. It must be installed.
func Real(n int) (*Masters, error) {
	servers, err := redistest.RunN(n)
	if err != nil {
		return nil, err
	}
	m := &Masters{Kind: serverVersion()}
	for _, s := range servers {
		m.all = append(m.all, s)
	}
	return m, nil
}

// serverVersion is "redis-server 7.0.15", say.
func serverVersion() string {
	out, err := exec.Command("redis-server", "--version").Output()
	if err == nil {
		for _, field := range strings.Fields(string(out)) {
			if v, ok := strings.CutPrefix(field, "v="); ok {
				return "redis-server " + v
			}
		}
	}
	return "redis-server"
}

// Check returns an error unless every master answers.
func (m *Masters) Check() error {
	var errs []error
	for _, master := range m.all {
		conn, err := monitor.Dial(master.URL(), redis.DialConnectTimeout(5*time.Second), redis.DialReadTimeout(5*time.Second))
		if err == nil {
			_, err = conn.Do("PING")
			conn.Close()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("bench: a master does not answer: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Len returns how many masters there are.
func (m *Masters) Len() int { return len(m.all) }

// Close ends the servers that the run started, and the lines to them.
func (m *Masters) Close() {
	if m.lines != nil {
		m.lines.kill()
	}
	for _, master := range m.all {
		if b, ok := master.(Breakable); ok {
			b.Close()
		}
	}
}

// breakable returns the trial's masters if they may be broken.
func (t *Trial) breakable() ([]Breakable, error) {
	var all []Breakable
	for _, m := range t.Masters {
		b, ok := m.(Breakable)
		if !ok {
			return nil, errors.New("not measured: these masters are not ours to break")
		}
		all = append(all, b)
	}
	return all, nil
}

// keysLeft counts which of the names are still keys at the trial's masters.
func (t *Trial) keysLeft(names []string) (int, error) {
	args := redis.Args{}.AddFlat(names)
	left := 0
	for _, m := range t.Masters {
		conn, err := monitor.Dial(m.URL(), redis.DialReadTimeout(5*time.Second))
		if err != nil {
			return left, err
		}
		n, err := redis.Int(conn.Do("EXISTS", args...))
		conn.Close()
		if err != nil {
			return left, err
		}
		left += n
	}
	return left, nil
}

// remove deletes names that a subject has left behind.
func (t *Trial) remove(names []string) {
	for _, m := range t.Masters {
		if conn, err := monitor.Dial(m.URL(), redis.DialReadTimeout(5*time.Second)); err == nil {
			conn.Do("DEL", redis.Args{}.AddFlat(names)...)
			conn.Close()
		}
	}
}

// Embedded starts masters that need no Redis: each is this program again, with
// argv, which is expected to call ServeEmbedded with the address that is added
// as the last argument.
func Embedded(n int, argv ...string) (*Masters, error) {
	m := &Masters{Kind: "embedded (miniredis, a process each)", slow: true}
	for range n {
		e, err := startEmbedded(argv)
		if err != nil {
			m.Close()
			return nil, fmt.Errorf("start an embedded master: %w", err)
		}
		m.all = append(m.all, e)
	}
	return m, nil
}

// on is "redlock on 5".
func on(library string, nodes int) string {
	if nodes == 1 {
		return library + " on one"
	}
	return fmt.Sprintf("%s on %d", library, nodes)
}

var _ Breakable = (*redistest.Server)(nil)
var _ Breakable = (*embedded)(nil)
