package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// What was explored until ^C is shown.
func TestExploreShowsWhatItHasWhenItIsInterrupted(t *testing.T) {
	c := redlockCommand(t, "simulate", "--explore", "fair-wait")
	table, err := os.Create(c.file("table"))
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	c.Stdout = table
	c.start()
	if heading := c.content("table"); !strings.Contains(heading, "seconds") {
		t.Fatalf("it begins with %q", heading)
	}

	c.signal(syscall.SIGINT)

	c.wantExit(exitSignal + int(syscall.SIGINT))
	if shown := c.content("table"); !strings.Contains(shown, "safe in the orders that were tried") {
		t.Errorf("it does not show what it has:\n%s", shown)
	}
	c.wantStderr("interrupted: 1 of 1 small worlds")
}

func TestExploreFitsEightyColumns(t *testing.T) {
	out, code := simulated("--explore", "--runs", "1")
	if code != exitFailure { // no break is found in a single order
		t.Errorf("exit code %d", code)
	}
	wantColumns(t, out, 80)
	words := strings.Join(strings.Fields(out), " ")
	if !strings.Contains(words, "a writer locks and unlocks while a reader waits") || !strings.Contains(words, "without its protection") {
		t.Errorf("something is missing:\n%s", out)
	}
}
