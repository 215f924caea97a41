package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Distance is how far away the masters are.
type Distance struct {
	Name   string // as the names of workloads have it: 1ms, or near+far
	Groups []Group

	delays []time.Duration // of the lines, one way
	urls   []string        // of the masters, through the lines
	rtt    []time.Duration // measured, of each master
	pid    int             // of the lines' process
}

// Group are masters at the same distance.
type Group struct {
	Name    string        // empty if there is only one group
	RTT     time.Duration // round trip
	Masters int           // 0: all
}

// Distances that can be measured: below, the machine itself takes most of the
// time, and above, locks cannot be kept.
const (
	minRTT = 200 * time.Microsecond
	maxRTT = time.Second
)

// ParseDistances reads round trips, the same for all masters: "1ms,10ms" are
// two distances. Or it reads one distance with groups of masters in it:
// "near=0.5ms*3,far=20ms*2".
func ParseDistances(text string) ([]*Distance, error) {
	parts := strings.Split(text, ",")
	if !strings.ContainsAny(text, "=*") {
		var all []*Distance
		for _, part := range parts {
			rtt, err := parseRTT(part)
			if err != nil {
				return nil, err
			}
			all = append(all, &Distance{Name: rtt.String(), Groups: []Group{{RTT: rtt}}})
		}
		return all, nil
	}
	d := &Distance{}
	var names []string
	for _, part := range parts {
		g, err := parseGroup(part)
		if err != nil {
			return nil, err
		}
		d.Groups, names = append(d.Groups, g), append(names, g.Name)
	}
	d.Name = strings.Join(names, "+")
	return []*Distance{d}, nil
}

func parseGroup(text string) (Group, error) {
	name, rest, named := strings.Cut(text, "=")
	length, count, counted := strings.Cut(rest, "*")
	if !named || !counted || name == "" {
		return Group{}, fmt.Errorf("%q: a group is name=round trip*masters, such as near=0.5ms*3", text)
	}
	rtt, err := parseRTT(length)
	if err != nil {
		return Group{}, err
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 {
		return Group{}, fmt.Errorf("%q: %q is no number of masters", text, count)
	}
	return Group{name, rtt, n}, nil
}

func parseRTT(text string) (time.Duration, error) {
	rtt, err := time.ParseDuration(text)
	if err != nil || rtt < minRTT || rtt > maxRTT {
		return 0, fmt.Errorf("%q: must be a round trip from %v to %v", text, minRTT, maxRTT)
	}
	return rtt, nil
}

// Masters is how many there must be.
func (d *Distance) Masters() (n int) {
	for _, g := range d.Groups {
		n += max(1, g.Masters)
	}
	return n
}

// asked is the round trip to each of n masters. Masters of no group are as
// far away as the farthest.
func (d *Distance) asked(n int) []time.Duration {
	all := make([]time.Duration, 0, n)
	for _, g := range d.Groups {
		all = append(all, slices.Repeat([]time.Duration{g.RTT}, g.Masters)...)
	}
	return append(all, slices.Repeat([]time.Duration{d.Farthest()}, n-len(all))...)
}

// away is a distance in a title.
func away(distance string) string {
	if strings.Contains(distance, "+") {
		return ", masters " + distance
	}
	return ", masters " + distance + " away"
}

// Farthest is the longest round trip that was asked for.
func (d *Distance) Farthest() (rtt time.Duration) {
	for _, g := range d.Groups {
		rtt = max(rtt, g.RTT)
	}
	return rtt
}

// quorum is the R that was asked for, of n masters.
func (d *Distance) quorum(n int) time.Duration { return quorumOf(d.asked(max(n, d.Masters()))[:n]) }

// R is the round trip that a quorum of the first n masters takes: that to the
// farthest master of the nearest quorum, as measured. It is the unit in which
// times at a distance are compared.
func (d *Distance) R(n int) time.Duration { return quorumOf(d.rtt[:n]) }

func quorumOf(trips []time.Duration) time.Duration {
	nearest := slices.Clone(trips)
	slices.Sort(nearest)
	return nearest[len(nearest)/2]
}
