package simulate

import (
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
)

// Scenario is a known failure as a simulation: without the protection that is
// made for it, a promise breaks in some schedule; with it, in none.
type Scenario struct {
	Name    string        // as docs/failures.md calls it
	Row     string        // of docs/failures.md, or the rung of the ladder
	About   string        // what happens
	Against string        // the protection; empty: there is none to switch off
	Breaks  ViolationKind // what is seen without it
	Limit   string        // why it breaks even with the protection; empty: it does not

	config  func() Config
	without func(*Config)
}

// Config returns the simulation with every protection.
func (s *Scenario) Config() Config { return s.config() }

// Without returns the simulation without the protection, and false if there is
// none to switch off.
func (s *Scenario) Without() (Config, bool) {
	if s.without == nil {
		return Config{}, false
	}
	cfg := s.config()
	s.without(&cfg)
	return cfg, true
}

// Find returns the scenario of that name or row, or nil.
func Find(name string) *Scenario {
	for _, s := range Catalogue {
		if s.Name == name || s.Row == name {
			return s
		}
	}
	return nil
}

// unsafe switches protections of the coordinator off.
func unsafe(u seam.Unsafe) func(*Config) { return func(cfg *Config) { cfg.unsafe = u } }

// unguarded switches protections of the guards off.
func unguarded(u seam.UnsafeGuard) func(*Config) { return func(cfg *Config) { cfg.unsafeGuard = u } }

// wrong has the masters follow a rule that is wrong.
func wrong(variant string) func(*Config) { return func(cfg *Config) { cfg.variant = variant } }

func noRestartGuard(cfg *Config) { cfg.RestartGuard = -1 }
func noClockGuard(cfg *Config)   { cfg.ClockGuard = -1 }

// mix is a simulation of the usual work with faults of some kinds.
func mix(kinds ...Kind) func() Config {
	return func() Config {
		m := Only(kinds...)
		m.Strict = true
		return Config{Duration: 20 * time.Second, Faults: m}
	}
}

// withLock has the locks be of another kind.
func withLock(kind LockKind, config func() Config) func() Config {
	return func() Config {
		cfg := config()
		cfg.Lock = kind
		return cfg
	}
}

// farStorage has writes travel to a storage that knows fencing tokens, for at
// most so long.
func farStorage(away time.Duration, kinds ...Kind) func() Config {
	return func() Config {
		cfg := withLock(FencedLock, mix(kinds...))()
		cfg.remote = away
		return cfg
	}
}

func unfenced(cfg *Config) { cfg.Lock = PlainLock }

// acted is a simulation of one sequence of faults, with its times drawn anew
// for every seed.
func acted(script func(dice *stream, cfg *Config) ([]Fault, [][]Action)) func() Config {
	return func() Config {
		return Config{TTL: 10 * time.Second, Duration: 16 * time.Second, Clients: 2, script: script, Faults: Calm}
	}
}

// polled has waiters make one attempt after the other.
func polled(config func() Config) func() Config {
	return func() Config {
		cfg := config()
		cfg.polling = true
		return cfg
	}
}

