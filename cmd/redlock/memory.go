package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// memory is the record of a master's memory in its marker: clients let a master vote when
// it has forgotten nothing for the longest time that any lock lasts.
type memory struct {
	rest  time.Duration // until it votes; zero: it does
	why   string        // it does not
	group guard.GroupID // of masters, as the marker has it
	trace trace         // what clients have left there
	isNew bool          // an operator declared it new just now
	inUse bool          // it is marked, and not by an init that may have failed halfway
}

// trace is what clients have left at a master that does not vote.
type trace int

const (
	untouched trace = iota // nothing: it may be new
	outdated               // it forgot its marker, if it had one: the next client begins to count
	counting               // a marker that says since when it remembers
)

// votes says when the master will vote, and so what to do about it.
func (t trace) votes(rest time.Duration) string {
	switch t {
	case counting:
		return "It votes in " + cli.Seconds(rest) + "."
	case outdated:
		return "It votes " + cli.Seconds(rest) + " after the next client has seen it."
	}
	return "It votes " + cli.Seconds(rest) + " after the first client has seen it. If it never held a lock: redlock init, before that."
}

func (m memory) String() string {
	return fmt.Sprintf("must not grant for another %s: %s", cli.Seconds(m.rest), m.why)
}

// errNoMarker: something else is stored where a master has its marker.
var errNoMarker = errors.New("is not a marker of ours")

// recall reads the marker, and changes nothing: that is for clients.
func recall(ctx context.Context, m *node.Master, prefix string, ours time.Duration) (memory, error) {
	stored, err := ask(ctx, m, "GET", wire.MarkerKey(prefix))
	if errors.Is(err, &wire.ServerError{Code: "WRONGTYPE"}) {
		return memory{}, errNoMarker
	}
	if err != nil {
		return memory{}, err
	}
	marker, err := guard.ParseMarker(text(stored))
	if err != nil {
		return memory{}, errNoMarker
	}
	reply, err := ask(ctx, m, "TIME")
	if err != nil {
		return memory{}, err
	}
	clock := texts(reply)
	if len(clock) != 2 {
		return memory{}, fmt.Errorf("TIME: unexpected answer")
	}
	return judgeMemory(marker, m.Status().RunID, time.Unix(number(clock[0]), number(clock[1])*1000), ours), nil
}

// judgeMemory compares the marker with the run of the server that has it now.
func judgeMemory(marker guard.Marker, run string, now time.Time, ours time.Duration) memory {
	hold := max(ours, marker.Hold)
	isNew := marker.JustDeclared(now)
	mem := memory{isNew: isNew, inUse: marker.RunID != "" && !isNew, group: marker.Group}
	switch age := now.Sub(marker.Since); {
	case marker.RunID == "":
		mem.rest, mem.why = hold, "no client has marked it"
	case marker.RunID != guard.UnknownRun && run != "" && marker.RunID != run:
		mem.rest, mem.trace, mem.why = hold, outdated, "it restarted"
	case marker.Since.IsZero():
		mem.rest, mem.trace, mem.why = hold, outdated, "its marker does not say how far back it remembers"
	case age < hold:
		mem.rest, mem.trace, mem.why = hold-age, counting, "its memory is "+max(0, age).Round(time.Second).String()+" old"
	}
	return mem
}

// memories asks all masters. A master that does not answer has none. It returns as well the
// group of masters that a client with these flags means.
func (m *masters) memories(ctx context.Context, ours time.Duration) (map[string]memory, guard.GroupID) {
	all := map[string]memory{}
	f, err := m.open()
	if err != nil {
		return all, guard.GroupID{}
	}
	defer f.Close()
	found := make([]memory, len(f))
	f.each(ctx, func(i int, master *node.Master, err error) {
		if err == nil {
			found[i], _ = recall(ctx, master, m.Prefix, ours)
		}
	})
	for i, master := range f {
		all[master.Addr()] = found[i]
	}
	return all, m.group(f)
}
