package main

import "testing"

// A terminal shows for how much longer, in one line, and keeps nothing of it.
func TestGroups_apply_counts_down_at_a_terminal(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	c := all.apply(t, "a,b")
	tty := c.AtTerminal()
	tty.Shows("names are moving: nobody gets them for another 2s")
	tty.Shows("another 1s")
	c.WantExit(0)
	tty.Shows("\r\x1b[K" + all["a"][0].Addr() + ": of group a, has the map 2:a,b")
	all.wantMap(t, "2:a,b")
}
