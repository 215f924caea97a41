package guard

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
)

// Group is what the masters of one client have in common. Each of them must be a
// server of its own, or one server would vote twice (S15). All must belong to the
// group that this client means (S14). The longest restart guard that any of them knows
// of counts (S5b). And their clocks bear witness for each other. Masters of one client
// share one Group; it is safe for concurrent use.
type Group struct {
	id    GroupID
	least atomic.Uint64 // bits of AtLeast; 0: not known
	most  atomic.Uint64 // bits of how fast right clocks may run, see Pace; 0: not watched

	nearlyKnown chan struct{} // closed when most is nearly 1
	closing     sync.Once

	comers atomic.Uint32 // counts the clocks that were read for the first time, or again after a gap

	mu      sync.Mutex
	clock   steady // that of all guards, so that their readings compare
	members []*standing
	warned  []func()      // raised when every master's right to vote must be looked at again
	hold    time.Duration // the longest that was seen on any master

	spread *spreading // nil: the group has all names
}

// standing is what the guard of one master tells the group by its last look.
type standing struct {
	addr    string // when it last joined
	looked  bool
	strange error   // it belongs to another group
	mapped  bool    // it has told a map, on this connection
	run     string  // the run_id of the master; empty: unknown
	memory  string  // the name of its marker; empty: unknown
	joined  bool    // it is connected
	clock   bounds  // a copy of those in its timepiece
	atLeast float64 // how fast the clock runs at least
}

// NewGroup returns a group that is known to others by what GroupOf says. The
// zero GroupID belongs to any group.
func NewGroup(id GroupID) *Group {
	return &Group{id: id, nearlyKnown: make(chan struct{})}
}

// Join enters a connected master, or says which other one is the same server.
// Only connected masters are entered, so that a server may move to another
// address.
func (g *Guard) Join(addr, runID string) error {
	if g.group == nil {
		return nil
	}
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	s := g.standing
	s.addr, s.run, s.joined = addr, runID, false
	if err := g.group.twin(s); err != nil {
		return err
	}
	s.joined = true
	return nil
}

// twin returns an error if another connected master is the same server. The mutex is held.
func (g *Group) twin(s *standing) error {
	for _, other := range g.members {
		if other != s && other.joined && s.same(other) {
			return fmt.Errorf("%w: %s (%s)", ErrSameNode, other.addr, s.evidence())
		}
	}
	return nil
}

// Leave undoes Join.
func (g *Guard) Leave() {
	if g.group == nil {
		return
	}
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	g.standing.joined, g.standing.mapped = false, false
}

// same reports whether both are one server. One that hides its run_id shows a marker that no other has.
func (s *standing) same(other *standing) bool {
	if s.run != "" && other.run != "" {
		return s.run == other.run
	}
	return s.memory != "" && s.memory == other.memory
}

// evidence is by what a server is known.
func (s *standing) evidence() string {
	if s.run == "" {
		return "it has the same marker, and hides its run_id"
	}
	return "run_id " + s.run
}

// Warn has raise called whenever a finding about one master may change the right of the
// others to vote. The mutex is held meanwhile.
func (g *Group) Warn(raise func()) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.warned = append(g.warned, raise)
}

// raiseDoubts does what Warn has asked for. The mutex is held.
func (g *Group) raiseDoubts() {
	for _, raise := range g.warned {
		raise()
	}
}

// enter makes room for one more guard, whose clock is that of the first.
func (g *Group) enter(c clock.Clock) (*standing, steady) {
	if g == nil {
		return &standing{}, newSteady(c)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clock.clock == nil {
		g.clock = newSteady(c)
	}
	s := &standing{}
	g.members = append(g.members, s)
	return s, g.clock
}

// longest returns the longest hold that was seen on any master of the group.
func (g *Group) longest() time.Duration {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hold
}

// note notes what a look at the master of a guard says of it, and the hold of its marker. It returns an
// error if the look shows that another connected master is the same server.
func (g *Group) note(s *standing, e Evidence) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.run = e.RunID; !e.Blind {
		s.memory = e.Marker.name()
	}
	if e.Marker.Hold > g.hold {
		g.hold = e.Marker.Hold
		g.raiseDoubts()
	}
	return g.twin(s)
}

// noteID notes what the master of a guard says of its group.
func (g *Group) noteID(s *standing, theirs GroupID) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	stranger := cmp.Or(g.id.Differs(theirs), g.noteMap(s, theirs.Map))
	if (stranger == nil) != (s.strange == nil) {
		g.raiseDoubts()
	}
	s.looked, s.strange = true, stranger
}

// stranger returns an error if the master of a guard has said that its group is not ours.
func (g *Group) stranger(s *standing) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return s.strange
}

// Trouble returns ErrOtherGroup while a master belongs to another group. A client
// that finds one must not lock with the others: the masters that each of two
// groups has marked as its own can both be a quorum.
func (g *Group) Trouble() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.members {
		if s.strange != nil {
			return s.strange
		}
	}
	return nil
}

// stamp returns the group that a marker should name. A client writes its own group
// only when it has looked at most of its masters and none of them belongs to another:
// a client with the wrong list must not mark a master that has just lost its memory.
func (g *Group) stamp(theirs GroupID) GroupID {
	if g == nil {
		return theirs
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	looked := 0
	for _, s := range g.members {
		if s.strange != nil {
			return theirs
		}
		if s.looked {
			looked++
		}
	}
	if 2*looked <= g.id.Size {
		return theirs
	}
	theirs = g.id.over(theirs)
	theirs.Map = g.newestMap(theirs.Map)
	return theirs
}

// Doubts reports whether the master may belong to another list of masters.
func (g *Group) Doubts(theirs GroupID) bool { return g != nil && g.id.Doubtful(theirs) }
