package operate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// threeBecome has the first three masters be the old group, with a guard of an hour.
func threeBecome(n int) func([]*fake) {
	return func(all []*fake) {
		for i, f := range all[:3] {
			f.marker = markedIn(f.run, time.Hour, "", letters(3)...).String()
			f.keys["redlock:token:orders"] = string("579"[i])
		}
	}
}

// S61: what fails halfway has told no master a shorter guard than any knows.
func TestS61_a_Regroup_that_fails_halfway_has_marked_every_master_with_the_longest_guard(t *testing.T) {
	s, all := someMasters(t, 5, threeBecome(5))
	all[0].refuses = func(cmd *wire.Command) string {
		if cmd.Name == "SCAN" {
			return "ERR broken"
		}
		return ""
	}

	if err := s.move(); err == nil {
		t.Error("it did not fail")
	}

	for i, f := range all {
		if m := f.stored(t); m.Group != s[0].group || m.Hold != time.Hour {
			t.Errorf("master %d is marked %v, want a guard of an hour", i, m)
		}
	}
}

// S61: a client of the old group asks for a longer guard while the masters are marked.
func TestS61_a_longer_guard_that_comes_meanwhile_counts_on_all_masters(t *testing.T) {
	s, all := someMasters(t, 5, threeBecome(5))
	all[2].before = func(cmd *wire.Command) {
		if m := all[2].stored(t); m.Group != s[0].group {
			m.Hold = 2 * time.Hour
			all[2].marker = m.String()
		}
	}

	if err := s.move(); err != nil {
		t.Fatal(err)
	}

	for i, f := range all {
		if m := f.stored(t); m.Hold != 2*time.Hour {
			t.Errorf("master %d is marked with a guard of %v, want two hours", i, m.Hold)
		}
		if want := "may vote in 2h0m0s"; !strings.Contains(s[i].result, want) || strings.HasSuffix(s[i].result, ", was one of 3 masters") != (i < 3) || i >= 3 && !strings.HasSuffix(s[i].result, want) {
			t.Errorf("told %q", s[i].result)
		}
	}
}

// S51: what the old group confirms before its last master is marked is taken over, and no
// guard counts from before every master has it.
func TestS51_what_is_confirmed_while_masters_are_marked_is_known_to_all_before_any_votes(t *testing.T) {
	s, all := someMasters(t, 5, threeBecome(5))
	all[1].before = func(cmd *wire.Command) {
		if all[1].stored(t).Group != s[0].group {
			all[1].keys["redlock:token:orders"] = "10"
		}
	}
	taught := make([]time.Time, len(all))
	for i, f := range all {
		before := f.before
		f.before = func(cmd *wire.Command) {
			if before != nil {
				before(cmd)
			}
			if cmd.Script == wire.ScriptInherit {
				taught[i] = *f.now
			}
		}
	}

	if err := s.move(); err != nil {
		t.Fatal(err)
	}

	for i, f := range all {
		if got := strings.Join(f.arguments(wire.ScriptInherit), ", "); got != "redlock:token:orders 10" {
			t.Errorf("master %d is taught %q", i, got)
		}
		for j, other := range all {
			if since := other.stored(t).Since; !since.After(taught[i]) {
				t.Errorf("the guard of master %d counts from %v before master %d has learned", j, taught[i].Sub(since), i)
			}
		}
	}
}

// A client changes the marker whenever it is to be replaced.
func TestRegroup_gives_up_where_a_marker_keeps_changing(t *testing.T) {
	for changes, want := range map[int]string{0: "", maxMarks - 1: "", maxMarks: "keep changing"} {
		s, all := someMasters(t, 1, nil)
		left := changes
		all[0].before = func(cmd *wire.Command) {
			if cmd.Script == wire.ScriptMarker && cmd.Args[1] != "" && left > 0 {
				left--
				m := markedIn("run0", hold, "", "x", "y")
				m.Nonce = strings.Repeat("n", 1+left)
				all[0].marker = m.String()
			}
		}
		err := s[0].regroup()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("changed %d times: %v", changes, err)
		}
	}
}

