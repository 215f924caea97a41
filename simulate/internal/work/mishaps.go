package work

import (
	"slices"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// mishap has the mishap of an action happen in its moment.
func (t *Work) mishap(p *promises.Caller, a plan.Action, in plan.Moment) {
	m := a.Mishap
	if m == nil || m.In != in {
		return
	}
	c, w, life := p.Client, t.World, p.Host.Life
	strike := func() {
		if t.Healed || c.Host.Down || c.Host.Life != life || c.Closing {
			return
		}
		t.Strike(&plan.Fault{Kind: m.Kind, At: w.Now, For: m.For, Size: m.Size, Client: c.Index, Node: -1, Closes: m.Kind == plan.ClientCrash})
	}
	if m.Silent && !t.Healed {
		t.Strike(&plan.Fault{Kind: plan.Pause, At: w.Now, For: 2 * t.Config.NodeTimeout, Node: -1})
	}
	if m.After == 0 && (m.Kind == plan.ClientStep || m.Kind == plan.Slow) {
		strike() // just before the call
		return
	}
	w.At(w.Now+m.After, nil, world.Action(strike))
}

// forgets has the masters forget the lease.
func (t *Work) forgets(o *plan.Ordeal) {
	if o == nil {
		return
	}
	for _, node := range o.Forget {
		t.Strike(&plan.Fault{Kind: plan.RestartEmpty, At: t.World.Now, For: o.Down, Node: node % len(t.Masters), Client: -1})
	}
}

// hangs has one of the others hang.
func (t *Work) hangs(o *plan.Ordeal) {
	if o != nil && !t.Healed {
		t.Strike(&plan.Fault{Kind: plan.Pause, At: t.World.Now, For: o.For, Node: o.Hangs % len(t.Masters), Client: -1})
	}
}

// granted has the faults strike that wait for a client to get the lock.
func (t *Work) granted(c *promises.Client) {
	if t.Healed {
		return
	}
	for _, f := range t.Armed {
		now := *f
		now.At, now.Held = t.World.Now+f.After, false
		if now.Client == plan.Grantee {
			now.Client = c.Index
		}
		t.World.At(now.At, nil, world.Action(func() {
			if !t.Healed {
				t.Strike(&now)
			}
		}))
	}
	t.Armed = slices.Delete(t.Armed, 0, len(t.Armed))
}
