package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

func TestA_nested_hold_that_is_miscounted_is_found(t *testing.T) {
	lost, unlocked := redlock.ErrLost.Error(), redlock.ErrUnlocked.Error()
	said := func(depth, count int, ended string) Event {
		return Event{At: 5, Kind: Counted, Lock: "nested", Lease: "a", Depth: depth, Count: count, Text: ended}
	}
	for name, test := range map[string]struct {
		events []Event
		want   int
	}{
		"in and out again":                  {[]Event{said(2, 2, ""), said(1, 1, ""), said(0, 0, unlocked)}, 0},
		"lost in between":                   {[]Event{said(2, 2, ""), said(1, 0, lost), said(0, 0, lost)}, 0},
		"the second was not counted":        {[]Event{said(2, 1, "")}, 1},
		"ended by an Unlock in between":     {[]Event{said(2, 2, ""), said(1, 0, unlocked)}, 1},
		"not ended by the last Unlock":      {[]Event{said(1, 1, ""), said(0, 1, "")}, 1},
		"an Unlock in between gave up two":  {[]Event{said(3, 3, ""), said(2, 1, "")}, 1},
		"gone, and nobody says that or why": {[]Event{said(2, 0, "")}, 1},
	} {
		if got := historyOf(test.events).misnested("nested"); len(got) != test.want {
			t.Errorf("%s: %d findings, want %d: %v", name, len(got), test.want, got)
		}
	}
}

// wanted is held, for a lease that was wanted since an instant and has a token.
func wanted(lease string, token uint64, since, from, to time.Duration) []Event {
	events := held(lease, from, to)
	events[0].Since, events[0].Token = since, token
	return events
}

func TestWho_is_served_before_one_that_waits_for_long_is_counted(t *testing.T) {
	const second = time.Second
	for name, test := range map[string]struct {
		want     int
		journals [][]Event
	}{
		"in order":            {0, [][]Event{wanted("a", 0, 1*second, 5*second, 6*second), wanted("b", 0, 3*second, 7*second, 8*second)}},
		"about the same time": {0, [][]Event{wanted("a", 0, 1*second, 7*second, 8*second), wanted("b", 0, 1*second+second/2, 5*second, 6*second)}},
		"passed":              {1, [][]Event{wanted("a", 0, 1*second, 7*second, 8*second), wanted("b", 0, 3*second, 5*second, 6*second)}},
		"passed by two":       {2, [][]Event{wanted("a", 0, 1*second, 9*second, 10*second), wanted("b", 0, 3*second, 5*second, 6*second), wanted("c", 0, 4*second, 7*second, 8*second)}},
	} {
		if got := outOfTurn(historyOf(test.journals...).of("counter")); len(got) != test.want {
			t.Errorf("%s: %d out of turn, want %d", name, len(got), test.want)
		}
	}
}

func TestA_token_of_a_permit_that_is_not_unique_or_does_not_rise_is_found(t *testing.T) {
	token := func(count, slot uint64) uint64 { return count*wire.MaxPermits + slot }
	for name, test := range map[string]struct {
		numbers, slots int
		journals       [][]Event
	}{
		"side by side":             {0, 0, [][]Event{wanted("a", token(5, 0), 1, 2, 9), wanted("b", token(5, 1), 1, 3, 8)}},
		"lower, but wanted before": {0, 0, [][]Event{wanted("a", token(5, 0), 1, 2, 9), wanted("b", token(4, 1), 1, 3, 8)}},
		"lower, and wanted after":  {1, 0, [][]Event{wanted("a", token(5, 0), 1, 2, 9), wanted("b", token(4, 1), 2, 3, 8)}},
		"none":                     {1, 0, [][]Event{wanted("a", 0, 1, 2, 9)}},
		"twice":                    {1, 1, [][]Event{wanted("a", token(5, 0), 1, 2, 3), wanted("b", token(5, 0), 1, 4, 5)}},
		"one permit, one by one":   {0, 0, [][]Event{wanted("a", token(5, 0), 1, 2, 3), wanted("b", token(6, 0), 1, 4, 5)}},
		"one permit, falling":      {0, 1, [][]Event{wanted("a", token(6, 0), 1, 2, 3), wanted("b", token(5, 0), 1, 4, 5)}},
		"one permit, at once":      {0, 1, [][]Event{wanted("a", token(5, 0), 1, 2, 9), wanted("b", token(6, 0), 1, 4, 5)}},
		"one permit, in the end":   {0, 1, [][]Event{wanted("a", token(5, 0), 1, 2, 9), wanted("b", token(6, 1), 1, 3, 4), wanted("c", token(7, 0), 1, 8, 10)}},
	} {
		h := historyOf(test.journals...)
		if got := h.misnumbered("counter"); len(got) != test.numbers {
			t.Errorf("%s: %d tokens, want %d: %v", name, len(got), test.numbers, got)
		}
		if got := h.sharedSlots("counter"); len(got) != test.slots {
			t.Errorf("%s: %d permits, want %d: %v", name, len(got), test.slots, got)
		}
	}
}

