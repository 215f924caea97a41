package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// A master hands the lock on, and when its message comes it is quarantined. What it
// gave counts for nobody, but it stores it: to a waiter that has gone, and whose
// release did not reach it, it would stay given for the rest of its registration
// (seed 17472 of the simulator).
func TestWhat_a_doubted_master_gave_is_given_back_by_who_has_gone(t *testing.T) {
	t.Run("doubted", func(t *testing.T) { givesBack(t, node.Listener.Doubted) })
	t.Run("believed", func(t *testing.T) { givesBack(t, node.Listener.Heard) })
}

func givesBack(t *testing.T, tells func(l node.Listener, message string)) {
	t.Helper()
	master := &scripted{addr: "master-A"}
	c, err := redlock.New([]node.Node{master}, redlock.WithClock(clock.NewMock()), relaxed)
	if err != nil {
		t.Fatal(err)
	}
	waiting, giveUp := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.Mutex("orders").Lock(waiting)
	}()
	t.Cleanup(func() {
		giveUp()
		<-over
		c.Close()
	})
	master.next(t, wire.OpAcquire).answer(wire.Reply{})
	asked := master.next(t, wire.OpAsk)
	value := asked.cmd.Args[0]
	gone := value[:strings.LastIndexByte(value, '/')+1] + "0:3"

	tells(master.ear, fmt.Sprintf("6 orders%s", gone))
	tells(master.ear, fmt.Sprintf("6 orders%s", gone)) // while the release is on its way

	if q := master.next(t, wire.OpRelease); q.cmd.Args[0] != gone || q.cmd.Keys[0] != "orders" {
		t.Errorf("%v %v is released, want %s", q.cmd.Keys, q.cmd.Args, gone)
	}

	master.ear.Doubted(fmt.Sprintf("6 orders%s", value))

	if q := master.next(t, wire.OpAsk); q.cmd.Args[0] != value {
		t.Errorf("asked for %v again, want %s", q.cmd.Args, value)
	}
}
