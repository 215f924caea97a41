package redlock_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.uber.org/goleak"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestMain(m *testing.M) {
	if addrs := os.Getenv(processAddrs); addrs != "" {
		serve(addrs, os.Getenv(processTTL))
		return
	}
	// Most tests wait, for servers and for the end of a TTL, and do not compute. -parallel on
	// the command line is heard after this.
	flag.Set("test.parallel", "12")
	goleak.VerifyTestMain(m)
}

// memory is a master in this process, on a mocked clock, whose answers the test
// can hold back. Several clients share it by linkTo.
type memory struct {
	t    *testing.T
	addr string
	clk  clock.Clock

	mu     sync.Mutex
	keys   map[string]entry
	subs   map[*subscription]bool
	queues map[string][]waiting // by ticket
	told   []func()             // messages that are not delivered yet
	log    []string             // every command that ran
}

// waiting is one waiter in a queue.
type waiting struct {
	id     string
	ticket string
	value  string
	ends   time.Time
}

type entry struct {
	value string
	ends  time.Time
}

type subscription struct {
	link    *link
	channel string
	node.Listener
}

// link is one client's connection to a memory: commands run in order.
type link struct {
	*memory
	before func(*wire.Command) // called before every command, if not nil
	says   map[wire.Op]any     // what the master answers to such commands, whatever it did

	young   bool   // the master has lost its memory lately
	returns func() // tells the client that the master is connected again
	forgets func() // tells the client that the master has forgotten what it knew

	deaf    atomic.Bool // messages do not arrive
	mu      sync.Mutex
	state   linkState
	late    time.Duration // by how much replies are
	waiting []pending
}

type pending struct {
	cmd  *wire.Command
	done func(wire.Reply)
}

// linkState is what the test does to a connection.
type linkState int

const (
	up          linkState = iota
	down                  // commands fail at once and do not run
	hung                  // commands wait, and run when the link is up again
	holdReplies           // commands run, their replies wait
)

func (l *link) Addr() string { return l.addr }

func (l *link) Renew(f func(all bool)) {
	l.returns, l.forgets = func() { f(false) }, func() { f(true) }
}

func (l *link) Do(cmd *wire.Command, done func(wire.Reply)) {
	if l.before != nil {
		l.before(cmd)
	}
	l.mu.Lock()
	switch {
	case l.state == down:
		l.mu.Unlock()
		done(wire.Reply{Err: &wire.Error{Node: l.addr, Op: cmd.Op, Err: node.ErrDown}})
	case l.state == hung:
		l.waiting = append(l.waiting, pending{cmd, done})
		l.mu.Unlock()
	case l.state == holdReplies:
		reply := l.run(cmd)
		l.waiting = append(l.waiting, pending{nil, func(wire.Reply) { done(reply) }})
		l.mu.Unlock()
	default:
		reply := l.run(cmd)
		told := reply
		if value, ok := l.says[cmd.Op]; ok {
			told = wire.Reply{Value: value}
		}
		told.Young = l.young
		late := l.late
		l.mu.Unlock()
		if late > 0 {
			l.clk.AfterFunc(late, func() { done(told) })
		} else {
			done(told)
		}
	}
	l.deliver()
}

// set changes what happens to commands. What waited for a hung link runs when it
// is hung no more; with up, replies that were held arrive.
func (l *link) set(s linkState) {
	l.deaf.Store(s != up)
	l.mu.Lock()
	l.state = s
	if s == up || s == holdReplies {
		for i, p := range l.waiting {
			if p.cmd != nil {
				reply := l.run(p.cmd)
				l.waiting[i] = pending{nil, func(wire.Reply) { p.done(reply) }}
			}
		}
	}
	var arrived []pending
	if s == up {
		arrived, l.waiting = l.waiting, nil
	}
	l.mu.Unlock()
	for _, p := range arrived {
		p.done(wire.Reply{})
	}
	l.deliver()
}

// breaks has the connection break under the commands that hang, and be made again. arrive
// has the master run them, if it has not yet.
func (l *link) breaks() (arrive func()) {
	l.mu.Lock()
	lost := l.waiting
	l.state, l.waiting = up, nil
	l.mu.Unlock()
	for _, p := range lost {
		p.done(wire.Reply{Err: &wire.Error{Node: l.addr, Op: p.cmd.Op, Err: node.ErrUnknown}})
	}
	return func() {
		for _, p := range lost {
			l.run(p.cmd)
		}
	}
}

// hangs returns how many commands hang.
func (l *link) hangs() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// heal ends whatever the test has done to the connection.
func (l *link) heal() {
	l.lag(0)
	l.set(up)
}

// lag has replies arrive d late from now on.
func (l *link) lag(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = d
}

func (l *link) Close() error {
	l.mu.Lock()
	waiting := l.waiting
	l.state, l.waiting = down, nil
	l.mu.Unlock()
	for _, p := range waiting {
		p.done(wire.Reply{Err: &wire.Error{Node: l.addr, Err: node.ErrClosed}})
	}
	return nil
}

