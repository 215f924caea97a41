package redlock

import (
	"cmp"
	"context"
	"slices"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

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
	r := c.members.Survey(l.keys.Read())
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
