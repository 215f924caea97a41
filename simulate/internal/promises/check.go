// Package promises checks what a lock promises, while a schedule runs: by what masters store, what
// leases say of themselves, and true time.
package promises

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/fleet"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// whateverAClockDoes are the promises that hold also where one clock does anything at all.
// The others are about what each master and each client does for itself.
var whateverAClockDoes = []tally.ViolationKind{tally.Overlap, tally.EndedLease, tally.Revived, tally.LostUpdate, tally.Token, tally.Stuck}

// Hold is what the checks ask of a lock that is held. A *redlock.Lease is one.
type hold interface {
	Valid() bool
	Until() time.Time
	Done() <-chan struct{}
}

// Claim is a hold that a client relies on, and what the checks have seen of it.
type Claim struct {
	stake
	Client   *Client
	Hold     hold
	Writes   bool // although it is shared (weaker.Lacks.Told)
	Since    time.Duration
	seen     time.Duration // when the checks last looked
	until    time.Time     // what hold.Until said then, on the client's clock; zero: it had ended
	last     time.Time     // what it said when the client was about to stand still
	life     uint32        // of the client's host
	uneven   int           // Clock.uneven of the client when the lease began
	steps    int           // Clock.uneven of the client when the checks last looked
	Ended    bool          // the validity is over
	End      time.Duration // when it was
	intended time.Duration // when it would have been by the client's clock as it was before, if that was set
	told     bool          // its owner has been told
	clashed  bool          // an overlap was reported

	followed  *Client       // another client has got the lock since, before this one gave it back; nil: none
	overtaken time.Duration // when that was first
	Value     string        // what the masters store for it; empty: not known
	due       time.Duration // when to look again, even if nothing happens to its client
	unbacked  bool          // that was reported
	untold    bool          // a late loss was reported
	Asked     bool          // its owner has called something that extends it
	called    time.Time     // when, by the client's clock
	pace      float64       // of the masters' clocks by its client's, when its end was last put off
	rises     int           // how often its end was put off
	belated   bool          // a late repair was reported
	crowded   time.Duration // when something else was last in its place at a master that had lost its memory
	gaps      int           // renewals in a row that found a master without its key, and left it so
	lacked    quorum.Set    // the masters that said in the renewal before the last that they have no key
	Order     int64         // the Resize that it knows of, or an earlier one: see checker.OrderOf
	extension extension     // the last renewal that was sent
	deadline  *Deadline     // nil without StopWithin
}

// checker watches the promises while a trial runs.
type checker struct {
	scene      *Scene
	Claims     []*Claim
	Violations []tally.Violation
	Ledger     ledger
	touched    bool // a master's keys or its clock have changed
	wants      []*want
	looks      uint64 // how often checker.wanted has looked
	Calls      int    // how many calls have begun that take a lock
	tokens     tokens
	strays     map[stray]bool
	places     map[string]*place // by waiter: all who have ever waited for a fair lock
	placed     []*place          // those whose call may still be waiting
	lines      []*lineup
	periods    map[string]period // by lock
	keptTill   map[keptAt]int64  // by the master's clock in milliseconds
	Resizes    []*Resized
}

func newChecker(t *Scene) *checker {
	return &checker{scene: t, Ledger: ledger{masters: t.Config.Nodes}, tokens: tokens{byLock: map[string]*handedOut{}}, places: map[string]*place{}, strays: map[stray]bool{}, periods: map[string]period{}, keptTill: map[keptAt]int64{}}
}

// Punctual is how late the end of a lease may be announced on a host that was not
// suspended and whose clock was not set. It is time enough for the events of one
// instant.
const Punctual = time.Millisecond

// nap is added to Punctual on any other host: drift.Timers sleep for up to a second, by a clock
// that may be slow.
var nap = time.Second + drift.Allowance(time.Second, drift.DefaultFactor)

func (k *checker) Report(v tally.Violation) {
	if k.scene.Config.Faults.OneClock && !slices.Contains(whateverAClockDoes, v.Kind) {
		return
	}
	v.At = k.scene.World.Now
	k.Violations = append(k.Violations, v)
}

