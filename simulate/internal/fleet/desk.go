package fleet

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// Unused reports whether an operator may take the master for a new one, by its marker.
func (m *Master) Unused() bool {
	marker, _ := guard.ParseMarker(m.Marker())
	return marker.RunID == "" || marker.Unused(time.UnixMicro(m.Keys.Now()))
}

// address is what clients and operators call the master.
func (m *Master) address() string { return m.Host.Name + ":6379" }

// scan returns all keys.
func (m *Master) scan() []any {
	all := []any{}
	for _, key := range slices.Sorted(maps.Keys(m.Keys.Keys)) {
		if m.Keys.Find(key) != nil {
			all = append(all, []byte(key))
		}
	}
	return all
}

// desk is an operator's connection to a master.
type desk struct {
	net.Conn
	master *Master
	out    []byte
}

// Write implements net.Conn. The master answers immediately.
func (d *desk) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		var args []string
		args, b = readRequest(b)
		reply, err := d.answer(args)
		if err != nil {
			reply = err
		}
		d.out = appendReply(d.out, reply)
	}
	return n, nil
}

// Read implements net.Conn.
func (d *desk) Read(b []byte) (int, error) {
	if len(d.out) == 0 {
		return 0, errors.New("has nothing to say")
	}
	n := copy(b, d.out)
	d.out = d.out[n:]
	return n, nil
}

// Close implements net.Conn.
func (d *desk) Close() error { return nil }

// SetDeadline implements net.Conn.
func (d *desk) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (d *desk) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (d *desk) SetWriteDeadline(time.Time) error { return nil }

// answer runs a request.
func (d *desk) answer(args []string) (any, *wire.ServerError) {
	m := d.master
	if m.Refuses != nil && refused(m.Refuses.Code, &wire.Command{Op: wire.OpRead}) {
		return nil, m.Refuses
	}
	switch args[0] {
	case "ROLE", "INFO", "SCRIPT":
		return m.about(args), nil
	case "SCAN":
		return []any{[]byte("0"), m.scan()}, nil
	case "SSCAN":
		all := []any{}
		if e := m.Keys.Find(args[1]); e != nil {
			for _, member := range slices.Sorted(maps.Keys(e.Texts)) {
				all = append(all, []byte(member))
			}
		}
		return []any{[]byte("0"), all}, nil
	case "TYPE":
		if e := m.Keys.Find(args[1]); e != nil && e.IsString() {
			return "string", nil
		}
		return "hash", nil
	case "EVAL", "EVALSHA":
		script := scriptOf(args[1])
		n, _ := strconv.Atoi(args[2])
		return m.exec(0, &wire.Command{Op: opOf(script), Script: script, Keys: args[3 : 3+n], Args: args[3+n:]})
	}
	return m.exec(0, plain(args))
}

// Office is how the operator connects to masters.
func Office(masters []*Master, guard guard.Config) node.Config {
	return node.Config{Guard: guard, Dialer: func(_ context.Context, _, addr string) (net.Conn, error) {
		for _, m := range masters {
			if m.address() == addr && !m.Host.Down && !m.Host.Stopped() {
				return &desk{master: m}, nil
			}
		}
		return nil, errors.New("does not answer")
	}}
}

func Addresses(masters []*Master) (addrs []string) {
	for _, m := range masters {
		addrs = append(addrs, m.address())
	}
	return addrs
}
