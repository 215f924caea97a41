package redlock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// renewal is one round of extend commands for a lease. Answers count as long as the
// round waits, which may be as long as the old validity stands: the new one is counted from
// before the send (L22). Nodes that are slow to answer are not asked again meanwhile, unless a quorum
// has answered and some of it failed or refused (L82).
//
// Invariant: at most one renewal of a lease is under way. In which order the masters run
// them does not matter: the end of a key never comes earlier (S66, S68).
type renewal struct {
	lease *Lease
	ttl   time.Duration
	since drift.Instant // before the first send
	left  time.Duration // the rest of the validity at since
	next  time.Duration // from its success to the renewal that follows; 0: by planRenewal
	done  chan struct{} // closed when it is over; nil while no caller waits
	err   error         // how it ended
}

// Extend asks the nodes for a TTL of ttl from now; later renewals ask for the same. It
// returns ErrLost or ErrExpired when the lease has ended, and ErrNoQuorum when too
// many nodes could not be asked: then the lease stands until the end of its validity.
// The validity never changes without a quorum. Extend asks for less where MaxHold leaves
// less.
//
// If ttl is less than Remaining, the lease ends earlier, but its keys do not: the lease
// deletes them when it ends. If the process dies before, they keep other clients out for as
// long as was granted before.
//
// Extend waits for the nodes as long as the validity lasts, or half as long if a quorum has
// answered. If ctx ends before, Extend returns, and the answers still count.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if err := l.lock.client.opt.checkTTL("Extend", ttl); err != nil {
		return err
	}
	if err := l.lock.opt.stop.check(&l.lock.client.opt, ttl); err != nil {
		return err
	}
	if l.of != nil {
		l.mu.Lock()
		err := l.over()
		l.mu.Unlock()
		if err != nil {
			return &Error{Op: "extend", Name: l.lock.name, Err: err}
		}
		return l.of.Extend(ctx, ttl)
	}
	x, err := l.takeTurn(ctx, ttl)
	if x == nil {
		return err
	}
	x.send()
	if err := l.lock.client.seams.Wait(ctx, x.done); err != nil {
		return &Error{Op: "extend", Name: l.lock.name, Err: ended(ctx)}
	}
	return x.err
}

// takeTurn waits until no other renewal is under way. It returns nil without an error
// if MaxHold leaves nothing to ask for.
func (l *Lease) takeTurn(ctx context.Context, ttl time.Duration) (*renewal, error) {
	for {
		l.mu.Lock()
		if err := l.over(); err != nil {
			l.mu.Unlock()
			return nil, &Error{Op: "extend", Name: l.lock.name, Err: err}
		}
		x := l.renewal
		if x == nil {
			if x = l.startRenewal(ttl); x != nil {
				x.done = make(chan struct{})
			}
			l.mu.Unlock()
			return x, nil
		}
		if x.done == nil {
			x.done = make(chan struct{})
		}
		l.mu.Unlock()
		if err := l.lock.client.seams.Wait(ctx, x.done); err != nil {
			return nil, &Error{Op: "extend", Name: l.lock.name, Err: ended(ctx)}
		}
	}
}

// over returns an error if the lease has ended, with the cause of the end. The mutex is
// held.
func (l *Lease) over() error {
	if l.holds == 0 {
		return ErrNotHeld
	}
	return l.why(l.now())
}

// leaseTimer keeps Fire out of the public methods of Lease.
type leaseTimer Lease

// Fire is called when it is time to renew the lease or to give it up.
func (t *leaseTimer) Fire() {
	l := (*Lease)(t)
	now := l.now()
	l.mu.Lock()
	if l.cause != nil {
		l.mu.Unlock()
		return
	}
	if l.left(now) <= announceLead(l.budget) {
		l.endNow(ErrExpired)
		l.lost(ErrExpired)
		return
	}
	risk := l.risky(now)
	if l.renewal != nil || !l.dueForRenewal(now) {
		l.setTimer(now)
		l.mu.Unlock()
		l.warn(risk)
		return
	}
	x := l.startRenewal(l.ttl)
	if x == nil {
		l.renewAt = 0
		l.setTimer(now)
	}
	l.mu.Unlock()
	l.warn(risk)
	if x != nil {
		x.send()
	}
}

func (l *Lease) dueForRenewal(now drift.Instant) bool {
	return l.renewAt > 0 && now.Sub(l.since) >= l.renewAt-l.renewSlack()
}

