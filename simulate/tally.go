package simulate

import "github.com/quorumlock/quorumlock/simulate/internal/tally"

// What a run counts.
type (
	// Stats counts what happened in one schedule or in many.
	Stats = tally.Stats
	// Count is a named number.
	Count = tally.Count
	// Histogram counts durations in buckets of a sixteenth of their magnitude.
	Histogram = tally.Histogram
	// Violation is a broken promise.
	Violation = tally.Violation
	// ViolationKind says which promise.
	ViolationKind = tally.ViolationKind
	// KindCheck is a check that only some kinds of locks have.
	KindCheck = tally.KindCheck
	// KindChecks is how often a check was made, and how often it failed.
	KindChecks = tally.KindChecks
)

// The promises that are checked.
const (
	Overlap       = tally.Overlap
	Unbacked      = tally.Unbacked
	GaveAway      = tally.GaveAway
	OwnDelete     = tally.OwnDelete
	EndedLease    = tally.EndedLease
	Revived       = tally.Revived
	LateLoss      = tally.LateLoss
	FalseLoss     = tally.FalseLoss
	FalseRelease  = tally.FalseRelease
	LostUpdate    = tally.LostUpdate
	ForeignDelete = tally.ForeignDelete
	Leftover      = tally.Leftover
	FreeAndWanted = tally.FreeAndWanted
	Token         = tally.Token
	Passed        = tally.Passed
	Zombie        = tally.Zombie
	LateAnswer    = tally.LateAnswer
	Unfounded     = tally.Unfounded
	Unrepaired    = tally.Unrepaired
	KeptOut       = tally.KeptOut
	NeedlessLoss  = tally.NeedlessLoss
	Stuck         = tally.Stuck
	Custom        = tally.Custom
)

// Interval returns the bounds between which the share of n cases in total lies, with a
// confidence of 95% (Wilson's score interval).
func Interval(n, total int) (lo, hi float64) { return tally.Interval(n, total) }
