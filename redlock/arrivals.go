package redlock

import (
	"context"
	"slices"

	"github.com/quorumlock/quorumlock/node"
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
		if _, ok := b.Reply.Value.([]any); ok && b.Reply.Err == nil {
			ballots[i].Vote = quorum.Granted
			answers++
			if (whole{}).Judge(0, b.Reply) == quorum.Granted {
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
	return nil, false, l.lock.fail("count", l.lock.closedOr(ErrNoQuorum), r)
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
		names := 0
		for _, member := range fields(b.Reply) {
			if name := text(member); name != node.Whole {
				ids = append(ids, name)
				names++
			}
		}
		same = same && (answers == 0 || names == size)
		answers, size = answers+1, names
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids, same && len(ids) == size
}

// whole reads the members of a latch: a set that is not whole does not count.
type whole struct{}

func (whole) Judge(_ node.Op, r node.Reply) quorum.Vote {
	members, ok := r.Value.([]any)
	switch {
	case !ok:
		return quorum.Failed
	case slices.ContainsFunc(members, func(m any) bool { return text(m) == node.Whole }):
		return quorum.Granted
	}
	return quorum.Refused
}
