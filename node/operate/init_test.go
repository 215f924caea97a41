package operate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// now is when someMasters are looked at, but for some milliseconds.
var now = time.UnixMicro(1_714_564_800_000_000)

// initialize is Init of masters that are connected.
func (s sites) initialize() error {
	return errors.Join(s.each((*site).mustBeNew), s.mustBeginTogether())
}

// The table of which masters can be declared new: a, b and c. A string stands for what the
// error says.
func TestInit_rules(t *testing.T) {
	const used, began, waits, beside, empty = "was a replica", "started anew", "it may vote in", "so it may have forgotten locks", "keys that may be locks"
	used3 := markedIn("own", hold, "", letters(3)...)
	with := func(edit func(*guard.Marker)) guard.Marker { m := used3; edit(&m); return m }
	fresh := func(ago time.Duration) guard.Marker { // declared new so long ago
		return guard.NewMaster("own", now.Add(-ago), hold, guard.GroupOf("", letters(3)...))
	}
	met := func(ago time.Duration) guard.Marker { // by a client, for the first time
		return with(func(m *guard.Marker) { m.Since, m.Nonce = now.Add(-ago), "!n" })
	}
	young := with(func(m *guard.Marker) { m.Since = now.Add(-hold / 2) })
	other := with(func(m *guard.Marker) { m.Group = guard.GroupOf("", letters(5)...) })
	none := guard.Marker{}
	for what, c := range map[string]struct {
		markers [3]guard.Marker
		locks   []int // masters with a lock
		promo   string
		want    string
	}{
		"new ones":                              {},
		"one has a lock":                        {locks: []int{1}, want: empty},
		"all are in use and vote":               {markers: [3]guard.Marker{used3, used3, used3}},
		"all are in use, with locks":            {markers: [3]guard.Marker{used3, used3, used3}, locks: []int{0, 1, 2}},
		"all are in use, one is young":          {markers: [3]guard.Marker{used3, used3, young}, want: waits},
		"one is young by a longer guard":        {markers: [3]guard.Marker{used3, used3, with(func(m *guard.Marker) { m.Hold = 24 * time.Hour })}, want: "it may vote in 6h0m0s"},
		"one is young by our guard":             {markers: [3]guard.Marker{used3, used3, with(func(m *guard.Marker) { m.Since, m.Hold = now.Add(-hold/2), 1 })}, want: "it may vote in 30s"},
		"all are declared new, and in use":      {markers: [3]guard.Marker{fresh(time.Second), fresh(time.Second), fresh(time.Second)}, locks: []int{0, 1, 2}},
		"one of each, with a lock":              {markers: [3]guard.Marker{none, met(time.Second), fresh(time.Second)}, locks: []int{2}, want: empty},
		"another group":                         {markers: [3]guard.Marker{used3, used3, other}, want: "belongs to another group"},
		"of another run":                        {markers: [3]guard.Marker{with(func(m *guard.Marker) { m.RunID = "x" })}, want: began},
		"from before a promotion":               {markers: [3]guard.Marker{used3, used3, used3}, promo: "p1", want: used},
		"one is new beside two in use":          {markers: [3]guard.Marker{used3, used3, none}, want: beside},
		"two are new beside one in use":         {markers: [3]guard.Marker{used3, none, none}, want: "they have no marker, but another master is in use"},
		"one is new beside two, says how many":  {markers: [3]guard.Marker{used3, used3, none}, want: "2 other masters are in use"},
		"an Init failed halfway":                {markers: [3]guard.Marker{fresh(time.Second), fresh(time.Second), none}},
		"an Init failed halfway, with a lock":   {markers: [3]guard.Marker{fresh(time.Second), fresh(time.Second), none}, locks: []int{0}, want: empty},
		"an Init failed long ago":               {markers: [3]guard.Marker{fresh(time.Hour), fresh(time.Hour), none}, want: beside},
		"an Init failed in the future":          {markers: [3]guard.Marker{fresh(-time.Hour), fresh(-time.Hour), none}, want: beside},
		"a client has met them":                 {markers: [3]guard.Marker{met(time.Second), met(time.Second), met(time.Second)}},
		"a client has met them, and has a lock": {markers: [3]guard.Marker{met(time.Second), met(time.Second), met(time.Second)}, locks: []int{2}, want: empty},
		"a client has met them a guard ago":     {markers: [3]guard.Marker{met(hold), met(hold), none}, want: beside},
		"met beside others in use":              {markers: [3]guard.Marker{met(time.Second), used3, used3}, want: waits},
		"met beside one that is young":          {markers: [3]guard.Marker{met(time.Second), used3, young}, want: waits},
	} {
		s, _ := someMasters(t, 3, func(all []*fake) {
			for i, f := range all {
				if m := c.markers[i]; m.RunID != "" {
					m.RunID = strings.Replace(m.RunID, "own", f.run, 1)
					f.marker = m.String()
				}
				f.promo = c.promo
			}
			for _, i := range c.locks {
				all[i].keys["orders"], all[i].ttl["orders"] = "x", 1000
			}
		})
		err := s.initialize()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", what, err, c.want)
		}
	}
}

