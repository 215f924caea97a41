package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

// Latch opens, permanently, when a given number of ids has arrived. For example, the ids
// are jobs, and another job waits until all of them are done. Arrivals have names, so an
// arrival that is reported twice, because the answer was lost, counts once. A Latch is a
// handle without state, and safe for concurrent use.
//
// A confirmed arrival is in every later count, counts never go back, and none exceeds
// the arrivals that were reported. A master that has lost its memory, or was away when
// the first id arrived, learns the arrivals from the next count of any client that
// reaches it when its restart guard is over. If that is so for a majority of the masters
// at the same time, arrivals can be lost: then the latch opens late, never early. So use
// masters that keep their data for latches without a waiter.
type Latch struct {
	lock   lock
	count  int
	keys   wire.Latch
	groups *Groups // nil without
}

const (
	// latchLife is how long a latch is kept after the last arrival.
	latchLife = 7 * 24 * time.Hour
	// latchLook is how often a waiter looks without a message that prompts it.
	latchLook = 5 * time.Second
	// latchUnite is how often a waiter reads all arrivals, where the masters do not agree.
	latchUnite = 500 * time.Millisecond
)

// Latch returns the latch of that name, which count arrivals open: at most 5000. The masters
// keep it for a week after the last arrival. Every operation reports options and numbers that
// are out of range, before it sends anything.
func (c *Client) Latch(name string, count int) *Latch {
	l := &Latch{lock: c.lock(name, kind{}), count: count, keys: wire.LatchOf(c.opt.prefix, name, "")}
	if count < 1 || count > wire.MaxArrivals {
		l.lock.err = fmt.Errorf("redlock: Latch %q: %d arrivals: must be between 1 and %d", name, count, wire.MaxArrivals)
	}
	return l
}

// Generation returns a fresh latch of the same name: that is how a latch is used
// again. A generation is at most 256 bytes, without a colon.
func (l *Latch) Generation(generation string) *Latch {
	next := *l
	if strings.Contains(generation, ":") || len(generation) > maxClientID {
		next.lock.err = fmt.Errorf("redlock: Latch %q: Generation(%.300q): must be at most %d bytes, without a colon", l.lock.name, generation, maxClientID)
	}
	next.keys = wire.LatchOf(l.lock.client.opt.prefix, l.lock.name, generation)
	return &next
}

// Arrive reports that id has arrived. If it fails, call it again with the same id: the
// arrival may have been noted or not. It always fails once 5000 other ids have
// arrived.
func (l *Latch) Arrive(ctx context.Context, id string) error {
	if id == "" || id == wire.Whole || len(id) > maxClientID {
		return fmt.Errorf("redlock: Latch %q: Arrive(%.300q): must be between 1 and %d bytes, and not %q", l.lock.name, id, maxClientID, wire.Whole)
	}
	for first := true; ; first = false {
		err := l.ask(ctx, "arrive", quorum.Question{Command: l.keys.Arrive(id, latchLife, wire.MaxArrivals), Judge: done{}})
		if err == nil || !first || reason(err) != ErrTaken {
			return err
		}
		// A majority does not know yet who arrived before.
		if _, err := l.unite(ctx); err != nil {
			return err
		}
	}
}

// Count returns how many have arrived.
func (l *Latch) Count(ctx context.Context) (int, error) {
	s, err := l.look(ctx)
	if err != nil || s.agreed {
		return s.number, err
	}
	return l.unite(ctx)
}

// unite reads the arrivals, makes sure that a majority knows all of them, and returns
// their number.
func (l *Latch) unite(ctx context.Context) (int, error) {
	began := l.lock.client.watch.Now()
	ids, known, err := l.read(ctx)
	if err != nil || known {
		return len(ids), err
	}
	if l.tooOld(began) {
		return 0, l.lock.fail("count", ErrNoQuorum, nil)
	}
	// The union is written back to a majority before it is returned. Otherwise a later
	// count could miss what this one has seen.
	err = l.ask(ctx, "count", quorum.Question{Command: l.keys.Write(ids, latchLife), Judge: done{}})
	return len(ids), err
}

// tooOld reports whether an answer that was asked for at the given instant is too old
// to count, or to be written to a master: that is after half a restart guard.
//
// Invariant: arrivals that are written to a master after a memory loss were read from
// the others when everything that it has forgotten was decided. They are written a restart
// guard after the loss at the earliest, or not at all (see Latch.Write in package node).
// They were read half a restart guard before that at most, and everything that the master
// forgot was decided within the first half.
func (l *Latch) tooOld(asked drift.Instant) bool {
	c := l.lock.client
	longest := guard.LongestAttempt
	if guard := c.opt.restartGuard; guard > 0 {
		longest = min(longest, guard/2)
	}
	return c.watch.Since(asked) > longest
}

