package promises

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// A client that got a lock with AtLeast keeps all others from it for that time, whatever
// becomes of the client. No client gets the lock earlier than that after the masters were asked
// to keep it, in true time, less what their clocks may run fast and gain unnoticed.

// period is for how long a lock is kept.
type period struct {
	waiter string // of the client that has it kept
	owner  string
	ends   time.Duration
}

// keeps notes when a client asks the first master to keep a lock.
func (c *Client) keeps(cmd *wire.Command) {
	if _, asked := c.kept[cmd.Args[0]]; cmd.Script == wire.ScriptKeep && !asked {
		d := time.Duration(float64(milliseconds(cmd.Args[1])) * (1 - drift.DefaultFactor))
		c.kept[cmd.Args[0]] = c.World.Now + d - c.Config.Unnoticed() - 2*time.Millisecond // masters round to one
	}
}

// once checks that no other client keeps the lock that a client has got, and notes for how long
// that client keeps it.
func (k *checker) once(cl *Claim) {
	if !cl.stored() || cl.Value == "" {
		return
	}
	name, c := cl.Names[0], cl.Client
	waiter, _ := masters.SplitValue(cl.Value)
	if p, kept := k.periods[name]; kept && p.waiter != waiter {
		cl.process.Check(tally.OncePerPeriod, k.scene.World.Now >= p.ends || !cl.Hold.Valid(),
			"%s got %q, which %s keeps for another %v", c.Host.Name, name, p.owner, p.ends-k.scene.World.Now)
	}
	if ends, keeps := c.kept[cl.Value]; keeps && ends > k.periods[name].ends {
		k.periods[name] = period{waiter, c.Host.Name, ends}
	}
}

// A release leaves a lock for as long as its master was asked to keep it, by its own clock, and
// for no longer. Where the master was not asked, nothing stays.

// keptAt is a lock that a master was asked to keep for that value.
type keptAt struct {
	master int
	value  string
}

// keepsAt notes until when a master was asked to keep a lock.
func (k *checker) keepsAt(m *fleet.Master, cmd *wire.Command) {
	if cmd.Script == wire.ScriptKeep {
		at := keptAt{m.Index, cmd.Args[0]}
		k.keptTill[at] = max(k.keptTill[at], m.Keys.Millis()+milliseconds(cmd.Args[1]).Milliseconds())
	}
}

// stays checks what a release left of a lock.
func (k *checker) stays(m *fleet.Master, by *Client, e *masters.Entry) {
	value, kept := strings.CutPrefix(e.Value, masters.Kept)
	if !kept {
		return
	}
	longer := e.Until - k.keptTill[keptAt{m.Index, value}]
	k.scene.Stats.Checked(tally.KeptNoLonger, longer <= 0)
	if longer > 0 {
		by.Blame(fmt.Sprintf("%s has released what %s keeps for longer than it was asked to", value, m.Host.Name))
	}
}
