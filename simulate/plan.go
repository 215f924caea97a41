package simulate

import (
	"io"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// What a schedule is made of. Package plan, which draws schedules, has more of each for
// the simulation itself.
type (
	// Config describes a simulation. The zero Config is 1,000 schedules of five masters,
	// three clients, a TTL of one second and one minute, with every fault within the
	// assumptions.
	Config = plan.Config
	// Schedule is everything that is decided before a run: who does what when, and what
	// goes wrong. It determines the run to the last bit.
	Schedule = plan.Schedule
	// World is what a schedule needs to know of its configuration to run again.
	World = plan.World
	// Action is one thing that a caller does: usually it locks, works, writes to the
	// storage and unlocks.
	Action = plan.Action
	// How names the method by which an action takes the lock.
	How = plan.How
	// Fault is one thing that goes wrong in a schedule. Which fields count depends on its
	// Kind.
	Fault = plan.Fault
	// Kind is a kind of fault.
	Kind = plan.Kind
	// Mix says which faults a schedule may have.
	Mix = plan.Mix
	// LockKind is the kind of lock that a schedule is about.
	LockKind = plan.LockKind
	// Mishap is something that goes wrong at a client just when it is in a call, or holds a
	// lock.
	Mishap = plan.Mishap
	// Moment is what a caller does when a Mishap comes.
	Moment = plan.Moment
	// Ordeal is what goes wrong with a lease between the crash of its holder and its
	// adoption.
	Ordeal = plan.Ordeal
	// Stops says where the code of the clients is stopped in the middle.
	Stops = plan.Stops
	// Transport is what connects the clients of a simulation with its masters.
	Transport = plan.Transport
)

// The methods that take a lock.
const (
	ByLock    = plan.ByLock
	ByTryLock = plan.ByTryLock
	ByDo      = plan.ByDo
)

// The kinds of faults.
const (
	Restart         = plan.Restart
	RestartEmpty    = plan.RestartEmpty
	RestartSnapshot = plan.RestartSnapshot
	RestartPartial  = plan.RestartPartial
	Failover        = plan.Failover
	Pause           = plan.Pause
	Slow            = plan.Slow
	Reset           = plan.Reset
	CutOut          = plan.CutOut
	CutIn           = plan.CutIn
	Partition       = plan.Partition
	Errors          = plan.Errors
	Step            = plan.Step
	Rate            = plan.Rate
	Freeze          = plan.Freeze
	Flush           = plan.Flush
	Evict           = plan.Evict
	Delete          = plan.Delete
	ClientCrash     = plan.ClientCrash
	ClientPause     = plan.ClientPause
	ClientSuspend   = plan.ClientSuspend
	ClientStep      = plan.ClientStep
	ClientRate      = plan.ClientRate
	Regroup         = plan.Regroup
	Init            = plan.Init
	Follow          = plan.Follow
)

// The kinds of locks.
const (
	PlainLock           = plan.PlainLock
	FencedLock          = plan.FencedLock
	FairLock            = plan.FairLock
	FairFencedLock      = plan.FairFencedLock
	MultiLock           = plan.MultiLock
	FencedMultiLock     = plan.FencedMultiLock
	ReadWriteLock       = plan.ReadWriteLock
	SemaphoreLock       = plan.SemaphoreLock
	FencedSemaphoreLock = plan.FencedSemaphoreLock
	ReentrantLock       = plan.ReentrantLock
	CachedLock          = plan.CachedLock
	Latch               = plan.Latch
	Election            = plan.Election
)

// The moments of an action.
const (
	WhileLocking   = plan.WhileLocking
	WhileHolding   = plan.WhileHolding
	WhileExtending = plan.WhileExtending
	WhileUnlocking = plan.WhileUnlocking
)

// Where code may be stopped.
const (
	Everywhere = plan.Everywhere
	InTimers   = plan.InTimers
	InReplies  = plan.InReplies
	InCalls    = plan.InCalls
	InRenewals = plan.InRenewals
	InAsks     = plan.InAsks
)

// The transports.
const (
	Fast       = plan.Fast
	Production = plan.Production
	Mixed      = plan.Mixed
)

// The mixes.
var (
	// Calm has no faults.
	Calm = plan.Calm
	// Assumed has every fault within the assumptions of the lock. None of them may break a
	// promise in any schedule.
	Assumed = plan.Assumed
	// OneClock has one wrong clock in each schedule, a master's or a client's.
	OneClock = plan.OneClock
	// Anything has every fault, also the faults that no lock service survives.
	Anything = plan.Anything
)

// Kinds lists every kind of fault that a Mix may have, LockKinds every kind of lock.
var (
	Kinds     = plan.Kinds
	LockKinds = plan.LockKinds
)

// Only returns a mix of the given kinds. It is Strict if Assumed has all of them.
func Only(kinds ...Kind) Mix { return plan.Only(kinds...) }

// ParseMix returns the mix of that name, or one of the kinds that s lists, separated by
// commas.
func ParseMix(s string) (Mix, error) { return plan.ParseMix(s) }

// ParseLockKind returns the kind of lock of that name.
func ParseLockKind(s string) (LockKind, error) { return plan.ParseLockKind(s) }

// ReadSchedule reads a schedule, or the failing one of a verdict, as they were written or
// changed by hand.
func ReadSchedule(r io.Reader) (*Schedule, error) { return plan.ReadSchedule(r) }

// NewSchedule returns a schedule of your own.
func NewSchedule(w World, faults []Fault, actions [][]Action) (*Schedule, error) {
	return plan.NewSchedule(w, faults, actions)
}
