package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node"
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
	Closes bool          `json:"closes,omitempty"` // before it crashes, a client closes
}

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	Restart         Kind = "restart"          // a master stops for a while and keeps its data
	RestartEmpty    Kind = "restart-empty"    // ... and has lost it (S3)
	RestartSnapshot Kind = "restart-snapshot" // ... and has it as it was Size before (S25)
	RestartPartial  Kind = "restart-partial"  // ... and may have lost what was written in the last Size
	Failover        Kind = "failover"         // a replica that is Size behind takes over (S1)
	Pause           Kind = "pause"            // a master stands still, then works off what arrived
	Slow            Kind = "slow"             // messages between a client and a master take up to Size more
	Reset           Kind = "reset"            // their connection breaks with commands under way
	CutOut          Kind = "cut-out"          // nothing gets from the client to the master
	CutIn           Kind = "cut-in"           // nothing gets from the master to the client
	Partition       Kind = "partition"        // both
	Errors          Kind = "errors"           // a master answers every command with Code (L5)
	Step            Kind = "step"             // a master's wall clock is set by Size (S2, S26, S28)
	Rate            Kind = "rate"             // a master's clock runs fast by Rate (S10)
	Freeze          Kind = "freeze"           // a master's clock stands still (S27)
	Flush           Kind = "flush"            // FLUSHALL (S24)
	Evict           Kind = "evict"            // a master drops the locks but not its marker (S24)
	Delete          Kind = "delete"           // an operator deletes the lock at a master
	ClientCrash     Kind = "client-crash"     // a client dies, and starts again after a while (L8)
	ClientPause     Kind = "client-pause"     // a client stands still (S6, S7)
	ClientSuspend   Kind = "client-suspend"   // ... and its monotonic clock with it (S12)
	ClientStep      Kind = "client-step"      // a client's wall clock is set by Size (S11)
	ClientRate      Kind = "client-rate"      // a client's clock runs fast by Rate (S10)
)

// Regroup is what operators do, and no fault: a master is made one of a group of
// all of them (node.Regroup). Only scripts have it.
const Regroup Kind = "regroup"

// Init is what operators do, too: all masters that have no marker are declared new
// (node.Init). Only scripts have it.
const Init Kind = "init"

// Kinds lists every kind of fault.
var Kinds = []Kind{
	Restart, RestartEmpty, RestartSnapshot, RestartPartial, Failover, Pause, Slow, Reset, CutOut, CutIn, Partition,
	Errors, Step, Rate, Freeze, Flush, Evict, Delete, ClientCrash, ClientPause, ClientSuspend, ClientStep, ClientRate,
}

// Mix says which faults a schedule may have. Every seed draws its own few kinds
// from it, so that each is tried alone and in any company.
type Mix struct {
	Name  string
	Kinds []Kind
	// Strict keeps to the assumptions of the lock: clocks of masters are set forward by
	// more than the clock guard or not at all, and of a minority, rates agree to the drift factor, and no client has both of
	// its clocks lie about the same time.
	Strict bool
	// TailThousandths is the largest share of messages that are delayed at
	// random, by up to seconds.
	TailThousandths int
}

// The mixes.
var (
	// Calm has no faults.
	Calm = Mix{Name: "calm"}
	// Assumed has every fault within the assumptions of the lock, which must
	// not break a promise in any schedule.
	Assumed = Mix{
		Name:            "assumed",
		Strict:          true,
		TailThousandths: 30,
		Kinds: slices.DeleteFunc(slices.Clone(Kinds), func(k Kind) bool {
			return k == Evict || k == Delete
		}),
	}
	// Anything has every fault, also those that no lock service can bear.
	Anything = Mix{Name: "anything", Kinds: Kinds, TailThousandths: 30}
)

// Only returns a mix of the given kinds. It is within the assumptions if each of
// them is in Assumed.
func Only(kinds ...Kind) Mix {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	outside := func(k Kind) bool { return !slices.Contains(Assumed.Kinds, k) }
	return Mix{
		Name: strings.Join(names, ","), Kinds: kinds, TailThousandths: 10,
		Strict: !slices.ContainsFunc(kinds, outside),
	}
}

