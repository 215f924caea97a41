package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/quorumlock/quorumlock/internal/hostile"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// L23: whatever a minority of the masters says or does not say, at whatever
// moment, locks are taken, extended, released and waited for as if they were
// good. Two of five are the most that a quorum bears: one does less harm.
func TestL23_a_minority_of_hostile_masters_hurts_nobody(t *testing.T) {
	everyCell(t, 2, (*cell).minority)
}

// L23: a majority of them costs the lock, and the error says who they are.
func TestL23_a_majority_of_hostile_masters_is_no_quorum(t *testing.T) {
	everyCell(t, 3, (*cell).majority)
}

// phase is when a master begins to misbehave.
type phase struct {
	name string
	when func(hostile.Request) bool
}

var (
	inHandshake = phase{"handshake", command("ROLE", "EVAL")}
	inAcquire   = phase{"acquire", command("SET")}
	inExtend    = phase{"extend", script("extend")}
	inRelease   = phase{"release", script("release")}
	inPubSub    = phase{"pub/sub", command("SUBSCRIBE")}
)

func command(names ...string) func(hostile.Request) bool {
	return func(r hostile.Request) bool { return slices.Contains(names, r[0]) }
}

// script finds the scripts whose names begin like that.
func script(name string) func(hostile.Request) bool {
	return func(r hostile.Request) bool {
		return strings.HasPrefix(r[0], "EVAL") && slices.ContainsFunc(wire.Scripts, func(s *wire.Script) bool {
			return strings.HasPrefix(s.Name, name) && (r[1] == s.SHA || r[1] == s.Source)
		})
	}
}

// cell is one way to misbehave in one phase.
type cell struct {
	t       *testing.T
	phase   phase
	what    hostile.Behaviour
	masters []*hostile.Master
	bad     []*hostile.Master
	good    []*redistest.Server
	clients []*redlock.Client
	log     *diary
	name    string // of the lock
}

// nodeTimeout is long, since the machine may have much else to do.
const nodeTimeout = 2 * time.Second

// cells is how many cells are looked at together: few, or those of a busy machine wait for each other.
const cells = 6

// everyCell tries each behaviour in one or two of the phases. Two and three hostile masters have other
// phases. With REDLOCK_LONG (make long) it is each behaviour in each phase.
func everyCell(t *testing.T, hostiles int, try func(*cell)) {
	servers := redistest.StartN(t, 5)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	todo := make(chan *cell)
	var all sync.WaitGroup
	for range cells {
		all.Go(func() {
			for c := range todo {
				c.run(servers, hostiles, try)
				all.Go(c.end) // clients wait for seconds for those that are silent
			}
		})
	}
	n := 0
	for i, p := range []phase{inHandshake, inAcquire, inExtend, inRelease, inPubSub} {
		for j, b := range hostile.Behaviours() {
			if (i+j+hostiles)%3 != 0 && os.Getenv("REDLOCK_LONG") == "" {
				continue
			}
			n++
			todo <- &cell{t: t, phase: p, what: b, log: &diary{}, name: "lock" + strconv.Itoa(n)}
		}
	}
	close(todo)
	all.Wait()
	runtime.ReadMemStats(&after)
	if more := (after.Sys - before.Sys) >> 20; more >= 256 {
		t.Errorf("%d MB more memory from the system", more)
	}
	t.Logf("%d of five hostile: %d cells", hostiles, n)
}

func (c *cell) run(servers []*redistest.Server, hostiles int, try func(*cell)) {
	for i, s := range servers {
		m, err := hostile.Start(fmt.Sprint(c.name, "-", i), s.Addr())
		if err != nil {
			c.t.Error(err)
			return
		}
		c.masters = append(c.masters, m)
	}
	c.bad = c.masters[:hostiles]
	c.good = servers[hostiles:]
	try(c)
}

func (c *cell) end() {
	for _, client := range c.clients {
		client.Close()
	}
	for _, m := range c.masters {
		m.Close()
	}
	c.checkLog()
}

// checkNothingIsLeft waits until the lock is gone from the masters that are
// good. A client that closes does not wait for that.
func (c *cell) checkNothingIsLeft() {
	left := func(s *redistest.Server) bool {
		n, err := s.Do("EXISTS", c.name)
		return err != nil || n != int64(0)
	}
	for deadline := time.Now().Add(patience); slices.ContainsFunc(c.good, left); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.errorf("the lock is left on a good master")
			return
		}
	}
}

func (c *cell) errorf(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("%d of five, %s in %s: %s", len(c.bad), c.what.Name, c.phase.name, fmt.Sprintf(format, args...))
}

// checkLog wants every line to be fit for a terminal, and to name the master
// that it is about.
func (c *cell) checkLog() {
	for _, line := range c.log.all() {
		if strings.Contains(line, "redis master") && !strings.Contains(line, "127.0.0.1:") {
			c.errorf("the log does not say which master: %q", line)
		}
		c.checkText(line)
	}
}

func (c *cell) checkText(s string) {
	if i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		c.errorf("control characters in %q", s)
	}
}

func (c *cell) misbehave() {
	for _, m := range c.bad {
		m.Misbehave(c.phase.when, c.what)
	}
}