// Catalogue is every scenario.
var Catalogue = []*Scenario{
	{
		Name: "failover", Row: "S1", Breaks: Overlap, Against: "restart guard",
		About:  "a replica that lags behind takes over for a master",
		config: acted(erosion(Fault{Kind: Failover})), without: noRestartGuard,
	},
	{
		Name: "clock-step-forward", Row: "S2", Breaks: Overlap, Against: "clock guard",
		About:  "a master's clock jumps, and its key expires under the holder",
		config: acted(erosion(Fault{Kind: Step})), without: noClockGuard,
	},
	{
		Name: "unseen-step", Row: "S2b", Breaks: Overlap, Against: "the clock is read with every vote",
		About:  "a master's clock jumps, and it is asked before any heartbeat",
		config: acted(unseen(Step)), without: unguarded(seam.UnsafeGuard{Untimely: true}),
	},
	{
		Name: "restart-amnesia", Row: "S3", Breaks: Overlap, Against: "restart guard",
		About:  "a master restarts without its data",
		config: acted(erosion(Fault{Kind: RestartEmpty})), without: noRestartGuard,
	},
	{
		Name: "restart-plus-step", Row: "S4", Breaks: Overlap, Against: "restart guard, counted on the client's clock",
		About:  "a master restarts without its data, and its clock jumps, so that it looks old",
		config: acted(erosion(Fault{Kind: RestartEmpty}, Fault{Kind: Step})), without: noRestartGuard,
	},
	{
		Name: "mixed-ttl-guard", Row: "S5", Breaks: Overlap, Against: "no TTL above the guard",
		About:  "a guard that is shorter than the TTL of the lock that was forgotten",
		config: acted(erosion(Fault{Kind: RestartEmpty})), without: func(cfg *Config) { cfg.shortGuard = cfg.TTL / 10 },
	},
	{
		Name: "pause-before-reply", Row: "S6", Breaks: Overlap, Against: "stopwatch read after the deciding vote",
		About:  "a client stops while the answers are on their way, and reads them when its keys have expired",
		config: acted(pauseBeforeReply),
		// The bound on the age of a vote stands in the way as well.
		without: unsafe(seam.Unsafe{EarlyElapsed: true, OldVotes: true}),
	},
	{
		Name: "pause-in-section", Row: "S7", Breaks: LostUpdate, Against: "fencing: the storage refuses a lower token",
		About:   "a holder stops between looking at its lease and writing",
		config:  farStorage(10*time.Millisecond, ClientPause),
		without: unfenced,
	},
	{
		Name: "delayed-write", Row: "S8", Breaks: LostUpdate, Against: "fencing: the storage refuses a lower token",
		About:   "a write travels for longer than its lease lasts",
		config:  farStorage(3 * time.Second),
		without: unfenced,
	},
	{
		Name: "rate-drift", Row: "S10", Breaks: Overlap, Against: "drift allowance",
		About:  "the masters' clocks run fast and the holder's runs slow, within the drift factor",
		config: acted(rateDrift), without: unsafe(seam.Unsafe{NoDrift: true}),
	},
	{
		Name: "wall-step-back", Row: "S11", Breaks: Overlap,
		About:  "a client's wall clock is set while it acquires and holds",
		config: mix(ClientStep),
	},
	{
		Name: "vm-suspend", Row: "S12", Breaks: Overlap, Against: "elapsed time also by the wall clock",
		About:  "a client is suspended, and its monotonic clock with it",
		config: mix(ClientSuspend), without: unsafe(seam.Unsafe{MonotonicOnly: true}),
	},
	{
		Name: "half-is-enough", Row: "S16", Breaks: Overlap, Against: "a strict majority",
		About:  "two clients with half of the masters each",
		config: func() Config { c := mix(Partition)(); c.Nodes = 4; return c }, without: unsafe(seam.Unsafe{MinorityWins: true}),
	},
	{
		Name: "quorum-erosion", Row: "S17", Breaks: Overlap, Against: "repair after a renewal",
		About:  "a holder of three masters of five loses one, long after the other two came back",
		config: acted(lateErosion), without: unsafe(seam.Unsafe{NoRepair: true}),
	},
	{
		Name: "no-repair", Row: "S18", Breaks: Overlap, Against: "repair after a renewal",
		About:  "masters restart empty one after the other while the lock is held and renewed",
		config: acted(rollingRestarts), without: unsafe(seam.Unsafe{NoRepair: true}),
	},
	{
		Name: "resurrecting-extend", Row: "S19", Breaks: Overlap, Against: "a key made anew does not count",
		About:  "a master loses the key again and again, and the holder's renewals count it as held",
		config: acted(resurrection), without: unsafe(seam.Unsafe{ResurrectExtend: true}),
	},
	{
		Name: "stale-release", Row: "S20", Breaks: Overlap, Against: "a fresh value for every attempt",
		About:  "a release that was held up deletes the key of a later attempt",
		config: polled(acted(staleRelease)), without: unsafe(seam.Unsafe{ReuseValue: true}),
	},
	{
		Name: "unlock-retry", Row: "S21", Breaks: Overlap, Against: "a fresh value for every attempt",
		About:  "a release whose outcome was unknown is delivered again, when its client holds the lock once more",
		config: mix(CutOut, CutIn), without: unsafe(seam.Unsafe{ReuseValue: true}),
	},
	{
		Name: "skipped-release", Row: "L3", Breaks: Leftover, Against: "release everywhere after a failed attempt",
		About:  "attempts that failed leave keys behind that nobody holds",
		config: mix(), without: unsafe(seam.Unsafe{SkipRelease: true}),
	},
	{
		Name: "blind-delete", Row: "S22", Breaks: ForeignDelete, Against: "compare-and-delete",
		About:  "a release deletes without comparing",
		config: mix(), without: unsafe(seam.Unsafe{BlindDelete: true}),
	},
	{
		Name: "stale-return", Row: "S23", Breaks: Overlap, Against: "stopwatch read as the last step before the return",
		About:  "a client stands still while it gets the lock, and returns a lease that has ended",
		config: mix(ClientPause, Slow), without: unsafe(seam.Unsafe{EarlyElapsed: true}),
	},
	{
		Name: "eviction-flush", Row: "S24", Breaks: Overlap, Against: "restart guard: the marker is gone",
		About:  "FLUSHALL at a master of the holder",
		config: acted(erosion(Fault{Kind: Flush})), without: noRestartGuard,
	},
	{
		Name: "eviction", Row: "S24b", Breaks: Overlap, Limit: "the marker is still there: maxmemory-policy must be noeviction",
		About:  "a master of the holder evicts its key",
		config: acted(erosion(Fault{Kind: Evict})),
	},
	{
		Name: "old-snapshot", Row: "S25", Breaks: Overlap, Against: "restart guard",
		About:  "a master restarts from a snapshot that lacks the lock",
		config: acted(erosion(Fault{Kind: RestartSnapshot})), without: noRestartGuard,
	},
	{
		Name: "clock-step-back", Row: "S26", Breaks: Stuck,
		About:  "masters' clocks are set back, and keys live longer",
		config: mix(Step),
	},
	{
		Name: "frozen-clock", Row: "S27", Breaks: Stuck,
		About:  "a master's clock stands still",
		config: mix(Freeze),
	},
	{
		Name: "common-step", Row: "S28", Breaks: Overlap, Against: "clock guard, against the client's clock",
		About:  "the clocks of all masters jump together",
		config: acted(commonStep), without: noClockGuard,
	},
	{
		Name: "unseen-flush", Row: "S24c", Breaks: Overlap, Against: "the marker is read with every vote",
		About:  "a master of the holder is flushed and asked before any heartbeat",
		config: acted(unseen(Flush)), without: unguarded(seam.UnsafeGuard{Unvouched: true}),
	},
	{
		Name: "mixed-guards", Row: "S5b", Breaks: Overlap, Against: "the marker tells the longest guard",
		About:  "a majority restarts empty under a lease that is longer than the guard of those who wait",
		config: mixedGuards, without: unguarded(seam.UnsafeGuard{OwnHold: true}),
	},
	{
		Name: "split-config", Row: "S14", Breaks: Overlap, Against: "the marker tells the number of masters",
		About:  "one client locks with three masters, the others with five",
		config: splitConfig, without: unguarded(seam.UnsafeGuard{AnyGroup: true}),
	},
	{
		Name: "three-to-five", Row: "S14b", Breaks: Overlap, Against: "the marker tells the number of masters",
		About:   "three masters become five while a client of the three holds two of them, and renews",
		config:  func() Config { return threeToFive(2, time.Minute) },
		without: unguarded(seam.UnsafeGuard{AnyGroup: true}),
	},
	{
		Name: "told-one-by-one", Row: "S14c", Breaks: Overlap, Against: "no vote before a guard after the last was told",
		About:   "as before, without renewals; the masters that were told first vote first",
		config:  func() Config { return threeToFive(2, redlock.DefaultTTL) },
		without: func(cfg *Config) { cfg.script = threeToFive(1, redlock.DefaultTTL).script },
	},
	{
		Name: "init-after-loss", Row: "S14d", Breaks: Overlap, Against: "init declares nothing new beside masters in use",
		About: "masters restart empty under a lease, and an operator declares them new",
		config: func() Config {
			cfg := newcomer(initAfterLoss)()
			cfg.Duration = 100 * time.Second
			return cfg
		},
		without: unguarded(seam.UnsafeGuard{InitBeside: true}),
	},
	{
		Name: "uptime-floor", Row: "S33", Breaks: Overlap, Against: "no marker: age 0",
		About:  "a new client takes the uptime of a restarted master, which is up to a second too long, for the age of its memory",
		config: newcomer(uptimeFloor), without: unguarded(seam.UnsafeGuard{TrustUptime: true}),
	},
	{
		Name: "newcomer-after-flush", Row: "S34", Breaks: Overlap, Against: "no marker: age 0",
		About:  "a new client comes to a master that was flushed long after its start",
		config: newcomer(newcomerAfterFlush), without: unguarded(seam.UnsafeGuard{TrustUptime: true}),
	},
	{
		Name: "counted-in-quarantine", Row: "S35", Breaks: Overlap, Against: "an extension by a young memory does not count",
		About:  "a repair puts a key back behind a vote that its master has forgotten, and the next renewal counts it",
		config: countedInQuarantine, without: unguarded(seam.UnsafeGuard{CountYoung: true}),
	},
	{
		Name: "late-loss", Row: "S31", Breaks: Overlap, Against: "the old deadline stands until a quorum extended",
		About:  "a holder is cut off just before a renewal",
		config: mix(CutOut, Partition), without: unsafe(seam.Unsafe{RenewedEarly: true}),
	},
	{
		Name: "over-admitting-semaphore", Row: "S29", Breaks: Overlap, Against: "a majority must have given the same slots",
		About:   "five clients want two permits, and masters give them in different order",
		config:  func() Config { c := mix()(); c.Lock, c.Clients, c.permits = SemaphoreLock, 5, 2; return c },
		without: unsafe(seam.Unsafe{SeparatePermits: true}),
	},
	{
		Name: "resize-to-fewer", Row: "S39", Breaks: Overlap, Against: "what is held counts, whichever master knows it",
		About:  "five permits become three while three are held, each of which two masters of three know",
		config: resizedToFewer, without: unsafe(seam.Unsafe{CountLocally: true}),
	},
	{
		Name: "duplicate-token", Row: "S30", Breaks: Token, Against: "count only masters that stepped to the token",
		About:  "the counters of the masters differ, and so do the clients' clocks",
		config: withLock(FencedLock, mix(ClientStep, Partition, CutOut, CutIn)), without: unsafe(seam.Unsafe{UncommittedToken: true}),
	},
	{
		Name: "late-downgrade", Row: "S38", Breaks: Overlap, Against: "a reader from before the first master is told",
		About:  "a writer turns reader, is cut off from some masters, and goes on writing meanwhile",
		config: withLock(ReadWriteLock, mix(Partition, CutOut, CutIn)), without: unsafe(seam.Unsafe{LateDowngrade: true}),
	},
	{
		Name: "one-master-reader", Row: "S40", Breaks: Overlap, Against: "readers are let in by a majority, too",
		About:  "a reader reads as soon as one master has let it in",
		config: withLock(ReadWriteLock, mix()), without: unsafe(seam.Unsafe{OneForReaders: true}),
	},
	{
		Name: "hollow-raise", Row: "S43", Breaks: Token, Against: "a master confirms a token only if it holds the lock",
		About: "a master has forgotten the grant by the time it is told of the token",
		config: func() Config {
			cfg := withLock(FencedLock, acted(hollowRaise))()
			cfg.Nodes, cfg.Clients = 3, 3
			return cfg
		}, without: wrong(confirmsAnything),
	},
	{
		Name: "unwritten-count", Row: "S41", Breaks: Custom, Against: "what is counted is written back first",
		About:  "one counts what two masters know, the next what two others know",
		config: withLock(Latch, mix(Partition, CutOut, CutIn)), without: wrong(noWriteBack),
	},
	{
		Name: "reader-stream", Row: "L14", Breaks: Stuck, Against: "readers wait behind a writer that waits",
		About: "a writer waits, and readers who come later pass it",
		config: func() Config {
			c := withLock(ReadWriteLock, mix())()
			c.Nodes, c.TTL = 4, 200*time.Millisecond
			return c
		}, without: wrong(noIntent),
	},
	{
		Name: "overtaken-waiter", Row: "L24", Breaks: Passed, Against: "a ticket above all that are queued",
		About:  "clients with different clocks wait for a fair lock",
		config: withLock(FairLock, mix(ClientStep)), without: unsafe(seam.Unsafe{ClockTicket: true}),
	},
	{
		Name: "partitioned-holder", Row: "L1", Breaks: Stuck,
		About:  "a holder is cut off; the others wait a TTL and go on",
		config: mix(Partition, CutOut, CutIn),
	},
	{
		Name: "split-vote", Row: "L2", Breaks: Stuck,
		About:  "many contenders, each with a minority",
		config: func() Config { c := mix()(); c.Clients = 12; return c },
	},
	{
		Name: "slow-node", Row: "L4", Breaks: Stuck,
		About:  "masters hang",
		config: mix(Pause, Slow),
	},
	{
		Name: "refusing-node", Row: "L5", Breaks: Stuck,
		About:  "masters answer MISCONF, READONLY, OOM, LOADING, BUSY, NOREPLICAS, also to a release",
		config: mix(Errors),
	},
	{
		Name: "majority-crash", Row: "L7", Breaks: Stuck,
		About:  "masters restart, several at once",
		config: mix(Restart, RestartEmpty, RestartPartial),
	},
	{
		Name: "crash-after-acquire", Row: "L8", Breaks: Stuck,
		About:  "clients crash, also while they hold the lock",
		config: mix(ClientCrash),
	},
	{
		Name: "cancelled-cleanup", Row: "L9", Breaks: Leftover, Against: "release everywhere after a failed attempt",
		About:  "callers give up in the middle of an attempt",
		config: func() Config { c := mix()(); c.script = impatience; return c }, without: unsafe(seam.Unsafe{SkipRelease: true}),
	},
	{
		Name: "even-tie", Row: "L10", Breaks: Stuck,
		About:  "two clients on four masters",
		config: func() Config { c := mix()(); c.Nodes, c.Clients = 4, 2; return c },
	},
	{
		Name: "lost-wakeup", Row: "L12", Breaks: Stuck,
		About:  "connections break while clients wait",
		config: mix(Reset),
	},
	{
		Name: "zombie-renewal", Row: "L15", Breaks: Zombie,
		About:  "renewals cross with releases on a network that delays them",
		config: mix(Slow, Reset),
	},
	ladder(rungV1, Stuck, "a holder crashes: nobody gets the lock any more", ClientCrash),
	ladder(rungV2, Stuck, "a holder crashes before the second command", ClientCrash),
	ladder(rungV3, ForeignDelete, "the work outlasts the TTL, and the unlock deletes another's lock"),
	ladder(rungV4, ForeignDelete, "the key expires between GET and DEL"),
	ladder(rungV4b, Overlap, "the work outlasts the TTL"),
	ladder(rungV5, Stuck, "a holder locks again and waits for itself"),
	ladder(rungV6, Overlap, "a replica that lags behind takes over", Failover),
	r0(),
}

