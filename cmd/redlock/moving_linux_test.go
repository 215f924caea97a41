package main

import "testing"

// A terminal shows for how much longer, in one line, and keeps nothing of it.
func TestGroups_apply_counts_down_at_a_terminal(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	c := all.command(t, "groups", "apply", "--guard", "2500ms")
	tty := c.AtTerminal()
	tty.Shows("names are moving: nobody gets them for another 3s")
	tty.Shows("another 2s")
	c.WantExit(0)
	tty.Shows("\r\x1b[K" + all["a"][0].Addr() + ": of group a, has the map 2:a,b")
	all.wantMap(t, "2:a,b")
}
