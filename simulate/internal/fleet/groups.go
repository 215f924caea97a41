package fleet

import (
	"iter"

	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/simulate/internal/masters"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// Parts returns the masters of each of n groups, with its name.
func Parts(all []*Master, n int) iter.Seq2[string, []*Master] {
	return func(yield func(string, []*Master) bool) {
		for i := range n {
			size := len(all) / n
			if !yield(plan.GroupName(i), all[i*size:(i+1)*size]) {
				return
			}
		}
	}
}

// AddressesOf returns the addresses of each group.
func AddressesOf(of []*Master, n int) map[string][]string {
	all := map[string][]string{}
	for name, part := range Parts(of, n) {
		all[name] = Addresses(part)
	}
	return all
}

// Founded is what masters call their group by whose map all of n groups have names.
func Founded(name string, of []*Master, n int) guard.GroupID {
	id := groupNamed(name, of)
	id.Map = spread.Map{}.Toward(plan.GroupNames(n)).Settle().String()
	return id
}

// NewestMap is the newest map that a master tells.
func NewestMap(of []*Master) (newest spread.Map) {
	for _, m := range of {
		if told := m.Map(); told.Newer(newest) {
			newest = told
		}
	}
	return newest
}

// OwnerOf returns the group that has the name by the maps of all masters; empty: they do not agree, or it
// moves.
func OwnerOf(of []*Master, name string) string {
	owner := of[0].Map().Owner(name)
	for _, m := range of {
		if m.Map().Owner(name) != owner {
			return ""
		}
	}
	return owner
}

// Tell has the master tell the map.
func (m *Master) Tell(told spread.Map) {
	marker, err := guard.ParseMarker(m.Marker())
	if err == nil && marker.RunID != "" {
		m.Keys.Store(MarkerKey, &masters.Entry{Value: marker.Spread(m.runID(), marker.Group, told.String()).String()})
	}
}

// Map returns the map of groups that the master tells.
func (m *Master) Map() spread.Map {
	marker, _ := guard.ParseMarker(m.Marker())
	told, _ := spread.Parse(marker.Group.Map)
	return told
}