func (l *link) Subscribe(channel string, listener node.Listener) func() {
	s := &subscription{l, channel, listener}
	l.memory.mu.Lock()
	l.subs[s] = true
	l.memory.mu.Unlock()
	if !l.deaf.Load() {
		listener.Missed() // confirmed
	}
	return func() {
		l.memory.mu.Lock()
		delete(l.subs, s)
		l.memory.mu.Unlock()
	}
}

func (m *memory) get(key string) string {
	e, ok := m.keys[key]
	if !ok || !m.clk.Now().Before(e.ends) {
		delete(m.keys, key)
		return ""
	}
	return e.value
}

// run executes a command as Redis does.
func (m *memory) run(cmd *wire.Command) wire.Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := cmd.Name
	if cmd.Script != nil {
		name = cmd.Script.Name
	}
	if len(cmd.Keys) == 0 {
		return m.cannot(name)
	}
	key := cmd.Keys[0]
	held := m.get(key)
	m.log = append(m.log, cmd.Op.String()+" "+key)
	switch name {
	case "SET":
		if held == "" {
			m.keys[key] = entry{cmd.Args[0], m.clk.Now().Add(parseMillis(cmd.Args[3]))}
			return wire.Reply{Value: "OK"}
		}
		return wire.Reply{}
	case "ask":
		return m.ask(key, held, cmd.Args)
	case "release":
		m.unqueue(key, waiterOf(cmd.Args[0]))
		answer := int64(-1)
		switch {
		case held == "":
			answer = 0
		case waiterOf(held) == waiterOf(cmd.Args[0]):
			delete(m.keys, key)
			answer = 1
		}
		m.give(key, "")
		return wire.Reply{Value: answer}
	case "extend":
		if held == "" {
			return wire.Reply{Value: int64(0)}
		}
		if held != cmd.Args[0] {
			return wire.Reply{Value: int64(-1)}
		}
		ends := m.clk.Now().Add(parseMillis(cmd.Args[1]))
		if before := m.keys[key].ends; before.After(ends) {
			ends = before
		}
		m.keys[key] = entry{held, ends}
		return wire.Reply{Value: int64(1)}
	case "DEL": // where the test has switched the comparison off
		delete(m.keys, key)
		return wire.Reply{Value: int64(1)}
	case "GET":
		if held == "" {
			return wire.Reply{}
		}
		return wire.Reply{Value: []byte(held)}
	case "request":
		for i, key := range cmd.Keys {
			m.keys[key] = entry{cmd.Args[0] + " " + cmd.Args[1], m.clk.Now().Add(parseMillis(cmd.Args[2]))}
			m.publish(cmd.Args[3+i])
		}
		return wire.Reply{Value: int64(1)}
	case "inspect":
		if held == "" {
			return wire.Reply{Value: []any{nil, int64(-2)}}
		}
		return wire.Reply{Value: []any{[]byte(held), m.keys[key].ends.Sub(m.clk.Now()).Milliseconds()}}
	}
	return m.cannot(name)
}

// cannot ends all tests, from a goroutine of its own: a panic of ours would leave the links locked, and the
// test would wait for them.
func (m *memory) cannot(name string) wire.Reply {
	go panic(fmt.Sprintf("%s: a master in memory cannot run %s", m.t.Name(), name))
	select {}
}

// ran returns every command that ran.
func (m *memory) ran() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.log)
}

// count returns how many commands for op ran.
func (m *memory) count(op wire.Op) (n int) {
	for _, cmd := range m.ran() {
		if strings.HasPrefix(cmd, op.String()+" ") {
			n++
		}
	}
	return n
}

func parseMillis(s string) time.Duration {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return time.Duration(ms) * time.Millisecond
}

// ask is ask.lua.
func (m *memory) ask(key, held string, args []string) wire.Reply {
	value, id := args[0], waiterOf(args[0])
	if waiterOf(held) == id && held != value {
		delete(m.keys, key)
	}
	m.unqueue(key, id)
	q := append(m.queues[key], waiting{id, args[1], value, m.clk.Now().Add(parseMillis(args[2]))})
	slices.SortFunc(q, func(a, b waiting) int { return cmp.Or(cmp.Compare(a.ticket, b.ticket), cmp.Compare(a.id, b.id)) })
	m.queues[key] = q
	m.give(key, id)
	if m.get(key) == value {
		return wire.Reply{Value: "OK"}
	}
	return wire.Reply{Value: []any{m.keys[key].ends.Sub(m.clk.Now()).Milliseconds(), int64(0)}}
}

func (m *memory) unqueue(key, id string) {
	m.queues[key] = slices.DeleteFunc(slices.Clone(m.queues[key]), func(w waiting) bool { return w.id == id })
}