// ladder is the scenario of a naive lock on one master.
func ladder(r *rung, breaks ViolationKind, about string, kinds ...Kind) *Scenario {
	return &Scenario{
		Name: "ladder-" + r.name, Row: r.name, Breaks: breaks, About: r.about + ": " + about,
		Limit: "a naive lock",
		config: func() Config {
			cfg := mix(kinds...)()
			cfg.Nodes, cfg.rung, cfg.RestartGuard, cfg.ClockGuard = 1, r, -1, -1
			return cfg
		},
	}
}

func r0() *Scenario {
	s := ladder(rungR0, Overlap, "masters restart, messages are late, clients stop", Kinds...)
	config := s.config
	s.config = func() Config {
		cfg := config()
		cfg.Nodes, cfg.Faults = 5, Assumed
		return cfg
	}
	return s
}

// erosion: client 1 holds A, B and C, because D and E are cut off from it. C
// forgets. Client 2 then asks all.
func erosion(forgets ...Fault) func(*stream, *Config) ([]Fault, [][]Action) {
	return func(dice *stream, cfg *Config) ([]Fault, [][]Action) {
		faults := []Fault{
			{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 3},
			{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 4},
		}
		at := dice.between(500*time.Millisecond, time.Second)
		for i, f := range forgets {
			f.Node, f.Client = 2, 0
			f.At = at + time.Duration(i)*time.Millisecond
			switch f.Kind {
			case Step:
				f.Size = dice.between(cfg.TTL, 3*cfg.TTL)
			case RestartSnapshot, Failover:
				f.Size = f.At
				fallthrough
			case RestartEmpty:
				f.For = dice.between(time.Millisecond, 300*time.Millisecond)
			}
			faults = append(faults, f)
		}
		// More than a heartbeat after the fault: what happens before that is
		// found out too late, as every guard says.
		return faults, [][]Action{
			{{Think: dice.between(100*time.Millisecond, 300*time.Millisecond), Patience: time.Second, Hold: cfg.TTL * 9 / 10, Renew: dice.chance(500)}},
			{{Think: dice.between(2500*time.Millisecond, 5*time.Second), Patience: 3 * time.Second, Hold: time.Second}},
		}
	}
}