// Grant adds a hold from this instant on.
func (k *checker) Grant(c *Client, h hold, s stake) *Claim {
	cl := &Claim{
		stake: s, Client: c, Hold: h, life: c.Host.Life,
		Since: k.scene.World.Now, seen: k.scene.World.Now, uneven: c.Uneven(),
	}
	if l, ok := h.(interface{ Value() string }); ok && !k.scene.Apart() {
		cl.Value = l.Value()
		delete(c.otherwise, cl.Value)
		cl.uneven = c.sinceAsked(cl.Value, cl.uneven)
	}
	if !c.Preempted() && !h.Valid() {
		k.Report(tally.Violation{
			Kind:    tally.EndedLease,
			What:    fmt.Sprintf("%s got a lease of %q that had ended", c.Host.Name, s.Names[0]),
			Clients: []int{c.Index},
		})
	}
	if s.Above != nil {
		k.token(cl, h.(Holding).Token())
	}
	k.once(cl)
	k.passed(cl)
	k.overtakes(cl)
	k.taken(cl)
	for _, other := range k.Claims {
		if other.collides(cl) && h.Valid() && !c.Preempted() {
			other.followed, other.overtaken = c, cmp.Or(other.overtaken, k.scene.World.Now)
		}
	}
	k.Claims = append(k.Claims, cl)
	if c, ok := k.ofHolders(); ok {
		k.scene.Stats.Checked(c, true)
	}
	k.Examine(cl)
	k.overlaps()
	k.fewer(cl)
	return cl
}

// sinceAsked returns the Uneven count of the client's clock when the masters were asked for a lease. A
// Lock of a cached lock begins no lease there: the client has timed the one that it has.
func (c *Client) sinceAsked(value string, uneven int) int {
	if !masters.IsCached(value) {
		return uneven
	}
	if _, known := c.cached[value]; !known {
		c.cached[value] = uneven
	}
	return c.cached[value]
}

// Leave removes a hold that its owner no longer relies on.
func (k *checker) Leave(cl *Claim) {
	for i, o := range k.Claims {
		if o == cl {
			k.Claims = append(k.Claims[:i], k.Claims[i+1:]...)
			break
		}
	}
	k.scene.Left(cl)
}

// Crashed removes every hold of a client that has crashed.
func (k *checker) Crashed(c *Client) {
	for i := len(k.Claims) - 1; i >= 0; i-- {
		if k.Claims[i].Client == c {
			k.Leave(k.Claims[i])
		}
	}
}

// Look is called after every event, with the host that it happened to. A single
// hold overlaps nothing, and changes only by an event of its own client, or when
// its time is up.
func (k *checker) Look(h *world.Host) {
	several := len(k.Claims) > 1
	for _, cl := range k.Claims {
		switch {
		case cl.Client.Host == h || k.scene.World.Now >= cl.due:
			k.Examine(cl)
		case several && h != nil && !cl.Ended && cl.Client.Host.Clock.Plain():
			cl.seen = k.scene.World.Now // it ends no earlier than was seen before
		case several:
			k.Examine(cl)
		}
	}
	if several {
		k.overlaps()
	}
	if h != nil && h.Id > fleet.ClientIDs {
		k.leftovers(k.scene.Clients[h.Id-fleet.ClientIDs-1])
		k.unpaidDebts(k.scene.Clients[h.Id-fleet.ClientIDs-1])
		k.rounds(k.scene.Clients[h.Id-fleet.ClientIDs-1])
	}
	if len(k.wants) > 0 {
		k.wanted()
	}
	if k.touched {
		k.touched = false
		for _, cl := range k.Claims {
			k.backing(cl)
		}
	}
}

// Examine notes when the validity of a hold ends, and when its owner is notified.
func (k *checker) Examine(cl *Claim) {
	now := k.scene.World.Now
	if !cl.Ended {
		until := cl.Hold.Until()
		if until.IsZero() {
			cl.Ended = true
			since := cl.Client.Host.Clock.Since(cl.until)
			if cl.last.After(cl.until) {
				since = cl.Client.Host.Clock.Since(cl.last)
			}
			cl.End = min(now, max(cl.seen, now-since))
			if cl.steps != cl.Client.Host.Clock.Uneven {
				cl.End = now // its clock was set since, and that ended it
			}
			cl.due = now + Punctual + 1
			k.needless(cl)
			k.early(cl)
		} else {
			cl.due = now + until.Sub(cl.Client.Host.Clock.Now())
			cl.intended = max(cl.intended, cl.due)
			if !until.Equal(cl.until) {
				k.backing(cl)
				k.putOff(cl, until)
			}
			k.restored(cl)
		}
		cl.until, cl.seen, cl.steps = until, now, cl.Client.Host.Clock.Uneven
	}
	if cl.Ended && !cl.told && cl.Hold.Valid() {
		k.revived(cl)
	}
	if cl.Ended && !cl.told && !cl.Client.Host.Hangs() {
		k.announced(cl)
	}
}

// Stops is called when a client is about to stand still. Its leases may have been renewed since the
// checks last looked, and may end before it goes on.
func (k *checker) Stops(c *Client) {
	for _, cl := range k.Claims {
		if cl.Client == c && !cl.Ended {
			cl.last = cl.Hold.Until()
		}
	}
}

// revived is called for a hold that is valid although its validity was over.
func (k *checker) revived(cl *Claim) {
	cl.Ended = false
	if cl.steps != cl.Client.Host.Clock.Uneven {
		return // its clock had been set forward, and has been set back since
	}
	k.Report(tally.Violation{
		Kind:    tally.Revived,
		What:    fmt.Sprintf("the lease of %q of %s is valid again, %v after its validity had ended", cl.Names[0], cl.Client.Host.Name, plan.Short(k.scene.World.Now-cl.End)),
		Clients: []int{cl.Client.Index},
	})
}

