package operate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// someGroups are groups of three masters that tell this map, as an operator has just looked at them.
// edit changes what they are before.
func someGroups(t *testing.T, text string, names string, edit func(map[string][]*fake)) (*fleet, map[string][]*fake) {
	t.Helper()
	now := time.UnixMicro(1_714_564_800_000_000)
	f := &fleet{masters: map[string][]string{}, sites: map[string]sites{}, config: node.Config{Guard: guard.Config{Hold: hold}}}
	all := map[string][]*fake{}
	for _, name := range strings.Split(names, "") {
		addrs := []string{name + "0", name + "1", name + "2"}
		group := guard.GroupOf(name, addrs...)
		for i, addr := range addrs {
			m := &fake{now: &now, run: "run-" + addr, role: "master", keys: map[string]string{}, ttl: map[string]int64{}, sets: map[string][]string{}}
			marker := markedIn(m.run, hold, name, addrs...)
			marker.Group.Map = text
			m.marker = marker.String()
			f.sites[name], all[name] = append(f.sites[name], m.at(addr, &f.config, group)), append(all[name], m)
			f.sites[name][i].index = i
		}
		f.masters[name] = addrs
	}
	if edit != nil {
		edit(all)
	}
	if err := f.each((*site).look); err != nil {
		t.Fatal(err)
	}
	return f, all
}

func parsedMap(t *testing.T, text string) spread.Map {
	t.Helper()
	m, err := spread.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// S83: a lease may last as long as the restart guard of its client allows, which may be longer than that
// of the operator, or of any other client. Clocks may run apart meanwhile.
func TestS83_no_group_has_a_name_that_moves_for_the_longest_guard_of_any_client(t *testing.T) {
	guardOf := func(m *fake, d time.Duration) {
		marker, _ := guard.ParseMarker(m.marker)
		marker.Hold = d
		m.marker = marker.String()
	}
	for what, c := range map[string]struct {
		operator time.Duration
		edit     func(map[string][]*fake)
		want     time.Duration
	}{
		"all have the same":            {hold, nil, hold},
		"the operator's is longer":     {2 * time.Hour, nil, 2 * time.Hour},
		"a client's is, at one master": {hold, func(all map[string][]*fake) { guardOf(all["b"][1], time.Hour) }, time.Hour},
		"a client's is, at the first":  {hold, func(all map[string][]*fake) { guardOf(all["a"][0], time.Hour) }, time.Hour},
		"a client comes meanwhile": {hold, func(all map[string][]*fake) {
			all["a"][2].before = func(cmd *wire.Command) {
				if cmd.Script == wire.ScriptMarker && cmd.Args[1] != "" {
					guardOf(all["a"][2], time.Hour)
				}
			}
		}, time.Hour},
	} {
		f, _ := someGroups(t, "2:a", "ab", c.edit)
		f.config.Guard.Hold, f.config.Guard.DriftFactor = c.operator, 0.02
		if err := f.tell(parsedMap(t, "3:a>b")); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got, want := f.guard(), c.want+drift.Allowance(c.want, 0.02); got != want {
			t.Errorf("%s: names are in no group for %v, want %v", what, got, want)
		}
	}
}

// The table of what is left of the guard, by how much of it has passed at each of six masters.
func TestS83_the_guard_has_passed_by_the_clocks_of_most_masters(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		passed [6]time.Duration
		want   time.Duration
	}{
		{[6]time.Duration{}, 10 * second},
		{[6]time.Duration{4 * second, 4 * second, 4 * second, 4 * second, 4 * second, 4 * second}, 6 * second},
		{[6]time.Duration{10 * second, 10 * second, 10 * second, 10 * second, 10 * second, 10 * second}, 0},
		{[6]time.Duration{time.Hour, time.Hour, time.Hour, time.Hour, time.Hour, time.Hour}, 0},
		{[6]time.Duration{time.Hour, time.Hour, time.Hour, 10 * second, 10 * second, 10 * second}, 0},
		{[6]time.Duration{time.Hour, time.Hour, second, second, second, second}, 9 * second},              // two were set forward
		{[6]time.Duration{time.Hour, second, time.Hour, second, time.Hour, second}, 9 * second},           // half of them are no majority
		{[6]time.Duration{-time.Hour, -time.Hour, 10 * second, 10 * second, 10 * second, 10 * second}, 0}, // two were set back
	} {
		f, _ := someGroups(t, "3:a>b", "ab", nil)
		f.hold, f.began = 10*second-drift.Allowance(0, 0), map[string]time.Time{}
		f.config.Guard.DriftFactor = 1e-12
		for i, s := range f.all() {
			f.began[s.addr] = s.seen.Time
			s.seen.Time = s.seen.Time.Add(c.passed[i])
		}
		if got := f.rest().Round(time.Millisecond); got != c.want {
			t.Errorf("%v have passed: %v are left, want %v", c.passed, got, c.want)
		}
	}
}