// commonStep: client 1 holds all; all clocks jump; client 2 asks.
func commonStep(dice *stream, cfg *Config) ([]Fault, [][]Action) {
	_, actions := erosion()(dice, cfg)
	actions[0][0].Renew = false // a renewal would put the keys back in time
	return []Fault{{
		Kind: Step, Node: -1, At: dice.between(500*time.Millisecond, time.Second), Size: dice.between(cfg.TTL, 3*cfg.TTL),
	}}, actions
}

// lateErosion: as erosion, but D and E come back, and renewals repair them,
// before C forgets.
func lateErosion(dice *stream, cfg *Config) ([]Fault, [][]Action) {
	back := dice.between(500*time.Millisecond, time.Second)
	faults := []Fault{
		{Kind: Partition, At: 0, For: back, Client: 0, Node: 3},
		{Kind: Partition, At: 0, For: back, Client: 0, Node: 4},
		{Kind: Delete, At: dice.between(6*time.Second, 9*time.Second), Node: 2},
	}
	return faults, [][]Action{
		{{Think: 200 * time.Millisecond, Patience: time.Second, Hold: cfg.TTL * 14 / 10, Renew: true}},
		{{Think: dice.between(5*time.Second, 9*time.Second), Patience: 6 * time.Second, Hold: time.Second}},
	}
}