// listed names kinds as a flag takes them, but for the space after a comma.
func listed[K ~string](kinds []K) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// ParseMix reads the name of a mix, or a list of kinds separated by commas.
func ParseMix(s string) (Mix, error) {
	for _, m := range []Mix{Calm, Assumed, Anything} {
		if s == m.Name {
			return m, nil
		}
	}
	var kinds []Kind
	for k := range strings.SplitSeq(s, ",") {
		if !slices.Contains(Kinds, Kind(k)) {
			return Mix{}, fmt.Errorf("faults %q: must be calm, assumed, anything, or kinds separated by commas: %s", s, listed(Kinds))
		}
		kinds = append(kinds, Kind(k))
	}
	return Only(kinds...), nil
}

// draw returns the faults of one schedule, by time.
func (m Mix) draw(dice *stream, cfg *Config) []Fault {
	if len(m.Kinds) == 0 {
		return nil
	}
	some := make([]Kind, 1+dice.below(min(6, len(m.Kinds))))
	for i := range some {
		some[i] = m.Kinds[dice.below(len(m.Kinds))]
	}
	gap := dice.spread(cfg.TTL, 16*cfg.TTL)
	var faults []Fault
	for at := dice.between(0, gap); at < cfg.Duration; at += dice.between(0, 2*gap) {
		faults = append(faults, m.one(some[dice.below(len(some))], at, dice, cfg))
	}
	if m.Strict {
		m.oneLie(faults)
		if dice.chance(500) && cfg.watchesClocks() {
			faults = forward(faults, dice, cfg)
		}
	}
	return faults
}

// watchesClocks reports whether clients notice a clock that is set forward.
func (cfg *Config) watchesClocks() bool {
	return cfg.ClockGuard > 0 && cfg.RestartGuard > 0 && cfg.drawnFor() == nil
}

// forward has masters' clocks set forward and not back, by more than a client takes
// for delay and drift: of a minority, by which a new client that knows no better can
// tell them from the others, and not of a clock that was behind, since one lie would
// hide the other.
func forward(faults []Fault, dice *stream, cfg *Config) []Fault {
	if !slices.ContainsFunc(faults, func(f Fault) bool { return f.Kind == Step }) {
		return faults
	}
	guard := cfg.guard(0)
	window := max(guard.Hold, 4*guard.ClockTolerance)
	least := guard.ClockTolerance + window/20 + 4*time.Second // a baseline may be read so late
	first, some := dice.below(cfg.Nodes), (cfg.Nodes-1)/2
	if some == 0 {
		return faults
	}
	for i := range faults {
		if f := &faults[i]; f.Kind == Step {
			f.Size = least + max(f.Size, -f.Size)
			f.Node = (first + f.Node%some) % cfg.Nodes
		}
	}
	return slices.DeleteFunc(faults, func(f Fault) bool { return f.Kind == Freeze })
}

// one draws a fault of the given kind.
func (m Mix) one(k Kind, at time.Duration, dice *stream, cfg *Config) Fault {
	ttl := cfg.TTL
	f := Fault{
		Kind:   k,
		At:     at,
		For:    dice.spread(ttl/20, 5*ttl),
		Node:   dice.below(cfg.Nodes),
		Client: dice.below(cfg.Clients),
	}
	switch k {
	case Restart, RestartEmpty:
		f.Silent = dice.chance(200)
	case RestartSnapshot, RestartPartial:
		f.Size = dice.spread(ttl/10, 4*ttl)
	case Failover:
		f.Size = dice.spread(ttl/50, 2*ttl)
		f.For = dice.between(0, ttl/10)
	case Slow:
		f.Size = dice.spread(ttl/100, ttl)
	case Reset, Flush, Evict, Delete:
		f.For = 0
	case CutOut, CutIn, Partition:
		// Half of them cut a whole machine off.
		switch dice.below(4) {
		case 0:
			f.Node = -1
		case 1:
			f.Client = -1
		}
	case Errors:
		codes := []string{"MISCONF", "READONLY", "OOM", "LOADING", "BUSY", "NOREPLICAS"}
		f.Code = codes[dice.below(len(codes))]
	case Step:
		f.For = 0
		f.Size = dice.spread(ttl/10, 5*ttl)
		if m.Strict || dice.chance(300) {
			f.Size = -f.Size
		}
		if !m.Strict && dice.chance(100) {
			f.Node = -1
		}
	case Rate, ClientRate:
		f.Rate = dice.below(10_001) - 5000 // two that are apart by that differ by the drift factor
		if !m.Strict {
			f.Rate = []int{-500_000, -50_000, 50_000, 1_000_000}[dice.below(4)]
		}
	case ClientStep:
		f.For = 0
		f.Size = dice.spread(ttl/10, 5*ttl)
		if dice.chance(500) {
			f.Size = -f.Size
		}
	}
	return f
}