// The table of how a master is declared new whose marker others change just before.
func TestInit_declares_new_what_clients_only_met(t *testing.T) {
	group := guard.GroupOf("", "a")
	met := func(n int) guard.Marker {
		m := guard.NewMarker("run0", now)
		m.Hold, m.Nonce, m.Group = hold, fmt.Sprint("!", n), group
		return m
	}
	declared := guard.NewMaster("run0", now.Add(time.Millisecond), 0, group)
	inUse, others, otherRun := met(0), met(0), met(0)
	otherRun.RunID = "run1"
	inUse.Nonce, others.Group = "n0", guard.GroupOf("", "x", "y")
	for what, c := range map[string]struct {
		before  string
		becomes func(n int) guard.Marker // the nth time
		times   int
		promo   string
		want    string // an error, or the result
	}{
		"nobody has met it":              {want: "marked as new"},
		"it is met meanwhile":            {becomes: met, times: 1, want: "marked as new"},
		"it is met meanwhile, often":     {becomes: met, times: maxMarks - 1, want: "marked as new"},
		"it is met meanwhile, too often": {becomes: met, times: maxMarks, want: "keep changing"},
		"another Init is quicker":        {becomes: func(int) guard.Marker { return declared }, times: 1, want: "marked already"},
		"it is in use meanwhile":         {becomes: func(int) guard.Marker { return inUse }, times: 1, want: "marked just now"},
		"it was started anew":            {becomes: func(int) guard.Marker { return otherRun }, times: 1, want: "marked just now"},
		"it was a replica":               {becomes: met, times: 1, promo: "p1", want: "marked just now"},
		"another group is quicker":       {becomes: func(int) guard.Marker { return others }, times: 1, want: "belongs to another group"},
		"it was in use before":           {before: inUse.String(), want: "marked already"},
		"it was declared before":         {before: declared.String(), want: "marked already"},
	} {
		s, all := someMasters(t, 1, func(all []*fake) { all[0].marker, all[0].promo = c.before, c.promo })
		n := 0
		all[0].before = func(cmd *wire.Command) {
			if cmd.Args[1] != "" && n < c.times {
				all[0].marker = c.becomes(n).String()
				n++
			}
		}
		err := s[0].declareNew()
		if got := fmt.Sprint(s[0].result, err); !strings.Contains(got, c.want) || (err == nil) != strings.Contains(c.want, "marked a") {
			t.Errorf("%s: %q, %v; want %q", what, s[0].result, err, c.want)
		}
		if err == nil && s[0].result == "a: marked as new" && !all[0].stored(t).New {
			t.Errorf("%s: marked %v", what, all[0].stored(t))
		}
	}
}

// S15, S78: by their markers masters are told apart, though all clocks say the same.
func TestInit_declares_each_master_new_at_another_moment(t *testing.T) {
	s, _ := someMasters(t, 7, nil)
	told := map[string]bool{}
	for _, each := range s {
		each.seen.Time = now
		m := guard.NewMaster("", each.moment(), 0, guard.GroupID{})
		told[m.Memory()] = true
		if !m.JustDeclared(now) {
			t.Errorf("%s: not declared just now: %v", each.addr, m)
		}
	}
	if len(told) != len(s) {
		t.Errorf("%d masters have %d markers", len(s), len(told))
	}
}

