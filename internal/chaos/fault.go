package chaos

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

// Kind is a kind of fault.
type Kind struct {
	Name string
	Does string // for the report
	// Every is how much time passes on average until the next one, if a seed
	// asks for the usual amount.
	Every     time.Duration
	Min, Max  time.Duration // how long it lasts; 0: an instant
	component component
	strike    strike
}

// component is what a fault hits.
type component string

const (
	aMaster  component = "master"
	aDurable component = "durable master" // one with an append-only file
	aClock   component = "clock"          // that of a master under libfaketime
	aLink    component = "link"           // from a client to a master
	aClient  component = "client"
)

// strike does a fault to one target, waits, and undoes it.
type strike func(f *fleet, target int, wait func()) error

// Kinds are all faults, in the order of the report.
var Kinds = []*Kind{
	{"kill", "SIGKILL, back without data", 9 * time.Second, 10 * time.Millisecond, 3 * time.Second, aMaster, onMaster(kill)},
	{"restart", "SIGKILL, back with its data", 15 * time.Second, 10 * time.Millisecond, 2 * time.Second, aDurable, onMaster(restart)},
	{"freeze", "SIGSTOP, SIGCONT", 8 * time.Second, 50 * time.Millisecond, 4 * time.Second, aMaster, onMaster(freeze)},
	{"flush", "FLUSHALL", 10 * time.Second, 0, 0, aMaster, onMaster(flush)},
	{"memory", "maxmemory reached, noeviction", 15 * time.Second, 100 * time.Millisecond, 3 * time.Second, aMaster, onMaster(fillMemory)},
	{"disconnect", "CLIENT KILL of all clients", 10 * time.Second, 0, 0, aMaster, onMaster(disconnect)},
	{"sleep", "DEBUG SLEEP", 12 * time.Second, 50 * time.Millisecond, 2 * time.Second, aMaster, onMaster(debugSleep)},
	{"busy", "a script that does not end", 15 * time.Second, 100 * time.Millisecond, 2 * time.Second, aMaster, onMaster(busy)},
	{"forward", "clock set forward; later back", 30 * time.Second, 2 * time.Second, 4 * time.Second, aClock, onMaster(forward)},
	{"revive", "down, clock set forward; later back", 60 * time.Second, 500 * time.Millisecond, 3 * time.Second, aClock, onMaster(revive)},
	{"backward", "clock set back; later down, forward", 60 * time.Second, 500 * time.Millisecond, 3 * time.Second, aClock, onMaster(backward)},
	{"deaf", "requests cut", 6 * time.Second, 20 * time.Millisecond, 4 * time.Second, aLink, onLink(cut(faultproxy.Requests))},
	{"mute", "replies cut", 6 * time.Second, 20 * time.Millisecond, 4 * time.Second, aLink, onLink(cut(faultproxy.Replies))},
	{"lossy", "what is sent is lost, either way", 8 * time.Second, 20 * time.Millisecond, 2 * time.Second, aLink, onLink(drop)},
	{"slow", "both ways delayed by 30 ms", 6 * time.Second, 100 * time.Millisecond, 4 * time.Second, aLink, onLink(slow)},
	{"reset", "connections reset", 6 * time.Second, 0, 0, aLink, onLink(reset)},
	{"stop", "SIGSTOP, SIGCONT", 5 * time.Second, 20 * time.Millisecond, 5 * time.Second, aClient, stopClient},
	{"die", "SIGKILL, another one later", 9 * time.Second, 10 * time.Millisecond, 2 * time.Second, aClient, killClient},
	{"leave", "told to end, another one later", 15 * time.Second, 10 * time.Millisecond, 2 * time.Second, aClient, dismissClient},
}

