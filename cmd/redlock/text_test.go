package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// What others wrote must neither command a terminal nor mislead its reader.
func TestNothingUnprintableReachesATerminal(t *testing.T) {
	for s, want := range map[string]string{
		"plain, with ümläuts 語": "plain, with ümläuts 語",
		"\x1b[31mred":           `\x1b[31mred`,
		"two\nlines\r":          `two\nlines\r`,
		"\u009b31m":             `\u009b31m`,
		"abc\u202etxt":          `abc\u202etxt`,
		"\x7f":                  `\x7f`,
		"\xff\xfe":              `\xff\xfe`,
		"\U000e0001":            `\U000e0001`,
	} {
		if got := plain(s); got != want {
			t.Errorf("plain(%q) = %q, want %q", s, got, want)
		}
		var out strings.Builder
		if err := writeJSON(&out, s); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(strings.TrimSpace(out.String()), unprintable) {
			t.Errorf("JSON of %q: %q", s, out.String())
		}
		var back string
		if err := json.Unmarshal([]byte(out.String()), &back); err != nil || (back != s && s != "\xff\xfe") {
			t.Errorf("JSON of %q reads as %q, error %v", s, back, err)
		}
	}
}

func TestLinesAreCutToTheTerminal(t *testing.T) {
	if got := cut("äöüäöü", 4); got != "äöü…" {
		t.Errorf("got %q", got)
	}
	if got := cut("äöü", 3); got != "äöü" {
		t.Errorf("got %q", got)
	}
}