// dial returns a client that lives until the end of the cell. Its hostile masters are
// hostile already if that is the phase.
func (c *cell) dial(ctx context.Context, nodeTimeout time.Duration) (*redlock.Client, error) {
	var addrs []string
	for _, m := range c.masters {
		addrs = append(addrs, m.Addr())
	}
	if c.phase.name == inHandshake.name {
		c.misbehave()
	}
	for {
		client, err := redlock.Dial(ctx, addrs, redlock.WithTTL(10*second), redlock.WithRestartGuard(0),
			redlock.WithNodeTimeout(nodeTimeout), redlock.WithLogger(slog.New(c.log)), relaxed)
		if err == nil {
			c.clients = append(c.clients, client)
			return client, nil
		}
		if !c.machineIsSlow(err) {
			return nil, err
		}
	}
}

// machineIsSlow reports whether a master that is good took too long to connect. That
// tells nothing of those that are hostile.
func (c *cell) machineIsSlow(err error) bool {
	var failed *redlock.Error
	return errors.As(err, &failed) && slices.ContainsFunc(failed.Votes, func(v redlock.Vote) bool {
		good := slices.ContainsFunc(c.masters[len(c.bad):], func(m *hostile.Master) bool { return m.Addr() == v.Node })
		return good && v.Err != nil && strings.Contains(v.Err.Error(), "no connection within")
	})
}

// awaitConnected waits until a client is connected to the masters from the nth on: who
// is not connected is not asked, and misses the lock.
func (c *cell) awaitConnected(client *redlock.Client, n int) error {
	deadline := time.Now().Add(patience)
	for slices.ContainsFunc(client.Nodes()[n:], func(s node.Status) bool { return s.State != node.StateConnected }) {
		if time.Now().After(deadline) {
			return fmt.Errorf("not connected: %+v", client.Nodes()[n:])
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func (c *cell) minority() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// Whoever waits for a hostile master waits longer than we do.
	client, err := c.dial(ctx, 2*patience)
	if err != nil {
		c.errorf("dial: %v", err)
		return
	}
	defer c.checkNothingIsLeft()
	asked := 0
	if c.phase.name == inHandshake.name {
		asked = len(c.bad) // they misbehave already
	}
	if err := c.awaitConnected(client, asked); err != nil {
		c.errorf("%v", err)
		return
	}
	if asked == 0 {
		c.misbehave()
	}
	lease, err := client.Mutex(c.name).Lock(ctx)
	if err != nil {
		c.errorf("lock: %v", err)
		return
	}
	if err := lease.Extend(ctx, 10*second); err != nil {
		c.errorf("extend: %v", err)
	}
	next := c.handOver(ctx)
	if err := lease.Unlock(ctx); err != nil {
		c.errorf("unlock: %v", err)
	}
	if err := <-next; err != nil {
		c.errorf("the next one: %v", err)
	}
	if c.phase.name != inPubSub.name { // only one master may be waited at
		c.checkMet()
	}
}

// checkMet waits until every hostile master has had its chance.
func (c *cell) checkMet() {
	good := func(m *hostile.Master) bool { return m.Met() == 0 }
	for deadline := time.Now().Add(patience); slices.ContainsFunc(c.bad, good); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.errorf("it did not misbehave")
			return
		}
	}
}

// handOver has another client wait for the lock, where that makes a difference.
// Its node timeout is short: in a race nothing else ends a vote that is split.
func (c *cell) handOver(ctx context.Context) <-chan error {
	next := make(chan error, 1)
	if c.phase.name != inRelease.name && c.phase.name != inPubSub.name {
		next <- nil
		return next
	}
	go func() {
		client, err := c.dial(ctx, nodeTimeout)
		if err != nil {
			next <- err
			return
		}
		if err := c.awaitConnected(client, len(c.bad)); err != nil {
			next <- err
			return
		}
		next <- redlock.Do(ctx, client.Mutex(c.name), func(context.Context) error { return nil })
	}()
	return next
}

func (c *cell) majority() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := c.dial(ctx, nodeTimeout)
	if err != nil {
		c.check(err)
		return
	}
	defer c.checkNothingIsLeft()
	m := client.Mutex(c.name)
	if c.phase.name == inHandshake.name || c.phase.name == inAcquire.name {
		c.misbehave()
		lease, err := m.TryLock(ctx)
		if err == nil {
			lease.Unlock(ctx)
		}
		c.check(err)
		return
	}
	lease, err := m.Lock(ctx)
	if err != nil {
		c.errorf("lock: %v", err)
		return
	}
	c.misbehave()
	switch c.phase.name {
	case inExtend.name:
		c.check(lease.Extend(ctx, 10*second))
		lease.Unlock(ctx)
	case inRelease.name:
		c.check(lease.Unlock(ctx))
	case inPubSub.name:
		lease.Unlock(ctx)
	}
}

// check wants an error that says that there is no quorum, and why not.
func (c *cell) check(err error) {
	c.t.Helper()
	if c.what.Answers || c.phase.name == inHandshake.name && strings.HasPrefix(c.what.Name, "error") {
		return // they do not say that they are no masters
	}
	if !errors.Is(err, redlock.ErrNoQuorum) {
		c.errorf("%v, want no quorum", err)
		return
	}
	c.checkText(err.Error())
	for _, m := range c.bad {
		if !strings.Contains(err.Error(), m.Addr()+" ") {
			c.errorf("%v does not say what became of %s", err, m.Addr())
		}
	}
}
