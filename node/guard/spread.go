package guard

import (
	"fmt"
	"sync/atomic"

	"github.com/quorumlock/quorumlock/internal/spread"
)

// spreading is what a group knows of the map that spreads names over it and others.
//
// The map stands in the marker, so a vote comes with the map that its master tells, and whoever has won
// goes by the newest map that is known then. An operator who changes the map marks all masters of all
// groups. So from then on no client gets, or renews, a lease by the map before: each quorum has such a
// master.
//
// A master that lost its memory lost the map, too, and must get it back before it votes; else a
// client that knows an old map would bring that back. So clients write the newest map that they
// know, and only if most masters of the group have told one, on connections that stand: of these one
// knows the newest, as long as no second one forgets it meanwhile.
type spreading struct {
	newest  atomic.Pointer[spread.Map] // that any master of any group has told
	changed []func()                   // called when that is another one
}

// OnMap has f called whenever another map is known. The mutex of the group is held meanwhile: f may lock
// others, but must not block, nor call the group.
func (g *Group) OnMap(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spread.changed = append(g.spread.changed, f)
}

// NewSpread is NewGroup for a client whose group has only the names that a map gives it.
func NewSpread(id GroupID) *Group {
	g := NewGroup(id)
	g.spread = &spreading{}
	g.spread.newest.Store(&spread.Map{})
	return g
}

// Map returns the newest map that a master of the group has told, and whether the group goes by one.
func (g *Group) Map() (m spread.Map, spreads bool) {
	if g == nil || g.spread == nil {
		return spread.Map{}, false
	}
	return *g.spread.newest.Load(), true
}

// noteMap notes the map that a master tells. It returns an error if the client does not go by
// maps and the master does. The mutex is held.
func (g *Group) noteMap(s *standing, told string) error {
	m, err := spread.Parse(told)
	switch {
	case told == "":
		return nil
	case g.spread == nil:
		return fmt.Errorf("%w: its clients spread names over several groups, %s, this one does not (see WithSpread)", ErrOtherGroup, told)
	case err != nil:
		return fmt.Errorf("%w: %v", ErrOtherGroup, err)
	}
	s.mapped = true
	if g.Learn(m) {
		for _, f := range g.spread.changed {
			f()
		}
	}
	return nil
}

// Learn takes the map that a master of another group has told, and reports whether it is the newest.
func (g *Group) Learn(m spread.Map) bool {
	for {
		newest := g.spread.newest.Load()
		if !m.Newer(*newest) {
			return false
		}
		if g.spread.newest.CompareAndSwap(newest, &m) {
			return true
		}
	}
}

// newestMap returns the map that a marker with this one should have. The mutex is held.
func (g *Group) newestMap(told string) string {
	if g.spread == nil {
		return told
	}
	mapped := 0
	for _, s := range g.members {
		if s.mapped {
			mapped++
		}
	}
	if 2*mapped <= g.id.Size {
		return told
	}
	return g.spread.newest.Load().String()
}

// toldMap notes the map that came with a vote, and reports whether the vote counts. It does by whatever
// map: who has won asks whether the name is here by the newest one that is known then.
func (g *Guard) toldMap(theirs GroupID) bool {
	switch theirs.Map {
	case g.marker.Group.Map:
		return true
	case "":
		return false
	}
	g.group.noteID(g.standing, theirs)
	g.marker.Group.Map = theirs.Map
	g.stored = g.marker.String() // else the look that follows finds nothing new, and every vote has one made
	return g.group.stranger(g.standing) == nil
}

// lacksMap returns an error if a master must not vote because it tells no map: votes would not tell that
// the map has changed.
func (g *Guard) lacksMap() error {
	_, spreads := g.group.Map()
	switch {
	case !spreads || g.marker.Group.Map != "":
		return nil
	case g.blind:
		return fmt.Errorf("%w: its marker cannot be read, so the map of groups is not known", ErrQuarantined)
	}
	return fmt.Errorf("%w: it has no map of groups (see redlock.Spread)", ErrQuarantined)
}
