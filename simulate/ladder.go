package simulate

import "context"

// Rung is one step of the ladder of naive locks.
type Rung struct {
	Name   string
	nested bool
	lock   func(p *Process, ctx context.Context, name string) (holding, error)
}

func (t *trial) nested(p *Process, h *grip) {}