// KindsOf returns the kinds with these names, separated by commas, in their
// usual order.
func KindsOf(names string) ([]*Kind, error) {
	var kinds []*Kind
	wanted := map[string]bool{}
	for _, name := range strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' }) {
		wanted[name] = true
	}
	for _, k := range Kinds {
		if wanted[k.Name] {
			kinds = append(kinds, k)
			delete(wanted, k.Name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("no fault is named %q: want %s", name, strings.Join(kindNames(Kinds), ", "))
	}
	return kinds, nil
}

func kindNames(kinds []*Kind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	return names
}

func onMaster(do func(m *redistest.Server, wait func()) error) strike {
	return func(f *fleet, target int, wait func()) error { return do(f.masters[target], wait) }
}

func kill(m *redistest.Server, wait func()) error {
	m.Kill()
	wait()
	m.RestartEmpty()
	return nil
}

func restart(m *redistest.Server, wait func()) error {
	m.Kill()
	wait()
	m.Restart()
	return nil
}

func freeze(m *redistest.Server, wait func()) error {
	m.Stop()
	wait()
	m.Continue()
	return nil
}

func flush(m *redistest.Server, _ func()) error {
	_, err := m.Do("FLUSHALL")
	return err
}

func fillMemory(m *redistest.Server, wait func()) error {
	if _, err := m.Do("CONFIG", "SET", "maxmemory", 1); err != nil {
		return err
	}
	wait()
	_, err := m.Do("CONFIG", "SET", "maxmemory", 0)
	return err
}

func disconnect(m *redistest.Server, _ func()) error {
	for _, kind := range []string{"normal", "pubsub"} {
		if _, err := m.Do("CLIENT", "KILL", "TYPE", kind); err != nil {
			return err
		}
	}
	return nil
}

// debugSleep has the server sleep for as long as the fault lasts; it cannot be
// woken early, so it sleeps again and again for a little.
func debugSleep(m *redistest.Server, wait func()) error {
	over := make(chan struct{})
	go func() {
		wait()
		close(over)
	}()
	for {
		select {
		case <-over:
			return nil
		default:
		}
		if _, err := m.Do("DEBUG", "SLEEP", "0.25"); err != nil {
			return err
		}
	}
}

// busy runs a script without end. Beyond the server's time limit for scripts,
// all other clients are answered BUSY until it is killed.
func busy(m *redistest.Server, wait func()) error {
	conn, err := m.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Send("EVAL", "while true do end", 0); err != nil {
		return err
	}
	if err := conn.Flush(); err != nil {
		return err
	}
	wait()
	_, err = m.Do("SCRIPT", "KILL")
	return err
}

// clockStep is how far clocks are set.
const clockStep = 90 * time.Second

// forward sets the clock of a master forward while it votes: keys expire under their
// holders (S2). It stays so until every client has looked at it, for the same reason.
func forward(m *redistest.Server, wait func()) error {
	m.StepClock(clockStep)
	wait()
	m.StepClock(-clockStep)
	return nil
}

// revive is forward with the master down (S4).
func revive(m *redistest.Server, wait func()) error {
	advance(m)
	wait()
	m.StepClock(-clockStep)
	return nil
}

// backward sets it back, and forward again with the master down: without
// a look at the clock in between, the change would leave no trace.
func backward(m *redistest.Server, wait func()) error {
	m.StepClock(-clockStep)
	wait()
	advance(m)
	return nil
}

// advance sets the clock of a master forward while it is down.
func advance(m *redistest.Server) {
	m.Kill()
	m.StepClock(clockStep)
	m.Restart()
}

func onLink(do func(p *faultproxy.Proxy, wait func())) strike {
	return func(f *fleet, target int, wait func()) error {
		do(f.links[target], wait)
		return nil
	}
}

func cut(dir faultproxy.Direction) func(*faultproxy.Proxy, func()) {
	return func(p *faultproxy.Proxy, wait func()) {
		p.Cut(dir)
		wait()
		p.Heal()
	}
}

// drop ends with a reset, because neither end of a connection notices that it has
// lost something.
func drop(p *faultproxy.Proxy, wait func()) {
	p.Drop()
	wait()
	p.Heal()
	p.Reset()
}

// linkDelay is by how much a slow link delays either way.
const linkDelay = 30 * time.Millisecond

func slow(p *faultproxy.Proxy, wait func()) {
	p.Delay(faultproxy.Requests, linkDelay)
	p.Delay(faultproxy.Replies, linkDelay)
	wait()
	p.Heal()
}

func reset(p *faultproxy.Proxy, _ func()) { p.Reset() }

func stopClient(f *fleet, target int, wait func()) error {
	c := f.clients[target]
	if err := c.stop(); err != nil {
		return err
	}
	wait()
	return c.resume()
}

func killClient(f *fleet, target int, wait func()) error {
	c := f.clients[target]
	c.kill()
	wait()
	return c.start()
}

func dismissClient(f *fleet, target int, wait func()) error {
	c := f.clients[target]
	if err := c.dismiss(); err != nil {
		return err
	}
	wait()
	return c.start()
}
