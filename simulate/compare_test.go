package simulate_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quorumlock/quorumlock/simulate"
)

func TestRedlock_as_it_is_commonly_written_breaks_where_this_library_does_not(t *testing.T) {
	c, err := simulate.Compare("R0", simulate.Config{Seeds: 100})
	if err != nil {
		t.Fatal(err)
	}

	if n := c.Naive.Stats.Violations[simulate.Overlap]; n == 0 {
		t.Error("R0 never has two holders: the comparison shows nothing")
	}
	if !c.Ours.Safe() {
		t.Errorf("the library: %v", c.Ours.Failures)
	}
	if c.Ours.Stats.Acquisitions < c.Naive.Stats.Acquisitions/2 {
		t.Errorf("%d locks acquired, and %d by R0", c.Ours.Stats.Acquisitions, c.Naive.Stats.Acquisitions)
	}
}

func TestBoth_of_a_comparison_run_the_same_schedules(t *testing.T) {
	t.Parallel()
	c, err := simulate.Compare("R0", simulate.Config{Seeds: 40, Seed: 40})
	if err != nil {
		t.Fatal(err)
	}

	if a, b := c.Naive.Stats.Faults, c.Ours.Stats.Faults; !reflect.DeepEqual(a, b) {
		t.Errorf("faults of R0 %v, of the library %v", a, b)
	}
	naive, ours, err := c.Timelines()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(naive.Schedule.Faults, ours.Schedule.Faults) || !reflect.DeepEqual(naive.Schedule.Actions, ours.Schedule.Actions) {
		t.Error("the two timelines are of different schedules")
	}
	if len(naive.Violations) == 0 || len(ours.Violations) > 0 {
		t.Errorf("R0 breaks %v, the library %v", naive.Violations, ours.Violations)
	}
}

func TestThe_comparisons_page_shows_both(t *testing.T) {
	c, err := simulate.Compare("V4b", simulate.Config{Seeds: 20})
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := c.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"V4b beside quorumlock", "<h2>V4b</h2>", "<h2>quorumlock</h2>", "No promise was broken.", "both hold"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// The page says how the naive lock came to break the promise in the schedule that
// it shows.
func TestThe_comparison_says_why_the_naive_lock_failed(t *testing.T) {
	t.Parallel()
	c := brokenByASuspension(t)
	var page bytes.Buffer
	if err := c.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	if want := "Its monotonic clock stood still while it was suspended, so it trusts a lease that has ended."; !strings.Contains(page.String(), want) {
		t.Errorf("the page does not say %q", want)
	}
}

// brokenByASuspension returns a comparison whose page shows a schedule in which only a
// suspended client makes the naive lock fail.
func brokenByASuspension(t *testing.T) *simulate.Comparison {
	t.Helper()
	suspensions := simulate.Only(simulate.ClientSuspend)
	for seed := uint64(0); seed < 600; seed += 2 {
		c, err := simulate.Compare("R0", simulate.Config{Seeds: 2, Seed: seed, Faults: suspensions})
		if err != nil {
			t.Fatal(err)
		}
		naive, _, err := c.Timelines()
		if err != nil {
			t.Fatal(err)
		}
		if naive != nil && len(naive.Schedule.Faults) == 1 && naive.Schedule.Faults[0].Kind == simulate.ClientSuspend {
			return c
		}
	}
	t.Fatal("no schedule shows what a suspension does to the naive lock")
	return nil
}

// Nobody may read that the library broke nothing in schedules that it never ran.
func TestA_comparison_that_was_cut_short_is_not_shown(t *testing.T) {
	const seeds = 64
	interrupt := make(chan struct{})
	afterTheNaiveOne := func(done int) {
		if done == seeds {
			close(interrupt)
		}
	}
	c, err := simulate.Compare("R0", simulate.Config{Seeds: seeds, Interrupt: interrupt, Progress: afterTheNaiveOne})
	if err != nil {
		t.Fatal(err)
	}
	if n := c.Ours.Stats.Schedules; c.Naive.Stats.Schedules != seeds || n == seeds {
		t.Fatalf("R0 ran %d schedules, the library %d: it was not cut short between them", c.Naive.Stats.Schedules, n)
	}

	for what, write := range map[string]func(io.Writer) error{"table": c.WriteText, "page": c.WriteHTML} {
		var shown bytes.Buffer
		if err := write(&shown); err == nil || !strings.Contains(err.Error(), "R0 ran 64 schedules, quorumlock") || shown.Len() > 0 {
			t.Errorf("the %s: error %v, and it shows\n%s", what, err, &shown)
		}
	}
}

func TestCompare_refuses_what_is_no_naive_lock(t *testing.T) {
	_, err := simulate.Compare("V9", simulate.Config{})
	if err == nil || !strings.Contains(err.Error(), `"V9"`) || !strings.Contains(err.Error(), "R0") {
		t.Errorf("%v; want V9 named, and what there is", err)
	}
}

// A count of locks is no broken promise, and of the promises one is what a lock is for.
func TestThe_comparison_says_what_matters(t *testing.T) {
	t.Parallel()
	c, err := simulate.Compare("V4b", simulate.Config{Seeds: 20})
	if err != nil {
		t.Fatal(err)
	}
	var text, page bytes.Buffer
	if err := errors.Join(c.WriteText(&text), c.WriteHTML(&page)); err != nil {
		t.Fatal(err)
	}
	table, below, _ := strings.Cut(text.String(), "\n\nThe first row matters most")
	if strings.Contains(table, "acquired") || !strings.Contains(below, "The lock was acquired") {
		t.Errorf("the locks that were acquired do not stand below the table:\n%s", &text)
	}
	for line := range strings.Lines(text.String()) {
		if n := utf8.RuneCountInString(line); n > 81 {
			t.Errorf("%d columns: %s", n-1, line)
		}
	}
	if !strings.Contains(page.String(), "The first row matters most") || strings.Contains(page.String(), "<td>locks acquired</td>") {
		t.Error("the page does not say what matters, or counts locks among the promises")
	}
}