// The table of which masters may become one group: a, b and c are asked for.
func TestRegroup_rules(t *testing.T) {
	const few, go_on = "a quorum of it must be among them", "would go on with it"
	abc := letters(3)
	is := func(addrs ...string) guard.Marker { return markedIn("", hold, "", addrs...) }
	named := func(m guard.Marker, name string) guard.Marker { m.Group.Name = name; return m }
	moved := func(ago, hold time.Duration) guard.Marker {
		m := is(abc...)
		m.Nonce, m.Hold = "", hold
		m.Since = time.UnixMicro(1_714_564_800_000_000).Add(-ago)
		return m
	}
	nu, blue, pq, wxyz := moved(time.Second, hold), named(is("a", "b", "z"), "blue"), []string{"p", "q"}, []string{"w", "x", "y", "z"}
	nu.New = true
	ofOthers, byClient := moved(time.Second, hold), moved(time.Second, hold)
	ofOthers.RunID, byClient.Nonce = "another", "n1"
	elsewhere := moved(time.Second, hold)
	elsewhere.Group = guard.GroupOf("", pq...)
	alone := is("a", "x", "y", "z", "w") // one of five
	for what, c := range map[string]struct {
		group   string
		markers [3]guard.Marker
		want    string
	}{
		"new masters":                               {},
		"their own list":                            {"", [3]guard.Marker{is(abc...), is(abc...)}, ""},
		"one of one":                                {"", [3]guard.Marker{is("a")}, ""},
		"one of two":                                {"", [3]guard.Marker{is(pq...)}, few},
		"two of two":                                {"", [3]guard.Marker{is(pq...), is(pq...)}, ""},
		"two of four":                               {"", [3]guard.Marker{is(wxyz...), is(wxyz...)}, few},
		"three of four":                             {"", [3]guard.Marker{is(wxyz...), is(wxyz...), is(wxyz...)}, ""},
		"one of five, left of a Regroup":            {"", [3]guard.Marker{alone, is(abc...), is(abc...)}, few},
		"half of a Regroup":                         {"", [3]guard.Marker{alone, moved(time.Second, hold)}, ""},
		"half of a Regroup, right now":              {"", [3]guard.Marker{alone, moved(-8*time.Millisecond, hold)}, ""},
		"half of a Regroup, in the future":          {"", [3]guard.Marker{alone, moved(-time.Second, hold)}, few},
		"half of a Regroup, longer ago than guards": {"", [3]guard.Marker{alone, moved(hold, hold)}, few},
		"half of a Regroup, and restarted":          {"", [3]guard.Marker{alone, ofOthers}, few},
		"marked by a client since":                  {"", [3]guard.Marker{alone, byClient}, few},
		"half of a Regroup of others":               {"", [3]guard.Marker{alone, elsewhere}, few},
		"three of two groups":                       {"", [3]guard.Marker{alone, is(pq...), is(pq...)}, few},
		"one of three, left of a Regroup":           {"", [3]guard.Marker{is("a", "x", "y"), is(abc...), is(abc...)}, few},
		"declared new":                              {"", [3]guard.Marker{alone, nu}, few},
		"another three without a name":              {"", [3]guard.Marker{is("a", "b", "z"), is("a", "b", "z")}, go_on},
		"another three with a name":                 {"", [3]guard.Marker{blue, blue}, go_on},
		"another three, ours with a name":           {"red", [3]guard.Marker{is("a", "b", "z"), is("a", "b", "z")}, go_on},
		"another three with our name":               {"blue", [3]guard.Marker{blue, blue}, go_on},
		"another three with another name":           {"red", [3]guard.Marker{blue, blue}, ""},
		"one of another three with another name":    {"red", [3]guard.Marker{blue}, few},
	} {
		s, _ := someMasters(t, 3, func(all []*fake) {
			for i, f := range all {
				if m := c.markers[i]; m.Group.Size > 0 {
					if m.RunID == guard.UnknownRun {
						m.RunID = f.run
					}
					f.marker = m.String()
				}
			}
		})
		for _, each := range s {
			each.group.Name = c.group
		}
		err := s.mustOutvoteTheOld()
		if err == nil {
			err = s.mustShutOutTheOld()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", what, err, c.want)
		}
	}
}

// Whichever question a master does not answer, the operator is told so.
func TestOperators_are_told_when_a_connection_breaks(t *testing.T) {
	broken := errors.New("broken")
	for name, operate := range map[string]func(sites) error{
		"init": func(s sites) error { return errors.Join(s.initialize(), s.each((*site).declareNew)) },
		"regroup": func(s sites) error {
			if _, err := s.known(); err != nil {
				return err
			}
			return s.move()
		},
	} {
		for questions, fine := 0, false; !fine; questions++ {
			s, all := someMasters(t, 2, nil)
			n := 0
			for _, f := range all {
				f.breaks = func() error {
					if n++; n == questions+1 { // once: nobody may go on as if nothing was
						return broken
					}
					return nil
				}
				f.keys["redlock:token:a"], f.keys["redlock:permits:a"], f.keys["redlock:other"] = "1", "2 3", "x"
				f.sets["redlock:latch:g:done"] = []string{"x", "y", "z"}
			}
			switch err := operate(s); {
			case n <= questions:
				if fine = true; err != nil || questions < 5 {
					t.Errorf("%s, after %d questions: %v", name, questions, err)
				}
			case !errors.Is(err, broken):
				t.Errorf("%s, broken at question %d: %v", name, n, err)
			}
		}
	}
}
