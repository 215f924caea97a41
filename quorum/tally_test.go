package quorum

import (
	"testing"

	"pgregory.net/rapid"
)

func TestS16_quorum_is_a_strict_majority(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 4} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestAny_two_quorums_share_a_node(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1000).Draw(t, "n")
		if 2*Size(n) <= n {
			t.Fatalf("two quorums of %d fit side by side into %d", Size(n), n)
		}
	})
}

func TestTally_decides_as_early_as_the_votes_allow(t *testing.T) {
	const g, r, f = Granted, Refused, Failed
	for _, c := range []struct {
		name  string
		nodes int
		votes []Vote
		want  Outcome
	}{
		{"nobody has voted", 5, nil, Open},
		{"one short", 5, []Vote{g, g}, Open},
		{"a quorum", 5, []Vote{g, g, g}, Won},
		{"a quorum although two refused", 5, []Vote{r, r, g, g, g}, Won},
		{"a quorum although two failed", 5, []Vote{f, f, g, g, g}, Won},
		{"a quorum has become impossible", 5, []Vote{r, f, r}, Lost},
		{"still possible", 5, []Vote{r, f, g, g}, Open},
		{"L10: two of four refused is enough to know", 4, []Vote{g, g, r, r}, Lost},
		{"L10: ... and so is the second refusal", 4, []Vote{r, r}, Lost},
		{"one node", 1, []Vote{g}, Won},
		{"S16: one of two", 2, []Vote{g, r}, Lost},
	} {
		t.Run(c.name, func(t *testing.T) {
			tally := NewTally(c.nodes)
			for _, v := range c.votes {
				tally.Count(v)
			}
			if got := tally.Outcome(); got != c.want {
				t.Errorf("%v of %d nodes: %v, want %v", c.votes, c.nodes, got, c.want)
			}
		})
	}
}

func TestTally_tells_refusal_from_failure(t *testing.T) {
	const g, r, f = Granted, Refused, Failed
	for _, c := range []struct {
		votes                   []Vote
		conclusive, unreachable bool
	}{
		{[]Vote{r, r, r}, true, false},
		{[]Vote{r, r, f}, false, false},
		{[]Vote{f, f, f}, false, true},
		{[]Vote{f, f, r}, false, false},
		{[]Vote{g, r, r, f, f}, false, false},
		{[]Vote{r, r, f, f, f}, false, true},
	} {
		tally := NewTally(5)
		for _, v := range c.votes {
			tally.Count(v)
		}
		if tally.Conclusive() != c.conclusive || tally.Unreachable() != c.unreachable {
			t.Errorf("%v: conclusive %v, unreachable %v; want %v, %v",
				c.votes, tally.Conclusive(), tally.Unreachable(), c.conclusive, c.unreachable)
		}
	}
}

// The reference looks at every way in which the missing votes can fall.
func TestOutcome_is_what_every_continuation_agrees_on(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		votes := rapid.SliceOfN(rapid.SampledFrom([]Vote{Granted, Refused, Failed}), 0, n).Draw(t, "votes")
		tally := NewTally(n)
		granted := 0
		for _, v := range votes {
			tally.Count(v)
			if v == Granted {
				granted++
			}
		}
		worst, best := granted, granted+n-len(votes)
		want := Open
		switch {
		case worst >= Size(n):
			want = Won
		case best < Size(n):
			want = Lost
		}
		if got := tally.Outcome(); got != want {
			t.Fatalf("%v of %d nodes: %v, want %v", votes, n, got, want)
		}
	})
}

func TestSurvey_is_over_when_everybody_was_heard(t *testing.T) {
	tally := Tally{nodes: 2}
	tally.Count(Failed)
	if got := tally.Outcome(); got != Open {
		t.Errorf("one of two heard: %v, want open", got)
	}
	tally.Count(Granted)
	if got := tally.Outcome(); got != Won {
		t.Errorf("both heard: %v, want won", got)
	}
}
