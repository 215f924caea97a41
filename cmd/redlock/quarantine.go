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
// guard of another client. It returns true as soon as the masters have been declared new.
func (m *masters) sitOut(ctx context.Context, client *redlock.Client, guard time.Duration, w io.Writer) bool {
	ctx, end := m.untilHopeless(ctx, client)
	defer end()
	deadline := time.Now().Add(patienceOf(guard))
	for told := false; ; told = true {
		rest, ok := untilQuorum(client.Nodes())
		if !ok || rest == 0 || time.Now().Add(rest).After(deadline) {
			return false
		}
		if !told {
			cli.Complain(w, fmt.Errorf("masters that may have forgotten locks do not vote for another %v: waiting for them", rest.Round(100*time.Millisecond)))
		}
		select {
		case <-ctx.Done():
			return hopeless(ctx) == errDeclaredNew
		case <-time.After(min(rest, quarantineLook)):
		}
	}
}

// patienceOf is how long a quarantine may last that began just now, by a guard and its drift
// allowance.
func patienceOf(guard time.Duration) time.Duration { return guard + guard/50 + time.Second }

// errDeclaredNew: an operator has declared masters new that do not vote for our client.
var errDeclaredNew = errors.New("the masters have been declared new")

// hopeless returns why untilHopeless ended the context, or nil.
func hopeless(ctx context.Context) error {
	why := context.Cause(ctx)
	if why == errDeclaredNew || errors.As(why, new(*lackingRights)) {
		return why
	}
	return nil
}

// declaredLook is how often to look whether an operator has declared the masters new.
const declaredLook = time.Second

// untilHopeless returns a context that ends when waiting for the client's quarantine is in vain:
//
//   - An operator has declared a quorum of the masters new (redlock init, in another window). The
//     client goes on with its quarantine then, since a guard shortens none; a client that is
//     dialled now begins none. It ends so once: if the next client does not let them vote either,
//     there is another reason.
//   - The user lacks rights (*lackingRights): that looks like a quarantine without an end.
//
// Once a quorum votes it looks no longer, because the client may know of locks that a new one
// would not. end stops the looking.
func (m *masters) untilHopeless(ctx context.Context, client *redlock.Client) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if !passes(ctx, declaredLook) {
			return
		}
		if err := client.Healthy(); errors.Is(err, redlock.ErrNoQuorum) {
			if lacks := m.lackingRights(ctx, err); lacks != nil {
				cancel(lacks)
				return
			}
		}
		for !m.believed {
			if rest, ok := untilQuorum(client.Nodes()); ok && rest == 0 {
				return
			}
			if m.declaredNew(ctx) >= quorum.Size(len(client.Nodes())) {
				m.believed = true
				cancel(errDeclaredNew)
			}
			if !passes(ctx, declaredLook) {
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-over
	}
}

// passes waits, and reports whether the time has passed before ctx ended.
func passes(ctx context.Context, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}

// declaredNew counts the masters that an operator has declared new within the last minute.
func (m *masters) declaredNew(ctx context.Context) (count int) {
	ctx, cancel := context.WithTimeout(ctx, m.Patience())
	defer cancel()
	all, _ := m.memories(ctx, 0)
	for _, one := range all {
		if one.isNew {
			count++
		}
	}
	return count
}
