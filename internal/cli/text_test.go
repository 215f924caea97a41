package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// What others wrote must neither command a terminal nor mislead its reader.
func TestNothing_unprintable_reaches_a_terminal(t *testing.T) {
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
		if got := Plain(s); got != want {
			t.Errorf("plain(%q) = %q, want %q", s, got, want)
		}
		var out strings.Builder
		if err := WriteJSON(&out, s); err != nil {
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

func TestLines_are_cut_to_the_terminal(t *testing.T) {
	if got := Cut("äöüäöü", 4); got != "äöü…" {
		t.Errorf("got %q", got)
	}
	if got := Cut("äöü", 3); got != "äöü" {
		t.Errorf("got %q", got)
	}
}

// An error on a terminal stays within its width, and each master has a line.
func TestErrors_fit_the_terminal(t *testing.T) {
	refusal := multierror.Append(nil,
		&wire.Error{Node: "redis-1.example.com:6379", Err: errors.New("not new: it was marked 6s ago; it may vote in 24s")},
		&wire.Error{Node: "redis-2.example.com:6379", Err: errors.New("not new: it was marked 6s ago; it may vote in 24s")})
	refusal.ErrorFormat = func(all []error) string { return all[0].Error() + "; " + all[1].Error() }
	for _, test := range []struct {
		err  error
		want []string
	}{
		{fmt.Errorf("redlock: init: %w", refusal), []string{
			"redlock: init:\n  redis-1.example.com:6379: not new:", "\n  redis-2.example.com:6379: not new:"}},
		{errors.New("redlock: node address \"foo:***\": must be host:port; IPv6 addresses go in brackets: [::1]:6379"), []string{"\n  brackets: [::1]:6379"}},
		{fmt.Errorf("redlock: lock %q: timed out, last attempt: %w", "nightly-report", &redlock.Error{Op: "lock", Name: "nightly-report", Err: redlock.ErrNoQuorum,
			Votes: []redlock.Vote{{Node: "a:1", Vote: quorum.Pending}, {Node: "b:1", Vote: quorum.Refused}}}), []string{"\n  a:1  pending\n", "\n  b:1  refused\n"}},
		{&redlock.Error{Op: "lock", Name: "nightly-report", Err: redlock.ErrNoQuorum, Votes: []redlock.Vote{
			{Node: "a:1", Vote: quorum.Failed, Err: errors.New("quarantined for another 24.785s: its marker says that it was new, emptied or restarted lately")},
			{Node: "b:1", Vote: quorum.Failed, Err: errors.New("quarantined for another 24.783s: its marker says that it was new, emptied or restarted lately")}}},
			[]string{"\n  all masters  quarantined for another 25s: its marker says that it was new,\n"}},
	} {
		var out strings.Builder
		explain(&out, test.err, 80)
		clitest.WantColumns(t, out.String(), 80)
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in:\n%s", want, &out)
			}
		}
	}
}

// In a log, an error is one line that says once what several masters said.
func TestAn_error_in_a_log_says_once_what_many_masters_said(t *testing.T) {
	quarantined := func(node, rest string) redlock.Vote {
		return redlock.Vote{Node: node, Vote: quorum.Failed, Err: errors.New("quarantined for another " + rest + ": it restarted")}
	}
	failed := &redlock.Error{Op: "lock", Name: "n", Err: redlock.ErrNoQuorum,
		Votes: []redlock.Vote{quarantined("a:1", "24.785s"), {Node: "b:1", Vote: quorum.Granted}, quarantined("c:1", "24.783s")}}
	var out strings.Builder
	Complain(&out, fmt.Errorf("not now: %w", failed))
	want := `redlock: not now: lock "n": no quorum (1 of 3 granted, 2 needed: a:1, c:1 quarantined for another 25s: it restarted; b:1 granted)` + "\n"
	if out.String() != want {
		t.Errorf("it says\n%swant\n%s", &out, want)
	}
	failed.Votes = append(failed.Votes[:1], failed.Votes[2])
	out.Reset()
	Complain(&out, failed)
	if !strings.Contains(out.String(), "needed: all masters quarantined for another 25s: it restarted)") {
		t.Errorf("it says\n%s", &out)
	}
}

