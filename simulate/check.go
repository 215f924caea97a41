package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
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
	Revived       ViolationKind = "revived"         // a lease that had ended was valid again
	LateLoss      ViolationKind = "late-loss"       // the end of a lease was announced too late, or never
	FalseLoss     ViolationKind = "false-loss"      // Unlock said that a lease was lost which was not
	FalseRelease  ViolationKind = "false-release"   // Unlock said that a lease was released which was not
	LostUpdate    ViolationKind = "lost-update"     // a write undid another
	ForeignDelete ViolationKind = "foreign-delete"  // a client deleted another's lock
	Leftover      ViolationKind = "leftover"        // a client that is idle, connected and owes nothing has a key
	FreeAndWanted ViolationKind = "free-and-wanted" // a lock was free for too long while somebody waited for it
	Token         ViolationKind = "token"           // a fencing token that was used before, or is lower than one before
	Passed        ViolationKind = "passed"          // somebody got a fair lock before who came later
	Zombie        ViolationKind = "zombie"          // a key outlived its TTL with nobody holding it
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

// whateverAClockDoes are the promises that hold also where one clock does anything at all.
// The others are about what each master and each client does for itself.
var whateverAClockDoes = []ViolationKind{Overlap, EndedLease, Revived, LostUpdate, Token, Stuck}

// hold is what the checks ask of a lock that is held. A *redlock.Lease is one.
type hold interface {
	Valid() bool
	Until() time.Time
	Done() <-chan struct{}
}

// claim is a hold that a client relies on, and what the checks have seen of it.
type claim struct {
	stake
	client  *client
	hold    hold
	since   time.Duration
	seen    time.Duration // when the checks last looked
	until   time.Time     // what hold.Until said then, on the client's clock; zero: it had ended
	life    uint32        // of the client's host
	uneven  int           // Clock.uneven of the client when the lease began
	steps   int           // Clock.uneven of the client when the checks last looked
	ended   bool          // the validity is over
	end     time.Duration // when it was
	told    bool          // its owner has been told
	clashed bool          // an overlap was reported

	followed  *client       // another client has got the lock since, before this one gave it back; nil: none
	value     string        // what the masters store for it; empty: not known
	due       time.Duration // when to look again, even if nothing happens to its client
	unbacked  bool          // that was reported
	untold    bool          // a late loss was reported
	asked     bool          // its owner has called something that extends it
	pace      float64       // of the masters' clocks by its client's, when its end was last put off
	rises     int           // how often its end was put off
	belated   bool          // a late repair was reported
	gaps      int           // renewals in a row that found a master without its key, and left it so
	lacked    quorum.Set    // the masters that said in the renewal before the last that they have no key
	order     int64         // the Resize that it knows of, or an earlier one: see checker.orderOf
	extension extension     // the last renewal that was sent
}

// checker watches the promises while a trial runs.
type checker struct {
	trial      *trial
	claims     []*claim
	violations []Violation
	ledger     ledger
	touched    bool // a master's keys or its clock have changed
	wants      []*want
	looks      uint64 // how often checker.wanted has looked
	calls      int    // how many calls have begun that take a lock
	tokens     tokens
	strays     map[stray]bool
	places     map[string]*place // by waiter: all who have ever waited for a fair lock
	placed     []*place          // those whose call may still be waiting
	lines      []*lineup
	resizes    []*resized
}

func newChecker(t *trial) *checker {
	return &checker{trial: t, ledger: ledger{masters: t.config.Nodes}, tokens: tokens{byLock: map[string]*handedOut{}}, places: map[string]*place{}, strays: map[stray]bool{}}
}

// punctual is how late the end of a lease may be announced on a host that was not
// suspended and whose clock was not set. It is time enough for the events of one
// instant.
const punctual = time.Millisecond

// nap is what is added to that on any other host: drift.Timers sleep for up to a
// second, by a clock that may be slow.
var nap = time.Second + drift.Allowance(time.Second, drift.DefaultFactor)

func (k *checker) report(v Violation) {
	if k.trial.config.Faults.oneClock && !slices.Contains(whateverAClockDoes, v.Kind) {
		return
	}
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
	k.overtakes(cl)
	k.taken(cl)
	for _, other := range k.claims {
		if other.collides(cl) && h.Valid() && !c.preempted() {
			other.followed = c
		}
	}
	k.claims = append(k.claims, cl)
	if c, ok := k.ofHolders(); ok {
		k.trial.stats.checked(c, true)
	}
	k.examine(cl)
	k.overlaps()
	k.fewer(cl)
	return cl
}

