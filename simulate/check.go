package simulate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

// Violation is a broken promise.
type Violation struct {
	Kind    ViolationKind `json:"kind"`
	At      time.Duration `json:"at"` // true time
	What    string        `json:"what"`
	Clients []int         `json:"clients,omitempty"` // who was involved, from 0
}

// ViolationKind says which promise.
type ViolationKind string

// The promises that are checked.
const (
	Overlap       ViolationKind = "overlap"         // two clients hold the lock at the same instant
	Unbacked      ViolationKind = "unbacked"        // no quorum of masters keeps the key of a valid lease for long enough
	GaveAway      ViolationKind = "gave-away"       // a master granted what it had promised to another
	OwnDelete     ViolationKind = "own-delete"      // the key of a valid lease was deleted
	EndedLease    ViolationKind = "ended-lease"     // Lock returned a lease that had ended
	LateLoss      ViolationKind = "late-loss"       // the end of a lease was announced too late, or never
	FalseLoss     ViolationKind = "false-loss"      // Unlock said that a lease was lost which was not
	LostUpdate    ViolationKind = "lost-update"     // a write undid another
	ForeignDelete ViolationKind = "foreign-delete"  // a client deleted another's lock
	Leftover      ViolationKind = "leftover"        // a client that is idle, connected and owes nothing has a key
	FreeAndWanted ViolationKind = "free-and-wanted" // a lock was free for too long while somebody waited for it
	Token         ViolationKind = "token"           // a fencing token that was used before, or is lower than one before
	Passed        ViolationKind = "passed"          // somebody got a fair lock before who came later
	Zombie        ViolationKind = "zombie"          // a key outlived its TTL with nobody holding it
	LateAnswer    ViolationKind = "late-answer"     // a call took longer than its masters may
	Unfounded     ViolationKind = "unfounded"       // a call found no quorum although nothing was wrong
	NeedlessLoss  ViolationKind = "needless-loss"   // a lease that renews itself ended although nothing was wrong
	Stuck         ViolationKind = "stuck"           // a client did not get the lock although all is well again
	Custom        ViolationKind = "custom"          // a workload's own
)

func (v Violation) String() string {
	return fmt.Sprintf("%9.3fs  %s: %s", v.At.Seconds(), v.Kind, v.What)
}

// hold is what the checks need of a lock that is held. A *redlock.Lease is one.
type hold interface {
	Valid() bool
	Until() time.Time
	Done() <-chan struct{}
}

// claim is a hold that a client relies on.
type claim struct {
	stake
	client  *client
	hold    hold
	since   time.Duration
	seen    time.Duration // when we last looked
	until   time.Time     // what it then said, on the client's clock; the zero time when it had ended
	life    uint32
	uneven  int           // of the client's clock, when the lease began
	steps   int           // so, when it was seen to be valid
	ended   bool          // the validity is over
	end     time.Duration // when
	told    bool
	clashed bool

	value    string        // what the masters store for it; empty: not known
	due      time.Duration // when to look, though nothing happened to its client
	unbacked bool
	untold   bool
}

// checker watches the promises while a trial runs.
type checker struct {
	trial      *trial
	claims     []*claim
	violations []Violation
	ledger     ledger
	touched    bool // a master's keys have changed, or a clock
	wants      []*want
	looks      uint64 // how often we have looked for what is wanted
	tokens     tokens
	strays     map[stray]bool
	places     map[string]*place // of those who wait for fair locks, now or before
	placed     []*place          // those whose call may still be waiting
	lines      []*lineup
	resizes    []*resized
}

func newChecker(t *trial) *checker {
	return &checker{trial: t, ledger: ledger{masters: t.config.Nodes}, tokens: tokens{byLock: map[string]*handedOut{}}, places: map[string]*place{}, strays: map[stray]bool{}}
}

// punctual is how late the end of a lease may be announced on a host that was
// not suspended and whose clock was not set: the events of one instant.
const punctual = time.Millisecond

// nap is how late it may be after that: how long drift.Timers sleep at most, by a clock
// that may be slow.
var nap = time.Second + drift.Allowance(time.Second, drift.DefaultFactor)

func (k *checker) report(v Violation) {
	v.At = k.trial.world.now
	k.violations = append(k.violations, v)
}

// grant adds a hold from this instant on.
func (k *checker) grant(c *client, h hold, s stake) *claim {
	cl := &claim{
		stake: s, client: c, hold: h, life: c.host.life,
		since: k.trial.world.now, seen: k.trial.world.now, uneven: c.uneven(),
	}
	if l, ok := h.(interface{ Value() string }); ok {
		cl.value = l.Value()
	}
	if !c.preempted() && !h.Valid() {
		k.report(Violation{
			Kind:    EndedLease,
			What:    fmt.Sprintf("%s got a lease of %q that had ended", c.host.name, s.names[0]),
			Clients: []int{c.index},
		})
	}
	if s.above != nil {
		k.token(cl, h.(holding).Token())
	}
	k.passed(cl)
	k.taken(cl)
	k.claims = append(k.claims, cl)
	if c, ok := k.ofHolders(); ok {
		k.trial.stats.checked(c, true)
	}
	k.examine(cl)
	k.overlaps()
	k.fewer(cl)
	return cl
}

// leave takes a hold out that its owner does not rely on any more.
func (k *checker) leave(cl *claim) {
	for i, o := range k.claims {
		if o == cl {
			k.claims = append(k.claims[:i], k.claims[i+1:]...)
			break
		}
	}
	k.trial.trace.held(cl, k.trial.world.now)
}

// crashed takes out every hold of a client that does not exist any more.
func (k *checker) crashed(c *client) {
	for i := len(k.claims) - 1; i >= 0; i-- {
		if k.claims[i].client == c {
			k.leave(k.claims[i])
		}
	}
}