// rollingRestarts: three masters restart empty, each with time for a renewal in
// between. Client 1 holds all the while; client 2 has a shorter guard than the
// time between, so that the masters that are back may grant.
func rollingRestarts(dice *stream, cfg *Config) ([]Fault, [][]Action) {
	var faults []Fault
	at := dice.between(time.Second, 2*time.Second)
	first := dice.below(cfg.Nodes)
	for i := range 3 {
		faults = append(faults, Fault{Kind: RestartEmpty, At: at, For: 100 * time.Millisecond, Node: (first + i) % cfg.Nodes})
		at += cfg.TTL * 12 / 10
	}
	// The last one is deleted by hand, which no guard sees.
	faults[2] = Fault{Kind: Delete, At: faults[2].At, Node: faults[2].Node}
	cfg.Duration = at + 6*time.Second
	return faults, [][]Action{
		{{Think: 200 * time.Millisecond, Patience: time.Second, Hold: cfg.Duration, Renew: true}},
		{{Think: faults[2].At - time.Second, Patience: 4 * time.Second, Hold: time.Second}},
	}
}

// resurrection: client 1 holds A, B and C; A loses the key again and again.
// Client 2 reaches D only when client 1's first validity is over.
func resurrection(dice *stream, cfg *Config) ([]Fault, [][]Action) {
	faults, actions := erosion()(dice, cfg)
	over := cfg.TTL + time.Second
	faults = append(faults, Fault{Kind: Partition, At: 0, For: over, Client: 1, Node: 3})
	for at := 2 * time.Second; at < cfg.Duration; at += dice.between(5*time.Millisecond, 50*time.Millisecond) {
		faults = append(faults, Fault{Kind: Delete, At: at, Node: 0})
	}
	actions[0][0].Hold, actions[0][0].Renew = cfg.Duration, true
	actions[1][0].Patience = cfg.Duration
	slices.SortStableFunc(faults, func(a, b Fault) int { return int(a.At - b.At) })
	return faults, actions
}

