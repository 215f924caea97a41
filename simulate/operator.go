package simulate

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/operate"
	"github.com/quorumlock/quorumlock/node/wire"
)

// An operator takes a master that comes back without its memory for a new one, and runs
// redlock init: operate.Init, over connections of its own that take no time. It must refuse
// that beside masters in use, whatever those store just then. Another makes three masters
// five.

// operates adds what the operator does: in some schedules, just after masters have lost
// their memory, and mostly before a client has seen that.
func operates(faults []Fault, dice *stream, cfg *Config) []Fault {
	if cfg.drawnFor() != nil || cfg.RestartGuard <= 0 || !dice.chance(300) {
		return faults
	}
	for _, f := range slices.Clone(faults) {
		if (f.Kind == RestartEmpty || f.Kind == Flush) && dice.chance(800) {
			faults = append(faults, Fault{Kind: Init, At: f.At + f.For + dice.spread(time.Microsecond, 20*time.Millisecond), Node: -1, Client: -1})
		}
	}
	return byTime(faults)
}

// follows adds what another operator does: in some schedules masters are made replicas of
// servers that were copies of them, and masters again, without a restart (S50).
func follows(faults []Fault, dice *stream, cfg *Config) []Fault {
	if cfg.drawnFor() != nil || cfg.RestartGuard <= 0 || !slices.Contains(cfg.Faults.Kinds, Failover) || !dice.chance(150) {
		return faults
	}
	for range 1 + dice.below(3) {
		faults = append(faults, Fault{
			Kind: Follow, Node: dice.below(cfg.Nodes), Client: -1, At: dice.between(0, cfg.Duration),
			For: dice.spread(5*time.Millisecond, cfg.TTL), Size: dice.spread(cfg.TTL/50, 2*cfg.TTL),
		})
	}
	return byTime(faults)
}

// operated reports whether the schedule has an operator whose masters are in use: they
// were declared new long before it begins.
func (s *Schedule) operated() bool {
	return s.config.script == nil && slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Kind == Init })
}

// operate runs operate.Init, if a master is there that somebody has used: where all have lost
// their memory, none can tell.
func (t *trial) operate() {
	used := slices.ContainsFunc(t.masters, func(m *master) bool { return !m.unused() })
	unused := slices.ContainsFunc(t.masters, (*master).unused)
	if !used && t.schedule.operated() {
		return
	}
	if _, err := operate.Init(context.Background(), t.addresses(), "", t.office()); err == nil && unused && t.schedule.operated() {
		t.check.report(Violation{Kind: Custom, What: "redlock init has declared a master new beside others that are in use"})
	}
}

// unused reports whether an operator may take the master for a new one, by its marker.
func (m *master) unused() bool {
	marker, _ := node.ParseMarker(m.marker())
	return marker.RunID == "" || marker.Unused(time.UnixMicro(m.keys.Now()))
}

// move makes all masters one group (operate.Regroup).
func (t *trial) move() {
	if _, err := operate.Regroup(context.Background(), t.addresses(), "", t.office()); err != nil {
		panic("simulate: redlock init --regroup: " + err.Error())
	}
}

func (t *trial) addresses() (addrs []string) {
	for _, m := range t.masters {
		addrs = append(addrs, m.address())
	}
	return addrs
}

// office is how the operator connects to masters.
func (t *trial) office() node.Config {
	return node.Config{Guard: t.config.guard(1), Dialer: func(_ context.Context, _, addr string) (net.Conn, error) {
		for _, m := range t.masters {
			if m.address() == addr && !m.host.down && !m.host.stopped() {
				return &desk{master: m}, nil
			}
		}
		return nil, errors.New("does not answer")
	}}
}

// address is what clients and operators call the master.
func (m *master) address() string { return m.host.name + ":6379" }

// desk is an operator's connection to a master.
type desk struct {
	net.Conn
	master *master
	out    []byte
}

// Write implements net.Conn. The master answers at once.
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
	if m.refuses != nil && refused(m.refuses.Code, &wire.Command{Op: wire.OpRead}) {
		return nil, m.refuses
	}
	switch args[0] {
	case "ROLE", "INFO", "SCRIPT":
		return m.about(args), nil
	case "SCAN":
		return []any{[]byte("0"), m.scan()}, nil
	case "SSCAN":
		all := []any{}
		if e := m.keys.Find(args[1]); e != nil {
			for _, member := range sortedKeys(e.Texts) {
				all = append(all, []byte(member))
			}
		}
		return []any{[]byte("0"), all}, nil
	case "TYPE":
		if e := m.keys.Find(args[1]); e != nil && e.IsString() {
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

// scan returns all keys.
func (m *master) scan() []any {
	all := []any{}
	for _, key := range sortedKeys(m.keys.Keys) {
		if m.keys.Find(key) != nil {
			all = append(all, []byte(key))
		}
	}
	return all
}