// ask puts a question that a majority must answer with yes.
func (l *Latch) ask(ctx context.Context, op string, q quorum.Question) error {
	if err := l.lock.check(ctx, op); err != nil {
		return err
	}
	c := l.lock.client
	defer c.leave()
	if !c.enter() {
		return l.lock.fail(op, ErrClosed, nil)
	}
	q.Since = c.watch.Now()
	r := c.members.Ask(q)
	defer r.Free()
	if err := c.seams.Wait(ctx, r.Ready()); err != nil {
		return l.lock.fail(op, ended(ctx), r)
	}
	switch {
	case r.Outcome() == quorum.Won && !l.tooOld(q.Since):
		return l.lock.refused(ctx, op) // the name may have moved meanwhile
	case r.Outcome() == quorum.Won, r.Tally().Unreachable():
		return l.lock.fail(op, l.unanswered(op, r), r)
	}
	return l.lock.fail(op, ErrTaken, r)
}

// unanswered returns why so few masters have answered: one says how many have arrived if
// they are too many.
func (l *Latch) unanswered(op string, r *quorum.Round) error {
	var refusal *wire.ServerError
	for _, b := range r.Ballots(nil) {
		if b.Reply.Err != nil && errors.As(b.Reply.Err, &refusal) && refusal.Code == "ARRIVALS" {
			return fmt.Errorf("%s: %s have arrived, and a latch takes %d", op, strings.TrimPrefix(refusal.Message, "ARRIVALS "), wire.MaxArrivals)
		}
	}
	return l.lock.closedOr(ErrNoQuorum)
}

// read returns which ids have arrived, and whether a majority knows exactly these.
func (l *Latch) read(ctx context.Context) (ids []string, known bool, err error) {
	if err := l.lock.check(ctx, "count"); err != nil {
		return nil, false, err
	}
	c := l.lock.client
	asked := c.watch.Now()
	r := c.members.Ask(quorum.Question{Command: l.keys.Read(), Judge: whole{}, Since: asked})
	defer r.Free()
	if err := c.seams.Wait(ctx, r.Ready()); err != nil {
		return nil, false, l.lock.fail("count", ended(ctx), r)
	}
	if l.tooOld(asked) {
		return nil, false, l.lock.fail("count", ErrNoQuorum, r)
	}
	if err := l.lock.moved(); err != nil {
		return nil, false, l.lock.failed("count", err, nil)
	}
	ballots := r.Ballots(nil)
	if r.Outcome() == quorum.Won {
		ids, same := union(ballots, quorum.Granted)
		if same {
			l.teach(ids, ballots)
		}
		return ids, same, nil
	}
	return l.found(ctx, ballots)
}

// teach tells the masters that were not counted which ids have arrived, without
// waiting: one of them may have lost its memory, and the next may lose it soon.
func (l *Latch) teach(ids []string, ballots []quorum.Ballot) {
	cmd := l.keys.Write(ids, latchLife)
	for i, master := range l.lock.client.members.Nodes() {
		if ballots[i].Vote != quorum.Granted {
			master.Do(cmd, nobodyAsks)
		}
	}
}

// sight is what a look at the masters finds.
type sight struct {
	agreed bool // a majority has the same arrivals, and no master lacks some as far as is known
	number int  // so many; if not agreed: the most that any of them has
	least  int  // of a majority each master has at least so many
}

// look asks how many have arrived, and finds out whether a majority knows the same ones.
func (l *Latch) look(ctx context.Context) (sight, error) {
	if err := l.lock.check(ctx, "count"); err != nil {
		return sight{}, err
	}
	c := l.lock.client
	asked := c.watch.Now()
	r := c.members.Ask(quorum.Question{Command: l.keys.Count(latchLife), Judge: wholeNumber{}, Since: asked})
	defer r.Free()
	if err := c.seams.Wait(ctx, r.Ready()); err != nil {
		return sight{}, l.lock.fail("count", ended(ctx), r)
	}
	switch {
	case l.tooOld(asked):
		return sight{}, l.lock.fail("count", l.lock.closedOr(ErrNoQuorum), r)
	case l.lock.moved() != nil:
		return sight{}, l.lock.failed("count", l.lock.moved(), nil)
	case r.Outcome() != quorum.Won:
		return sight{}, nil
	}
	ballots := r.Ballots(nil)
	l.teachLate(ballots)
	return sightOf(ballots), nil
}