// staleRelease: client 1 never reaches D and E, and C not at first, so that its
// attempts fail, and the releases to C are held up. When C can be reached again,
// client 1 gets the lock over a new connection, and the old releases arrive.
func staleRelease(dice *stream, cfg *Config) ([]Fault, [][]Action) {
	back := dice.between(1500*time.Millisecond, 4*time.Second)
	faults, _ := erosion(Fault{Kind: CutOut})(dice, cfg)
	faults[2].At, faults[2].For = 120*time.Millisecond, back-120*time.Millisecond
	return faults, [][]Action{
		{{Think: 200 * time.Millisecond, Patience: back + 4*time.Second, Hold: cfg.TTL * 9 / 10}},
		{{Think: back + dice.between(time.Second, 2*time.Second), Patience: 5 * time.Second, Hold: time.Second}},
	}
}

// impatience: every client gives up after about as long as an attempt takes, to
// the end.
func impatience(dice *stream, cfg *Config) ([]Fault, [][]Action) {
	all := make([][]Action, cfg.Clients)
	for c := range all {
		for at := time.Duration(0); at < cfg.Duration; {
			a := Action{
				Think:    dice.between(0, 100*time.Millisecond),
				Patience: dice.spread(500*time.Microsecond, 20*time.Millisecond),
				Hold:     dice.between(0, 50*time.Millisecond),
			}
			all[c] = append(all[c], a)
			at += a.Think + a.Hold
		}
	}
	return nil, all
}

