package simulate

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
)

// trial is one run of one schedule. First come the faults, and nothing unsafe may
// happen. Then everything is healed, and every client must get the lock again.
type trial struct {
	schedule *Schedule
	config   *Config
	world    *world
	masters  []*master
	clients  []*client
	check    *checker
	storages map[string]*Storage // by lock
	latency  latency
	stats    *Stats
	trace    *trace
	workload func(p *Process, c *redlock.Client) // nil: the actions of the schedule
	stopOn   ViolationKind

	snapshots map[*Fault]map[string]*masters.Entry
	ends      []*ending
	armed     []*Fault // that wait for somebody to get the lock
	healed    bool
	estates   map[int]estate // what callers held when they crashed
	done      []int          // how many actions each caller has begun
	outcome   uint64
}

// ending ends a fault, at most once.
type ending struct{ f func() }

func (e *ending) run() {
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
	violations []Violation
	stats      *Stats
	trace      *trace
}

// lockName is the name of the lock, and with a number that of further ones.
const lockName = "lock"

// options say how to run a schedule.
type options struct {
	workload func(*Process, *redlock.Client) // nil: the actions of the schedule
	trace    *trace                          // nil: none
	stopOn   ViolationKind                   // end at the first violation of this kind; empty: go on
	unhealed bool                            // end when the faults are over, without the recovery
	beat     *atomic.Uint64                  // counts events, roughly; may be nil
}

// run runs a schedule.
func (s *Schedule) run(opt options) (*result, error) {
	t := &trial{
		schedule:  s,
		config:    s.config,
		world:     newWorld(),
		stats:     newStats(),
		trace:     opt.trace,
		workload:  opt.workload,
		stopOn:    opt.stopOn,
		snapshots: map[*Fault]map[string]*masters.Entry{},
		estates:   map[int]estate{},
		done:      make([]int, max(s.config.Clients, len(s.Actions))),
		outcome:   hashOffset,
	}
	if t.workload == nil {
		t.workload = s.config.Lock.workload()
	}
	t.world.seed, t.world.beat = s.Seed, opt.beat
	defer t.world.end()
	t.world.dice = newStream(s.Seed^s.Dice<<32, "order")
	t.check = newChecker(t)
	t.latency = s.latency()
	t.storages = map[string]*Storage{}
	t.world.after = t.check.look
	if t.trace != nil {
		t.world.after = func(h *host) {
			t.check.look(h)
			t.trace.sample(t)
		}
	}
	if err := t.build(); err != nil {
		return nil, err
	}
	t.plan()
	t.world.run(s.config.Duration, t.seen)
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
	for _, v := range t.check.violations {
		if v.Kind == t.stopOn {
			return true
		}
	}
	return false
}

func (t *trial) build() error {
	seed := t.schedule.Seed ^ t.schedule.Dice<<32
	for i := range t.config.Nodes {
		m := newMaster(t.world, i, seed)
		m.check, m.mute, m.deaf, m.keys.Variant = t.check, t.config.mute, i < t.config.deaf, t.config.variant
		m.keys.Removed = func(key string, e *masters.Entry) { t.check.deleted(m, t.clients[m.keys.Caller], key, e) }
		t.masters = append(t.masters, m)
	}
	if hold := t.config.guard(1).Hold; hold > 0 {
		founders := t.config.foundersOf(t.masters)
		for _, m := range founders {
			m.declareNew(groupOf(founders), hold, t.schedule.operated())
		}
	}
	for i := range t.config.Clients {
		c := newClient(t.world, i, t.config.mastersOf(i, t.masters), t.config, t.latency, seed, t.stats)
		c.preemption, c.check = t.schedule.preemption(), t.check
		t.clients = append(t.clients, c)
		if err := t.enter(c); err != nil {
			return err
		}
	}
	return nil
}

// connecting is how long a client takes before it begins to work.
const connecting = 50 * time.Millisecond

// enter starts a client and its work.
func (t *trial) enter(c *client) error {
	if err := c.connect(); err != nil {
		return err
	}
	callers := len(t.schedule.Actions)
	if t.workload != nil {
		callers = t.config.Clients
	}
	for i := c.index; i < callers; i += t.config.Clients {
		t.start(c, i, func(p *Process) {
			// It takes a moment to connect, as in redlock.Dial.
			p.Sleep(context.Background(), connecting)
			if t.workload != nil {
				t.workload(p, c.api)
				return
			}
			t.act(p)
		})
	}
	return nil
}