func sightOf(ballots []quorum.Ballot) sight {
	var all []wire.Arrived
	for _, b := range ballots {
		if a, ok := wire.ArrivedOf(b.Reply); ok && b.Vote == quorum.Granted {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b wire.Arrived) int { return cmp.Compare(b.Number, a.Number) })
	s := sight{number: all[0].Number, least: all[quorum.Size(len(ballots))-1].Number}
	s.agreed = all[0].Digest != "" && !slices.ContainsFunc(all, func(a wire.Arrived) bool { return a != all[0] }) &&
		!slices.ContainsFunc(ballots, func(b quorum.Ballot) bool { return b.Vote == quorum.Refused })
	return s
}

// teachLate sends the arrivals to each master that has not answered yet, once it answers
// and lacks some. It does not wait.
func (l *Latch) teachLate(ballots []quorum.Ballot) {
	for i, master := range l.lock.client.members.Nodes() {
		if ballots[i].Vote != quorum.Pending {
			continue
		}
		master.Do(l.keys.Count(latchLife), func(r wire.Reply) {
			if (wholeNumber{}).Judge(0, r) == quorum.Refused {
				(&lesson{latch: l, master: master}).begin()
			}
		})
	}
}

// lesson sends the arrivals that a majority knows to a master that lacks some of them.
type lesson struct {
	latch  *Latch
	master node.Node
	asked  drift.Instant
}

func (t *lesson) begin() {
	c := t.latch.lock.client
	defer c.leave()
	if c.enter() {
		t.asked = c.watch.Now()
		c.members.Ask(quorum.Question{Command: t.latch.keys.Read(), Judge: whole{}, Watcher: t, Since: t.asked})
	}
}

// Decided writes what a majority knows.
func (t *lesson) Decided(r *quorum.Round) {
	if r.Outcome() == quorum.Won && !t.latch.tooOld(t.asked) {
		ids, _ := union(r.Ballots(nil), quorum.Granted)
		t.master.Do(t.latch.keys.Write(ids, latchLife), nobodyAsks)
	}
}

// Late has nothing to do: a majority was enough.
func (t *lesson) Late(*quorum.Round, int, quorum.Ballot) {}

// wholeNumber reads how many have arrived: a set that is not whole does not count.
type wholeNumber struct{}

func (wholeNumber) Judge(_ wire.Op, r wire.Reply) quorum.Vote {
	switch a, ok := wire.ArrivedOf(r); {
	case !ok:
		return quorum.Failed
	case a.Whole:
		return quorum.Granted
	}
	return quorum.Refused
}

// found returns which ids have arrived when no majority of the masters has a whole
// set. That is so at the beginning; later it means that too many masters have
// forgotten, and all of them must be asked.
func (l *Latch) found(ctx context.Context, ballots []quorum.Ballot) (ids []string, known bool, err error) {
	c := l.lock.client
	r := c.members.Survey(l.keys.Read(), nil)
	defer r.Free()
	if err := c.seams.Wait(ctx, r.Ready()); err != nil {
		return nil, false, l.lock.fail("count", ended(ctx), r)
	}
	ballots = r.Ballots(ballots[:0])
	answers, wholes := 0, 0
	for i, b := range ballots {
		ballots[i].Vote = quorum.Failed
		if _, whole, ok := wire.ArrivalsOf(b.Reply); ok {
			ballots[i].Vote = quorum.Granted
			answers++
			if whole {
				wholes++
			}
		}
	}
	need := quorum.Size(len(ballots))
	switch {
	case wholes == 0 && answers >= need, wholes >= need, answers == len(ballots):
		ids, _ := union(ballots, quorum.Granted)
		return ids, false, nil
	}
	return nil, false, l.lock.fail("count", l.unanswered("count", r), r)
}

// union returns the names in the answers with this vote, in order, and whether all
// answers were the same.
func union(ballots []quorum.Ballot, vote quorum.Vote) (ids []string, same bool) {
	same = true
	answers, size := 0, 0
	for _, b := range ballots {
		if b.Vote != vote {
			continue
		}
		names, _, _ := wire.ArrivalsOf(b.Reply)
		ids = append(ids, names...)
		same = same && (answers == 0 || len(names) == size)
		answers, size = answers+1, len(names)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids, same && len(ids) == size
}

// whole reads the members of a latch: a set that is not whole does not count.
type whole struct{}

func (whole) Judge(_ wire.Op, r wire.Reply) quorum.Vote {
	_, whole, ok := wire.ArrivalsOf(r)
	return taken(whole, ok)
}
