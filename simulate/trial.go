package simulate

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/promises"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/view"
	"github.com/quorumlock/quorumlock/simulate/internal/work"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// trial is one run of one schedule. First come the faults, and nothing unsafe may
// happen. Then everything is healed, and every client must get the lock again.
type trial struct {
	*work.Work
	trace    *view.Trace
	workload func(p *promises.Caller, c *redlock.Client) // nil: the actions of the schedule
	stopOn   tally.ViolationKind

	snapshots map[*plan.Fault]map[string]*masters.Entry
	ends      []*ending

	forgetful    map[int]bool  // the masters that lost the map of groups, and may not have it again
	operators    []*world.Host // that have spread names over groups
	operatorDice *world.Dice
}

// ending ends a fault, at most once.
type ending struct{ f func() }

func (e *ending) Run() {
	if f := e.f; f != nil {
		e.f = nil
		f()
	}
}

// result is what a trial found.
type result struct {
	seed       uint64
	hash       uint64 // over everything that happened
	outcome    uint64 // over who got the lock and how it ended, without times
	violations []tally.Violation
	stats      *tally.Stats
	trace      *view.Trace
}

// options say how to run a schedule.
type options struct {
	workload func(*promises.Caller, *redlock.Client) // nil: the actions of the schedule
	trace    *view.Trace                             // nil: none
	stopOn   tally.ViolationKind                     // end at the first violation of this kind; empty: go on
	unhealed bool                                    // end when the faults are over, without the recovery
	beat     *atomic.Uint64                          // counts events, roughly; may be nil
}

// run runs a schedule.
func run(s *plan.Schedule, opt options) (*result, error) {
	t := &trial{
		Work:      work.New(promises.NewScene(s)),
		trace:     opt.trace,
		workload:  opt.workload,
		stopOn:    opt.stopOn,
		snapshots: map[*plan.Fault]map[string]*masters.Entry{},
		forgetful: map[int]bool{},
	}
	if t.workload == nil {
		t.workload = work.WorkloadOf(s.Config.Lock)
	}
	t.World.Seed, t.World.Beat = s.Seed, opt.beat
	defer t.World.End()
	t.World.Dice = world.NewDice(s.Seed^s.Dice<<32, "order")
	t.operatorDice = world.NewDice(s.Seed^s.Dice<<32, "operators")
	t.Strike = t.strike
	t.World.Observe = t.Check.Look
	if t.trace != nil {
		t.Left = func(cl *promises.Claim) { t.trace.Held(cl, t.World.Now) }
		t.Work.Began = func(p *promises.Caller, action int) { t.trace.Act(p.Number, action, p.Clock().Monotonic()) }
		t.Work.Waited = func(c *promises.Client, since time.Duration) { t.trace.Waited(c, since, t.World.Now) }
		t.World.Observe = func(h *world.Host) {
			t.Check.Look(h)
			t.trace.Sample(t.Scene)
		}
	}
	if err := t.build(); err != nil {
		return nil, err
	}
	t.plan()
	t.World.Run(s.Config.Duration, t.seen)
	if !opt.unhealed {
		t.heal()
		t.recover()
	}
	return t.finish(), nil
}

// seen reports whether there has been a violation of the kind stopOn.
func (t *trial) seen() bool {
	if t.stopOn == "" {
		return false
	}
	for _, v := range t.Check.Violations {
		if v.Kind == t.stopOn {
			return true
		}
	}
	return false
}

func (t *trial) build() error {
	seed := t.Schedule.Seed ^ t.Schedule.Dice<<32
	for i := range t.Config.Nodes {
		m := fleet.NewMaster(t.World, i, seed)
		m.Watch, m.Durable, m.Mute, m.Deaf, m.Keys.Variant = t.Check, t.Config.Durable, t.Config.Mute, i < t.Config.Deaf, t.Config.Variant
		m.Keys.Removed = func(key string, e *masters.Entry) { t.Check.Deleted(m, t.Clients[m.Keys.Caller], key, e) }
		t.Masters = append(t.Masters, m)
	}
	if hold := t.Config.Guard(1).Hold; hold > 0 && t.Apart() {
		for name, part := range fleet.Parts(t.Masters, t.Config.Groups) {
			for _, m := range part {
				m.DeclareNew(fleet.Founded(name, part, t.Config.Groups), hold, true)
			}
		}
	} else if hold > 0 {
		founders := t.Masters[:t.Config.FoundersOf()]
		for _, m := range founders {
			m.DeclareNew(fleet.GroupOf(founders), hold, t.Schedule.Operated())
		}
	}
	for i := range t.Config.Clients {
		c := promises.NewClient(fleet.NewClient(t.World, i, t.Masters[:t.Config.MastersOf(i)], t.Config, t.Latency, seed, t.Stats), t.Check)
		c.Preemption = t.Schedule.Preemption()
		t.Clients = append(t.Clients, c)
		if err := t.enter(c); err != nil {
			return err
		}
	}
	return nil
}

