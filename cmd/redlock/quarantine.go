package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// quarantineLook is how often masters that do not vote yet are looked at again.
const quarantineLook = 100 * time.Millisecond

// untilQuorum returns when a quorum of the masters may vote, as far as quarantines keep
// them from it. Not ok: too few are connected.
func untilQuorum(masters []node.Status) (rest time.Duration, ok bool) {
	var rests []time.Duration
	for _, m := range masters {
		if m.State == node.StateConnected {
			rests = append(rests, m.Quarantine)
		}
	}
	need := quorum.Size(len(masters))
	if len(rests) < need {
		return 0, false
	}
	slices.Sort(rests)
	return rests[need-1], true
}

// isQuarantine reports whether a quarantine is the reason for ErrNoQuorum.
func isQuarantine(err error) bool {
	return errors.Is(err, redlock.ErrNoQuorum) && errors.Is(err, guard.ErrQuarantined)
}

// sitOut waits until a quorum of the masters may vote, and says so once. It does not
// wait for longer than the guard: not for masters that are down, and not for the longer
// guard of another client.
func sitOut(ctx context.Context, client *redlock.Client, guard time.Duration, w io.Writer) {
	deadline := time.Now().Add(guard + guard/50 + time.Second) // a guard that began just now, and its drift allowance
	for told := false; ; told = true {
		rest, ok := untilQuorum(client.Nodes())
		if !ok || rest == 0 || time.Now().Add(rest).After(deadline) {
			return
		}
		if !told {
			cli.Complain(w, fmt.Errorf("masters that may have forgotten locks do not vote for another %v: waiting for them", rest.Round(100*time.Millisecond)))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(rest, quarantineLook)):
		}
	}
}