// give hands a free lock to the first waiter whose client hears of it.
func (m *memory) give(key, asker string) {
	for m.get(key) == "" && len(m.queues[key]) > 0 {
		first := m.queues[key][0]
		rest := first.ends.Sub(m.clk.Now())
		if rest > 0 && (first.id == asker || m.tell(key, first)) {
			m.keys[key] = entry{first.value, m.clk.Now().Add(rest)}
			return
		}
		m.unqueue(key, first.id)
	}
}

func (m *memory) tell(key string, w waiting) (heard bool) {
	for s := range m.subs {
		if s.channel == wire.WaitChannel("", w.id[:strings.LastIndexByte(w.id, '/')]) && !s.link.deaf.Load() {
			m.told = append(m.told, func() { s.Heard(fmt.Sprintf("%d %s%s", len(key), key, w.value)) })
			heard = true
		}
	}
	return heard
}

// publish tells those who listen to a channel that something is there to be read.
func (m *memory) publish(channel string) {
	for s := range m.subs {
		if s.channel == channel && !s.link.deaf.Load() {
			m.told = append(m.told, s.Missed)
		}
	}
}

// deliver sends the messages that are due.
func (m *memory) deliver() {
	m.mu.Lock()
	told := m.told
	m.told = nil
	m.mu.Unlock()
	for _, tell := range told {
		tell()
	}
}

func waiterOf(value string) string {
	word, _, _ := strings.Cut(value, " ")
	if i := strings.LastIndexByte(word, ':'); i >= 0 {
		return word[:i]
	}
	return value
}

// masters is a set of memories under one mocked clock.
type masters struct {
	t     *testing.T
	clk   *clock.Mock
	nodes []*memory
}

func fiveMasters(t *testing.T) *masters { return newMasters(t, 5) }

func newMasters(t *testing.T, n int) *masters {
	ms := &masters{t: t, clk: clock.NewMock()}
	for i := range n {
		ms.nodes = append(ms.nodes, &memory{
			t: t, addr: fmt.Sprintf("master-%c", 'A'+i), clk: ms.clk,
			keys: map[string]entry{}, subs: map[*subscription]bool{}, queues: map[string][]waiting{},
		})
	}
	return ms
}

// client returns a client of the masters and its links.
func (ms *masters) client(opts ...redlock.Option) (*redlock.Client, []*link) {
	ms.t.Helper()
	links := make([]*link, len(ms.nodes))
	nodes := make([]node.Node, len(ms.nodes))
	for i, m := range ms.nodes {
		links[i] = &link{memory: m}
		nodes[i] = links[i]
	}
	opts = append([]redlock.Option{
		redlock.WithClock(ms.clk), redlock.WithTTL(time.Second),
		redlock.WithLogger(slog.New(slog.DiscardHandler)), relaxed,
	}, opts...)
	c, err := redlock.New(nodes, opts...)
	if err != nil {
		ms.t.Fatal(err)
	}
	ms.t.Cleanup(func() {
		for _, l := range links {
			l.heal() // Close waits for masters that hang, and the clock stands still
		}
		c.Close()
	})
	return c, links
}

// holders returns the value at every master, in order.
func (ms *masters) holders(key string) []string {
	values := make([]string, len(ms.nodes))
	for i, m := range ms.nodes {
		m.mu.Lock()
		values[i] = m.get(key)
		m.mu.Unlock()
	}
	return values
}

func (ms *masters) mustBeFree(key string) {
	ms.t.Helper()
	for i, v := range ms.holders(key) {
		if v != "" {
			ms.t.Errorf("%s still holds %q = %q", ms.nodes[i].addr, key, v)
		}
	}
}

func (ms *masters) forget(i int, key string) {
	m := ms.nodes[i]
	m.mu.Lock()
	delete(m.keys, key)
	m.mu.Unlock()
}

// pass lets time go by in small steps, so that everything due in between
// happens when it is due.
func (ms *masters) pass(d time.Duration) {
	const step = 10 * time.Millisecond
	for ; d > step; d -= step {
		ms.clk.Add(step)
	}
	ms.clk.Add(d)
}

func mustLock(t *testing.T, m *redlock.Mutex) *redlock.Lease {
	t.Helper()
	l, err := m.TryLock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustBe(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// mustEnd waits for the end of a lease's context.
func mustEnd(t testing.TB, lease context.Context) {
	t.Helper()
	eventually(t, "the lease ends", func() bool { return lease.Err() != nil })
}

// patience is how long a test waits for what must come. Nothing waits for it
// when all is well.
const patience = 30 * time.Second

// eventually waits for a condition that others bring about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for pause := 100 * time.Microsecond; !ok(); pause = min(2*pause, 10*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(pause)
	}
}

// guarded lets options about guards through, as if these nodes had any.
var guarded = seam.Option(seam.Seams{Guarded: true}).(redlock.Option)

// relaxed is guarded that also lets a node timeout through that is longer than
// the TTL: then a test knows that no timeout has decided.
var relaxed = seam.Option(seam.Seams{Guarded: true, Unsafe: seam.Unsafe{LongTimeout: true}}).(redlock.Option)