// oneLie keeps a client's wall clock from hiding what its monotonic clock lost
// in a suspend.
func (m Mix) oneLie(faults []Fault) {
	suspends := slices.ContainsFunc(faults, func(f Fault) bool { return f.Kind == ClientSuspend })
	for i, f := range faults {
		if suspends && f.Kind == ClientStep {
			faults[i].Size = max(f.Size, -f.Size)
		}
	}
}

// String describes the fault on one line.
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9.3fs  %s %s", f.At.Seconds(), f.Kind, f.where())
	switch f.Kind {
	case Step, ClientStep:
		fmt.Fprintf(&b, " by %v", short(f.Size))
	case Rate, ClientRate:
		fmt.Fprintf(&b, " by %+.2f%%", float64(f.Rate)/1e4)
	case RestartSnapshot:
		fmt.Fprintf(&b, " as of %v ago", short(f.Size))
	case RestartPartial:
		fmt.Fprintf(&b, " without some of the last %v", short(f.Size))
	case Failover:
		fmt.Fprintf(&b, " to a replica %v behind", short(f.Size))
	case Slow:
		fmt.Fprintf(&b, " by up to %v", short(f.Size))
	case Errors:
		b.WriteString(" " + f.Code)
	}
	if f.Silent {
		b.WriteString(" silently")
	}
	if f.Closes {
		b.WriteString(" in good order")
	}
	if f.For > 0 {
		fmt.Fprintf(&b, " for %v", short(f.For))
	}
	return b.String()
}

// goesOn is for how long the fault disturbs again and again. A clock that stands
// still has stepped at every look at it, so that its master is quarantined anew, and
// who waits learns of the end of that by the next look, or by a timer.
func (f Fault) goesOn() time.Duration {
	if f.Kind == Freeze {
		return f.For
	}
	return 0
}

// where names the hosts that the fault is about.
func (f Fault) where() string {
	node, client := "every node", "every client"
	if f.Node >= 0 {
		node = string(rune('A' + f.Node))
	}
	if f.Client >= 0 {
		client = clientName(f.Client)
	}
	switch f.Kind {
	case Slow, Reset, CutOut, CutIn, Partition:
		return client + "-" + node
	case ClientCrash, ClientPause, ClientSuspend, ClientStep, ClientRate:
		return client
	}
	return node
}

