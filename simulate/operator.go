package simulate

import (
	"context"
	"slices"

	"github.com/quorumlock/quorumlock/node/operate"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// An operator takes a master that comes back without its memory for a new one, and runs
// redlock init: operate.Init, over connections of its own that take no time. It must refuse
// that beside masters in use, whatever those store just then. Another makes three masters
// five.

// operate runs operate.Init, if at least one master shows that a client has used it. If all
// masters have lost their memory, none can show that.
func (t *trial) operate() {
	used := slices.ContainsFunc(t.Masters, func(m *fleet.Master) bool { return !m.Unused() })
	unused := slices.ContainsFunc(t.Masters, (*fleet.Master).Unused)
	if !used && t.Schedule.Operated() {
		return
	}
	if _, err := operate.Init(context.Background(), fleet.Addresses(t.Masters), "", fleet.Office(t.Masters, t.Config.Guard(1))); err == nil && unused && t.Schedule.Operated() {
		t.Check.Report(tally.Violation{Kind: tally.Custom, What: "redlock init has declared a master new beside others that are in use"})
	}
}

// move makes all masters one group (operate.Regroup).
func (t *trial) move() {
	if _, err := operate.Regroup(context.Background(), fleet.Addresses(t.Masters), "", fleet.Office(t.Masters, t.Config.Guard(1))); err != nil {
		panic("simulate: redlock init --regroup: " + err.Error())
	}
}

// declareNew marks the masters that have no marker and no locks, as operate.Init would without
// its look at masters in use.
func (t *trial) declareNew() {
	for _, m := range t.Masters {
		if m.Marker() == "" && !m.MayBeNew() {
			return
		}
	}
	for _, m := range t.Masters {
		if m.Marker() == "" {
			m.DeclareNew(fleet.GroupOf(t.Masters), t.Config.Guard(1).Hold, false)
		}
	}
}