// renewSlack is how early a renewal may be. Renewals that are due at about the same
// time are made together, and share the writes to the nodes and the reads.
func (l *Lease) renewSlack() time.Duration { return l.budget / 512 }

// planRenewal aims at a third of the validity, so that a renewal that failed can be
// made up for. The jitter keeps ten thousand leases from being renewed in one
// burst. The mutex is held.
//
// Invariant: a planned renewal comes well within half of the validity, whatever the options say of drift and
// grace (L87): then the lease would be at risk.
func (l *Lease) planRenewal() {
	l.renewIn(l.pace(l.budget/4 + l.lock.client.jitter(l.budget/8)))
}

// pace is d by our own clock, which may be slow. The mutex is held.
func (l *Lease) pace(d time.Duration) time.Duration {
	return time.Duration(float64(d) / max(1, l.rate))
}

// renewIn plans the next renewal d after since, but not with NoRenew (S55), nor where
// MaxHold leaves nothing to ask for. The mutex is held.
func (l *Lease) renewIn(d time.Duration) {
	l.renewAt = 0
	if !l.lock.opt.noRenew && l.ttl < l.rest.Truncate(time.Millisecond) {
		l.renewAt = d
	}
}

// retryPause is how long to wait after a renewal for which too few nodes could be
// asked: a share of the remaining validity, which spreads the tries over it. Overloaded
// nodes are not helped by a hundred thousand leases that try again soon. The mutex is
// held.
func (l *Lease) retryPause(now drift.Instant) time.Duration {
	return max(l.left(now)/4, l.budget/64, time.Millisecond)
}

// setTimer waits for whatever comes first: the next renewal, the warning that there
// was none, or the end of the validity. All of them are counted from the same reading of
// the clock: another one may differ by how far the wall clock was set. The mutex is held.
func (l *Lease) setTimer(now drift.Instant) {
	l.setStop(now)
	timers, timer, passed := l.lock.client.timers, (*leaseTimer)(l), now.Sub(l.since)
	wait := l.left(now) - announceLead(l.budget)
	if risk := l.riskAt(); risk > 0 {
		wait = min(wait, risk-passed)
	}
	if l.renewal == nil && l.renewAt > 0 && l.renewAt-passed <= wait {
		timers.SetAround(&l.timer, now, l.renewAt-passed, l.renewSlack(), timer)
		return
	}
	timers.SetFrom(&l.timer, now, wait, timer)
}

// startRenewal makes the next renewal, for no longer than MaxHold allows; nil if MaxHold leaves
// less than the shortest TTL. The end of the validity stays until a quorum has extended (S31).
// The mutex is held.
func (l *Lease) startRenewal(ttl time.Duration) *renewal {
	c := l.lock.client
	x := &renewal{lease: l, since: c.watch.Now()}
	x.ttl = min(ttl, (l.rest - x.since.Sub(l.since)).Truncate(time.Millisecond))
	if x.ttl < minTTL || l.lock.budget(x.ttl) <= 0 {
		return nil
	}
	l.renewal, l.longest = x, max(l.longest, x.ttl)
	x.left = l.left(x.since)
	l.setTimer(x.since)
	return x
}

func (x *renewal) send() {
	c, cl := x.lease.lock.client, x.lease.claim
	c.members.Ask(quorum.Question{
		Command: cl.extend(x.lease.value, x.ttl), Judge: cl, Watcher: x, Since: x.since, Timeout: x.left,
	})
	x.lease.readRequests()
}