// Five new masters were not started in the same second. They say one thing all the same, and
// how long ago that was is a range.
func TestAnswers_that_differ_in_durations_are_one_answer(t *testing.T) {
	failed := &redlock.Error{Op: "lock", Name: "n", Err: redlock.ErrNoQuorum}
	var log strings.Builder
	notices := &Notices{w: &log, resting: map[string]time.Time{}}
	for i, ago := range []string{"59s", "1m1s", "1m0s", "1m1s", "59s"} {
		node := fmt.Sprintf("master:%d", i)
		failed.Votes = append(failed.Votes, redlock.Vote{Node: node, Vote: quorum.Failed, Err: errors.New("quarantined for another 30s: it started " + ago + " ago")})
		slog.New(notices).Warn("redis master quarantined", "node", node, "for", 30*time.Second, "reason", "it started "+ago+" ago")
	}
	notices.Show()
	if n, want := strings.Count(log.String(), "\n"), "it started 59s to 1m1s ago"; n != 1 || !strings.Contains(log.String(), want) {
		t.Errorf("no %q in one line of\n%s", want, &log)
	}
	var terminal, line strings.Builder
	explain(&terminal, failed, 80)
	Complain(&line, failed)
	for said, want := range map[string]string{
		terminal.String(): "  all masters  quarantined for another 30s: it started 59s to 1m1s ago\n",
		line.String():     "all masters quarantined for another 30s: it started 59s to 1m1s ago)",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}

	// Where another master says something else, each keeps what it said.
	failed.Votes[4].Err = errors.New("connection refused")
	terminal.Reset()
	explain(&terminal, failed, 80)
	for _, want := range []string{"  master:0  quarantined for another 30s: it started 59s ago\n", "  master:4  connection refused\n"} {
		if !strings.Contains(terminal.String(), want) {
			t.Errorf("no %q in\n%s", want, &terminal)
		}
	}
}

// A master that told who leads, or what it has, granted nothing.
func TestA_master_that_only_answered_did_not_grant(t *testing.T) {
	failed := &redlock.Error{Op: "list", Err: redlock.ErrNoQuorum, Votes: []redlock.Vote{
		{Node: "a:1", Vote: quorum.Granted}, {Node: "b:1", Vote: quorum.Failed, Err: node.ErrDown}, {Node: "c:1", Vote: quorum.Failed, Err: node.ErrDown}}}
	for _, columns := range []int{0, 80} {
		var out strings.Builder
		if columns > 0 {
			explain(&out, failed, columns)
		} else {
			Complain(&out, failed)
		}
		if !strings.Contains(out.String(), "answered") || strings.Contains(out.String(), "granted") {
			t.Errorf("it says\n%s", &out)
		}
	}
}

// A reply that only a program understands is put into words.
func TestA_refusal_for_its_permits_is_put_into_words(t *testing.T) {
	v := redlock.Vote{Node: "a:1", Vote: quorum.Failed, Err: &wire.ServerError{Code: "PERMITS", Message: "PERMITS 4"}}
	if got := saying(v); got != "set to 4 permits" {
		t.Errorf("it says %q", got)
	}
}

// Masters that have another number of permits were not to grant any, so nothing is said
// of how many did.
func TestAnother_number_of_permits_is_no_matter_of_a_majority(t *testing.T) {
	refused := &wire.ServerError{Code: "PERMITS", Message: "PERMITS 4"}
	failed := &redlock.Error{Op: "lock", Name: "gpu", Err: redlock.ErrPermits,
		Votes: []redlock.Vote{{Node: "a:1", Vote: quorum.Failed, Err: refused}, {Node: "b:1", Vote: quorum.Failed, Err: refused}}}
	var out strings.Builder

	explain(&out, failed, 80)

	if strings.Contains(out.String(), "needed") || !strings.Contains(out.String(), "all masters  set to 4 permits") {
		t.Errorf("it says\n%s", &out)
	}
}
