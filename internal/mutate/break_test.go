package main

import (
	"errors"
	"strings"
	"testing"
)

func TestEvery_break_of_the_list_applies_to_the_sources(t *testing.T) {
	all, err := parse(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := applyAll("../..", all); err != nil {
		t.Error(err)
	}
	if len(all) < 100 {
		t.Errorf("%d breaks, want at least 100", len(all))
	}
}

const one = `== counting: half wins
a.go
 func f() int {
-return 2
+return 1
`

func parsed(t *testing.T, list string) *Break {
	t.Helper()
	all, err := parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func TestA_break_changes_its_line_whatever_the_indentation(t *testing.T) {
	got, err := parsed(t, one).apply("var x int\n\n\tfunc f() int {\n\t\treturn 2\n\t}\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := "var x int\n\nfunc f() int {\nreturn 1\n\t}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestA_break_that_does_not_apply_is_named(t *testing.T) {
	for source, want := range map[string]error{
		"func f() int {\nreturn 3\n}": errGone,
		"func f() int {":              errGone,
		"func f() int {\nreturn 2\n}\nfunc f() int {\nreturn 2\n}": errAmbiguous,
	} {
		_, err := parsed(t, one).apply(source)
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "a.go: half wins") {
			t.Errorf("%q: error %v, want %v with the file and what is broken", source, err, want)
		}
	}
}

func TestA_list_that_makes_no_sense_is_refused_with_its_line(t *testing.T) {
	for text, want := range map[string]string{
		"-x":                     "line 1",
		"== no class":            "line 1",
		"== a: b\n-x\n+y":        "line 1",
		"== a: b\nf.go\n-x\n+x":  "line 1",
		"== a: b\nf.go\nsurplus": "line 3",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one that says %q", text, err, want)
		}
	}
}

func TestShards_share_the_list_out(t *testing.T) {
	all := make([]*Break, 7)
	for i := range all {
		all[i] = &Break{line: i}
	}
	seen := map[int]int{}
	for i := range 3 {
		for _, b := range (shard{i + 1, 3}).of(all) {
			seen[b.line]++
		}
	}
	for i := range all {
		if seen[i] != 1 {
			t.Errorf("break %d is in %d parts", i, seen[i])
		}
	}
}

func TestA_shard_that_is_none_is_refused(t *testing.T) {
	for _, text := range []string{"", "1", "0/3", "4/3", "a/b", "1/0", "today"} {
		if err := new(shard).Set(text); err == nil {
			t.Errorf("-shard %q: no error", text)
		}
	}
	if err := new(shard).Set("today/10"); err != nil {
		t.Error(err)
	}
}