// Decided sets the new end of the validity, or finds the lease lost, or plans to try
// again. An ended lease stays ended: release wins over a renewal that was
// already under way (L15).
func (x *renewal) Decided(r *quorum.Round) {
	l, c := x.lease, x.lease.lock.client
	moved := l.lock.moved() // by now the guard knows the map by which the last vote was given
	won := r.Outcome() == quorum.Won && moved == nil
	l.mu.Lock()
	now := c.watch.Now() // under the mutex: by an earlier reading a process that was stopped in between would revive a lease that has ended (L26)
	l.renewal = nil
	if r.Tally().Conclusive() {
		l.isGone(now)
	}
	switch {
	case l.cause != nil:
		x.err = &Error{Op: "extend", Name: l.lock.name, Err: l.cause}
	case l.left(now) <= 0:
		x.err = l.lock.fail("extend", ErrExpired, r)
	case won:
		l.misses(x, r)
		l.lengthen(x)
		l.planRenewal()
		if x.next > 0 {
			l.renewSooner(now, x.next)
		}
		l.setTimer(now)
		if l.left(now) <= 0 { // a caller asked for so little
			x.err = l.lock.fail("extend", ErrExpired, r)
		}
	case r.Tally().Conclusive():
		x.err = l.lock.fail("extend", ErrLost, r)
	default:
		x.err = l.lock.fail("extend", cmp.Or(moved, ErrNoQuorum), r)
		// x.next does not count here: the masters may be overloaded.
		l.renewIn(now.Sub(l.since) + c.jitter(l.retryPause(now)))
		l.setTimer(now)
	}
	ended, done, t := l.cause != nil, x.done, l.lock.tenure
	l.mu.Unlock()

	l.observe(Event{Kind: LeaseRenewed, Err: x.err, Elapsed: now.Sub(x.since)})
	switch cause := reason(x.err); {
	case ended:
	case cause == ErrLost, cause == ErrExpired:
		l.lose(cause)
	case won:
		x.repairAbsent(r)
		if t != nil && slices.ContainsFunc(r.Ballots(nil), func(b quorum.Ballot) bool { return wire.IsWanted(b.Reply) }) {
			t.post(tenureEvent{kind: othersWait, value: l.value})
		}
	}
	if done != nil {
		close(done)
	}
}

// lengthen counts the validity from a renewal that a quorum has granted. The mutex is held.
func (l *Lease) lengthen(x *renewal) {
	l.rest -= x.since.Sub(l.since)
	l.since, l.budget, l.ttl = x.since, l.lock.budget(x.ttl), x.ttl
	l.rate, l.risk.warned = l.lock.client.rate(), false
}

// misses notes which nodes have not extended, or not yet. A renewal that follows soon on the one before
// may have been made for such a node, and finds no others: a node that comes and goes, and never extends,
// does not have all leases renewed each time. The mutex is held.
func (l *Lease) misses(x *renewal, r *quorum.Round) {
	var few [16]quorum.Ballot
	missed := quorum.Set(0)
	for i, b := range r.Ballots(few[:0]) {
		if b.Vote != quorum.Granted {
			missed |= quorum.Only(i)
		}
	}
	if x.since.Sub(l.since) < l.budget/8 {
		missed &= l.lacks
	}
	l.lacks = missed
}

// Late repairs a node that answered after the quorum had extended.
func (x *renewal) Late(r *quorum.Round, i int, b quorum.Ballot) {
	switch {
	case r.Outcome() != quorum.Won:
	case isAbsent(b.Reply):
		x.repair(i)
	case b.Vote == quorum.Granted:
		l := x.lease
		l.mu.Lock()
		if l.since == x.since { // no later renewal has counted
			l.lacks &^= quorum.Only(i)
		}
		l.mu.Unlock()
	}
}

// reason is the sentinel inside an error made by lock.fail.
func reason(err error) error {
	if e, ok := err.(*Error); ok {
		return e.Err
	}
	return err
}

// repairAbsent puts the key back where a node has lost it, or never had it, so that
// the next failure does not cost the quorum (S17, S18). It does so only after a quorum
// has extended: re-creating a majority could hide that another client held the lock in
// between (S19). A repaired node counts from the next round on.
func (x *renewal) repairAbsent(r *quorum.Round) {
	var few [16]quorum.Ballot
	for i, b := range r.Ballots(few[:0]) {
		if isAbsent(b.Reply) {
			x.repair(i)
		}
	}
}

// repair puts the key back at node i. Close waits for it: the release must follow the key that
// it stores (L17).
func (x *renewal) repair(i int) {
	l := x.lease.lock
	defer l.client.leave()
	if !l.client.enter() || !x.lease.Valid() {
		return
	}
	n := l.client.members.Nodes()[i]
	n.Do(x.lease.claim.repair(x.lease.value, x.ttl), func(reply wire.Reply) {
		x.lease.observe(Event{Kind: NodeRepaired, Node: n.Addr(), Err: errOf(reply)})
	})
	// The lease may have ended, and been released, between our look and our
	// command: then another release follows the repair. If the lease ends only from
	// here on, or its release waits for the work, its own release follows the repair: also that of
	// Close, which waits for stop (L94).
	if x.lease.ended() && !x.lease.worksOn() {
		n.Do(x.lease.releaseCommand(), nobodyAsks)
	}
}

// errOf keeps a nil *wire.Error from becoming an error that is not nil.
func errOf(r wire.Reply) error {
	if r.Err == nil {
		return nil
	}
	return r.Err
}