// announced checks that the owner of an ended lease is notified in time.
func (k *checker) announced(cl *Claim) {
	select {
	case <-cl.Hold.Done():
		cl.told = true
	default:
	}
	late := k.scene.World.Now - max(cl.End, cl.Client.Host.Resumed)
	allowed := Punctual
	if cl.uneven != cl.Client.Host.Clock.Uneven {
		allowed += nap
	}
	if late <= allowed || cl.untold {
		cl.due = k.scene.World.Now + max(Punctual, allowed-late) // look again
		return
	}
	cl.untold = true
	k.Report(tally.Violation{
		Kind:    tally.LateLoss,
		What:    fmt.Sprintf("%s has not been told that its lease of %q ended %v ago", cl.Client.Host.Name, cl.Names[0], plan.Short(late)),
		Clients: []int{cl.Client.Index},
	})
}

// needless reports a lease that ended by itself although it is renewed, and nothing was
// wrong for long enough.
func (k *checker) needless(cl *Claim) {
	lease, ok := cl.Hold.(interface{ Err() error })
	if !ok || !cl.renews || cl.Client.Host.Hangs() {
		return
	}
	k.couldBeRenewed(cl, lease.Err())
	if !k.Calm(cl.Client) || k.scene.World.Now-cl.Since <= k.back(cl) {
		return // or no renewal can have been answered yet
	}
	if err := lease.Err(); errors.Is(err, redlock.ErrLost) || errors.Is(err, redlock.ErrExpired) {
		k.Report(tally.Violation{
			Kind:    tally.NeedlessLoss,
			What:    fmt.Sprintf("the lease of %q of %s ended although nothing was wrong: %v", cl.Names[0], cl.Client.Host.Name, err),
			Clients: []int{cl.Client.Index},
		})
	}
}

// overlaps reports two valid holds of one lock. A client that stands still holds its
// lease, too: it acts on it when it goes on.
func (k *checker) overlaps() {
	if k.scene.Config.Lock.IsSemaphore() || k.scene.Apart() {
		k.crowd()
	}
	for i, a := range k.Claims {
		if a.Ended && a.told {
			continue
		}
		for _, b := range k.Claims[i+1:] {
			if a.clashed && b.clashed || !a.collides(b) || !a.Hold.Valid() || !b.Hold.Valid() {
				continue
			}
			a.clashed, b.clashed = true, true
			k.clashed()
			k.Report(tally.Violation{
				Kind:    tally.Overlap,
				What:    fmt.Sprintf("%s and %s both hold %q", a.Client.Host.Name, b.Client.Host.Name, a.Names[0]),
				Clients: []int{a.Client.Index, b.Client.Index},
			})
		}
	}
}

// Deleted reports a client that removes a lock that another one stored.
func (k *checker) Deleted(m *fleet.Master, by *Client, key string, e *masters.Entry) {
	if !masters.IsLock(key) {
		return
	}
	k.Report(tally.Violation{
		Kind:    tally.ForeignDelete,
		What:    fmt.Sprintf("%s deleted the lock of %s at %s", by.Host.Name, plan.ClientName(e.By), m.Host.Name),
		Clients: []int{by.Index, e.By},
	})
}

// Zombies is called when every TTL has passed. It reports keys by which a client seems to hold
// a lock, and keys without a TTL other than the marker.
func (k *checker) Zombies() {
	for _, m := range k.scene.Masters {
		for _, key := range slices.Sorted(maps.Keys(m.Keys.Keys)) {
			e := m.Keys.Find(key)
			if e == nil || k.scene.Clients[e.By].Host.Rests() {
				continue // code that is stopped in the middle may be giving it back
			}
			if masters.Holds(key) || e.Until == 0 && key != wire.MarkerKey("") {
				k.Report(tally.Violation{
					Kind:    tally.Zombie,
					What:    fmt.Sprintf("%s still has the key %q of %s, which nobody holds", m.Host.Name, key, plan.ClientName(e.By)),
					Clients: []int{e.By},
				})
			}
		}
	}
}

func HasEnded(h hold) bool {
	select {
	case <-h.Done():
		return true
	default:
		return false
	}
}

// Holding is what *redlock.Lease and the naive locks have in common.
type Holding interface {
	hold
	Token() uint64
	Extend(ctx context.Context, ttl time.Duration) error
	Unlock(ctx context.Context) error
}

// Loss tells the function of a Do when the client noticed that its lease had ended.
type Loss struct {
	Noticed bool
	At      time.Duration
}

// LossKey is the key of a loss in the context of a call.
type LossKey struct{}