// start starts the i-th caller.
func (t *trial) start(c *client, i int, body func(p *Process)) {
	p := c.host.start(callerName(i, t.config.Clients), body)
	p.trial, p.client, p.caller = t, c, i
}

// plan schedules every fault.
func (t *trial) plan() {
	w := t.world
	for i := range t.schedule.Faults {
		f := &t.schedule.Faults[i]
		if f.Kind == RestartSnapshot || f.Kind == Failover || f.Kind == Follow {
			w.at(f.At-f.Size, nil, action(func() { t.snapshots[f] = t.masters[f.Node].keys.Copy() }))
		}
		w.at(f.At, nil, action(func() {
			if f.Held {
				t.armed = append(t.armed, f)
				return
			}
			t.strike(f)
		}))
	}
}

// strike makes a fault happen now, and end in its time.
func (t *trial) strike(f *Fault) {
	w := t.world
	t.mark(f)
	w.rough = max(w.rough, w.now+f.goesOn())
	if end := t.begin(f); end != nil {
		e := &ending{func() { w.rough = max(w.rough, w.now); end() }}
		t.ends = append(t.ends, e)
		w.at(f.At+f.For, nil, e)
	}
}

func (t *trial) mark(f *Fault) {
	if t.trace != nil {
		t.trace.marks = append(t.trace.marks, mark{f.where(), t.world.now, f.For, f.String()})
	}
}

// heal ends every fault. Clocks that are wrong stay so, but run right from now on.
func (t *trial) heal() {
	t.healed = true
	for _, e := range t.ends {
		e.run()
	}
	for _, m := range t.masters {
		m.host.clock.heal()
	}
	for _, c := range t.clients {
		c.host.clock.heal()
	}
}

// recover lets the work end. Then every client takes each lock once more, and
// nothing may be left of it.
func (t *trial) recover() {
	w := t.world
	if !t.finishWork() {
		return
	}
	for _, c := range t.clients {
		if c.isStranger() {
			continue
		}
		t.start(c, c.index, func(p *Process) {
			for _, a := range t.config.closing(t.names()) {
				if t.config.resizes {
					t.takeSized(p, a)
				} else {
					t.takeOnce(p, a)
				}
			}
		})
	}
	w.run(w.now+t.patience(), t.idle)
	switch {
	case t.seen():
		return
	case !t.idle():
		t.stuck("did not get the lock although every fault is over")
		return
	}
	w.run(w.now+10*time.Second, t.quiet)
	t.check.unpaid()
	w.run(t.lastArrival(), t.seen)
	w.run(w.now+t.config.TTL+t.config.TTL/10+t.longestKey(), t.seen)
	t.check.zombies()
	w.run(w.now+t.forgetful(), t.seen)
	t.check.usage()
	t.closeAll()
}

// names returns the names of the locks that were used.
func (t *trial) names() []string {
	if t.config.rung != nil {
		return []string{lockName} // naive locks are in no ledger
	}
	if t.config.Lock.IsSemaphore() {
		return t.config.names()
	}
	return t.check.ledger.names()
}

// takeOnce takes a lock and gives it back.
func (t *trial) takeOnce(p *Process, a Action) {
	h, err := t.lock(p, context.Background(), a)
	if err != nil {
		return
	}
	t.check.leave(h.claim)
	p.call(func() { h.Unlock(context.Background()) })
}

