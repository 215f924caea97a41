package redlocktest

import (
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// link is one client's connection to one master.
type link struct {
	master   *master
	settings seam.Settings

	mu      sync.Mutex
	closed  bool
	cut     bool
	waiting []request // for a master that hangs
	owed    *node.PendingReleases
	until   time.Time // end of the quarantine

	subscriptions []*subscription
}

type request struct {
	cmd  *wire.Command
	done func(wire.Reply)
}

// afterwards is what must not be done under a mutex.
type afterwards []func()

func (a *afterwards) answer(r request, reply wire.Reply) {
	*a = append(*a, func() { r.done(reply) })
}

func (a *afterwards) tell(messages []message) {
	for _, m := range messages {
		*a = append(*a, func() { m.to.Heard(m.text) })
	}
}

func (a afterwards) do() {
	for _, f := range a {
		f()
	}
}

var (
	_ node.Node   = (*link)(nil)
	_ node.Voting = (*link)(nil)
)

// mostOwed is how many releases a link keeps for a master that is away.
const mostOwed = 65536

func newLink(m *master) *link { return &link{master: m, owed: node.NewPendingReleases(mostOwed)} }

func (l *link) Addr() string { return l.master.name }

// Do runs cmd in the caller's goroutine.
func (l *link) Do(cmd *wire.Command, done func(wire.Reply)) {
	var after afterwards
	l.mu.Lock()
	l.ask(request{cmd, done}, &after)
	l.mu.Unlock()
	after.do()
}

// ask runs the request, or keeps it for later. The mutex is held, so that
// commands run in the order in which they were given.
func (l *link) ask(r request, after *afterwards) {
	state := l.master.state()
	switch {
	case l.closed:
		after.answer(r, l.failure(r, node.ErrClosed))
		return
	case l.cut || state == dead:
		l.owed.NotSent(node.PendingRelease{Cmd: r.cmd}, node.ErrDown)
		after.answer(r, l.failure(r, node.ErrDown))
		return
	case state == hung:
		l.waiting = append(l.waiting, r)
		return
	}
	cmd, quarantine := r.cmd, l.quarantined()
	switch {
	case quarantine == nil:
	case cmd.Op.Grants():
		after.answer(r, l.failure(r, quarantine))
		return
	case cmd.Op == wire.OpAsk || cmd.Op == wire.OpRelease:
		cmd = cmd.Hold()
	}
	reply, heard := l.master.run(cmd, l.now())
	after.answer(r, reply)
	after.tell(heard)
}

// quarantined returns an error while the master must not grant. The mutex is held.
func (l *link) quarantined() error {
	if rest := l.until.Sub(l.now()); rest > 0 {
		return guard.Quarantine(rest, "restarted without its data")
	}
	return nil
}

// Votes is described at node.Voting.
func (l *link) Votes() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	why := l.quarantined()
	switch state := l.master.state(); {
	case l.closed:
		why = node.ErrClosed
	case l.cut || state == dead:
		why = node.ErrDown
	case state == hung:
		why = node.ErrSilent
	}
	if why == nil {
		return nil
	}
	return &wire.Error{Node: l.master.name, Op: wire.OpAcquire, Err: why}
}

func (l *link) failure(r request, err error) wire.Reply {
	return wire.Reply{Err: &wire.Error{Node: l.master.name, Op: r.cmd.Op, Err: err}}
}

func (l *link) now() time.Time { return l.settings.Clock.Now() }

// Subscribe delivers messages while the link stands.
func (l *link) Subscribe(channel string, listener node.Listener) (cancel func()) {
	s := &subscription{l, listener}
	l.mu.Lock()
	l.subscriptions = append(l.subscriptions, s)
	l.mu.Unlock()
	unsubscribe := l.master.subscribe(channel, s)
	s.Missed() // confirmed
	return func() {
		unsubscribe()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.subscriptions = slices.DeleteFunc(slices.Clone(l.subscriptions), func(o *subscription) bool { return o == s })
	}
}

// subscription hears nothing while its link is cut.
type subscription struct {
	link     *link
	listener node.Listener
}

func (s *subscription) Heard(message string) {
	if s.link.reaches() {
		s.listener.Heard(message)
	}
}

func (s *subscription) Doubted(message string) {
	if s.link.reaches() {
		s.listener.Doubted(message)
	}
}

func (s *subscription) Missed() {
	if s.link.reaches() {
		s.listener.Missed()
	}
}

func (l *link) reaches() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed && !l.cut && l.master.state() == running
}

// Close fails what still waits.
func (l *link) Close() error {
	l.mu.Lock()
	l.closed = true
	after := l.fail(node.ErrClosed)
	l.mu.Unlock()
	after.do()
	return nil
}

// cutOff ends the connection until reconnect.
func (l *link) cutOff() {
	l.mu.Lock()
	l.cut = true
	after := l.fail(node.ErrUnknown)
	l.mu.Unlock()
	after.do()
}

// drop ends the connection of a master that died.
func (l *link) drop() {
	l.mu.Lock()
	after := l.fail(node.ErrUnknown)
	l.mu.Unlock()
	after.do()
}

// fail answers what waits with an error. The mutex is held.
func (l *link) fail(err error) (after afterwards) {
	for _, r := range l.waiting {
		l.owed.Failed(node.PendingRelease{Cmd: r.cmd}, err)
		after.answer(r, l.failure(r, err))
	}
	l.waiting = nil
	return after
}

func (l *link) reconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

// resume runs the releases that the master has missed, and what waited for it.
func (l *link) resume() {
	var after afterwards
	l.mu.Lock()
	if !l.cut && !l.closed {
		l.deliver(&after)
		waiting := l.waiting
		l.waiting = nil
		for _, r := range waiting {
			l.ask(r, &after)
		}
	}
	for _, s := range l.subscriptions {
		after = append(after, s.Missed)
	}
	l.mu.Unlock()
	after.do()
}

func (l *link) deliver(after *afterwards) {
	l.owed.Heard()
	l.owed.Deliver(time.Duration(l.now().UnixNano()), func(p node.PendingRelease) error {
		_, heard := l.master.run(p.Cmd, l.now())
		after.tell(heard)
		return nil
	})
}

// quarantine keeps the master from granting to this client until every lease
// that it may have granted has ended.
func (l *link) quarantine() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = l.now().Add(l.settings.RestartGuard)
}