// latchRun is a run in which masters forgot, and what clients saw of a latch. Nothing
// is broken from the 60th second on.
func latchRun(forgot []Done, events ...Event) *Report {
	for i := range events {
		events[i].Lock = "latch 1"
	}
	return &Report{Config: Config{Masters: 5}, Healed: 60 * time.Second, Dismissed: 90 * time.Second, Faults: forgot, History: historyOf(events)}
}

// forgetting is masters that forget at an instant.
func forgetting(at time.Duration, masters ...int) (all []Done) {
	for _, m := range masters {
		all = append(all, Done{Kind: kindNamed("flush"), Target: m, From: at, Until: at})
	}
	return all
}

func reports(at time.Duration, ids ...string) (events []Event) {
	for _, id := range ids {
		events = append(events, Event{At: at, Kind: Arriving, Text: id})
	}
	return events
}

func confirms(at time.Duration, ids ...string) (events []Event) {
	for _, id := range ids {
		events = append(events, Event{At: at, Since: at - 1, Kind: Arriving, Text: id}, Event{At: at, Since: at - 1, Kind: Arrived, Text: id})
	}
	return events
}

func TestA_latch_that_opens_early_is_found(t *testing.T) {
	nine := strings.Split("a b c d e f g h i", " ")
	tallied := func(n int) Event { return Event{At: 50, Since: 40, Kind: Tallied, Count: n} }
	opened := Event{At: 50, Since: 40, Kind: Opened}
	for name, test := range map[string]struct {
		want   int
		events []Event
	}{
		"nobody came, nobody counted": {0, []Event{tallied(0)}},
		"as many as were reported":    {0, append(reports(10, nine...), tallied(9))},
		"one more":                    {1, append(reports(10, nine...), tallied(10))},
		"a report that was repeated":  {1, append(reports(10, "a", "a"), tallied(2))},
		"a report that came later":    {1, append(reports(60, "a"), tallied(1))},
		"open with all":               {0, append(reports(10, append(nine, "j")...), opened)},
		"open with one missing":       {1, append(reports(10, append(nine, "i")...), opened)},
	} {
		// It does not matter who forgets.
		if got := latchRun(forgetting(45, 0, 1, 2, 3, 4), test.events...).misarrived(); len(got) != test.want || test.want > 0 && got[0].Check != EarlyLatch {
			t.Errorf("%s: %d findings, want %d: %v", name, len(got), test.want, got)
		}
	}
}

