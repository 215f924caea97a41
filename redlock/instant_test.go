package redlock_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// instant is a master that answers before Do returns, so that all answers to a question
// are there when it is decided.
type instant struct {
	addr   string
	grant  wire.Reply // of an acquire
	mu     sync.Mutex
	raised []string // to what
}

func (m *instant) Addr() string                                  { return m.addr }
func (m *instant) Close() error                                  { return nil }
func (m *instant) Subscribe(string, node.Listener) (stop func()) { return func() {} }

func (m *instant) Do(cmd *wire.Command, done func(wire.Reply)) {
	switch {
	case cmd.Op == wire.OpAcquire:
		done(m.grant)
	case cmd.Script == wire.ScriptPermitRaise:
		m.mu.Lock()
		m.raised = append(m.raised, cmd.Args[2])
		m.mu.Unlock()
		done(raisedSlots())
	default:
		done(wire.Reply{Value: int64(1)})
	}
}

// A master that gave other slots has counted for those: the next who gets ours need not
// meet it. So it does not count for the token, whatever it has counted, and the token is
// counted by a majority of those that gave ours.
func TestPermit_token_counts_no_master_that_gave_other_slots(t *testing.T) {
	var all []*instant
	var nodes []node.Node
	for i, grant := range []wire.Reply{
		countedSlots("3", "1", 5), countedSlots("3", "1", 4), countedSlots("3", "1", 5), countedSlots("1", "3", 5), noSlots(),
	} {
		m := &instant{addr: fmt.Sprint("master-", i), grant: grant}
		all, nodes = append(all, m), append(nodes, m)
	}
	c, err := redlock.New(nodes, redlock.WithTTL(time.Second), guarded)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	lease, err := tryPermit(ctx, c)

	if err != nil {
		t.Fatal(err)
	}
	if want := uint64(5*wire.MaxPermits + 3); lease.Token() != want {
		t.Errorf("token %d, want %d", lease.Token(), want)
	}
	if !slices.Equal(all[1].raised, []string{"5"}) {
		t.Errorf("the master that counted less was raised to %q, want 5: only two that gave the permit have counted so far", all[1].raised)
	}
	if len(all[3].raised) > 0 {
		t.Errorf("the master that gave another permit was raised to %q", all[3].raised)
	}
}
