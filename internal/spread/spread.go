// Package spread says which of several groups of masters has a name.
package spread

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Map spreads names over groups of masters, each of which is a quorum group of its own. Of the
// scores of all groups for a name the highest wins (rendezvous hashing), so a group that comes or
// goes moves only the names that it gets or had.
//
// Every change makes a new map with the next number. Names do not move from one map to the next at
// one instant, since clients learn of a map one after another. So between two settled maps there is
// one by which names are moving: no group has a name that moves.
//
// Invariant: no two maps that follow each other give one name to two groups. Leases by a map end
// before the map after the next one counts.
type Map struct {
	Number int      // counts the changes; zero: there is no map
	Groups []string // sorted
	Next   []string // sorted; names are moving from Groups to these. Empty: the map is settled
}

// Settled reports whether no name is moving.
func (m Map) Settled() bool { return len(m.Next) == 0 }

// Owner returns the group that has the name; empty: none has, because the name is moving or there is
// no map.
func (m Map) Owner(name string) string {
	owner := Highest(m.Groups, name)
	if !m.Settled() && Highest(m.Next, name) != owner {
		return ""
	}
	return owner
}

// Toward returns the map by which names move to these groups.
func (m Map) Toward(groups []string) Map {
	return Map{Number: m.Number + 1, Groups: m.Groups, Next: slices.Sorted(slices.Values(groups))}
}

// Settle returns the map that follows when no lease of a name that moves is left.
func (m Map) Settle() Map { return Map{Number: m.Number + 1, Groups: m.Next} }

// Newer reports whether m replaces other. Two operators may have made two maps of one number: no
// client must take both for the newest, whichever it is.
func (m Map) Newer(other Map) bool {
	if m.Number != other.Number {
		return m.Number > other.Number
	}
	return m.String() > other.String()
}

// Highest returns the group with the highest score for the name; empty: there are no groups. Of
// equal scores the first group's counts.
func Highest(groups []string, name string) (best string) {
	most := uint64(0)
	for _, g := range groups {
		if s := score(g, name); best == "" || s > most {
			best, most = g, s
		}
	}
	return best
}

// score is part of the protocol: all clients must agree on it. FNV-1a alone spreads names that
// differ in their last byte badly, so its bits are mixed once more.
func score(group, name string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	x := uint64(offset)
	for _, part := range [...]string{group, " ", name} { // a group's name has no space
		for i := range len(part) {
			x = (x ^ uint64(part[i])) * prime
		}
	}
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// String returns the stored form: the number, the groups and, behind a >, those to which names
// move. Without a map it is empty.
func (m Map) String() string {
	if m.Number == 0 {
		return ""
	}
	s := strconv.Itoa(m.Number) + ":" + strings.Join(m.Groups, ",")
	if !m.Settled() {
		s += ">" + strings.Join(m.Next, ",")
	}
	return s
}

// Parse reads what String wrote.
func Parse(s string) (Map, error) {
	if s == "" {
		return Map{}, nil
	}
	number, rest, _ := strings.Cut(s, ":")
	groups, next, _ := strings.Cut(rest, ">")
	m := Map{Groups: list(groups), Next: list(next)}
	var err error
	if m.Number, err = strconv.Atoi(number); err != nil || m.Number < 1 || m.String() != s || Check(m.Groups) != nil || Check(m.Next) != nil {
		return Map{}, fmt.Errorf("map of groups %.100q: must be a number, a colon and groups, and may have a > and the groups to which names move", s)
	}
	return m, nil
}

// MaxText bounds a map, which every vote comes with.
const MaxText = 4096

// Check refuses names of groups that cannot stand in a map.
func Check(groups []string) error {
	for i, g := range groups {
		switch {
		case g == "" || g == "-" || len(g) > 64 || strings.ContainsFunc(g, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(",:>@", r) }):
			return fmt.Errorf("group name %.100q: must be 1 to 64 visible ASCII characters without spaces, and none of , : > @, and not -", g)
		case slices.Contains(groups[:i], g):
			return fmt.Errorf("group name %q: listed twice", g)
		}
	}
	if n := len(strings.Join(groups, ",")); n > MaxText {
		return fmt.Errorf("%d groups: their names are %d bytes long: must be at most %d", len(groups), n, MaxText)
	}
	return nil
}

func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
