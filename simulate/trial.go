package simulate

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// trial is one run of one schedule: first the part with faults, in which
// nothing unsafe may happen, then everything is healed and every client must
// get the lock again.
type trial struct {
	schedule *Schedule
	config   *Config
	world    *world
	masters  []*master
	clients  []*client
	check    *checker
	storage  *Storage
	stats    *Stats
	trace    *trace
	workload func(p *Process, c *redlock.Client) // nil: the actions of the schedule
	stopOn   ViolationKind

	snapshots map[*Fault]map[string]*entry
	ends      []*ending
	healed    bool
	done      []int // actions that each caller has begun
	outcome   uint64
}

// ending is what ends a fault, once.
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

// lockName is the lock that the actions of a schedule are about.
const lockName = "lock"

// options say how to run a schedule.
type options struct {
	workload func(*Process, *redlock.Client) // nil: the actions of the schedule
	trace    *trace                          // nil: none
	stopOn   ViolationKind                   // end when this is seen; empty: go on
	unhealed bool                            // end with the part with faults
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
		snapshots: map[*Fault]map[string]*entry{},
		done:      make([]int, max(s.config.Clients, len(s.Actions))),
		outcome:   hashOffset,
	}
	defer t.world.end()
	t.check = &checker{trial: t}
	t.storage = &Storage{trial: t}
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

