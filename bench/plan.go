package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	lock "github.com/quorumlock/quorumlock/redlock"
)

// Effort is how long a run takes.
type Effort int

const (
	Quick  Effort = iota // about 15 seconds
	Normal               // about a minute
	Full                 // about six minutes: everything that Judge looks at
)

// Relaxed is the hand-off that is measured: a short section, and some work
// between two of them.
var Relaxed = Contention{Clients: 8, Section: time.Millisecond, Think: 5 * time.Millisecond}

// RelaxedHandoff is the name of that workload.
const RelaxedHandoff = "handoff/relaxed"

// pace is how much of each workload an effort asks for.
type pace struct {
	rounds  int
	pairs   time.Duration // for each trial, as all the others
	handoff time.Duration
	state   time.Duration
	held    int
	orphans int
	trips   int // round trips that a hand-off takes more time for, at a distance
}

var paces = map[Effort]pace{
	Quick:  {rounds: 1, pairs: 250 * time.Millisecond, handoff: 400 * time.Millisecond, state: 400 * time.Millisecond, orphans: 20_000},
	Normal: {rounds: 3, pairs: 300 * time.Millisecond, handoff: 500 * time.Millisecond, state: 1200 * time.Millisecond, held: 10_000, orphans: 100_000},
	Full:   {rounds: 7, pairs: 500 * time.Millisecond, handoff: time.Second, state: 1500 * time.Millisecond, held: 10_000, orphans: 100_000},
}

// remotePaces are for workloads at a distance, which take longer for the same.
var remotePaces = map[Effort]pace{
	Quick:  {rounds: 1, pairs: 300 * time.Millisecond, handoff: 700 * time.Millisecond, trips: 100},
	Normal: {rounds: 3, pairs: 500 * time.Millisecond, handoff: time.Second, state: 1500 * time.Millisecond, held: 10_000, trips: 300},
	Full:   {rounds: 5, pairs: 500 * time.Millisecond, handoff: time.Second, state: 1500 * time.Millisecond, held: 10_000, trips: 400},
}

// bestRetry is the delay between two tries with which redsync hands on best, of
// 0.1, 0.3, 1, 3, 10 and 30 ms.
func bestRetry(d *Distance) time.Duration {
	if d.quorum(5) < 5*time.Millisecond {
		return 100 * time.Microsecond
	}
	return 10 * time.Millisecond
}

// Workloads returns what a run of the given effort measures on the masters.
func Workloads(e Effort, m *Masters) []Workload {
	p := paces[e]
	redlock := func(nodes int) Subject { return Redlock(nodes) }
	if m.slow {
		p.orphans /= 10
		redlock = func(nodes int) Subject { return Redlock(nodes, lock.WithNodeTimeout(time.Second)) }
	}
	sizes, most := sizes(m.Len()), min(m.Len(), 5)
	var quorums []Subject
	for _, n := range sizes {
		quorums = append(quorums, redlock(n))
	}
	pairs := func(callers int, subjects ...Subject) Workload {
		return Pairs(callers).With(p.rounds, p.pairs, subjects...)
	}
	us, them := redlock(most), Redsync(most, 64)
	all := []Workload{
		pairs(1, join(Redigo(), quorums, them)...),
		pairs(64, join(RedigoPool(64), quorums, them)...),
		Handoff(RelaxedHandoff, "8 clients pass a lock on, holding it for 1 ms, then idle for 5 ms", Relaxed).
			With(p.rounds, p.handoff, some(redlock(1), us, Redsync(most, 8))...),
		Orphans(p.orphans).With(1, 0, us),
	}
	if !m.slow { // where a call of 256 would wait longer than the node timeout
		all = slices.Insert(all, 2, pairs(256, join(RedigoPool(256), quorums, Redsync(most, 256))...))
	}
	if most >= 5 {
		all = append(all,
			Degraded(1).With(max(1, p.rounds/2), p.state, us, them),
			Degraded(64).With(max(1, p.rounds/2), p.state, us, them))
	}
	if p.held > 0 {
		all = append(all, Held(p.held).With(1, RenewalPeriod, us))
	}
	if e == Full {
		all = append(all, Kinds(e, m)...)
	}
	return all
}