// look is called after every event. With a single hold nothing can overlap, and
// it only changes by an event of its own client, or because its time is up.
func (k *checker) look(h *host) {
	several := len(k.claims) > 1
	for _, cl := range k.claims {
		switch {
		case cl.client.host == h || k.trial.world.now >= cl.due:
			k.examine(cl)
		case several && h != nil && !cl.ended && cl.client.host.clock.plain():
			cl.seen = k.trial.world.now // it ends no earlier than was seen before
		case several:
			k.examine(cl)
		}
	}
	if several {
		k.overlaps()
	}
	if h != nil && h.id > clientIDs {
		k.leftovers(k.trial.clients[h.id-clientIDs-1])
	}
	if len(k.wants) > 0 {
		k.wanted()
	}
	if k.touched {
		k.touched = false
		for _, cl := range k.claims {
			k.backing(cl)
		}
	}
}

// examine notes when the validity of a hold ends, and when its owner is told.
func (k *checker) examine(cl *claim) {
	now := k.trial.world.now
	if !cl.ended {
		until := cl.hold.Until()
		if until.IsZero() {
			cl.ended = true
			cl.end = min(now, max(cl.seen, now-cl.client.host.clock.Since(cl.until)))
			if cl.steps != cl.client.host.clock.uneven {
				cl.end = now // its clock was set since, and that ended it
			}
			cl.due = now + punctual + 1
			k.needless(cl)
		} else {
			cl.due = now + until.Sub(cl.client.host.clock.Now())
			if !until.Equal(cl.until) {
				k.backing(cl)
			}
		}
		cl.until, cl.seen, cl.steps = until, now, cl.client.host.clock.uneven
	}
	if cl.ended && !cl.told && cl.hold.Valid() && cl.steps != cl.client.host.clock.uneven {
		cl.ended = false // its clock had been set forward, and was set back before anybody looked
	}
	if cl.ended && !cl.told && !cl.client.host.hangs() {
		k.announced(cl)
	}
}

// announced looks whether the owner of a lease that is over has been told, and
// in time.
func (k *checker) announced(cl *claim) {
	select {
	case <-cl.hold.Done():
		cl.told = true
	default:
	}
	late := k.trial.world.now - max(cl.end, cl.client.host.resumed)
	allowed := punctual
	if cl.uneven != cl.client.host.clock.uneven {
		allowed += nap
	}
	if late <= allowed || cl.untold {
		cl.due = k.trial.world.now + max(punctual, allowed-late) // look again
		return
	}
	cl.untold = true
	k.report(Violation{
		Kind:    LateLoss,
		What:    fmt.Sprintf("%s had not been told %v after its validity had ended", cl.client.host.name, short(late)),
		Clients: []int{cl.client.index},
	})
}

// needless reports a lease that ended by itself although it is renewed, and nothing was
// wrong for long enough.
func (k *checker) needless(cl *claim) {
	lease, ok := cl.hold.(interface{ Err() error })
	if !ok || !cl.renews || cl.client.host.rests() || !k.calm(cl.client) {
		return
	}
	if err := lease.Err(); errors.Is(err, redlock.ErrLost) || errors.Is(err, redlock.ErrExpired) {
		k.report(Violation{
			Kind:    NeedlessLoss,
			What:    fmt.Sprintf("the lease of %q of %s ended, and nothing was wrong: %v", cl.names[0], cl.client.host.name, err),
			Clients: []int{cl.client.index},
		})
	}
}

// overlaps reports two valid holds of one lock. Also a client that stands still
// holds its lease: nobody could tell it otherwise.
func (k *checker) overlaps() {
	if k.trial.config.Lock.isSemaphore() {
		k.crowd()
	}
	for i, a := range k.claims {
		if a.ended && a.told {
			continue
		}
		for _, b := range k.claims[i+1:] {
			if a.clashed && b.clashed || !a.collides(b) || !a.hold.Valid() || !b.hold.Valid() {
				continue
			}
			a.clashed, b.clashed = true, true
			k.clashed()
			k.report(Violation{
				Kind:    Overlap,
				What:    fmt.Sprintf("%s and %s both hold %q", a.client.host.name, b.client.host.name, a.names[0]),
				Clients: []int{a.client.index, b.client.index},
			})
		}
	}
}

// deleted is told when a client removes a key that another one stored.
func (k *checker) deleted(m *master, by *client, key string, e *entry) {
	if !isLock(key) {
		return
	}
	k.report(Violation{
		Kind:    ForeignDelete,
		What:    fmt.Sprintf("%s deleted the lock of %s at %s", by.host.name, clientName(e.by), m.host.name),
		Clients: []int{by.index, e.by},
	})
}

// isLock tells locks from what the library keeps beside them, like the line of
// those who wait.
func isLock(key string) bool { return !strings.HasPrefix(key, "redlock:") }

// holds tells keys by which somebody holds a lock.
func holds(key string) bool {
	return isLock(key) || strings.HasPrefix(key, "redlock:readers:") || strings.HasPrefix(key, "redlock:slots:")
}

// zombies looks for locks when every TTL has passed, and for anything else but
// the marker that has none.
func (k *checker) zombies() {
	for _, m := range k.trial.masters {
		for _, key := range sortedKeys(m.keys.keys) {
			e := m.keys.find(key)
			if e == nil || k.trial.clients[e.by].host.rests() {
				continue // in the latter case it may have been stopped in the middle of giving it back
			}
			if holds(key) || e.until == 0 && key != node.MarkerKey("") {
				k.report(Violation{
					Kind:    Zombie,
					What:    fmt.Sprintf("%s still has the key %q of %s, which nobody holds", m.host.name, key, clientName(e.by)),
					Clients: []int{e.by},
				})
			}
		}
	}
}