// pauseBeforeReply: client 1 stops in the middle of asking, for longer than the
// TTL; client 2 takes the lock meanwhile and still holds it when client 1 goes
// on.
func pauseBeforeReply(dice *stream, cfg *Config) ([]Fault, [][]Action) {
	start := 100 * time.Millisecond
	stop := start + connecting + dice.between(0, 8*time.Millisecond)
	return []Fault{{Kind: ClientPause, At: stop, For: cfg.TTL + dice.between(500*time.Millisecond, 2*time.Second), Client: 0}},
		[][]Action{
			{{Think: start, Patience: 2 * cfg.TTL, Hold: time.Second}},
			{{Think: time.Second, Patience: 2 * cfg.TTL, Hold: 4 * time.Second}},
		}
}

func resizedToFewer() Config {
	cfg := withLock(SemaphoreLock, acted(resizeToFewer))()
	cfg.Nodes, cfg.Clients = 3, 5
	return cfg
}

// resizeToFewer: three clients hold a permit each, and are cut off from a master
// each. Then there are three permits instead of five, and another client wants one.
func resizeToFewer(dice *stream, cfg *Config) ([]Fault, [][]Action) {
	cfg.permits, cfg.resizes = 5, true
	var faults []Fault
	var actions [][]Action
	for i := range 3 {
		faults = append(faults, Fault{Kind: Partition, At: 0, For: cfg.Duration, Client: i, Node: i})
		actions = append(actions, []Action{{Think: dice.between(100*time.Millisecond, 500*time.Millisecond), Patience: time.Second, Hold: cfg.TTL * 9 / 10}})
	}
	return faults, append(actions,
		[]Action{{Think: dice.between(time.Second, 2*time.Second), Patience: time.Second, Resize: 3}},
		[]Action{
			{Think: 3 * time.Second, Patience: time.Second, How: ByTryLock}, // it learns of the Resize
			{Think: dice.between(0, time.Second), Patience: 3 * time.Second, Hold: time.Second},
		})
}

// hollowRaise: client 3, whose clock is ahead, has taken A's counter ahead. Client 1
// takes the lock at A and B, and B has forgotten it when it is told of the token.
func hollowRaise(dice *stream, cfg *Config) ([]Fault, [][]Action) {
	begin := 2 * time.Second
	return []Fault{
			{Kind: ClientStep, At: 0, Client: 2, Size: time.Hour},
			{Kind: Partition, At: begin / 10, For: begin, Client: 2, Node: 1},
			{Kind: Partition, At: begin / 10, For: begin, Client: 2, Node: 2},
			{Kind: Partition, At: 0, For: cfg.Duration, Client: 0, Node: 2},
			{Kind: Partition, At: 0, For: cfg.Duration, Client: 1, Node: 0},
			{Kind: Delete, At: begin + connecting + dice.between(0, 8*time.Millisecond), Node: 1},
		}, [][]Action{
			{{Think: begin, Patience: 100 * time.Millisecond, Hold: 100 * time.Millisecond}},
			{{Think: begin + dice.between(500*time.Millisecond, time.Second), Patience: 4 * time.Second, Hold: time.Second}},
			{{Think: 200 * time.Millisecond, Patience: time.Second, Hold: time.Second}},
		}
}

// rateDrift: clocks run apart by less than the drift factor; client 1 uses its
// lease to the end, client 2 waits for it.
func rateDrift(dice *stream, cfg *Config) ([]Fault, [][]Action) {
	apart := 3000 + dice.below(1500)
	return []Fault{
			{Kind: Rate, Node: -1, At: 0, For: cfg.Duration, Rate: apart},
			{Kind: ClientRate, Client: 0, At: 0, For: cfg.Duration, Rate: -apart},
		}, [][]Action{
			{{Think: 200 * time.Millisecond, Patience: time.Second, Hold: 2 * cfg.TTL}},
			{{Think: time.Second, Patience: 2 * cfg.TTL, Hold: time.Second}},
		}
}
