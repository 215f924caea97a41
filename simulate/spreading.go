package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/operate"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Operators spread the names over other groups of masters: operate.Spread, over connections that take
// their time. Several may be at it at once. An operator who fails tries again, unless another
// change is under way.

// operatorIDs is below the numbers of all hosts that are operators, and above those of masters.
const operatorIDs = 50

// spread has an operator of its own spread the names. It returns a function that kills the operator.
func (t *trial) spread(f *plan.Fault) (end func()) {
	h := t.operator()
	h.Clock.SetRate(f.Rate)
	h.Start(h.Name, func(p *world.Routine) {
		for !t.Healed {
			err := t.spreadBy(p, strings.Split(f.Over, ","))
			if err == nil || strings.Contains(err.Error(), "names are moving to") || strings.Contains(err.Error(), "another change is under way") {
				return
			}
			p.Sleep(context.Background(), t.Config.TTL/4)
		}
	})
	if f.For == 0 {
		return nil
	}
	return h.Crash
}

// letForget notes that a master loses its memory, unless it reports that it must not. If a second master of a group does before the
// first has the map of groups again, a client may bring an old map back: that is a limit.
func (t *trial) letForget(node int) bool {
	newest, size := fleet.NewestMap(t.Masters).String(), t.Config.GroupSize()
	for i, m := range t.Masters {
		if !m.Host.Down && m.Map().String() == newest {
			delete(t.forgetful, i)
		}
		if t.forgetful[i] && i != node && i/size == node/size {
			return false
		}
	}
	t.forgetful[node] = true
	return true
}

// settle stops all operators, and has one more end their moves: the others might spread names over groups that
// leave has stopped.
func (t *trial) settle() {
	for _, h := range t.operators {
		h.Crash()
	}
	over := plan.GroupNames(t.Config.Groups)
	h, done := t.operator(), false
	var err error
	h.Start(h.Name, func(p *world.Routine) {
		for !done {
			if m := fleet.NewestMap(t.Masters); !m.Settled() {
				over = m.Next
			}
			err = t.spreadBy(p, over)
			if done = err == nil; !done {
				p.Sleep(context.Background(), t.Config.TTL/4)
			}
		}
	})
	t.World.Run(t.World.Now+t.patience(), func() bool { return done || t.seen() })
	if !done && !t.seen() {
		t.Check.Report(tally.Violation{Kind: tally.Stuck, What: fmt.Sprintf("%s could not spread the names although every fault is over: %v", h.Name, err)})
	}
}

// leave has an operator spread the names over one group, while clients wait for them, and stop the other
// groups. It returns a function that starts these again.
func (t *trial) leave() (back func()) {
	h, stays := t.operator(), t.operatorDice.Below(t.Config.Groups)
	stopped := map[*fleet.Master]map[string]*masters.Entry{}
	h.Start(h.Name, func(p *world.Routine) {
		p.Sleep(context.Background(), t.operatorDice.Between(0, t.Config.TTL))
		for t.spreadBy(p, []string{plan.GroupName(stays)}) != nil {
			p.Sleep(context.Background(), t.Config.TTL/4)
		}
		for i, m := range t.Masters {
			if i/t.Config.GroupSize() != stays {
				stopped[m] = m.Keys.Copy()
				m.Kill(true)
			}
		}
	})
	return func() {
		h.Crash() // if the others were done first
		for _, m := range t.Masters {
			if keys := stopped[m]; keys != nil {
				m.Start(keys)
			}
		}
	}
}

func (t *trial) operator() *world.Host {
	n := len(t.operators) + 1
	h := world.NewHost(t.World, operatorIDs+n%(fleet.ClientIDs-operatorIDs), fmt.Sprintf("operator %d", n))
	t.operators = append(t.operators, h)
	return h
}

// slowest is how long a message of an operator takes at most. He gives up a master that takes longer.
const slowest = 500 * time.Millisecond

// spreadBy runs operate.Spread on an operator's host.
func (t *trial) spreadBy(p *world.Routine, over []string) error {
	if t.Config.Variant != "" {
		t.hastily(p, over)
		return nil
	}
	c := fleet.Office(t.Masters, t.Config.Guard(1))
	c.Logger = slog.New(slog.DiscardHandler)
	c.Clock = waitsBefore{p.Host.Clock, p}
	c.Dialer = delayed(c.Dialer, func() {
		p.Sleep(context.Background(), min(t.Latency.Draw(t.operatorDice), slowest))
	})
	_, err := operate.Spread(context.Background(), fleet.AddressesOf(t.Masters, t.Config.Groups), over, c)
	return err
}

// waitsBefore is the clock of an operator. The routine waits when the timer is made, and the timer has
// fired when it is returned: nobody but the world may wait.
type waitsBefore struct {
	clock.Clock
	routine *world.Routine
}

// Timer implements clock.Clock.
func (w waitsBefore) Timer(d time.Duration) *clock.Timer {
	w.routine.Sleep(context.Background(), d)
	fired := make(chan time.Time, 1)
	fired <- w.Now()
	timer := w.Clock.Timer(world.Forever)
	timer.C = fired
	return timer
}

// delayed is a dialer of connections on which each message takes a while.
func delayed(dial node.Dialer, passes func()) node.Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		passes()
		c, err := dial(ctx, network, addr)
		return slow{c, passes}, err
	}
}

type slow struct {
	net.Conn
	passes func()
}

// Write implements net.Conn.
func (s slow) Write(b []byte) (int, error) {
	s.passes()
	return s.Conn.Write(b)
}

// Read implements net.Conn.
func (s slow) Read(b []byte) (int, error) {
	s.passes()
	return s.Conn.Read(b)
}