// finishWork runs until every caller has finished, and reports whether all have.
// The actions of a schedule end by themselves. A workload is given more time as
// long as it makes progress.
func (t *trial) finishWork() bool {
	w := t.world
	for range maxExtensions {
		began := w.now
		w.run(w.now+t.patience()+t.work(), t.idle)
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
	for _, c := range t.clients {
		if len(c.host.procs) > 0 && c.gotOn > since {
			return true
		}
	}
	return false
}

// patience is how long a caller may wait for a lock after the healing. By then
// keys that were left behind have expired, messages that were held up have
// arrived, and quarantines are over.
func (t *trial) patience() time.Duration {
	cfg := t.config
	return t.longestKey() + t.lastArrival() - t.world.now + 3*cfg.TTL + 2*max(0, cfg.RestartGuard) + 5*time.Second
}

// longestKey is how long it takes until the last lock that a master stores expires:
// long, where clocks were set back.
func (t *trial) longestKey() time.Duration {
	longest := time.Duration(0)
	for _, m := range t.masters {
		for key, e := range m.keys.Keys {
			if masters.Holds(key) && e.Until != 0 {
				longest = max(longest, m.left(e.Until))
			}
		}
	}
	return longest
}

// work is how long it takes the callers to finish if they hold the lock in turn.
func (t *trial) work() time.Duration {
	longest := time.Duration(0)
	for _, list := range t.schedule.Actions {
		for _, a := range list {
			longest = max(longest, a.Hold)
		}
	}
	return longest * time.Duration(len(t.schedule.Actions))
}

// stuck reports every client that still has a process.
func (t *trial) stuck(what string) {
	for _, c := range t.clients {
		if len(c.host.procs) > 0 {
			t.check.report(Violation{
				Kind:    Stuck,
				What:    c.host.name + " " + what,
				Clients: []int{c.index},
			})
		}
	}
}

// idle reports whether every process has ended.
func (t *trial) idle() bool {
	if t.seen() {
		return true
	}
	for _, c := range t.clients {
		if len(c.host.procs) > 0 {
			return false
		}
	}
	return true
}

// quiet reports whether nothing is under way and nothing is owed.
func (t *trial) quiet() bool {
	for _, c := range t.clients {
		for _, l := range c.links {
			if !l.settled() {
				return false
			}
		}
	}
	return true
}

// lastArrival is when all that was sent until now has arrived, also on connections
// that were given up.
func (t *trial) lastArrival() time.Duration {
	last := t.world.now
	for _, c := range t.clients {
		for _, w := range c.wires {
			last = max(last, w.busy)
		}
	}
	return last
}

func (t *trial) finish() *result {
	w := t.world
	for i := len(t.check.claims) - 1; i >= 0; i-- {
		t.check.leave(t.check.claims[i])
	}
	t.trace.close()
	t.stats.Schedules = 1
	t.stats.Simulated = w.now
	t.stats.Events = w.ran
	seen := map[ViolationKind]bool{}
	for _, v := range t.check.violations {
		if !seen[v.Kind] {
			seen[v.Kind] = true
			t.stats.Violations[v.Kind]++
		}
		w.mixString(v.What)
	}
	if len(seen) > 0 {
		t.stats.Unsafe = 1
	}
	w.mix(t.outcome)
	return &result{
		seed:       t.schedule.Seed,
		hash:       w.hash,
		outcome:    t.outcome,
		violations: t.check.violations,
		stats:      t.stats,
		trace:      t.trace,
	}
}

func (t *trial) crash(c *client) {
	for _, cl := range t.check.claims {
		if cl.client == c {
			t.stats.crashedHolding++
		}
	}
	t.check.crashed(c)
	c.crash()
}

// revive starts a crashed client again. It goes on with its next action.
func (t *trial) revive(c *client) {
	if err := t.enter(c); err != nil {
		panic("simulate: redlock.New fails for a client that it made before: " + err.Error())
	}
}

// act performs the actions that a caller has left.
func (t *trial) act(p *Process) {
	t.adopt(p)
	list, done := t.schedule.Actions[p.caller], &t.done[p.caller]
	for *done < len(list) && !t.healed && !p.client.closing {
		a := list[*done]
		*done++
		think := a.Think
		if a.At > 0 {
			think = a.At - p.Clock().Monotonic()
		}
		p.Sleep(context.Background(), think)
		t.trace.act(p.caller, *done-1, p.Clock().Monotonic())
		if t.healed || p.client.closing {
			return
		}
		t.perform(p, a)
	}
}

// storage returns the storage that a lock protects.
func (t *trial) storage(lock string) *Storage {
	s := t.storages[lock]
	if s == nil {
		s = &Storage{trial: t}
		t.storages[lock] = s
	}
	return s
}

// note folds how an operation ended into the outcome.
func (t *trial) note(p *Process, err error) {
	t.votes(p, err)
	code := 1
	for i, e := range []error{
		redlock.ErrTaken, redlock.ErrNoQuorum, redlock.ErrLost, redlock.ErrExpired, redlock.ErrNotHeld,
	} {
		if errors.Is(err, e) {
			code = i + 2
			break
		}
	}
	for _, b := range strconv.Itoa(p.caller*100000 + t.done[p.caller]*10 + code) {
		t.outcome = (t.outcome ^ uint64(b)) * hashPrime
	}
}
