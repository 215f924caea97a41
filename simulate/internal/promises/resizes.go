package promises

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// Resized is one Resize of a semaphore.
type Resized struct {
	Name   string
	To     int
	Began  time.Duration
	Over   time.Duration // when it returned; negative: it has not
	Failed bool          // some masters may have been told, or will be
	Lapses int           // of all masters, when it began
}

// Lapses counts what masters have forgotten.
func (t *Scene) Lapses() (n int) {
	for _, m := range t.Masters {
		n += int(m.Lapses)
	}
	return n
}

// PermitsOf returns how many permits of a semaphore a client knows of.
func (c *Client) PermitsOf(name string) int {
	if n := c.Sizes[name]; n > 0 {
		return n
	}
	return c.Config.Permits
}

// EverybodyHas reports whether every master has that number of permits.
func (k *checker) EverybodyHas(name string, permits int) bool {
	for _, m := range k.scene.Masters {
		if m.Permits(name) != permits {
			return false
		}
	}
	return true
}

// resizedBeside reports whether another Resize of the same semaphore was under way at
// the same time, or may still arrive.
func (k *checker) resizedBeside(r *Resized) bool {
	return slices.ContainsFunc(k.Resizes, func(o *Resized) bool {
		return o != r && o.Name == r.Name && (o.Over < 0 || o.Failed || o.Over >= r.Began)
	})
}

// fewer reports a client that was given more permits than were left by a Resize that was
// complete before the client asked.
func (k *checker) fewer(cl *Claim) {
	if cl.Permits == 0 || cl.Adopted || !k.settledOn(cl) {
		return
	}
	out := 0
	for _, other := range k.Claims {
		if other.Names[0] == cl.Names[0] && other.usesPermits() {
			out += other.Permits
		}
	}
	if out > cl.Limit {
		k.Report(tally.Violation{
			Kind: tally.Overlap,
			What: fmt.Sprintf("%s was given permits when %d of %q were held, and there had been a Resize to %d",
				cl.Client.Host.Name, out-cl.Permits, cl.Names[0], cl.Limit),
			Clients: []int{cl.Client.Index},
		})
	}
}

// settledOn reports whether a claim knows the number by the last Resize, which was
// complete before, as all others were when that began, and which no master forgot.
func (k *checker) settledOn(cl *Claim) bool {
	var last *Resized
	for _, r := range k.Resizes {
		if r.Name != cl.Names[0] {
			continue
		}
		if last != nil && (last.Over < 0 || last.Over > r.Began || last.Failed) {
			return false
		}
		last = r
	}
	return last != nil && !last.Failed && last.Over >= 0 && last.Over < cl.began &&
		last.To == cl.Limit && last.Lapses == k.scene.Lapses()
}

// know returns the masters that have that number of permits, or none.
func (k *checker) know(name string, permits int) (known quorum.Set) {
	for i, m := range k.scene.Masters {
		if size := m.Permits(name); size == 0 || size == permits {
			known |= quorum.Only(i)
		}
	}
	return known
}

// ResizeEnds checks how a Resize ended. A quorum must have confirmed a successful Resize. A
// Resize must not be refused if nothing was wrong when it began and every master had the number
// that its client knew, unless another Resize came in between.
func (t *Scene) ResizeEnds(p *Caller, r *Resized, said *Replies, err error, fits bool) {
	if said == nil {
		return
	}
	p.Client.Resizing = nil
	if err == nil && said.granted < quorum.Size(said.Masters) {
		p.Fail("%s has resized %q, which %d of %d masters have confirmed", p.Name(), r.Name, said.granted, said.Masters)
	}
	if fits && errors.Is(err, redlock.ErrPermits) && t.Check.Calm(p.Client) && !t.Check.resizedBeside(r) {
		p.Fail("%s could not resize %q from the number that every master had, and nothing was wrong: %v", p.Name(), r.Name, err)
	}
}

// Remembers reports whether so few masters have forgotten anything that no arrival can
// be lost. One may have been away all the time: that is as if it had forgotten.
func (t *Scene) Remembers() bool {
	forgot := 0
	for _, m := range t.Masters {
		forgot += min(m.Lapses, 1)
	}
	return forgot <= max(0, (len(t.Masters)-1)/2-1)
}

// Estate is what a caller held, as it was written down.
type Estate struct {
	Action  plan.Action
	Permits int // fewer than the action says, if there were no more
	Limit   int // how many there were
	Value   string
	Token   uint64
}

// WithPermits returns how many masters store the permits of an estate.
func (k *checker) WithPermits(e Estate) (n int) {
	if !k.scene.Config.Lock.IsSemaphore() {
		return 0
	}
	waiter, _ := masters.SplitValue(e.Value)
	name := e.Action.LockNames()[0]
	for _, m := range k.scene.Masters {
		list, value, has := m.Keys.SlotsOf(masters.PermitKeys{Held: "redlock:held:" + name}, waiter)
		first, _, _ := strings.Cut(list, ",")
		if until, there := m.Keys.Score("redlock:slots:"+name, first); has && value == e.Value && there && until > m.Keys.Millis() && !m.Host.Down {
			n++
		}
	}
	return n
}

// OrderOf returns the order of the Resize to this number of permits, as far as any quorum of
// masters knows it: a client that asks a quorum learns of that Resize, or of a later one.
func (k *checker) OrderOf(e Estate, permits int) int64 {
	if !k.scene.Config.Lock.IsSemaphore() {
		return 0
	}
	var orders []int64
	for _, m := range k.scene.Masters {
		if total, order := m.Keys.Size(masters.PermitKeys{Limit: "redlock:permits:" + e.Action.LockNames()[0]}); total == permits {
			orders = append(orders, order)
		}
	}
	need := quorum.Size(len(k.scene.Masters))
	if len(orders) < need {
		return 0
	}
	slices.Sort(orders)
	return orders[need-1]
}

// Adopted checks how the adoption of permits failed: the error must say that the permits are
// lost if they are, and only then. gone says that no master had the permits and all masters
// could be asked; kept is how many masters kept the permits all the time.
func (k *checker) Adopted(p *Caller, e Estate, err error, gone bool, kept int) {
	if !k.scene.Config.Lock.IsSemaphore() || p.Client.Closing || p.Host.Rests() {
		return
	}
	switch size := quorum.Size(len(p.Client.Masters)); {
	case gone && k.Calm(p.Client) && errors.Is(err, redlock.ErrNoQuorum):
		p.Fail("%s could not adopt permits of %q that no master has, and is told that there is no quorum: %v", p.Name(), e.Action.LockNames()[0], err)
	case kept >= size && errors.Is(err, redlock.ErrNotHeld):
		p.Fail("%s was told that permits of %q are lost, which %d masters keep: %v", p.Name(), e.Action.LockNames()[0], kept, err)
	}
}

// Beside reports whether other code of the client runs beside a process.
func (c *Client) Beside(p *Caller) bool { return len(c.Host.Procs) > 1 || c.Leases > 0 }
