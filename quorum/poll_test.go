package quorum

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
)

// Whatever the order of the ballots, and wherever the poll is closed: it is
// decided once, by the votes that came before, and late ones change nothing.
func TestA_poll_is_decided_once(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "nodes")
		p := poll{ballots: make([]Ballot, n)}
		granted := Set(rapid.Uint64Range(0, 1<<n-1).Draw(t, "granted before"))
		absent := Set(rapid.Uint64Range(0, 1<<n-1).Draw(t, "absent")) &^ granted
		asked := p.open(NewTally(n), granted, absent)

		decisions, counted := 0, n-asked
		if p.decided {
			decisions++
		}
		var order []int
		for i := range n {
			if !granted.Has(i) && !absent.Has(i) {
				order = append(order, i)
			}
		}
		if asked != len(order) {
			t.Fatalf("asked %d, want %d", asked, len(order))
		}
		closeAt := rapid.IntRange(0, n).Draw(t, "closed after")
		var outcome Outcome
		for k, i := range rapid.Permutation(order).Draw(t, "order") {
			if k == closeAt && !p.decided {
				p.close(func(int) *wire.Error { return &wire.Error{Err: node.ErrTimeout} })
				decisions++
				counted = n
			}
			before := p.decided
			outcome = p.tally.Outcome()
			late, decides := p.cast(i, &Ballot{Vote: rapid.SampledFrom([]Vote{Granted, Refused, Failed}).Draw(t, "vote")})
			if late != before || late && decides || p.ballots[i].Late != late {
				t.Fatalf("late %v, decides %v after a decision %v", late, decides, before)
			}
			if late && p.tally.Outcome() != outcome {
				t.Fatalf("a late vote changed %v to %v", outcome, p.tally.Outcome())
			}
			if decides {
				decisions++
			}
			if !late {
				counted++
			}
		}
		if n-p.tally.Pending() != counted {
			t.Fatalf("%d votes counted, want %d", n-p.tally.Pending(), counted)
		}
		if p.decided != (p.tally.Outcome() != Open) || decisions > 1 || p.decided != (decisions == 1) {
			t.Fatalf("decided %v, %v, %d times", p.decided, p.tally.Outcome(), decisions)
		}
	})
}
