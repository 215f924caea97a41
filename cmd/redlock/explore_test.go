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
	if heading := c.content("table"); !strings.Contains(heading, "verdict") {
		t.Fatalf("it begins with %q", heading)
	}

	c.signal(syscall.SIGINT)

	c.wantExit(exitSignal + int(syscall.SIGINT))
	if shown := c.content("table"); !strings.Contains(shown, "safe in the orders that were tried") {
		t.Errorf("it does not show what it has:\n%s", shown)
	}
	c.wantStderr("interrupted: 1 of 1 small worlds")
}
