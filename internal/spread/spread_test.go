package spread

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestMap_is_stored_and_read(t *testing.T) {
	for _, s := range []string{"", "1:>a", "2:a", "3:a>a,b", "4:a,b", "12:a,b,c>b,c"} {
		m, err := Parse(s)
		if err != nil || m.String() != s {
			t.Errorf("%q: %q, %v", s, m, err)
		}
	}
	for _, s := range []string{"a", "0:a", "-1:a", "01:a", "x:a", "1:a,a", "1:a@b", "1:a:b", "1:a>b>c", "1:,a", "1:a ", "1:a>b,"} {
		if m, err := Parse(s); err == nil {
			t.Errorf("%q: is read as %+v", s, m)
		}
	}
}

// Where a name is belongs to the protocol: other versions must find it there, too.
func TestOwner_never_changes(t *testing.T) {
	m := Map{Number: 2, Groups: []string{"a", "b", "c"}}
	for name, want := range map[string]string{"": "c", "job": "c", "order:4711": "a", "order:4712": "a", "日本": "b"} {
		if got := m.Owner(name); got != want {
			t.Errorf("%q: group %q, want %q", name, got, want)
		}
	}
}

// A group that comes takes names from all others and moves no other name, and gets its share.
func TestOwner_moves_only_the_names_that_must_move(t *testing.T) {
	before, after := Map{Number: 2}, Map{Number: 4}
	for i := range 9 {
		before.Groups = append(before.Groups, fmt.Sprint("group", i))
	}
	after.Groups = append(slices.Clone(before.Groups), "new")
	const names = 100_000
	had, gets := map[string]int{}, 0
	for i := range names {
		name := fmt.Sprint("order:", i)
		was, is := before.Owner(name), after.Owner(name)
		had[was]++
		switch {
		case is == "new":
			gets++
		case is != was:
			t.Fatalf("%s moves from %s to %s", name, was, is)
		}
		if moving := before.Toward(after.Groups).Owner(name); moving != is && moving != "" || (moving == "") != (is != was) {
			t.Fatalf("%s is in %q while it moves from %s to %s", name, moving, was, is)
		}
	}
	had["new"] = gets * 10 / 9 // of ten groups
	for g, n := range had {
		if share := float64(n) * 9 / names; math.Abs(share-1) > 0.05 {
			t.Errorf("group %s has %.2f of its share", g, share)
		}
	}
}

func TestNo_two_maps_in_a_row_give_one_name_to_two_groups(t *testing.T) {
	m := Map{}
	for i, groups := range [][]string{{"a"}, {"b", "a"}, {"c", "a", "b"}, {"c"}, {"d", "e"}} {
		moving := m.Toward(groups)
		settled := moving.Settle()
		if moving.Number != 2*i+1 || moving.Settled() || !settled.Settled() || !moving.Newer(m) || !settled.Newer(moving) || m.Newer(moving) {
			t.Errorf("%q, %q, %q", m, moving, settled)
		}
		for n := range 1000 {
			name := fmt.Sprint(n)
			if o := moving.Owner(name); o != "" && (o != m.Owner(name) || o != settled.Owner(name)) {
				t.Errorf("%s: %q, %q, %q", name, m.Owner(name), o, settled.Owner(name))
			}
		}
		m = settled
	}
	one, other := Map{1, nil, []string{"a"}}, Map{1, nil, []string{"b"}}
	if one.Newer(other) == other.Newer(one) || one.Newer(one) {
		t.Error("of two maps with one number no one is the newest")
	}
}

func TestCheck_names_what_cannot_stand_in_a_map(t *testing.T) {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprint("group", i))
	}
	for _, groups := range [][]string{{""}, {"-"}, {"a,b"}, {"a b"}, {"a@1"}, {"a", "a"}, {"ä"}, many} {
		if Check(groups) == nil {
			t.Errorf("%.50q is allowed", groups)
		}
	}
	if err := Check([]string{"a", "b", "eu-west.1_x"}); err != nil {
		t.Error(err)
	}
}
