package promises

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// Caller is code that runs on a simulated client. It is ordinary blocking code: the world stops
// it wherever it waits, and continues it when the awaited event has happened. Only its own code
// may call the methods of a Process.
type Caller struct {
	*world.Routine
	Scene  *Scene
	Client *Client
	Number int // the place of its actions in the schedule
}

// Wait waits until ready delivers or is closed, and returns nil, or until ctx ends, and
// returns its error.
func (p *Caller) Wait(ctx context.Context, ready <-chan struct{}) error {
	err := p.Routine.Wait(ctx, ready)
	p.gotOn()
	return err
}

// Sleep waits for d on the client's clock and returns nil, or until ctx ends, and
// returns its error.
func (p *Caller) Sleep(ctx context.Context, d time.Duration) error {
	err := p.Routine.Sleep(ctx, d)
	p.gotOn()
	return err
}

// GotOn notes that the workload makes progress.
func (p *Caller) gotOn() { p.Client.GotOn = p.Host.World.Now }

// During waits for d, or until done is closed, and reports whether it was.
func (p *Caller) During(done <-chan struct{}, d time.Duration) bool {
	return p.Sleep(until{context.Background(), done}, d) != nil
}

// until is a context that ends with a channel.
type until struct {
	context.Context
	done <-chan struct{}
}

func (u until) Done() <-chan struct{} { return u.done }

func (u until) Err() error {
	select {
	case <-u.done:
		return context.Canceled
	default:
		return nil
	}
}

// Holding tells the checks that the client relies on a lease from now on, until it calls
// letGo, or crashes.
func (p *Caller) Holding(l *redlock.Lease) (letGo func()) { return p.HoldingSome(l, 0, 0) }

// HoldingSome is Holding, for a lease of some of the permits that there are.
func (p *Caller) HoldingSome(l *redlock.Lease, permits, of int) (letGo func()) {
	p.Scene.Stats.Acquisitions++
	s := stake{Names: strings.Split(l.Name(), ","), Permits: permits, Limit: of, renews: p.Scene.Config.Lock == plan.Election}
	if l.Token() != 0 {
		s.Above = map[string]uint64{} // it is not known when the call began
	}
	cl := p.Scene.Check.Grant(p.Client, l, s)
	cl.Calls() // the workload may call anything
	return func() { p.Scene.Check.Leave(cl) }
}

// Fail reports a violation of the kind Custom: a promise that the workload itself checks
// is broken.
func (p *Caller) Fail(format string, args ...any) {
	p.Scene.Check.Report(tally.Violation{Kind: tally.Custom, What: fmt.Sprintf(format, args...), Clients: []int{p.Client.Index}})
}

// Storage is the resource that the lock protects: a number that is read,
// changed and written back, and that reports every write whose reader did not
// know the latest state.
type Storage struct {
	scene   *Scene
	version int
	token   uint64
}

// Read returns the version to be given to Write.
func (s *Storage) Read() int { return s.version }

// Fence makes the storage refuse writes with a token lower than this one: the writes of earlier
// holders.
func (s *Storage) Fence(token uint64) { s.token = max(s.token, token) }

// Write stores an update of the given version, and reports whether the storage accepted it. A
// write with a fencing token lower than an earlier token is refused; a token of zero counts as
// no token. A write that is accepted although the version is not the latest has undone another
// client's update.
func (s *Storage) Write(version int, token uint64) bool {
	if token != 0 && token < s.token {
		return false
	}
	s.token = max(s.token, token)
	if version != s.version {
		s.scene.Check.Report(tally.Violation{Kind: tally.LostUpdate, What: "a write undid an update that its writer had not seen"})
	}
	s.version++
	return true
}

// Storage returns the storage that a lock protects.
func (t *Scene) Storage(lock string) *Storage {
	s := t.storages[lock]
	if s == nil {
		s = &Storage{scene: t}
		t.storages[lock] = s
	}
	return s
}
