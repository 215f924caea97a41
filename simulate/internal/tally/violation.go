package tally

import (
	"fmt"
	"time"
)

// Violation is a broken promise.
type Violation struct {
	Kind    ViolationKind `json:"kind"`
	At      time.Duration `json:"at"` // true time
	What    string        `json:"what"`
	Clients []int         `json:"clients,omitempty"` // the clients involved, from 0
}

// ViolationKind says which promise.
type ViolationKind string

// The promises that are checked.
const (
	Overlap       ViolationKind = "overlap"         // two clients hold the lock at the same instant
	Unbacked      ViolationKind = "unbacked"        // no quorum of masters keeps the key of a valid lease for long enough
	GaveAway      ViolationKind = "gave-away"       // a master granted a lock that it had promised to another
	OwnDelete     ViolationKind = "own-delete"      // the key of a valid lease was deleted
	EndedLease    ViolationKind = "ended-lease"     // Lock returned a lease that had ended
	Revived       ViolationKind = "revived"         // a lease that had ended was valid again
	LateLoss      ViolationKind = "late-loss"       // the end of a lease was announced too late, or never
	FalseLoss     ViolationKind = "false-loss"      // Unlock said that a lease was lost which was not
	FalseRelease  ViolationKind = "false-release"   // Unlock said that a lease was released which was not
	LostUpdate    ViolationKind = "lost-update"     // a write undid another
	ForeignDelete ViolationKind = "foreign-delete"  // a client deleted another's lock
	Leftover      ViolationKind = "leftover"        // a client that is idle, connected and owes nothing has a key
	FreeAndWanted ViolationKind = "free-and-wanted" // a lock was free for too long while a caller waited for it
	Token         ViolationKind = "token"           // a fencing token that was used before, or is lower than one before
	Passed        ViolationKind = "passed"          // a client got a fair lock before an earlier waiter
	Zombie        ViolationKind = "zombie"          // a key without a holder outlived its TTL
	LateAnswer    ViolationKind = "late-answer"     // a call took longer than its masters may
	Unfounded     ViolationKind = "unfounded"       // a call found no quorum although nothing was wrong
	Unrepaired    ViolationKind = "unrepaired"      // a lease is renewed, and a master that can be reached has no key of it
	KeptOut       ViolationKind = "kept-out"        // a master is kept from voting without a reason, or for too long
	NeedlessLoss  ViolationKind = "needless-loss"   // a lease that renews itself ended although nothing was wrong
	Stuck         ViolationKind = "stuck"           // a client did not get the lock although all is well again
	Custom        ViolationKind = "custom"          // a workload's own
)

func (v Violation) String() string {
	return fmt.Sprintf("%9.3fs  %s: %s", v.At.Seconds(), v.Kind, v.What)
}
