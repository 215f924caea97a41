package simulate

import (
	"errors"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// coverage notes which states a trial reaches. A state is a few small numbers at an
// event that matters: a master has run a command, a client has been answered, an
// attempt or a lease has ended, a fault has begun. It only looks: a run is the same
// with it and without it.
type coverage struct {
	trial   *trial
	reached map[state]struct{}
	before  []state // by client: that of its latest event
	begun   []force // faults that are in force, and some that were until just now
}

// state is a hash over what was seen.
type state uint32

// force is a fault and when it is over.
type force struct {
	kind  int
	until time.Duration
}

func newCoverage(t *trial) *coverage {
	return &coverage{trial: t, reached: map[state]struct{}{}, before: make([]state, t.config.Clients)}
}

// The places at which states are seen.
const (
	seenAtMaster = iota + 1
	seenInReply
	seenInRound
	seenInEvent
	seenInTurn
	seenInFault
)

// reach adds the state of these facts, seen at that place.
func (v *coverage) reach(what int, facts ...int) state {
	h := uint64(hashOffset)
	h = (h ^ uint64(what)) * hashPrime
	h = (h ^ uint64(v.trial.config.Lock.family())) * hashPrime
	for _, f := range facts {
		h = (h ^ uint64(f+1)) * hashPrime
	}
	s := state(h^h>>32)&^7 | state(what)
	v.reached[s] = struct{}{}
	return s
}

// family numbers the kinds of locks. Kinds other than plain ones that differ by a
// token only have the same number.
func (k LockKind) family() int {
	switch {
	case k == ReadWriteLock:
		return 1
	case k.isSemaphore():
		return 2
	case k.isMulti():
		return 3
	case k.isFair():
		return 4
	case k == Latch:
		return 5
	case k == Election:
		return 6
	case k == FencedLock:
		return 7
	}
	return 0
}

// command notes a command that a master has run: what it answered, who holds the lock
// then, how many are in line for it, and what the caller holds.
func (v *coverage) command(m *master, caller int, cmd *node.Command, value any, err *node.ServerError) {
	if cmd.Op == node.OpRead || caller >= len(v.trial.clients) {
		return
	}
	holder, line, dead := byNobody, 0, false
	for _, key := range cmd.Keys {
		switch e := m.keys.peek(key); {
		case e == nil:
		case isLock(key):
			holder = max(holder, v.holds(e.value, caller))
		case len(e.queue) > 0 && line == 0:
			line = few(len(e.queue))
			dead = v.holds(e.queue[0].member, caller) == byGone
		}
	}
	v.reach(seenAtMaster, int(cmd.Op), answerOf(value, err), holder, line, toInt(dead), few(v.trial.clients[caller].leases), v.force())
}

// Who holds something, as its value tells.
const (
	byNobody = iota
	byAsker
	byAnother
	byGone // who stored it has crashed since
)

// holds tells who stored a value, as the asker sees it.
func (v *coverage) holds(value string, asker int) int {
	switch o := ownerOf(value); {
	case o.client < 0 || o.client >= len(v.trial.clients):
		return byNobody
	case v.trial.clients[o.client].host.life != o.life || v.trial.clients[o.client].host.down:
		return byGone
	case o.client == asker:
		return byAsker
	}
	return byAnother
}

// peek returns a live key, or nil. It leaves one that has expired where it is.
func (ks *keyspace) peek(key string) *entry {
	if e := ks.keys[key]; e != nil && (e.until == 0 || ks.millis() <= e.until) {
		return e
	}
	return nil
}

// answerOf numbers the kinds of answers of a master.
func answerOf(value any, err *node.ServerError) int {
	switch n := value.(type) {
	case int64:
		return 1 + min(max(int(n), -1), 1)
	case string, []byte:
		return 3
	case []any:
		return 4
	}
	if err != nil {
		return 5
	}
	return 6
}

// reply notes an answer that a client gets by the fast transport: how late it is, and
// how the client and its master stand.
func (v *coverage) reply(l *link, c *call) {
	if c.cmd == nil || c.cmd.Op == node.OpRead {
		return
	}
	age, patience := l.host.clock.Monotonic()-c.sent, l.client.config.nodeTimeout
	late := 0
	for _, limit := range []time.Duration{hanging, patience, patience + hanging, 2 * silence} {
		late += toInt(age > limit)
	}
	v.reach(seenInReply, int(c.cmd.Op), answerOf(c.value, c.err), late, toInt(l.silent), toInt(l.guard.Young()),
		few(l.pending.Len()), few(l.client.leases))
}

// event notes what a client tells its observer: how a call, an attempt, a renewal or a
// lease came out, whether its masters may grant, and how many others hold the lock or
// wait for it.
func (v *coverage) event(c *client, e redlock.Event) {
	others := 0
	for _, cl := range v.trial.check.claims {
		others += toInt(cl.client != c && !cl.ended)
	}
	kind, outcome := tellable(e.Kind), outcomeOf(e.Err)
	v.reach(seenInRound, kind, outcome, few(e.Attempts), v.votes(e), v.guards(c))
	v.reach(seenInEvent, kind, outcome, toInt(e.Waited), few(c.leases), few(others), few(len(v.trial.check.wants)))
	turn := v.reach(seenInTurn, kind, outcome, few(c.leases))
	v.reach(seenInTurn, int(v.before[c.index]), int(turn))
	v.before[c.index] = turn
}

// tellable numbers the events.
func tellable(k redlock.EventKind) int {
	return slices.Index([]redlock.EventKind{
		redlock.LockWaiting, redlock.LockAcquired, redlock.LockFailed, redlock.LeaseRenewed, redlock.LeaseAtRisk,
		redlock.NodeRepaired, redlock.LeaseLost, redlock.LeaseReleased,
	}, k)
}

// outcomes are how something may end, by errors.
var outcomes = []error{redlock.ErrTaken, redlock.ErrNoQuorum, redlock.ErrLost, redlock.ErrExpired, redlock.ErrNotHeld, redlock.ErrPermits}

func outcomeOf(err error) int {
	if err == nil {
		return 0
	}
	for i, known := range outcomes {
		if errors.Is(err, known) {
			return 1 + i
		}
	}
	return 1 + len(outcomes)
}

// votes tells by how much a round was won or lost, and whether votes failed.
func (v *coverage) votes(e redlock.Event) int {
	if len(e.Votes) == 0 {
		return 0
	}
	granted, failed := 0, 0
	for _, vote := range e.Votes {
		granted += toInt(vote.Vote == quorum.Granted)
		failed += toInt(vote.Vote == quorum.Failed)
	}
	margin := min(max(granted-quorum.Size(len(e.Votes)), -2), 1)
	return 1 + (margin+2)*3 + few(failed)
}

// guards tells whether the masters that may grant are a quorum for a client, and what
// is wrong with the others.
func (v *coverage) guards(c *client) int {
	fit, bits := 0, 0
	for i := range c.links {
		s := standing(c.links[i])
		bits |= 1 << s
		fit += toInt(s == trusted)
	}
	margin := min(max(fit-quorum.Size(len(c.links)), -1), 1)
	return (margin+1)<<4 | bits>>1
}

// How a client stands with a master.
const (
	trusted = iota
	away    // not connected
	quiet   // connected, and does not answer
	quarantined
)

func standing(l connection) int {
	switch l := l.(type) {
	case *link:
		switch {
		case !l.greeted:
			return away
		case l.silent:
			return quiet
		case l.guard.Rest() > 0:
			return quarantined
		}
	case *transport:
		switch s := l.Status(); {
		case s.State != node.StateConnected:
			return away
		case s.Quarantine > 0:
			return quarantined
		}
	}
	return trusted
}

// fault notes that a fault begins.
func (v *coverage) fault(f *Fault) {
	t := v.trial
	kind := 1 + slices.Index(Kinds, f.Kind)
	held := 0
	for _, cl := range t.check.claims {
		held += toInt(!cl.ended)
	}
	v.reach(seenInFault, kind, v.force(), few(held))
	v.begun = append(v.begun, force{f.Kind.trouble(), t.world.now + max(f.For, t.config.TTL/2)})
}

// force is the trouble of the latest fault that is in force; zero: there is none.
func (v *coverage) force() int {
	keep := v.begun[:0]
	for _, f := range v.begun {
		if f.until > v.trial.world.now {
			keep = append(keep, f)
		}
	}
	v.begun = keep
	if len(keep) == 0 {
		return 0
	}
	return keep[len(keep)-1].kind
}

// trouble numbers faults by what they take away: a master's memory, connections, the
// right time, a master, or a client.
func (k Kind) trouble() int {
	switch k {
	case Restart, RestartEmpty, RestartSnapshot, RestartPartial, Failover, Flush, Evict, Delete:
		return 1
	case Slow, Reset, CutOut, CutIn, Partition:
		return 2
	case Step, Rate, Freeze, ClientStep, ClientRate:
		return 3
	case Pause, Errors:
		return 4
	}
	return 5
}

// few counts to two: none, one, more.
func few(n int) int { return min(max(n, 0), 2) }

func toInt(yes bool) int { return choose(yes, 1, 0) }
