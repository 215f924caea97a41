package simulate_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/simulate"
)

// The page shows what the text says: whoever holds the lock has a lane, the masters have
// the keys of every lock, and each fault in the list has its number in the picture.
func TestThe_page_shows_what_the_text_says(t *testing.T) {
	r, err := simulate.Run(simulate.Config{Seeds: 1, Lock: simulate.MultiLock, Faults: simulate.Assumed, Duration: 20e9}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tl, err := r.ReplaySeed(0)
	if err != nil {
		t.Fatal(err)
	}
	var text, page bytes.Buffer
	if err := tl.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := tl.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	holders := regexp.MustCompile(`(client \d+) +HOLDS`).FindAllStringSubmatch(text.String(), -1)
	keys := regexp.MustCompile(`\+ (key of client \d+ \(lock\d\))`).FindAllStringSubmatch(text.String(), -1)
	if len(holders) == 0 || len(keys) == 0 {
		t.Fatalf("the text has %d holds and %d keys of further locks:\n%s", len(holders), len(keys), &text)
	}
	for _, h := range holders {
		if lane := `dy="20">` + h[1] + "<"; !strings.Contains(page.String(), lane) {
			t.Errorf("%s has no lane", h[1])
		}
	}
	for _, k := range keys {
		if !strings.Contains(page.String(), k[1]) {
			t.Errorf("no master has the %s", k[1])
		}
	}
	for i, f := range tl.Schedule.Faults {
		if numbered := fmt.Sprintf(`class="number"[^>]*>(\d+ )*%d[ <]`, i+1); !regexp.MustCompile(numbered).MatchString(page.String()) {
			t.Errorf("fault %d has no number: %v", i+1, f)
		}
	}
}

// Faults that are not in the schedule as they strike have a number as well: seed 9 has some in
// the middle of a call. Nothing has the number 0.
func TestThe_page_numbers_every_fault_that_strikes(t *testing.T) {
	r, err := simulate.Run(simulate.Config{Seed: 9, Seeds: 1, Lock: simulate.SemaphoreLock, Faults: simulate.Assumed, Duration: 10e9}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tl, err := r.ReplaySeed(9)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := tl.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	if known := len(tl.Schedule.Faults); strings.Count(page.String(), "<li>") <= known {
		t.Errorf("the page lists no more than the %d faults of the schedule", known)
	}
	if regexp.MustCompile(`class="number"[^>]*>(\d+ )*0[ <]`).MatchString(page.String()) {
		t.Error("a fault has the number 0, which is not in the list")
	}
}

// The lanes of the masters have every permit and every reader.
func TestThe_page_shows_what_masters_store_of_every_kind(t *testing.T) {
	for lock, stored := range map[simulate.LockKind]string{
		simulate.SemaphoreLock: `\+ (permit \d+ of client \d+)`,
		simulate.ReadWriteLock: `\+ (client \d+ as a reader)`,
	} {
		t.Run(string(lock), func(t *testing.T) {
			r, err := simulate.Run(simulate.Config{Seeds: 1, Lock: lock, Faults: simulate.Assumed, Duration: 20e9}, nil)
			if err != nil {
				t.Fatal(err)
			}
			tl, err := r.ReplaySeed(0)
			if err != nil {
				t.Fatal(err)
			}
			var text, page bytes.Buffer
			if err := errors.Join(tl.WriteText(&text), tl.WriteHTML(&page)); err != nil {
				t.Fatal(err)
			}
			found := regexp.MustCompile(stored).FindAllStringSubmatch(text.String(), -1)
			if len(found) == 0 {
				t.Errorf("the text has none:\n%s", &text)
			}
			for _, s := range found {
				if in := regexp.MustCompile(`class="key owner\d"[^>]*><title>[A-Z]: ` + s[1]); !in.MatchString(page.String()) {
					t.Errorf("no master has %s", s[1])
				}
			}
		})
	}
}
