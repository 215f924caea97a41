// Package monitor counts the commands that clients send to masters. INFO commandstats
// would also count what scripts call; MONITOR tells the two apart.
package monitor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Monitor is a count under way.
type Monitor struct {
	about  []byte // only commands that contain this; empty: all
	conns  []net.Conn
	n      atomic.Int64
	byName sync.Map // of *atomic.Int64
	all    sync.WaitGroup
}

// Watch counts the commands that contain a text, or all, at masters in any form that
// redlock.Dial takes, but with TLS.
func Watch(about string, urls ...string) (*Monitor, error) {
	m := &Monitor{about: []byte(about)}
	for _, url := range urls {
		if err := m.watch(url); err != nil {
			m.Close()
			return nil, err
		}
	}
	return m, nil
}

// watch reads on the connection below redigo, which is too slow for this.
func (m *Monitor) watch(url string) error {
	if strings.HasPrefix(url, "rediss:") {
		return errors.New("MONITOR: not through TLS")
	}
	var raw net.Conn
	conn, err := Dial(url, redis.DialNetDial(func(network, addr string) (_ net.Conn, err error) {
		raw, err = net.DialTimeout(network, addr, time.Second)
		return raw, err
	}))
	if err != nil {
		return err
	}
	if _, err := conn.Do("MONITOR"); err != nil {
		conn.Close()
		return fmt.Errorf("these masters have no MONITOR: %w", err)
	}
	m.conns = append(m.conns, raw)
	m.all.Go(func() {
		lines := bufio.NewReaderSize(raw, 1<<16)
		for {
			line, err := lines.ReadSlice('\n')
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return
			}
			m.take(line)
		}
	})
	return nil
}

// take reads a line such as
//
//	+1700000000.123456 [0 127.0.0.1:4711] "EVALSHA" "..."
//
// where a script's own commands come from [0 lua].
func (m *Monitor) take(line []byte) {
	_, rest, ok := bytes.Cut(line, []byte(" ["))
	if !ok {
		return // the rest of a long line
	}
	from, command, _ := bytes.Cut(rest, []byte("] \""))
	if bytes.HasSuffix(from, []byte(" lua")) || !bytes.Contains(command, m.about) {
		return
	}
	name, _, _ := bytes.Cut(command, []byte("\""))
	n, ok := m.byName.Load(string(bytes.ToUpper(name)))
	if !ok {
		n, _ = m.byName.LoadOrStore(string(bytes.ToUpper(name)), new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
	m.n.Add(1) // last, so that a caller who sees the sum sees the names too
}

// Count is how many commands were sent so far.
func (m *Monitor) Count() int64 { return m.n.Load() }

// Named is how many commands of a name were sent so far.
func (m *Monitor) Named(name string) int64 {
	if n, ok := m.byName.Load(name); ok {
		return n.(*atomic.Int64).Load()
	}
	return 0
}

// Close ends the count.
func (m *Monitor) Close() {
	for _, conn := range m.conns {
		conn.Close()
	}
	m.all.Wait()
}

// Dial connects to an address in any form that redlock.Dial takes.
func Dial(url string, opts ...redis.DialOption) (redis.Conn, error) {
	if path, ok := strings.CutPrefix(url, "unix://"); ok {
		return redis.Dial("unix", path, opts...)
	}
	if !strings.Contains(url, "://") {
		return redis.Dial("tcp", url, opts...)
	}
	return redis.DialURL(url, opts...)
}
