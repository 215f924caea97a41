package simulate

import (
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/weaker"
)

// Scenario is a known failure, simulated with and without the protection against
// it. Without the protection a promise breaks in some schedule; with it, in none.
type Scenario struct {
	Name    string        // its name in docs/failures.md
	Row     string        // its row in docs/failures.md, or the rung of the ladder
	About   string        // what happens
	Against string        // the protection; empty if there is none to switch off
	Breaks  ViolationKind // the promise that breaks without it
	Limit   string        // why a promise breaks even with the protection; empty if none does

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

// withoutProtections takes protections from the clients.
func withoutProtections(l weaker.Lacks) func(*Config) { return func(cfg *Config) { cfg.lacks = l } }

// unsafe switches off protections of the coordinator.
func unsafe(u seam.Unsafe) func(*Config) { return func(cfg *Config) { cfg.unsafe = u } }

// unguarded switches off protections of the restart and clock guards.
func unguarded(u seam.UnsafeGuard) func(*Config) { return func(cfg *Config) { cfg.unsafeGuard = u } }

// wrong makes the masters follow a wrong rule (variant.go).
func wrong(variant string) func(*Config) { return func(cfg *Config) { cfg.variant = variant } }

func noRestartGuard(cfg *Config) { cfg.RestartGuard = -1 }
func noClockGuard(cfg *Config)   { cfg.ClockGuard = -1 }

// mix simulates the usual work with random faults of the given kinds.
func mix(kinds ...Kind) func() Config {
	return func() Config {
		m := Only(kinds...)
		m.Strict = true
		return Config{Duration: 20 * time.Second, Faults: m}
	}
}

// withLock runs config with another kind of lock.
func withLock(kind LockKind, config func() Config) func() Config {
	return func() Config {
		cfg := config()
		cfg.Lock = kind
		return cfg
	}
}

// farStorage puts the storage, which checks fencing tokens, across the network: a
// write is under way for at most away.
func farStorage(away time.Duration, kinds ...Kind) func() Config {
	return func() Config {
		cfg := withLock(FencedLock, mix(kinds...))()
		cfg.remote = away
		return cfg
	}
}

func unfenced(cfg *Config) { cfg.Lock = PlainLock }

// acted plays one sequence of faults and actions. Every seed draws its times anew.
func acted(script func(dice *stream, cfg *Config) ([]Fault, [][]Action)) func() Config {
	return func() Config {
		return Config{TTL: 10 * time.Second, Duration: 16 * time.Second, Clients: 2, script: script, Faults: Calm}
	}
}

// polled makes waiters poll instead of queueing.
func polled(config func() Config) func() Config {
	return func() Config {
		cfg := config()
		cfg.polling = true
		return cfg
	}
}

// Catalogue lists every scenario.
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
		// The bound on the age of a vote would prevent it too, so it is off as well.
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
		config: mix(ClientSuspend), without: withoutProtections(weaker.Lacks{WallClock: true}),
	},
	{
		Name: "half-is-enough", Row: "S16", Breaks: Overlap, Against: "a strict majority",
		About:  "two clients with half of the masters each",
		config: func() Config { c := mix(Partition)(); c.Nodes = 4; return c }, without: unsafe(seam.Unsafe{MinorityWins: true}),
	},
	{
		Name: "quorum-erosion", Row: "S17", Breaks: Overlap, Against: "repair after a renewal",
		About:  "a holder of three masters of five loses one, long after the other two came back",
		config: acted(lateErosion), without: withoutProtections(weaker.Lacks{Repair: true}),
	},
	{
		Name: "no-repair", Row: "S18", Breaks: Overlap, Against: "repair after a renewal",
		About:  "masters restart empty one after the other while the lock is held and renewed",
		config: acted(rollingRestarts), without: withoutProtections(weaker.Lacks{Repair: true}),
	},
	{
		Name: "restarts-in-pairs", Row: "S18b", Breaks: Unrepaired,
		About: "two masters restart empty in the same instant, again and again",
		config: func() Config {
			cfg := acted(pairs)()
			cfg.TTL, cfg.Duration = 20*time.Second, 2*time.Minute
			return cfg
		},
	},
	{
		Name: "resurrecting-extend", Row: "S19", Breaks: Overlap, Against: "a key made anew does not count",
		About:  "a master loses the key again and again, and the holder's renewals count it as held",
		config: acted(resurrection), without: withoutProtections(weaker.Lacks{OwnKeysOnly: true}),
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
		config: mix(), without: withoutProtections(weaker.Lacks{Comparing: true}),
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
		Name: "forgetful-move", Row: "S51", Breaks: Token, Against: "the new masters take over what the old ones knew",
		About:   "three masters become five, and three of the five have never heard of the last token",
		config:  func() Config { return forgetfulMove([]Fault{{Kind: Regroup, Node: -1}}) },
		without: func(cfg *Config) { cfg.script = forgetfulMove(toldOnly()).script },
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
		Name: "replica-and-back", Row: "S50", Breaks: Overlap, Against: "a vote counts only if its master was one all the time",
		About:  "a master of the holder is made a replica of a server that was a copy of it, and a master again",
		config: acted(unseen(Follow)), without: unguarded(seam.UnsafeGuard{AnyRole: true}),
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
		config: withLock(ReadWriteLock, mix()), without: withoutProtections(weaker.Lacks{Quorum: true}),
	},
	{
		Name: "hollow-raise", Row: "S43", Breaks: Token, Against: "a master confirms a token only if it holds the lock",
		About: "a master has forgotten the grant by the time it is told of the token",
		config: func() Config {
			cfg := withLock(FencedLock, acted(hollowRaise))()
			cfg.Nodes, cfg.Clients = 3, 3
			return cfg
		}, without: wrong(masters.ConfirmsAnything),
	},
	{
		Name: "unwritten-count", Row: "S41", Breaks: Custom, Against: "what is counted is written back first",
		About:  "one counts what two masters know, the next what two others know",
		config: withLock(Latch, mix(Partition, CutOut, CutIn)), without: wrong(masters.NoWriteBack),
	},
	{
		Name: "reader-stream", Row: "L14", Breaks: Stuck, Against: "readers wait behind a writer that waits",
		About: "a writer waits, and readers who come later pass it",
		config: func() Config {
			c := withLock(ReadWriteLock, mix())()
			c.Nodes, c.TTL = 4, 200*time.Millisecond
			return c
		}, without: wrong(masters.NoIntent),
	},
	{
		Name: "overtaken-waiter", Row: "L24", Breaks: Passed, Against: "a ticket above all that are queued",
		About:  "clients with different clocks wait for a fair lock",
		config: withLock(FairLock, mix(ClientStep)), without: unsafe(seam.Unsafe{ClockTicket: true}),
	},
	{
		Name: "intent-of-a-reader", Row: "L42", Breaks: FreeAndWanted, Against: "who goes on as a reader waits to write nowhere",
		About:  "a writer that had to wait goes on as a reader, and one of the masters still has it queued",
		config: waits(intentOfAReader), without: wrong(masters.KeepsIntent),
	},
	{
		Name: "taken-by-the-dead", Row: "L42b", Breaks: FreeAndWanted, Against: "masters ask whether a waiter is still there",
		About:  "the holder of a fair lock and the one who waits for it die, and another tries",
		config: waits(takenByTheDead), without: wrong(masters.WaitsForTheDead),
	},
	{
		Name: "first-by-its-own-clock", Row: "L41", Breaks: Passed, Against: "tickets by the masters' clocks",
		About:  "two clients whose clocks are behind take the lock in turns, and a third waits",
		config: waits(behindInTurns), without: unsafe(seam.Unsafe{ClockTicket: true}),
	},
	{
		Name: "reserved-for-the-dead", Row: "L40", Breaks: FreeAndWanted, Against: "masters ask whether a waiter is still there",
		About:  "a writer beside a reader, or a waiter for many permits, dies, and another wants what is free",
		config: waits(reservedForTheDead), without: wrong(masters.WaitsForTheDead),
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
		About:  "masters answer MISCONF, READONLY, OOM, LOADING, BUSY, NOREPLICAS or oddly, also to a release",
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
