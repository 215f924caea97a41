package bench

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// monitor counts the commands that clients send to the masters. INFO
// commandstats would count what scripts call as well, MONITOR tells the two
// apart.
type monitor struct {
	about  []byte // only commands that contain this; empty: all
	conns  []net.Conn
	n      atomic.Int64
	byName sync.Map // of *atomic.Int64
	all    sync.WaitGroup
}

func (t *Trial) monitor() (*monitor, error) {
	return t.monitorOnly("")
}

// monitorOnly counts commands about one thing, whatever else goes on.
func (t *Trial) monitorOnly(about string) (*monitor, error) {
	m := &monitor{about: []byte(about)}
	for _, master := range t.Masters {
		if err := m.watch(master.URL()); err != nil {
			m.close()
			return nil, err
		}
	}
	return m, nil
}

// watch reads on the connection below redigo, which is too slow for this.
func (m *monitor) watch(url string) error {
	var raw net.Conn
	conn, err := dial(url, redis.DialNetDial(func(network, addr string) (_ net.Conn, err error) {
		raw, err = net.DialTimeout(network, addr, time.Second)
		return raw, err
	}))
	if err != nil {
		return err
	}
	if strings.HasPrefix(url, "rediss:") {
		conn.Close()
		return errors.New("not through TLS")
	}
	if _, err := conn.Do("MONITOR"); err != nil {
		conn.Close()
		return errNoMonitor
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
func (m *monitor) take(line []byte) {
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
	m.n.Add(1) // last: who has counted all of them may look at the names
}

func (m *monitor) count() int64 { return m.n.Load() }

// named returns how many commands of that name were sent.
func (m *monitor) named(name string) int64 {
	if n, ok := m.byName.Load(name); ok {
		return n.(*atomic.Int64).Load()
	}
	return 0
}

func (m *monitor) close() {
	for _, conn := range m.conns {
		conn.Close()
	}
	m.all.Wait()
}
