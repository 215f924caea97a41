package simulate

import (
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/naive"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/weaker"
)

// Scenario is a known failure, simulated with and without the protection against
// it. Without the protection a promise breaks in some schedule; with it, in none.
type Scenario struct {
	Name    string              // its name in docs/failures.md
	Row     string              // its row in docs/failures.md, or the rung of the ladder
	About   string              // what happens
	Against string              // the protection; empty if none can be switched off
	Breaks  tally.ViolationKind // the promise that breaks without it
	Limit   string              // why a promise breaks even with the protection; empty if none does

	config  func() plan.Config
	without func(*plan.Config)
}

// Config returns the simulation with every protection.
func (s *Scenario) Config() plan.Config { return s.config() }

// Without returns the simulation without the protection, and false if there is
// none to switch off.
func (s *Scenario) Without() (plan.Config, bool) {
	if s.without == nil {
		return plan.Config{}, false
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
func withoutProtections(l weaker.Lacks) func(*plan.Config) {
	return func(cfg *plan.Config) { cfg.Lacks = l }
}

// unsafe switches off protections of the coordinator.
func unsafe(u seam.Unsafe) func(*plan.Config) { return func(cfg *plan.Config) { cfg.Unsafe = u } }

// wrong makes the masters follow a wrong rule (variant.go).
func wrong(variant string) func(*plan.Config) {
	return func(cfg *plan.Config) { cfg.Variant = variant }
}

func noRestartGuard(cfg *plan.Config) { cfg.RestartGuard = -1 }
func noClockGuard(cfg *plan.Config)   { cfg.ClockGuard = -1 }

// mix simulates the usual work with random faults of the given kinds.
func mix(kinds ...plan.Kind) func() plan.Config {
	return func() plan.Config {
		m := plan.Only(kinds...)
		m.Strict = true
		return plan.Config{Duration: 20 * time.Second, Faults: m}
	}
}

// farStorage puts the storage, which checks fencing tokens, across the network: a
// write is under way for at most away.
func farStorage(away time.Duration, kinds ...plan.Kind) func() plan.Config {
	return func() plan.Config {
		cfg := plan.WithLock(plan.FencedLock, mix(kinds...))()
		cfg.Remote = away
		return cfg
	}
}

func unfenced(cfg *plan.Config) { cfg.Lock = plan.PlainLock }

// polled makes waiters poll instead of queueing.
func polled(config func() plan.Config) func() plan.Config {
	return func() plan.Config {
		cfg := config()
		cfg.Polling = true
		return cfg
	}
}

// Catalogue lists every scenario.
var Catalogue = []*Scenario{
	{
		Name: "failover", Row: "S1", Breaks: tally.Overlap, Against: "restart guard",
		About:  "a replica that lags behind takes over for a master",
		config: plan.Acted(plan.Erosion(plan.Fault{Kind: plan.Failover})), without: noRestartGuard,
	},
	{
		Name: "clock-step-forward", Row: "S2", Breaks: tally.Overlap, Against: "clock guard",
		About:  "a master's clock jumps, and its key expires under the holder",
		config: plan.Acted(plan.Erosion(plan.Fault{Kind: plan.Step})), without: noClockGuard,
	},
	{
		Name: "unseen-step", Row: "S2b", Breaks: tally.Overlap, Against: "the clock is read with every vote",
		About:  "a master's clock jumps, and it is asked before any heartbeat",
		config: plan.Acted(plan.Unseen(plan.Step)), without: withoutProtections(weaker.Lacks{VotesTime: true}),
	},
	{
		Name: "restart-amnesia", Row: "S3", Breaks: tally.Overlap, Against: "restart guard",
		About:  "a master restarts without its data",
		config: plan.Acted(plan.Erosion(plan.Fault{Kind: plan.RestartEmpty})), without: noRestartGuard,
	},
	{
		Name: "restart-plus-step", Row: "S4", Breaks: tally.Overlap, Against: "restart guard, counted on the client's clock",
		About:  "a master restarts without its data, and its clock jumps, so that it looks old",
		config: plan.Acted(plan.Erosion(plan.Fault{Kind: plan.RestartEmpty}, plan.Fault{Kind: plan.Step})), without: noRestartGuard,
	},
	{
		Name: "mixed-ttl-guard", Row: "S5", Breaks: tally.Overlap, Against: "no TTL above the guard",
		About:  "a guard that is shorter than the TTL of the lock that was forgotten",
		config: plan.Acted(plan.Erosion(plan.Fault{Kind: plan.RestartEmpty})), without: func(cfg *plan.Config) { cfg.ShortGuard = cfg.TTL / 10 },
	},
	{
		Name: "pause-before-reply", Row: "S6", Breaks: tally.Overlap, Against: "stopwatch read after the deciding vote",
		About:  "a client stops while the answers are on their way, and reads them when its keys have expired",
		config: plan.Acted(plan.PauseBeforeReply),
		// The bound on the age of a vote would prevent it too, and is off as well.
		without: unsafe(seam.Unsafe{EarlyElapsed: true}),
	},
	{
		Name: "pause-in-section", Row: "S7", Breaks: tally.LostUpdate, Against: "fencing: the storage refuses a lower token",
		About:   "a holder stops between looking at its lease and writing",
		config:  farStorage(10*time.Millisecond, plan.ClientPause),
		without: unfenced,
	},
	{
		Name: "delayed-write", Row: "S8", Breaks: tally.LostUpdate, Against: "fencing: the storage refuses a lower token",
		About:   "a write travels for longer than its lease lasts",
		config:  farStorage(3 * time.Second),
		without: unfenced,
	},
	{
		Name: "rate-drift", Row: "S10", Breaks: tally.Overlap, Against: "drift allowance",
		About:  "the masters' clocks run fast and the holder's runs slow, within the drift factor",
		config: plan.Acted(plan.RateDrift), without: withoutProtections(weaker.Lacks{Allowance: true}),
	},
	{
		Name: "wall-step-back", Row: "S11", Breaks: tally.Overlap,
		About:  "a client's wall clock is set while it acquires and holds",
		config: mix(plan.ClientStep),
	},
	{
		Name: "vm-suspend", Row: "S12", Breaks: tally.Overlap, Against: "elapsed time also by the wall clock",
		About:  "a client is suspended, and its monotonic clock with it",
		config: mix(plan.ClientSuspend), without: withoutProtections(weaker.Lacks{WallClock: true}),
	},
	{
		Name: "half-is-enough", Row: "S16", Breaks: tally.Overlap, Against: "a strict majority",
		About:  "two clients with half of the masters each",
		config: func() plan.Config { c := mix(plan.Partition)(); c.Nodes = 4; return c }, without: withoutProtections(weaker.Lacks{Majority: true}),
	},
	{
		Name: "quorum-erosion", Row: "S17", Breaks: tally.Overlap, Against: "repair after a renewal",
		About:  "a holder of three masters of five loses one, long after the other two came back",
		config: plan.Acted(plan.LateErosion), without: withoutProtections(weaker.Lacks{Repair: true}),
	},
	{
		Name: "no-repair", Row: "S18", Breaks: tally.Overlap, Against: "repair after a renewal",
		About:  "masters restart empty one after the other while the lock is held and renewed",
		config: plan.Acted(plan.RollingRestarts), without: withoutProtections(weaker.Lacks{Repair: true}),
	},
	{
		Name: "restarts-in-pairs", Row: "S18b", Breaks: tally.Unrepaired,
		About: "two masters restart empty in the same instant, again and again",
		config: func() plan.Config {
			cfg := plan.Acted(plan.Pairs)()
			cfg.TTL, cfg.Duration = 20*time.Second, 2*time.Minute
			return cfg
		},
	},
	{
		Name: "resurrecting-extend", Row: "S19", Breaks: tally.Overlap, Against: "a key made anew does not count",
		About:  "a master loses the key again and again, and the holder's renewals count it as held",
		config: plan.Acted(plan.Resurrection), without: withoutProtections(weaker.Lacks{OwnKeysOnly: true}),
	},
	{
		Name: "stale-release", Row: "S20", Breaks: tally.Overlap, Against: "a fresh value for every attempt",
		About:  "a release that was held up deletes the key of a later attempt",
		config: polled(plan.Acted(plan.StaleRelease)), without: withoutProtections(weaker.Lacks{FreshValue: true}),
	},
	{
		Name: "unlock-retry", Row: "S21", Breaks: tally.Overlap, Against: "a fresh value for every attempt",
		About:  "a release whose outcome was unknown is delivered again, when its client holds the lock once more",
		config: mix(plan.CutOut, plan.CutIn), without: withoutProtections(weaker.Lacks{FreshValue: true}),
	},
	{
		Name: "skipped-release", Row: "L3", Breaks: tally.Leftover, Against: "release everywhere after a failed attempt",
		About:  "attempts that failed leave keys behind that nobody holds",
		config: mix(), without: withoutProtections(weaker.Lacks{Discard: true}),
	},
	{
		Name: "blind-delete", Row: "S22", Breaks: tally.ForeignDelete, Against: "compare-and-delete",
		About:  "a release deletes without comparing",
		config: mix(), without: withoutProtections(weaker.Lacks{Comparing: true}),
	},
	{
		Name: "stale-return", Row: "S23", Breaks: tally.Overlap, Against: "stopwatch read as the last step before the return",
		About:  "a client stands still while it gets the lock, and returns a lease that has ended",
		config: mix(plan.ClientPause, plan.Slow), without: unsafe(seam.Unsafe{EarlyElapsed: true}),
	},
	{
		Name: "eviction-flush", Row: "S24", Breaks: tally.Overlap, Against: "restart guard: the marker is gone",
		About:  "FLUSHALL at a master of the holder",
		config: plan.Acted(plan.Erosion(plan.Fault{Kind: plan.Flush})), without: noRestartGuard,
	},
	{
		Name: "eviction", Row: "S24b", Breaks: tally.Overlap, Limit: "the marker is still there: maxmemory-policy must be noeviction",
		About:  "a master of the holder evicts its key",
		config: plan.Acted(plan.Erosion(plan.Fault{Kind: plan.Evict})),
	},
	{
		Name: "old-snapshot", Row: "S25", Breaks: tally.Overlap, Against: "restart guard",
		About:  "a master restarts from a snapshot that lacks the lock",
		config: plan.Acted(plan.Erosion(plan.Fault{Kind: plan.RestartSnapshot})), without: noRestartGuard,
	},
	{
		Name: "clock-step-back", Row: "S26", Breaks: tally.Stuck,
		About:  "masters' clocks are set back, and keys live longer",
		config: mix(plan.Step),
	},
	{
		Name: "frozen-clock", Row: "S27", Breaks: tally.Stuck,
		About:  "a master's clock stands still",
		config: mix(plan.Freeze),
	},
	{
		Name: "common-step", Row: "S28", Breaks: tally.Overlap, Against: "clock guard, against the client's clock",
		About:  "the clocks of all masters jump together",
		config: plan.Acted(plan.CommonStep), without: noClockGuard,
	},
	{
		Name: "unseen-flush", Row: "S24c", Breaks: tally.Overlap, Against: "the marker is read with every vote",
		About:  "a master of the holder is flushed and asked before any heartbeat",
		config: plan.Acted(plan.Unseen(plan.Flush)), without: withoutProtections(weaker.Lacks{VotesMarker: true}),
	},
	{
		Name: "mixed-guards", Row: "S5b", Breaks: tally.Overlap, Against: "the marker tells the longest guard",
		About:  "a majority restarts empty under a lease that is longer than the guard of those who wait",
		config: plan.MixedGuards, without: withoutProtections(weaker.Lacks{Others: true}),
	},
	{
		Name: "split-config", Row: "S14", Breaks: tally.Overlap, Against: "the marker tells the number of masters",
		About:  "one client locks with three masters, the others with five",
		config: plan.SplitConfig, without: withoutProtections(weaker.Lacks{Others: true}),
	},
	{
		Name: "three-to-five", Row: "S14b", Breaks: tally.Overlap, Against: "the marker tells the number of masters",
		About:   "three masters become five while a client of the three holds two of them, and renews",
		config:  func() plan.Config { return plan.ThreeToFive(2, time.Minute) },
		without: withoutProtections(weaker.Lacks{Others: true}),
	},
	{
		Name: "told-one-by-one", Row: "S14c", Breaks: tally.Overlap, Against: "no vote before a guard after the last was told",
		About:   "as before, without renewals; the masters that were told first vote first",
		config:  func() plan.Config { return plan.ThreeToFive(2, defaults.TTL) },
		without: func(cfg *plan.Config) { cfg.Script = plan.ThreeToFive(1, defaults.TTL).Script },
	},
	{
		Name: "forgetful-move", Row: "S51", Breaks: tally.Token, Against: "the new masters take over what the old ones knew",
		About:   "three masters become five, and three of the five have never heard of the last token",
		config:  func() plan.Config { return plan.ForgetfulMove([]plan.Fault{{Kind: plan.Regroup, Node: -1}}) },
		without: func(cfg *plan.Config) { cfg.Script = plan.ForgetfulMove(plan.ToldOnly()).Script },
	},
	{
		Name: "init-after-loss", Row: "S14d", Breaks: tally.Overlap, Against: "init declares nothing new beside masters in use",
		About: "masters restart empty under a lease, and an operator declares them new",
		config: func() plan.Config {
			cfg := plan.Newcomer(plan.InitAfterLoss)()
			cfg.Duration = 100 * time.Second
			return cfg
		},
		without: withoutProtections(weaker.Lacks{InUse: true}),
	},
	{
		Name: "uptime-floor", Row: "S33", Breaks: tally.Overlap, Against: "no marker: age 0",
		About:  "a new client takes the uptime of a restarted master, which is up to a second too long, for the age of its memory",
		config: plan.Newcomer(plan.UptimeFloor), without: withoutProtections(weaker.Lacks{NoAge: true}),
	},
	{
		Name: "newcomer-after-flush", Row: "S34", Breaks: tally.Overlap, Against: "no marker: age 0",
		About:  "a new client comes to a master that was flushed long after its start",
		config: plan.Newcomer(plan.NewcomerAfterFlush), without: withoutProtections(weaker.Lacks{NoAge: true}),
	},
	{
		Name: "counted-in-quarantine", Row: "S35", Breaks: tally.Overlap, Against: "an extension by a young memory does not count",
		About:  "a repair puts a key back behind a vote that its master has forgotten, and the next renewal counts it",
		config: plan.CountedInQuarantine, without: withoutProtections(weaker.Lacks{Young: true}),
	},
	{
		Name: "replica-and-back", Row: "S50", Breaks: tally.Overlap, Against: "a vote counts only if its master was one all the time",
		About:  "a master of the holder is made a replica of a server that was a copy of it, and a master again",
		config: plan.Acted(plan.Unseen(plan.Follow)), without: withoutProtections(weaker.Lacks{Roles: true}),
	},
	{
		Name: "late-loss", Row: "S31", Breaks: tally.Overlap, Against: "the old deadline stands until a quorum extended",
		About:  "a holder is cut off just before a renewal",
		config: mix(plan.CutOut, plan.Partition), without: withoutProtections(weaker.Lacks{Answers: true}),
	},
	{
		Name: "over-admitting-semaphore", Row: "S29", Breaks: tally.Overlap, Against: "a majority must have given the same slots",
		About: "five clients want two permits, and three masters give them in different order",
		config: func() plan.Config {
			c := mix()()
			c.Lock, c.Nodes, c.Clients, c.Permits = plan.SemaphoreLock, 3, 5, 2
			return c
		},
		without: withoutProtections(weaker.Lacks{SameSlots: true}),
	},
	{
		Name: "resize-to-fewer", Row: "S39", Breaks: tally.Overlap, Against: "what is held counts, whichever master knows it",
		About:  "five permits become three while three are held, each of which two masters of three know",
		config: plan.ResizedToFewer, without: withoutProtections(weaker.Lacks{Reported: true}),
	},
	{
		Name: "duplicate-token", Row: "S30", Breaks: tally.Token, Against: "count only masters that stepped to the token",
		About:  "the counters of the masters differ, and so do the clients' clocks",
		config: plan.WithLock(plan.FencedLock, mix(plan.ClientStep, plan.Partition, plan.CutOut, plan.CutIn)), without: withoutProtections(weaker.Lacks{Raise: true}),
	},
	{
		Name: "late-downgrade", Row: "S38", Breaks: tally.Overlap, Against: "a reader from before the first master is told",
		About:  "a writer turns reader, is cut off from some masters, and goes on writing meanwhile",
		config: plan.WithLock(plan.ReadWriteLock, mix(plan.Partition, plan.CutOut, plan.CutIn)), without: withoutProtections(weaker.Lacks{Told: true}),
	},
	{
		Name: "one-master-reader", Row: "S40", Breaks: tally.Overlap, Against: "readers are let in by a majority, too",
		About:  "a reader reads as soon as one master has let it in",
		config: plan.WithLock(plan.ReadWriteLock, mix()), without: withoutProtections(weaker.Lacks{Quorum: true}),
	},
	{
		Name: "hollow-raise", Row: "S43", Breaks: tally.Token, Against: "a master confirms a token only if it holds the lock",
		About: "a master has forgotten the grant by the time it is told of the token",
		config: func() plan.Config {
			cfg := plan.WithLock(plan.FencedLock, plan.Acted(plan.HollowRaise))()
			cfg.Nodes, cfg.Clients = 3, 3
			return cfg
		}, without: wrong(masters.ConfirmsAnything),
	},
	{
		Name: "unwritten-count", Row: "S41", Breaks: tally.Custom, Against: "what is counted is written back first",
		About:  "one counts what two masters know, the next what two others know",
		config: plan.WithLock(plan.Latch, mix(plan.Partition, plan.CutOut, plan.CutIn)), without: wrong(masters.NoWriteBack),
	},
	{
		Name: "reader-stream", Row: "L14", Breaks: tally.Stuck, Against: "readers wait behind a writer that waits",
		About: "a writer waits, and readers who come later pass it",
		config: func() plan.Config {
			c := plan.WithLock(plan.ReadWriteLock, mix())()
			c.Nodes, c.TTL = 4, 200*time.Millisecond
			return c
		}, without: wrong(masters.NoIntent),
	},
	{
		Name: "clocks-behind", Row: "L37", Breaks: tally.KeptOut,
		About:  "the clocks of all masters are set back together",
		config: plan.Acted(plan.CommonStepBack),
	},
	{
		Name: "overtaken-waiter", Row: "L24", Breaks: tally.Passed, Against: "a ticket above all that are queued",
		About:  "clients with different clocks wait for a fair lock",
		config: plan.WithLock(plan.FairLock, mix(plan.ClientStep)), without: withoutProtections(weaker.Lacks{Tickets: true}),
	},
	{
		Name: "intent-of-a-reader", Row: "L42", Breaks: tally.FreeAndWanted, Against: "who goes on as a reader waits to write nowhere",
		About:  "a writer that had to wait goes on as a reader, and one of the masters still has it queued",
		config: plan.Waits(plan.IntentOfAReader), without: wrong(masters.KeepsIntent),
	},
	{
		Name: "taken-by-the-dead", Row: "L42b", Breaks: tally.FreeAndWanted, Against: "masters ask whether a waiter is still there",
		About:  "the holder of a fair lock and the one who waits for it die, and another tries",
		config: plan.Waits(plan.TakenByTheDead), without: wrong(masters.WaitsForTheDead),
	},
	{
		Name: "first-by-its-own-clock", Row: "L41", Breaks: tally.Passed, Against: "tickets by the masters' clocks",
		About:  "two clients whose clocks are behind take the lock in turns, and a third waits",
		config: plan.Waits(plan.BehindInTurns), without: withoutProtections(weaker.Lacks{Tickets: true}),
	},
	{
		Name: "reserved-for-the-dead", Row: "L40", Breaks: tally.FreeAndWanted, Against: "masters ask whether a waiter is still there",
		About:  "a writer beside a reader, or a waiter for many permits, dies, and another wants what is free",
		config: plan.Waits(plan.ReservedForTheDead), without: wrong(masters.WaitsForTheDead),
	},
	{
		Name: "told-and-gone", Row: "L55", Breaks: tally.FreeAndWanted, Against: "several waiters are told that a lock ends earlier",
		About:  "two clients wait for a lock that is kept, and the first of them gives up before it ends",
		config: plan.Waits(plan.ToldAndGone), without: wrong(masters.CallsOne),
	},
	{
		Name: "partitioned-holder", Row: "L1", Breaks: tally.Stuck,
		About:  "a holder is cut off; the others wait a TTL and go on",
		config: mix(plan.Partition, plan.CutOut, plan.CutIn),
	},
	{
		Name: "split-vote", Row: "L2", Breaks: tally.Stuck,
		About:  "many contenders, each with a minority",
		config: func() plan.Config { c := mix()(); c.Clients = 12; return c },
	},
	{
		Name: "slow-node", Row: "L4", Breaks: tally.Stuck,
		About:  "masters hang",
		config: mix(plan.Pause, plan.Slow),
	},
	{
		Name: "refusing-node", Row: "L5", Breaks: tally.Stuck,
		About:  "masters answer MISCONF, READONLY, OOM, LOADING, BUSY, NOREPLICAS or oddly, also to a release",
		config: mix(plan.Errors),
	},
	{
		Name: "majority-crash", Row: "L7", Breaks: tally.Stuck,
		About:  "masters restart, several at once",
		config: mix(plan.Restart, plan.RestartEmpty, plan.RestartPartial),
	},
	{
		Name: "crash-after-acquire", Row: "L8", Breaks: tally.Stuck,
		About:  "clients crash, also while they hold the lock",
		config: mix(plan.ClientCrash),
	},
	{
		Name: "cancelled-cleanup", Row: "L9", Breaks: tally.Leftover, Against: "release everywhere after a failed attempt",
		About:  "callers give up in the middle of an attempt",
		config: func() plan.Config { c := mix()(); c.Script = plan.Impatience; return c }, without: withoutProtections(weaker.Lacks{Discard: true}),
	},
	{
		Name: "even-tie", Row: "L10", Breaks: tally.Stuck,
		About:  "two clients on four masters",
		config: func() plan.Config { c := mix()(); c.Nodes, c.Clients = 4, 2; return c },
	},
	{
		Name: "lost-wakeup", Row: "L12", Breaks: tally.Stuck,
		About:  "connections break while clients wait",
		config: mix(plan.Reset),
	},
	{
		Name: "zombie-renewal", Row: "L15", Breaks: tally.Zombie,
		About:  "renewals cross with releases on a network that delays them",
		config: mix(plan.Slow, plan.Reset),
	},
	ladder(naive.V1, tally.Stuck, "a holder crashes: nobody gets the lock any more", plan.ClientCrash),
	ladder(naive.V2, tally.Stuck, "a holder crashes before the second command", plan.ClientCrash),
	ladder(naive.V3, tally.ForeignDelete, "the work outlasts the TTL, and the unlock deletes another's lock"),
	ladder(naive.V4, tally.ForeignDelete, "the key expires between GET and DEL"),
	ladder(naive.V4b, tally.Overlap, "the work outlasts the TTL"),
	ladder(naive.V5, tally.Stuck, "a holder locks again and waits for itself"),
	ladder(naive.V6, tally.Overlap, "a replica that lags behind takes over", plan.Failover),
	r0(),
}

// ladder is the scenario of a naive lock on one master.
func ladder(r *plan.Rung, breaks tally.ViolationKind, about string, kinds ...plan.Kind) *Scenario {
	return &Scenario{
		Name: "ladder-" + r.Name, Row: r.Name, Breaks: breaks, About: r.About + ": " + about,
		Limit: "a naive lock",
		config: func() plan.Config {
			cfg := mix(kinds...)()
			cfg.Nodes, cfg.Rung, cfg.RestartGuard, cfg.ClockGuard = 1, r, -1, -1
			return cfg
		},
	}
}

func r0() *Scenario {
	s := ladder(naive.R0, tally.Overlap, "masters restart, messages are late, clients stop", plan.Kinds...)
	config := s.config
	s.config = func() plan.Config {
		cfg := config()
		cfg.Nodes, cfg.Faults = 5, plan.Assumed
		return cfg
	}
	return s
}
