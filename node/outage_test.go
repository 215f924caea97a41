package node

import (
	"errors"
	"testing"

	"github.com/quorumlock/quorumlock/node/wire"
)

func TestOutage_is_found_with_its_reason(t *testing.T) {
	down := newOutage("a:1", ErrNotMaster).failure(wire.OpAcquire)
	if !errors.Is(down, ErrDown) || !errors.Is(down, ErrNotMaster) {
		t.Errorf("%v", down)
	}
}