// enter starts a client and its work.
func (t *trial) enter(c *promises.Client) error {
	if err := c.Connect(); err != nil {
		return err
	}
	callers := len(t.Schedule.Actions)
	if t.workload != nil {
		callers = t.Config.Clients
	}
	for i := c.Index; i < callers; i += t.Config.Clients {
		t.start(c, i, func(p *promises.Caller) {
			// It takes a moment to connect, as in redlock.Dial.
			p.Sleep(context.Background(), plan.Connecting)
			if t.workload != nil {
				t.workload(p, c.API)
				return
			}
			t.Act(p)
		})
	}
	return nil
}

// start starts the i-th caller.
func (t *trial) start(c *promises.Client, i int, body func(p *promises.Caller)) {
	p := &promises.Caller{Scene: t.Scene, Client: c, Number: i}
	p.Routine = c.Host.Start(plan.CallerName(i, t.Config.Clients), func(*world.Routine) { body(p) })
}

// plan schedules every fault.
func (t *trial) plan() {
	w := t.World
	for i := range t.Schedule.Faults {
		f := &t.Schedule.Faults[i]
		if f.Kind == plan.RestartSnapshot || f.Kind == plan.Failover || f.Kind == plan.Follow {
			w.At(f.At-f.Size, nil, world.Action(func() { t.snapshots[f] = t.Masters[f.Node].Keys.Copy() }))
		}
		w.At(f.At, nil, world.Action(func() {
			if f.Held {
				t.Armed = append(t.Armed, f)
				return
			}
			t.strike(f)
		}))
	}
}

// strike makes a fault happen now, and end in its time.
func (t *trial) strike(f *plan.Fault) {
	w := t.World
	t.mark(f)
	w.Rough = max(w.Rough, w.Now+f.GoesOn())
	if end := t.begin(f); end != nil {
		e := &ending{func() { w.Rough = max(w.Rough, w.Now); end() }}
		t.ends = append(t.ends, e)
		w.At(f.At+f.For, nil, e)
	}
}

func (t *trial) mark(f *plan.Fault) {
	if t.trace != nil {
		t.trace.Mark(f, t.World.Now)
	}
}

// heal ends every fault. Clocks that are wrong stay so, but run right from now on.
func (t *trial) heal() {
	t.Healed = true
	for _, e := range t.ends {
		e.Run()
	}
	for _, m := range t.Masters {
		m.Host.Clock.Heal()
	}
	for _, c := range t.Clients {
		c.Host.Clock.Heal()
	}
}

// recover lets the work end. Then every client takes each lock once more, and
// nothing may be left of it.
func (t *trial) recover() {
	w := t.World
	if t.Apart() {
		t.settle()
	}
	if !t.finishWork() {
		return
	}
	for _, c := range t.Clients {
		if c.IsStranger() {
			continue
		}
		t.start(c, c.Index, func(p *promises.Caller) {
			for _, a := range t.Config.Closing(t.names()) {
				if t.Config.Resizes {
					t.TakeSized(p, a)
				} else {
					t.TakeOnce(p, a)
				}
			}
		})
	}
	back := func() {}
	if t.Apart() {
		back = t.leave()
	}
	w.Run(w.Now+t.patience(), t.idle)
	back()
	switch {
	case t.seen():
		return
	case !t.idle():
		t.stuck("did not get the lock although every fault is over")
		return
	}
	w.Run(max(w.Now, w.Rough)+10*time.Second, t.quiet) // code that was stopped in the middle goes on by then
	t.Check.Unpaid()
	w.Run(t.lastArrival(), t.seen)
	w.Run(w.Now+t.Config.TTL+t.Config.TTL/10+t.longestKey(), t.seen)
	t.Check.Zombies()
	w.Run(w.Now+t.Forgetful(), t.seen)
	t.Check.Usage()
	t.closeAll()
}

// names returns the names of the locks that were used.
func (t *trial) names() []string {
	if t.Config.Rung != nil {
		return []string{plan.LockName} // naive locks are in no ledger
	}
	if t.Config.Lock.IsSemaphore() || t.Apart() {
		return t.Config.LockNames()
	}
	return t.Check.Ledger.Names()
}

