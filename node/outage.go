package node

import (
	"errors"
	"fmt"

	"github.com/quorumlock/quorumlock/node/wire"
)

// outage is the reason why a master takes no commands. Its errors are made once, since
// every command of every caller gets one while a master is down.
type outage struct {
	byOp [maxOps]*wire.Error
}

// maxOps is more than the Ops there are.
const maxOps = 16

var errNotYet = errors.New("still connecting")

// newOutage returns the outage caused by err: commands fail with ErrDown and
// err, or with ErrClosed alone.
func newOutage(addr string, err error) *outage {
	if !errors.Is(err, ErrClosed) {
		err = fmt.Errorf("%w: %w", ErrDown, err)
	}
	var o outage
	for op := range o.byOp {
		o.byOp[op] = &wire.Error{Node: addr, Op: wire.Op(op), Err: err}
	}
	return &o
}

func (o *outage) failure(op wire.Op) *wire.Error {
	if int(op) >= len(o.byOp) {
		op = 0
	}
	return o.byOp[op]
}