// S83: two masters of a group are slow to take the map. They are a quorum, which grants by the map of
// before until they do, and the operator's clock is fast: it asks at once whether the guard has passed.
func TestS83_the_guard_begins_when_the_last_master_tells_the_map(t *testing.T) {
	f, _ := someGroups(t, "2:a", "ab", func(all map[string][]*fake) {
		all["b"][1].before = func(cmd *wire.Command) {
			if cmd.Script == wire.ScriptMarker && cmd.Args[1] != "" {
				*all["b"][1].now = all["b"][1].now.Add(2 * hold)
			}
		}
	})
	if err := errors.Join(f.tell(parsedMap(t, "3:a>b")), f.start(), f.each((*site).look)); err != nil {
		t.Fatal(err)
	}
	if rest := f.rest(); rest < hold {
		t.Errorf("%v are left of the guard, want at least %v", rest, hold)
	}
}

// The table of the map that follows, by what six masters tell and the groups that are wanted.
func TestS83_the_next_map(t *testing.T) {
	all := func(text string) []string { return slices.Repeat([]string{text}, 6) }
	but := func(text, other string) []string { return append(all(text)[:5], other) }
	for _, c := range []struct {
		why   string
		told  []string
		over  string
		want  string
		error string
	}{
		{"the first one", all(""), "ab", "1:>a,b", ""},
		{"in whatever order the groups are given", all(""), "ba", "1:>a,b", ""},
		{"a group comes", all("2:a"), "ab", "3:a>a,b", ""},
		{"nothing changes", all("2:a,b"), "ba", "2:a,b", ""},
		{"an operator has been killed before all masters told that names move", but("2:a", "3:a>b"), "b", "3:a>b", ""},
		{"two have been killed, who wanted something else", but("3:a>b", "3:a>a,b"), "b", "4:a>b", ""},
		{"before the last one told that they have moved", but("3:a>b", "4:b"), "b", "4:b", ""},
		{"and another one wants something else", but("2:a", "3:a>b"), "ab", "", "moving to the groups b"},
		{"and wants it after the names have moved", but("3:a>b", "4:b"), "a", "5:b>a", ""},
		{"a master has forgotten the map", but("2:a", ""), "b", "3:a>b", ""},
		{"a second operator came too late", but("4:b", "4:a>b"), "b", "5:b", ""},
		{"a group has names that is not given", all("2:a,c"), "ab", "", `"c": its masters must be given`},
		{"names move to a group that is not given", all("3:a>c"), "c", "", `"c": its masters must be given`},
		{"names move from a group that is not given", all("3:c>a"), "a", "", `"c": its masters must be given`},
	} {
		f, masters := someGroups(t, "", "ab", nil)
		for i, s := range f.all() {
			s.marker.Group.Map = c.told[i]
			masters[s.group.Name][i%3].marker = s.marker.String()
		}
		m, err := f.plan(strings.Split(c.over, ""))
		if err == nil {
			err = f.tell(m)
		}
		switch {
		case c.error != "":
			if err == nil || !strings.Contains(err.Error(), c.error) {
				t.Errorf("%s: the map is %q, %v, want an error that says %q", c.why, m, err, c.error)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		if m.String() != c.want || len(f.results) != 6 {
			t.Errorf("%s: the map is %q, want %q; told %q", c.why, m, c.want, f.results)
		}
		for _, s := range f.all() {
			if got := masters[s.group.Name][s.index].stored(t).Group; got.Map != c.want || got.Name != s.group.Name {
				t.Errorf("%s: master %s is marked %q, want the map %q", c.why, s.addr, got, c.want)
			}
		}
	}
}

// The table of which map replaces which. Of two operators at a time one fails.
func TestS83_a_map_replaces_only_those_before_it(t *testing.T) {
	for told, ok := range map[string]bool{"": true, "2:a": true, "3:b": true, "4:a>b": true, "4:b>a": false, "4:b": false, "5:a": false} {
		f, all := someGroups(t, told, "ab", nil)
		err := errors.Join(f.tell(parsedMap(t, "4:a>b")), f.tell(parsedMap(t, "4:a>b")))
		if (err == nil) != ok || !ok && all["b"][2].stored(t).Group.Map != told {
			t.Errorf("over %q: %v; the map is %q", told, err, all["b"][2].stored(t).Group.Map)
		}
		if ok && len(f.results) != 6 {
			t.Errorf("over %q: told %q", told, f.results)
		}
	}
}

// S83: an operator is slow. Another one has told all masters another map since, and then one master forgot
// the map. It must not be told the map of the slow one, which has the same number.
func TestS83_a_master_that_has_forgotten_the_map_since_it_was_looked_at_is_told_no_other(t *testing.T) {
	f, all := someGroups(t, "2:a,b", "ab", nil)
	for _, ms := range all {
		for _, m := range ms {
			marker := m.stored(t)
			marker.Group.Map = "3:a,b>a"
			m.marker = marker.String()
		}
	}
	all["b"][1].marker = ""
	err := f.tell(parsedMap(t, "3:a,b>b"))
	if err == nil || !strings.Contains(err.Error(), "has lost its map") {
		t.Errorf("it is told another map: %v", err)
	}
	for _, m := range all["b"] {
		if got := m.stored(t).Group.Map; got == "3:a,b>b" {
			t.Errorf("a master has the map %q", got)
		}
	}
}

// S83: one master was looked at before another operator told a map, and another one when it had forgotten
// that map. Before anything is planned all are looked at once more.
func TestS83_the_map_is_planned_by_what_all_masters_tell_at_one_time(t *testing.T) {
	f, all := someGroups(t, "2:a,b", "ab", nil)
	for _, m := range slices.Concat(all["a"], all["b"][:2]) {
		marker := m.stored(t)
		marker.Group.Map = "3:a,b>a"
		m.marker = marker.String()
	}
	if m, err := f.plan([]string{"b"}); err == nil {
		t.Errorf("names move by %s, and another operator moves them elsewhere", m)
	}
}

// A master without a marker has one of its run then, whose memory begins with it.
func TestSpread_marks_a_master_that_has_no_marker(t *testing.T) {
	f, all := someGroups(t, "2:a", "ab", func(all map[string][]*fake) { all["b"][0].marker = "" })
	if err := f.tell(parsedMap(t, "3:a>b")); err != nil {
		t.Fatal(err)
	}
	if m := all["b"][0].stored(t); m.RunID != all["b"][0].run || !m.Since.IsZero() || m.New || m.Group != f.sites["b"][0].marker.Group {
		t.Errorf("it is marked %v", m)
	}
}

// A client changes the marker whenever it is to be replaced.
func TestSpread_gives_up_where_a_marker_keeps_changing(t *testing.T) {
	for changes, want := range map[int]string{0: "", maxMarks - 1: "", maxMarks: "keep changing"} {
		left := changes
		f, _ := someGroups(t, "2:a", "ab", func(all map[string][]*fake) {
			m := all["b"][1]
			m.before = func(cmd *wire.Command) {
				if cmd.Script == wire.ScriptMarker && cmd.Args[1] != "" && left > 0 {
					left--
					marker, _ := guard.ParseMarker(m.marker)
					marker.Nonce = strings.Repeat("n", 1+left)
					m.marker = marker.String()
				}
			}
		})
		err := f.tell(parsedMap(t, "3:a>b"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("changed %d times: %v", changes, err)
		}
	}
}

// Each key that is taken over is of a name.
func TestS51_a_lasting_key_is_of_a_name(t *testing.T) {
	for key, want := range map[string]string{
		"redlock:token:orders":     "orders",
		"redlock:token:orders:1":   "orders:1",
		"redlock:permits:jobs":     "jobs",
		"redlock:latch::done":      "done",
		"redlock:latch:2:done":     "done",
		"redlock:latch:2:done:now": "done:now",
		"redlock:permits:latch:a":  "latch:a",
	} {
		for _, prefix := range []string{"", "app:"} {
			if got := nameIn(prefix+key, prefix); got != want {
				t.Errorf("%q with the prefix %q is of %q, want %q", prefix+key, prefix, got, want)
			}
		}
	}
}

// The table of which group learns what, of a name that the map a,b has in a, and b and c in b.
func TestS51_the_new_owner_learns_what_the_old_one_knows(t *testing.T) {
	name := ""
	for i := 0; ; i++ {
		name = fmt.Sprint("orders-", i)
		if spread.Highest([]string{"a", "b"}, name) == "a" && spread.Highest([]string{"b", "c"}, name) == "b" {
			break
		}
	}
	for _, c := range []struct {
		why, text, knows string
		learn            string // which groups
	}{
		{"its group goes", "3:a,b>b,c", "a", "b"},
		{"its group goes, and another one knows it of old", "3:a,b>b,c", "ac", "b"},
		{"another group knows it of old", "3:a,b>b,c", "c", ""},
		{"it stays", "3:a,b>a,b,c", "a", ""},
		{"its group had it before there was a map", "1:>a,b", "a", ""},
		{"another group had it before there was a map", "1:>a,b", "c", "a"},
		{"two groups had it before there was a map", "1:>a,b", "bc", "a"},
	} {
		f, all := someGroups(t, "2:a,b", "abc", func(all map[string][]*fake) {
			for group, masters := range all {
				if strings.Contains(c.knows, group) {
					masters[1].keys["redlock:token:"+name] = "7"
					masters[2].sets["redlock:latch:g:"+name] = []string{"x"}
				}
			}
		})
		if err := f.move(parsedMap(t, c.text)); err != nil {
			t.Fatalf("%s: %v", c.why, err)
		}
		var learned []string
		for group, masters := range all {
			tokens, arrivals := 0, 0
			for _, each := range masters {
				tokens += len(each.arguments(wire.ScriptInherit))
				arrivals += len(each.arguments(wire.ScriptLatchWrite))
			}
			if tokens != arrivals || tokens%3 != 0 {
				t.Errorf("%s: the masters of %s learn %d tokens and %d arrivals, want all or none", c.why, group, tokens, arrivals)
			}
			if tokens > 0 {
				learned = append(learned, group)
			}
		}
		slices.Sort(learned)
		if got := strings.Join(learned, ""); got != c.learn {
			t.Errorf("%s: the groups %q learn of it, want %q", c.why, got, c.learn)
		}
	}
}

// S51: what a master of the old group cannot tell would be missing in the new one.
func TestS51_nothing_moves_past_a_master_that_does_not_tell_what_it_knows(t *testing.T) {
	f, all := someGroups(t, "3:a>b", "ab", func(all map[string][]*fake) {
		all["a"][1].refuses = func(cmd *wire.Command) string {
			if cmd.Name == "SCAN" {
				return "LOADING Redis is loading the dataset in memory"
			}
			return ""
		}
	})
	if err := f.move(parsedMap(t, "3:a>b")); err == nil || !strings.Contains(err.Error(), "LOADING") {
		t.Errorf("%v, want that a master is loading", err)
	}
	for _, m := range all["b"] {
		if n := len(m.arguments(wire.ScriptInherit)); n > 0 {
			t.Errorf("a master learns %d tokens", n)
		}
	}
}