// The table of which keys may be locks, with a prefix and without.
func TestInit_which_keys_may_be_locks(t *testing.T) {
	for _, c := range []struct {
		prefix, key string
		text        bool
		ttl         int64
		may         bool
	}{
		{"", "orders", true, 1, true},
		{"", "orders", true, 0, false},
		{"", "orders", true, -1, false},
		{"", "orders", false, 1000, false},
		{"", "redlock:readers:orders", false, 1000, true},
		{"", "redlock:marker", true, 1000, false},
		{"", "redlock:token:orders", true, 1000, false},
		{"", "redlock:permits:orders", true, 1000, false},
		{"", "redlock:latch:g:orders", false, 1000, false},
		{"", "redlock:arrivals:orders", true, 1000, false},
		{"", "redlock:digest:orders", true, 1000, false},
		{"", "redlock:leader:orders", true, 1000, false},
		{"", "redlock:clock", true, 1000, false},
		{"", "redlock:queue:orders", false, 1000, false},
		{"", "redlock:wait:orders", false, 1000, false},
		{"", "redlock:permitqueue:orders", false, 1000, false},
		{"", "redlock:permitwait:orders", false, 1000, false},
		{"", "redlock:intent:orders", false, 1000, false},
		{"", "redlock:slots:orders", false, 1000, true},
		{"", "redlock:kept:orders", true, 1000, true},
		{"", "redlock:asked:holder", true, 1000, true},
		{"", "token:orders", true, 1000, true},
		{"", "queue:orders", true, 1000, true},
		{"", "a", true, 1000, true},
		{"", "z", true, 1000, true},
		{"app:", "app:orders", true, -1, true},
		{"app:", "app:redlock:readers:orders", false, -1, true},
		{"app:", "app:redlock:token:orders", true, -1, false},
		{"app:", "app:redlock:queue:orders", false, -1, false},
		{"app:", "app:redlock:marker", true, -1, false},
		{"a[?*\\", "a[?*\\orders", true, -1, true},
		{"a*", "abc", true, 1000, false},
	} {
		s, _ := someMasters(t, 1, func(all []*fake) {
			if all[0].ttl[c.key] = c.ttl; c.text {
				all[0].keys[c.key] = "x"
			}
			for i := range 3 { // more than a page
				all[0].ttl[fmt.Sprint("redlock:token:", i)] = 1000
			}
		})
		s[0].config = &node.Config{KeyPrefix: c.prefix}
		if err := s[0].mustBeEmpty(); errors.Is(err, ErrNotNew) != c.may || !c.may && err != nil {
			t.Errorf("prefix %q, key %q with a TTL of %d: %v; may be a lock: %v", c.prefix, c.key, c.ttl, err, c.may)
		}
	}
}

// An error names a few of the keys.
func TestInit_names_five_keys(t *testing.T) {
	for _, prefix := range []string{"", "x"} {
		for n, more := range map[int]bool{5: false, 6: true} {
			s, all := someMasters(t, 1, nil)
			for i := range 6 {
				all[0].keys[fmt.Sprint("x", i+1)], all[0].ttl[fmt.Sprint("x", i+1)] = "v", 1000
			}
			s[0].config = &node.Config{KeyPrefix: prefix}
			found, err := s[0].locks(strings.Split("x1 x2 x3 x4 x5 x6", " ")[:n])
			if err != nil || len(found) != n || found[n-1] == "..." != more {
				t.Errorf("%q, %v", found, err)
			}
			if first := map[string]string{"": `"x1" (1s left)`, "x": `"x1"`}[prefix]; found[0] != first {
				t.Errorf("%s, want %s", found[0], first)
			}
		}
	}
}

// Keys without number take too long to look at.
func TestInit_refuses_a_master_with_too_many_keys(t *testing.T) {
	for _, last := range []int{1000, 1001} {
		s, all := someMasters(t, 1, nil)
		pages := 0
		all[0].scan = func(string) any {
			keys, next := make([]any, 1000), "more"
			if pages++; pages == maxKeys/1000 {
				keys, next = make([]any, last), "0"
			}
			for i := range keys {
				keys[i] = "redlock:token:a"
			}
			return []any{next, keys}
		}
		if err := s[0].mustBeEmpty(); errors.Is(err, ErrNotNew) != (last > 1000) {
			t.Errorf("%d keys: %v", maxKeys-1000+last, err)
		}
	}
}

// The errors of several masters are one line.
func TestOperators_are_told_of_all_masters_in_a_line(t *testing.T) {
	s, _ := someMasters(t, 2, nil)
	err := s.each(func(s *site) error { return errors.New("wrong with " + s.addr) })
	if err == nil || strings.ContainsAny(err.Error(), "\n\t*") || strings.Count(err.Error(), "; ") != 1 {
		t.Errorf("%v", err)
	}
}

// What a master must tell before anything is written there.
func TestOperators_refuse_what_is_no_master_of_ours(t *testing.T) {
	for what, c := range map[string]struct {
		edit func(*fake)
		want string
	}{
		"a replica":                 {func(f *fake) { f.role = "slave" }, "its role is slave"},
		"another program's marker":  {func(f *fake) { f.marker = "x" }, "is not a marker of ours"},
		"no clock":                  {func(f *fake) { f.timeless = true }, "does not tell the time"},
		"a user without rights":     {func(f *fake) { f.refuses = func(cmd *wire.Command) string { return "NOPERM no" } }, "NOPERM"},
		"a master":                  {func(*fake) {}, ""},
		"a server that has no role": {func(f *fake) { f.role = "" }, ""},
	} {
		s, all := someMasters(t, 1, nil)
		c.edit(all[0])
		if err := s[0].look(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", what, err, c.want)
		}
	}
	s, all := someMasters(t, 3, nil)
	for _, c := range []struct {
		runs string
		want bool
	}{{"x y z", false}, {"x y x", true}, {"- y -", false}} {
		for i, run := range strings.Fields(c.runs) {
			s[i].host.RunID = strings.Trim(run, "-")
		}
		if err := s.mustDiffer(); errors.Is(err, guard.ErrSameNode) != c.want {
			t.Errorf("the runs %s of %d servers: %v", c.runs, len(all), err)
		}
	}
}