// seen reports whether the violation that was looked for has happened.
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
		m.keys.removed = func(key string, e *entry) { t.check.deleted(m, t.clients[m.keys.caller], key, e) }
		t.masters = append(t.masters, m)
	}
	for i := range t.config.Clients {
		c := newClient(t.world, i, t.masters, t.config, t.schedule.latency(), seed, t.stats)
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
			// Connecting takes a moment, as redlock.Dial does.
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

// plan puts every fault where it belongs in time.
func (t *trial) plan() {
	w := t.world
	for i := range t.schedule.Faults {
		f := &t.schedule.Faults[i]
		if f.Kind == RestartSnapshot || f.Kind == Failover {
			w.at(f.At-f.Size, nil, action(func() { t.snapshots[f] = t.masters[f.Node].keys.copy() }))
		}
		w.at(f.At, nil, action(func() {
			t.mark(f)
			if end := t.begin(f); end != nil {
				e := &ending{end}
				t.ends = append(t.ends, e)
				w.at(f.At+f.For, nil, e)
			}
		}))
	}
}

func (t *trial) mark(f *Fault) {
	if t.trace != nil {
		t.trace.marks = append(t.trace.marks, mark{f.where(), t.world.now, f.For, f.String()})
	}
}

// heal ends every fault. Clocks keep what they show.
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

// recover lets the work end, and then has every client take the lock once more.
func (t *trial) recover() {
	w := t.world
	limit := w.now + t.config.patience() + t.setBack() + t.work()
	w.run(limit, t.idle)
	if t.workload != nil || t.seen() {
		return // whoever still works does not know that it should end
	}
	if !t.idle() {
		t.stuck("has not come to an end")
		return
	}
	for _, c := range t.clients {
		t.start(c, c.index, func(p *Process) {
			h, err := t.lock(p, context.Background(), lockName, Action{})
			if err == nil {
				t.check.leave(h.claim)
				h.Unlock(context.Background())
			}
		})
	}
	limit = w.now + t.config.patience() + t.setBack()
	w.run(limit, t.idle)
	if t.seen() {
		return
	}
	if !t.idle() {
		t.stuck("did not get the lock")
		return
	}
	w.run(w.now+10*time.Second, t.quiet)
	if t.quiet() {
		t.check.leftovers()
	}
	w.run(t.lastArrival(), t.seen)
	w.run(w.now+t.config.TTL+t.config.TTL/10+t.setBack(), t.seen)
	t.check.zombies()
}

// work is how long the callers may hold the lock in turn before they come to an
// end.
func (t *trial) work() time.Duration {
	longest := time.Duration(0)
	for _, list := range t.schedule.Actions {
		for _, a := range list {
			longest = max(longest, a.Hold)
		}
	}
	return longest * time.Duration(len(t.schedule.Actions))
}

// setBack is by how much clocks of masters were set back or stood still, which
// lengthens TTLs.
func (t *trial) setBack() time.Duration {
	d := time.Duration(0)
	for _, f := range t.schedule.Faults {
		switch f.Kind {
		case Step:
			d += max(0, -f.Size)
		case Freeze, Rate:
			d += f.For
		}
	}
	return d
}

func (t *trial) stuck(what string) {
	for _, c := range t.clients {
		if len(c.host.procs) > 0 {
			t.check.report(Violation{
				Kind:    Stuck,
				What:    c.host.name + " " + what + " although all is well again",
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
			if !l.greeted || len(l.conn.flight) > 0 || l.debts.Len() > 0 {
				return false
			}
		}
	}
	return true
}

// lastArrival is when everything has arrived that was sent until now, also on
// connections that were given up.
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
		panic("simulate: a client that could be made once cannot be made again: " + err.Error())
	}
}

// act performs what is left of a caller's actions.
func (t *trial) act(p *Process) {
	list, done := t.schedule.Actions[p.caller], &t.done[p.caller]
	for *done < len(list) && !t.healed {
		a := list[*done]
		*done++
		think := a.Think
		if a.At > 0 {
			think = a.At - p.Clock().Monotonic()
		}
		p.Sleep(context.Background(), think)
		t.trace.act(p.caller, *done-1, p.Clock().Monotonic())
		if t.healed {
			return
		}
		t.perform(p, a)
	}
}

// perform locks, works, writes and unlocks.
func (t *trial) perform(p *Process, a Action) {
	ctx, cancel := p.Clock().WithTimeout(context.Background(), a.Patience)
	h, err := t.lock(p, ctx, lockName, a)
	cancel()
	t.note(p, err)
	if err != nil {
		return
	}
	known := t.storage.Read()
	work := a.Hold
	if a.Extend {
		work /= 2
		p.during(h.Done(), work)
		t.note(p, h.Extend(context.Background(), t.config.TTL))
	}
	p.during(h.Done(), work)
	if a.Nested {
		t.nested(p, h)
	}
	if h.Valid() {
		if d := t.config.remote; d > 0 {
			p.Sleep(context.Background(), p.client.dice.spread(time.Millisecond, d))
		}
		t.storage.Write(known, h.Token())
		t.stats.Writes++
	}
	t.check.leave(h.claim)
	t.note(p, h.Unlock(context.Background()))
}

// grip is a lock that is held, whatever kind of lock it is.
type grip struct {
	holding
	claim *claim
}

// holding is what *redlock.Lease and the naive locks have in common.
type holding interface {
	hold
	Token() uint64
	Extend(ctx context.Context, ttl time.Duration) error
	Unlock(ctx context.Context) error
}

// lock takes the lock that the configuration asks for, and tells the checks.
func (t *trial) lock(p *Process, ctx context.Context, name string, a Action) (*grip, error) {
	began := t.world.now
	t.stats.Calls++
	var h holding
	var err error
	if r := t.config.rung; r != nil {
		h, err = r.lock(p, ctx, name)
	} else {
		opts := []redlock.LockOption{}
		if !a.Renew {
			opts = append(opts, redlock.NoRenew())
		}
		h, err = p.client.api.Mutex(name, opts...).Lock(ctx)
	}
	t.trace.add(span{lane: p.client.host.name, kind: spanWaiting, from: began, to: t.world.now, client: p.client.index, label: "waiting"})
	if err != nil {
		if errors.Is(err, redlock.ErrNoQuorum) {
			t.stats.NoQuorum++
		}
		return nil, err
	}
	t.stats.Acquisitions++
	t.stats.Waits.record(t.world.now - began)
	return &grip{h, t.check.grant(p.client, name, h)}, nil
}

// note adds how an operation ended to the outcome.
func (t *trial) note(p *Process, err error) {
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
