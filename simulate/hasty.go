package simulate

import (
	"context"

	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// hastily has an operator spread names by a wrong rule: without the map by which they are in no group, or
// without the wait.
func (t *trial) hastily(p *world.Routine, over []string) {
	moving := fleet.NewestMap(t.Masters).Toward(over)
	switch t.Config.Variant {
	case masters.MovesAtOnce:
		t.tellHastily(p, moving)
	case masters.MovesUntold:
		p.Sleep(context.Background(), 2*t.Config.RestartGuard)
	}
	t.tellHastily(p, moving.Settle())
}

// tellHastily has every master tell the map, one after another.
func (t *trial) tellHastily(p *world.Routine, m spread.Map) {
	for _, master := range t.Masters {
		p.Sleep(context.Background(), t.Latency.Draw(t.operatorDice))
		if m.Newer(master.Map()) {
			master.Tell(m)
		}
	}
}