// leave removes a hold that its owner no longer relies on.
func (k *checker) leave(cl *claim) {
	for i, o := range k.claims {
		if o == cl {
			k.claims = append(k.claims[:i], k.claims[i+1:]...)
			break
		}
	}
	k.trial.trace.held(cl, k.trial.world.now)
}

// crashed removes every hold of a client that has crashed.
func (k *checker) crashed(c *client) {
	for i := len(k.claims) - 1; i >= 0; i-- {
		if k.claims[i].client == c {
			k.leave(k.claims[i])
		}
	}
}

// look is called after every event, with the host that it happened to. A single
// hold overlaps nothing, and changes only by an event of its own client, or when
// its time is up.
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
		k.unpaidDebts(k.trial.clients[h.id-clientIDs-1])
		k.rounds(k.trial.clients[h.id-clientIDs-1])
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
			k.dropped(cl)
			k.early(cl)
		} else {
			cl.due = now + until.Sub(cl.client.host.clock.Now())
			if !until.Equal(cl.until) {
				k.backing(cl)
				k.putOff(cl, until)
			}
			k.restored(cl)
		}
		cl.until, cl.seen, cl.steps = until, now, cl.client.host.clock.uneven
	}
	if cl.ended && !cl.told && cl.hold.Valid() {
		k.revived(cl)
	}
	if cl.ended && !cl.told && !cl.client.host.hangs() {
		k.announced(cl)
	}
}

// revived is called for a hold that is valid although its validity was over.
func (k *checker) revived(cl *claim) {
	cl.ended = false
	if cl.steps != cl.client.host.clock.uneven {
		return // its clock had been set forward, and has been set back since
	}
	k.report(Violation{
		Kind:    Revived,
		What:    fmt.Sprintf("the lease of %q of %s is valid again, %v after its validity had ended", cl.names[0], cl.client.host.name, short(k.trial.world.now-cl.end)),
		Clients: []int{cl.client.index},
	})
}

// announced checks that the owner of a lease that is over is told in time.
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
		What:    fmt.Sprintf("%s has not been told that its lease of %q ended %v ago", cl.client.host.name, cl.names[0], short(late)),
		Clients: []int{cl.client.index},
	})
}

// needless reports a lease that ended by itself although it is renewed, and nothing was
// wrong for long enough.
func (k *checker) needless(cl *claim) {
	lease, ok := cl.hold.(interface{ Err() error })
	if !ok || !cl.renews || cl.client.host.hangs() {
		return
	}
	k.couldBeRenewed(cl, lease.Err())
	if !k.calm(cl.client) {
		return
	}
	if err := lease.Err(); errors.Is(err, redlock.ErrLost) || errors.Is(err, redlock.ErrExpired) {
		k.report(Violation{
			Kind:    NeedlessLoss,
			What:    fmt.Sprintf("the lease of %q of %s ended although nothing was wrong: %v", cl.names[0], cl.client.host.name, err),
			Clients: []int{cl.client.index},
		})
	}
}

// overlaps reports two valid holds of one lock. A client that stands still holds its
// lease, too: it acts on it when it goes on.
func (k *checker) overlaps() {
	if k.trial.config.Lock.IsSemaphore() {
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

// deleted reports a client that removes a lock that another one stored.
func (k *checker) deleted(m *master, by *client, key string, e *masters.Entry) {
	if !masters.IsLock(key) {
		return
	}
	k.report(Violation{
		Kind:    ForeignDelete,
		What:    fmt.Sprintf("%s deleted the lock of %s at %s", by.host.name, clientName(e.By), m.host.name),
		Clients: []int{by.index, e.By},
	})
}

// zombies is called when every TTL has passed. It reports keys by which somebody
// seems to hold a lock, and those without a TTL other than the marker.
func (k *checker) zombies() {
	for _, m := range k.trial.masters {
		for _, key := range sortedKeys(m.keys.Keys) {
			e := m.keys.Find(key)
			if e == nil || k.trial.clients[e.By].host.rests() {
				continue // code that is stopped in the middle may be giving it back
			}
			if masters.Holds(key) || e.Until == 0 && key != wire.MarkerKey("") {
				k.report(Violation{
					Kind:    Zombie,
					What:    fmt.Sprintf("%s still has the key %q of %s, which nobody holds", m.host.name, key, clientName(e.By)),
					Clients: []int{e.By},
				})
			}
		}
	}
}