func short(d time.Duration) time.Duration {
	if d > time.Second || d < -time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// begin makes the fault happen now and returns what ends it, or nil.
func (t *trial) begin(f *Fault) (end func()) {
	t.stats.Faults[f.Kind]++
	switch f.Kind {
	case Restart, RestartEmpty, RestartSnapshot, RestartPartial, Failover:
		return t.restart(f)
	case Slow, Reset, CutOut, CutIn, Partition:
		return t.disturb(f)
	case ClientCrash, ClientPause, ClientSuspend, ClientStep, ClientRate:
		return t.troubleClient(f, t.clients[f.Client])
	}
	if f.Kind == Init {
		t.declareNew()
		return nil
	}
	var ends []func()
	for i, m := range t.masters {
		if f.Node == i || f.Node < 0 {
			if end := t.troubleMaster(f, m); end != nil {
				ends = append(ends, end)
			}
		}
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// restart takes a master down, and up again with what is left of its keys.
func (t *trial) restart(f *Fault) (end func()) {
	m := t.masters[f.Node]
	if m.host.down {
		return nil
	}
	keys := m.keys.copy()
	switch f.Kind {
	case RestartEmpty:
		keys = map[string]*entry{}
	case RestartPartial:
		keys = m.partly(keys, f.Size)
	case RestartSnapshot, Failover:
		keys = t.snapshots[f]
	}
	m.kill(f.Silent)
	life := m.host.life
	return func() {
		if m.host.down && m.host.life == life {
			m.start(keys)
		}
	}
}

// disturb does something to the links between clients and masters.
func (t *trial) disturb(f *Fault) (end func()) {
	var hit []*wire
	for i, c := range t.clients {
		for j, w := range c.wires {
			if (f.Client == i || f.Client < 0) && (f.Node == j || f.Node < 0) {
				hit = append(hit, w)
			}
		}
	}
	for _, w := range hit {
		switch f.Kind {
		case Slow:
			w.slow += f.Size
		case Reset:
			w.reset()
		case CutOut:
			w.cut[outward]++
		case CutIn:
			w.cut[inward]++
		case Partition:
			w.cut[outward]++
			w.cut[inward]++
		}
	}
	return func() {
		for _, w := range hit {
			switch f.Kind {
			case Slow:
				w.slow -= f.Size
			case CutOut:
				w.mend(outward)
			case CutIn:
				w.mend(inward)
			case Partition:
				w.mend(outward)
				w.mend(inward)
			}
		}
	}
}

func (t *trial) troubleMaster(f *Fault, m *master) (end func()) {
	switch f.Kind {
	case Pause:
		return stopFor(m.host, m.host.pause, m.host.resume)
	case Errors:
		m.refuses = node.Server(f.Code + " simulated")
		return func() { m.refuses = nil }
	case Step:
		m.host.clock.step(f.Size)
		if f.Size > 0 {
			m.check.stepped(m)
		}
	case Rate:
		m.host.clock.setRate(f.Rate)
		return func() { m.host.clock.setRate(0) }
	case Freeze:
		m.host.clock.freeze()
		return m.host.clock.thaw
	case Flush:
		m.keys.flush()
		m.check.forgot(m, true)
	case Evict: // whatever has a TTL, as volatile-lru does
		for _, k := range sortedKeys(m.keys.keys) {
			if m.keys.keys[k].until != 0 {
				delete(m.keys.keys, k)
			}
		}
		m.check.forgot(m, false)
	case Regroup:
		m.regroup(groupOf(t.masters), t.config.guard(1).Hold)
	case Delete: // the locks alone
		for _, k := range sortedKeys(m.keys.keys) {
			if isLock(k) {
				delete(m.keys.keys, k)
			}
		}
		m.check.changed(m, false)
	}
	return nil
}

func (t *trial) troubleClient(f *Fault, c *client) (end func()) {
	switch f.Kind {
	case ClientCrash:
		if f.Closes {
			return t.shutDown(c)
		}
		if c.host.down {
			return nil
		}
		t.crash(c)
		return func() { t.revive(c) }
	case ClientPause:
		return stopFor(c.host, c.host.pause, c.host.resume)
	case ClientSuspend:
		return stopFor(c.host, c.host.suspend, c.host.wake)
	case ClientStep:
		c.host.clock.step(f.Size)
	case ClientRate:
		c.host.clock.setRate(f.Rate)
		return func() { c.host.clock.setRate(0) }
	}
	return nil
}

// stopFor stops a host, and lets it go on unless it crashed meanwhile.
func stopFor(h *host, stop, resume func()) (end func()) {
	if h.down {
		return nil
	}
	stop()
	life := h.life
	return func() {
		if h.life == life {
			resume()
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