// At has a workload done at a distance.
func (w Workload) At(d *Distance) Workload {
	w.Name += "@" + d.Name
	w.Title += away(d.Name)
	w.Distance = d
	return w
}

// baseOf is the name of a workload without its distance, and kindOf what comes
// before the slash of that.
func baseOf(workload string) string {
	base, _, _ := strings.Cut(workload, "@")
	return base
}

func kindOf(workload string) string {
	kind, _, _ := strings.Cut(baseOf(workload), "/")
	return kind
}

// Remote returns what a run of the given effort measures at a distance.
func Remote(e Effort, m *Masters, d *Distance) []Workload {
	p := remotePaces[e]
	n := min(m.Len(), 5)
	timeout := max(defaults.NodeTimeout, 2*d.Farthest())
	if m.slow {
		timeout = max(timeout, time.Second)
	}
	us, one := Redlock(n, lock.WithNodeTimeout(timeout)), RedigoPolling()
	them, tuned := Redsync(n, 64), RedsyncTuned(n, 64, bestRetry(d))
	// What takes a round trip must not be measured a handful of times.
	trips := func(length time.Duration, trips int) time.Duration { return length + time.Duration(trips)*d.quorum(n) }
	all := []Workload{
		Handoff(RelaxedHandoff, "8 clients pass a lock on, 1 ms held, 5 ms idle", Relaxed).
			With(p.rounds, trips(p.handoff, p.trips), one, us, them, tuned),
		Pairs(1).With(p.rounds, trips(p.pairs, 50), one, us, them, tuned),
		Pairs(64).With(p.rounds, trips(p.pairs, 20), one, us, them, tuned),
	}
	if e > Quick {
		if n == 5 {
			all = append(all, Degraded(1).With(1, trips(p.state, 100), us))
			all = append(all, Degraded(64).With(1, trips(p.state, 100), us))
		}
		all = append(all, Held(p.held).With(1, RenewalPeriod, us))
	}
	for i := range all {
		all[i] = all[i].At(d)
	}
	return all
}

// With says who does a workload, how often and for how long each time.
func (w Workload) With(rounds int, length time.Duration, subjects ...Subject) Workload {
	w.Rounds, w.Length, w.Subjects = rounds, length, subjects
	return w
}

// Only picks workloads by name, with or without the distance, or by the part of
// it before the slash. No names are all of them.
func Only(names []string, all []Workload) (some []Workload, err error) {
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	used := map[string]bool{}
	for _, w := range all {
		known = append(known, w.Name)
		for _, name := range names {
			if name == w.Name || name == baseOf(w.Name) || name == kindOf(w.Name) {
				used[name] = true
				some = append(some, w)
				break
			}
		}
	}
	for _, name := range names {
		if !used[name] && !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown workload %q: choose from %s", name, strings.Join(known, ", "))
		}
	}
	return some, nil
}

// sizes are the numbers of masters to compare.
func sizes(masters int) (n []int) {
	for size := 1; size <= min(masters, 7); size += 2 {
		n = append(n, size)
	}
	if masters%2 == 0 && masters < 7 {
		n = append(n, masters)
	}
	return n
}

func join(first Subject, more []Subject, last Subject) []Subject {
	return some(append(append([]Subject{first}, more...), last)...)
}

// some leaves out subjects that are there already: with one master, this
// library on one is also this library on all.
func some(subjects ...Subject) (distinct []Subject) {
	seen := map[string]bool{}
	for _, s := range subjects {
		if !seen[s.Name] {
			distinct = append(distinct, s)
		}
		seen[s.Name] = true
	}
	return distinct
}
