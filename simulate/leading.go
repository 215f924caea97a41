package simulate

import (
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// Whoever looks sees a leader with a token that a majority of the masters told it of. That
// need not be the token of the lease yet: a leader that finds a higher one among its
// grants has the others count up to that.

// leading is who leads, as a master told a client that looked. It is known by when it
// asked to lead, in ms by its own clock: its value is not told on.
type leading struct {
	client string
	since  int64
	token  uint64
}

// tellsLeader notes what a master has answered to who looks for the leader. What still
// arrives on a connection that was given up is of an earlier look.
func (k *checker) tellsLeader(m *master, by *client, cmd *wire.Command, closed bool) {
	if cmd.Script != wire.ScriptLeader || closed {
		return
	}
	lock, counter := cmd.Keys[0], cmd.Keys[2]
	by.told[m.index] = leading{}
	if e := m.keys.Find(lock); e != nil {
		client, _, since := redlock.ParseValue(e.Value)
		by.told[m.index] = leadingOf(client, since, uint64(m.keys.Counter(counter)))
	}
}

func leadingOf(client string, since time.Time, token uint64) leading {
	return leading{client, since.UnixMilli(), token}
}

// agreed looks whether the masters have agreed on the token of a leader that is seen.
func (p *Process) agreed(l redlock.Leader) {
	n, sees := 0, leadingOf(l.Client, l.Since, l.Token)
	for _, told := range p.client.told {
		if told == sees {
			n++
		}
	}
	p.check(leaderAgreed, n >= quorum.Size(len(p.client.masters)),
		"%s sees %+v, and %d of %d masters have told it so", p.name, l, n, len(p.client.masters))
}
