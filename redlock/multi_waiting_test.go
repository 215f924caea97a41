package redlock

import (
	"testing"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
)

func TestA_waiter_for_several_locks_keeps_its_place_for_what_it_lacks(t *testing.T) {
	// heldBy is the refusal of a master that stores a lock, from one on, for a client.
	heldBy := func(lock int64, client string) quorum.Ballot {
		return quorum.Ballot{Vote: quorum.Refused, Reply: wire.Reply{Value: []any{int64(1000), int64(0), int64(0), lock, []byte(client)}}}
	}
	free := quorum.Ballot{Vote: quorum.Granted}
	for _, c := range []struct {
		name            string
		ballots         []quorum.Ballot
		waitFor, waited int
		called          bool
		want            int
		soon            bool
	}{
		{name: "a quorum stores one of them for a client", ballots: []quorum.Ballot{heldBy(2, "x"), heldBy(2, "x"), free}, want: 2},
		{name: "and the others must not wait for us meanwhile", ballots: []quorum.Ballot{heldBy(2, "x"), heldBy(2, "x"), free}, waited: wire.WaitForEach, want: 2, soon: true},
		{name: "one that is silent may store it, too", ballots: []quorum.Ballot{heldBy(2, "x"), {Vote: quorum.Pending}, free}, want: 2},
		{name: "the masters store it for two clients", ballots: []quorum.Ballot{heldBy(2, "x"), heldBy(2, "y"), free}, want: wire.WaitForEach, soon: true},
		{name: "the masters store two of them", ballots: []quorum.Ballot{heldBy(1, "x"), heldBy(2, "x"), free}, want: wire.WaitForEach, soon: true},
		{name: "nobody has any", ballots: []quorum.Ballot{free, {Vote: quorum.Failed}, {Vote: quorum.Failed}}, want: wire.WaitForEach, soon: true},
		{name: "called, the one that it waits for is free", ballots: []quorum.Ballot{heldBy(2, "x"), heldBy(2, "x"), free}, waitFor: 2, called: true, want: wire.WaitForFirst},
		{name: "called, it goes on as it is", ballots: []quorum.Ballot{heldBy(2, "x"), heldBy(2, "x"), free}, waitFor: wire.WaitForEach, called: true, want: wire.WaitForEach},
	} {
		s := &several{multi: &multi{names: []string{"a", "b", "c"}}, waitFor: c.waitFor, waited: c.waited}
		if soon := s.Reconsider(c.ballots, c.called); s.waitFor != c.want || soon != c.soon {
			t.Errorf("%s: waits for %d, soon %v, want %d, %v", c.name, s.waitFor, soon, c.want, c.soon)
		}
	}
}