// finishWork runs until every caller has finished, and reports whether all have.
// The actions of a schedule end by themselves. A workload is given more time as
// long as it makes progress.
func (t *trial) finishWork() bool {
	w := t.World
	for range maxExtensions {
		began := w.Now
		w.Run(w.Now+t.patience()+t.inTurn(), t.idle)
		switch {
		case t.seen():
			return false
		case t.idle():
			return true
		case !t.gotOn(began):
			t.stuck("has not finished its work although every fault is over")
			return false
		}
	}
	t.stuck("goes on working although the schedule is over (see Process.Over)")
	return false
}

// maxExtensions bounds how often a workload that makes progress is given more time.
const maxExtensions = 10

// gotOn reports whether a workload has made progress since an instant.
func (t *trial) gotOn(since time.Duration) bool {
	if t.workload == nil {
		return false
	}
	for _, c := range t.Clients {
		if len(c.Host.Procs) > 0 && c.GotOn > since {
			return true
		}
	}
	return false
}

// patience is how long a caller may wait for a lock after the healing. By then
// keys that were left behind have expired, messages that were held up have
// arrived, and quarantines are over. A caller that found no quorum until then pauses for up to ten
// retry intervals.
func (t *trial) patience() time.Duration {
	cfg := t.Config
	return t.longestKey() + t.lastArrival() - t.World.Now + 3*cfg.TTL + 2*max(0, cfg.RestartGuard) + 10*cfg.RetryInterval + 5*time.Second
}

// longestKey is how long it takes until the last lock that a master stores expires:
// long, where clocks were set back.
func (t *trial) longestKey() time.Duration {
	longest := time.Duration(0)
	for _, m := range t.Masters {
		for key, e := range m.Keys.Keys {
			if masters.Holds(key) && e.Until != 0 {
				longest = max(longest, m.Left(e.Until))
			}
		}
	}
	return longest
}

// inTurn is how long it takes the callers to finish if they hold the lock in turn.
func (t *trial) inTurn() time.Duration {
	longest := time.Duration(0)
	for _, list := range t.Schedule.Actions {
		for _, a := range list {
			longest = max(longest, a.Hold)
		}
	}
	return longest * time.Duration(len(t.Schedule.Actions))
}

// stuck reports every client that still has a process.
func (t *trial) stuck(what string) {
	for _, c := range t.Clients {
		if len(c.Host.Procs) > 0 {
			t.Check.Report(tally.Violation{
				Kind:    tally.Stuck,
				What:    c.Host.Name + " " + what,
				Clients: []int{c.Index},
			})
		}
	}
}

// idle reports whether every process has ended.
func (t *trial) idle() bool {
	if t.seen() {
		return true
	}
	for _, c := range t.Clients {
		if len(c.Host.Procs) > 0 {
			return false
		}
	}
	return true
}

// quiet reports whether nothing is under way and nothing is owed.
func (t *trial) quiet() bool {
	for _, c := range t.Clients {
		for _, l := range c.Links {
			if !l.Settled() {
				return false
			}
		}
	}
	return true
}

// lastArrival is when all that was sent until now has arrived, also on connections
// that were given up.
func (t *trial) lastArrival() time.Duration {
	last := t.World.Now
	for _, c := range t.Clients {
		for _, w := range c.Wires {
			last = max(last, w.Busy)
		}
	}
	return last
}

func (t *trial) finish() *result {
	w := t.World
	for i := len(t.Check.Claims) - 1; i >= 0; i-- {
		t.Check.Leave(t.Check.Claims[i])
	}
	t.trace.Close()
	t.Stats.Schedules = 1
	t.Stats.Simulated = w.Now
	t.Stats.Events = w.Ran
	seen := map[tally.ViolationKind]bool{}
	for _, v := range t.Check.Violations {
		if !seen[v.Kind] {
			seen[v.Kind] = true
			t.Stats.Violations[v.Kind]++
		}
		w.MixString(v.What)
	}
	if len(seen) > 0 {
		t.Stats.Unsafe = 1
	}
	w.Mix(t.Outcome)
	return &result{
		seed:       t.Schedule.Seed,
		hash:       w.Hash,
		outcome:    t.Outcome,
		violations: t.Check.Violations,
		stats:      t.Stats,
		trace:      t.trace,
	}
}

func (t *trial) crash(c *promises.Client) {
	for _, cl := range t.Check.Claims {
		if cl.Client == c {
			t.Stats.CrashedHolding++
		}
	}
	t.Check.Crashed(c)
	c.Crash()
}

// revive starts a crashed client again. It goes on with its next action.
func (t *trial) revive(c *promises.Client) {
	if err := t.enter(c); err != nil {
		panic("simulate: redlock.New fails for a client that it made before: " + err.Error())
	}
}
