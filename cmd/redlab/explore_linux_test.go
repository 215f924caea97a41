package main

import (
	"fmt"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/simulate/explore"
)

// A terminal shows which of the worlds is tried, so that one sees how many are left.
func TestExplore_shows_which_of_the_worlds_it_tries(t *testing.T) {
	c := clitest.New(t, "simulate", "--explore", "--runs", "10")
	tty := c.AtTerminal()
	tty.Shows(fmt.Sprintf("world 3 of %d: ", len(explore.Worlds)))
	tty.Shows(fmt.Sprintf("world 3 of %d without protection: ", len(explore.KnownBads)))
	c.Process.Kill()
	c.End()
}