func TestAn_arrival_that_is_lost_is_found(t *testing.T) {
	whole := func(at time.Duration) Event { return Event{At: at, Since: at - 1, Kind: Whole} }
	tallied := func(at time.Duration, n int) Event { return Event{At: at, Since: at - 1, Kind: Tallied, Count: n} }
	abc := confirms(20, "a", "b", "c")
	for name, test := range map[string]struct {
		want   int
		forgot []Done
		events [][]Event
	}{
		"all counted":                   {0, nil, [][]Event{{whole(10)}, abc, {tallied(30, 3)}}},
		"one lost":                      {1, nil, [][]Event{{whole(10)}, abc, {tallied(30, 2)}}},
		"before anybody looked":         {0, nil, [][]Event{abc, {whole(22)}, {tallied(30, 2)}}},
		"counted while it came":         {0, nil, [][]Event{{whole(10)}, abc, {tallied(20, 2)}}},
		"a minority forgot":             {1, forgetting(25, 0, 1), [][]Event{{whole(10)}, abc, {tallied(30, 2)}}},
		"a majority forgot":             {0, forgetting(25, 0, 1, 2), [][]Event{{whole(10)}, abc, {tallied(30, 2)}}},
		"a majority, looked in between": {1, append(forgetting(21, 0), forgetting(25, 1, 2)...), [][]Event{{whole(10)}, abc, {whole(23), tallied(30, 2)}}},
		"a majority, looked too late":   {0, forgetting(21, 0, 1, 2), [][]Event{{whole(10)}, abc, {whole(23), tallied(30, 2)}}},
		"forgot before the look":        {1, forgetting(5, 0, 1, 2), [][]Event{{whole(10)}, abc, {tallied(30, 2)}}},
		"a count that goes back":        {1, nil, [][]Event{reports(5, "a", "b", "c"), {whole(10), tallied(15, 3), tallied(30, 2)}}},
		"counts at the same time":       {0, nil, [][]Event{reports(5, "a", "b", "c"), {whole(10), tallied(15, 3), {At: 30, Since: 14, Kind: Tallied, Count: 2}}}},
		"the one that came after it":    {1, nil, [][]Event{reports(5, "x", "y", "z"), {whole(10), tallied(15, 3)}, confirms(20, "d"), {tallied(30, 3)}}},
		"and it is there":               {0, nil, [][]Event{reports(5, "x", "y", "z"), {whole(10), tallied(15, 3)}, confirms(20, "d"), {tallied(30, 4)}}},
	} {
		var events []Event
		for _, some := range test.events {
			events = append(events, some...)
		}
		if got := latchRun(test.forgot, events...).misarrived(); len(got) != test.want || test.want > 0 && got[0].Check != LostArrival {
			t.Errorf("%s: %d findings, want %d: %v", name, len(got), test.want, got)
		}
	}
}

func TestA_wait_for_a_latch_that_is_open_is_found(t *testing.T) {
	const second = time.Second
	ten := strings.Split("a b c d e f g h i j", " ")
	tallied := func(at time.Duration) Event { return Event{At: at, Since: at - 1, Kind: Tallied, Count: latchOpens} }
	waited := func(since, at time.Duration) Event { return Event{At: at, Since: since, Kind: Waited} }
	for name, test := range map[string]struct {
		want   int
		events []Event
	}{
		"not open":               {0, []Event{waited(70*second, 80*second)}},
		"open, and nobody waits": {0, []Event{tallied(65 * second)}},
		"open":                   {1, []Event{tallied(65 * second), waited(70*second, 80*second)}},
		"open for a moment":      {0, []Event{tallied(79 * second), waited(70*second, 80*second)}},
		"until told to end":      {0, []Event{tallied(65 * second), waited(84*second, 95*second)}},
		"during the faults":      {0, []Event{tallied(30 * second), waited(40*second, 55*second)}},
	} {
		events := append(reports(second, ten...), test.events...)
		if got := latchRun(nil, events...).misarrived(); len(got) != test.want {
			t.Errorf("%s: %d findings, want %d: %v", name, len(got), test.want, got)
		}
	}
}

// Who loses nothing by what is done to a master has synced every write.
func TestWhat_masters_forget(t *testing.T) {
	c := &Config{}
	for name, want := range map[string][5]bool{
		"kill": {true, true, true, true, true}, "flush": {true, true, true, true, true}, "freeze": {}, "forward": {},
		"restart": {true, false, true, false, true}, "revive": {true, false, true, false, true},
	} {
		for master, want := range want {
			if got := c.forgets(Done{Kind: kindNamed(name), Target: master}); got != want {
				t.Errorf("%s of master %d: forgets %v, want %v", name, master, got, want)
			}
		}
	}
}
