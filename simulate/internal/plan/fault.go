package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Fault is one thing that goes wrong in a schedule. Which fields count depends
// on its Kind.
type Fault struct {
	Kind   Kind          `json:"kind"`
	At     time.Duration `json:"at"`               // true time since the start, in nanoseconds
	For    time.Duration `json:"for,omitempty"`    // how long it lasts
	Node   int           `json:"node"`             // the master, from 0; -1: every one
	Client int           `json:"client"`           // the client, from 0; -1: every one
	Size   time.Duration `json:"size,omitempty"`   // of a step or a delay, or how old the data is
	Rate   int           `json:"rate,omitempty"`   // millionths by which a clock runs fast
	Code   string        `json:"code,omitempty"`   // of an error reply
	Silent bool          `json:"silent,omitempty"` // a crash that breaks no connection
	Closes bool          `json:"closes,omitempty"` // a client calls Close before it goes down
	Held   bool          `json:"held,omitempty"`   // strikes when a client gets the lock after At
	After  time.Duration `json:"after,omitempty"`  // how long after that
	Over   string        `json:"over,omitempty"`   // the groups that have names then, with commas
}

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	Restart         Kind = "restart"          // a master stops for a while and keeps its data
	RestartEmpty    Kind = "restart-empty"    // ... and has lost it (S3)
	RestartSnapshot Kind = "restart-snapshot" // ... and has it as it was Size before (S25)
	RestartPartial  Kind = "restart-partial"  // ... and may have lost the writes of the last Size
	Failover        Kind = "failover"         // a replica that is Size behind takes over (S1)
	Pause           Kind = "pause"            // a master stands still, then works off what arrived
	Slow            Kind = "slow"             // messages between a client and a master take up to Size more
	Reset           Kind = "reset"            // their connection breaks with commands under way
	CutOut          Kind = "cut-out"          // nothing gets from the client to the master
	CutIn           Kind = "cut-in"           // nothing gets from the master to the client
	Partition       Kind = "partition"        // cut-out and cut-in
	Errors          Kind = "errors"           // a master answers every command with Code (L5), or oddly
	Step            Kind = "step"             // a master's wall clock is set by Size (S2, S26, S28)
	Rate            Kind = "rate"             // a master's clock runs fast by Rate (S10)
	Freeze          Kind = "freeze"           // a master's clock stands still (S27)
	Flush           Kind = "flush"            // FLUSHALL (S24)
	Evict           Kind = "evict"            // a master drops the locks but not its marker (S24)
	Delete          Kind = "delete"           // an operator deletes the lock at a master
	ClientCrash     Kind = "client-crash"     // a client dies, and starts again after a while (L8)
	ClientPause     Kind = "client-pause"     // a client stands still (S6, S7)
	ClientSuspend   Kind = "client-suspend"   // ... and its monotonic clock with it (S12)
	ClientStep      Kind = "client-step"      // a client's wall clock is set by Size, and back if it ends (S11)
	ClientRate      Kind = "client-rate"      // a client's clock runs fast by Rate (S10)
)

// The actions of operators are not faults, but they are on the same timeline. No Mix draws
// them.
const (
	Regroup Kind = "regroup" // operate.Regroup, or only the new group for one master
	Init    Kind = "init"    // an operator runs redlock init (operate.Init)
	Follow  Kind = "follow"  // a master briefly follows a copy of itself of Size ago (S50)
	Spread  Kind = "spread"  // an operator spreads the names over other groups (operate.Spread), and dies after For
)

// Kinds lists every kind of fault that a Mix may have.
var Kinds = []Kind{
	Restart, RestartEmpty, RestartSnapshot, RestartPartial, Failover, Pause, Slow, Reset, CutOut, CutIn, Partition,
	Errors, Step, Rate, Freeze, Flush, Evict, Delete, ClientCrash, ClientPause, ClientSuspend, ClientStep, ClientRate,
}

// String describes the fault on one line.
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9.3fs  %s %s", f.At.Seconds(), f.Kind, f.Where())
	switch f.Kind {
	case Step, ClientStep:
		fmt.Fprintf(&b, " by %v", Short(f.Size))
	case Rate, ClientRate:
		fmt.Fprintf(&b, " by %+.2f%%", float64(f.Rate)/1e4)
	case RestartSnapshot:
		fmt.Fprintf(&b, " as of %v ago", Short(f.Size))
	case Follow:
		fmt.Fprintf(&b, " a copy of %v ago", Short(f.Size))
	case RestartPartial:
		fmt.Fprintf(&b, " without some of the last %v", Short(f.Size))
	case Failover:
		fmt.Fprintf(&b, " to a replica %v behind", Short(f.Size))
	case Slow:
		fmt.Fprintf(&b, " by up to %v", Short(f.Size))
	case Errors:
		b.WriteString(" " + f.Code)
	case Spread:
		b.WriteString(" over " + f.Over)
		if f.Rate != 0 {
			fmt.Fprintf(&b, " by a clock that is wrong by %+.0f%%", float64(f.Rate)/1e4)
		}
	}
	if f.Silent {
		b.WriteString(" silently")
	}
	if f.Held {
		fmt.Fprintf(&b, ", %v after somebody gets the lock", Short(f.After))
	}
	if f.Closes {
		b.WriteString(" in good order")
	}
	if f.For > 0 {
		fmt.Fprintf(&b, " for %v", Short(f.For))
	}
	return b.String()
}

// GoesOn returns for how long the fault keeps disturbing after it began. A clock
// that stands still has stepped whenever a client looks at it. Its master is then
// quarantined anew, and a waiter learns of the end of that only by the next look
// or by a timer.
func (f Fault) GoesOn() time.Duration {
	if f.Kind == Freeze {
		return f.For
	}
	return 0
}

// Where names the hosts that the fault strikes.
func (f Fault) Where() string {
	node, client := "every node", "every client"
	if f.Node >= 0 {
		node = string(rune('A' + f.Node))
	}
	if f.Client >= 0 {
		client = ClientName(f.Client)
	} else if f.Client == Grantee {
		client = "who gets it"
	}
	switch f.Kind {
	case Slow, Reset, CutOut, CutIn, Partition:
		return client + "-" + node
	case ClientCrash, ClientPause, ClientSuspend, ClientStep, ClientRate:
		return client
	}
	return node
}

// Short rounds a duration for messages.
func Short(d time.Duration) time.Duration {
	if d > time.Second || d < -time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

func ClientName(index int) string { return "client " + strconv.Itoa(index+1) }
