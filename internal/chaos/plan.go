package chaos

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Fault is an entry of a plan. Its targets are numbers of masters, clients or
// links.
type Fault struct {
	Kind      *Kind
	At, Lasts time.Duration // from the start of the run
	Targets   []int
}

func (f Fault) end() time.Duration { return f.At + f.Lasts }

// plan draws the faults of a run from its seed, the same for the same Config. Every
// kind has random numbers of its own, which also decide how frequent it is.
func (c *Config) plan() []Fault {
	var clocks, others []Fault
	for _, k := range c.Kinds {
		r := rand.New(rand.NewPCG(c.Seed, streamOf("fault "+k.Name)))
		faults := c.draw(k, r)
		if k.component == aClock {
			clocks = append(clocks, faults...)
		} else {
			others = append(others, faults...)
		}
	}
	inOrder(clocks)
	inOrder(others)
	clocks = c.farApart(clocks)
	faults := append(clocks, c.awayFrom(clocks, others)...)
	inOrder(faults)
	return oneAtATime(faults)
}

func inOrder(faults []Fault) {
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
}

// draw draws all faults of one kind.
func (c *Config) draw(k *Kind, r *rand.Rand) (faults []Fault) {
	every := time.Duration(float64(k.Every) * (0.5 + 1.5*r.Float64()))
	at := time.Duration(r.Float64() * float64(min(every, c.Duration*3/4))) // each kind comes at least once
	for at < c.Duration {
		f := Fault{Kind: k, At: at, Targets: c.targets(k.component, r)}
		// Short ones are as likely as long ones.
		if k.Max > 0 {
			share := r.Float64()
			f.Lasts = k.Min + time.Duration(share*share*float64(k.Max-k.Min))
		}
		faults = append(faults, f)
		at += time.Duration(r.ExpFloat64() * float64(every))
	}
	return faults
}

// targets draws what a fault hits: most often one, now and then several or all.
func (c *Config) targets(what component, r *rand.Rand) []int {
	switch what {
	case aMaster:
		return some(c.Masters, r)
	case aDurable:
		return c.numbered(c.durable, r)
	case aClock:
		return c.numbered(c.adjustable, r)[:1] // all together: no lock helps (S28)
	case aClient:
		return some(c.Clients, r)
	}
	// A client's links to some masters, or all clients' links to one.
	if r.IntN(4) == 0 {
		master := r.IntN(c.Masters)
		links := make([]int, c.Clients)
		for client := range links {
			links[client] = client*c.Masters + master
		}
		return links
	}
	client := r.IntN(c.Clients)
	links := some(c.Masters, r)
	for i := range links {
		links[i] += client * c.Masters
	}
	return links
}

// numbered draws some of the masters for which is is true.
func (c *Config) numbered(is func(master int) bool, r *rand.Rand) []int {
	var all, drawn []int
	for i := range c.Masters {
		if is(i) {
			all = append(all, i)
		}
	}
	for _, i := range some(len(all), r) {
		drawn = append(drawn, all[i])
	}
	return drawn
}

// some draws one of n, or with less luck several, or all.
func some(n int, r *rand.Rand) []int {
	count := 1
	switch luck := r.IntN(100); {
	case luck >= 90:
		count = n
	case luck >= 60:
		count = 1 + r.IntN(n)
	}
	drawn := r.Perm(n)[:count]
	slices.Sort(drawn)
	return drawn
}

// alone is how long before and after a clock is set nothing else happens to
// masters and links: leases are renewed in this time, lost keys put back and
// quarantines ended.
func (c *Config) alone() time.Duration { return c.longestTTL() + time.Second }

// farApart leaves out clock faults that are too near to another one. All of them
// together take a third of the time at most, so that other faults have the rest.
func (c *Config) farApart(clocks []Fault) (kept []Fault) {
	free, budget := time.Duration(0), c.Duration/3
	for _, f := range clocks {
		takes := f.Lasts + 2*c.alone()
		if f.At < free || f.end() > c.Duration || takes > budget {
			continue
		}
		kept = append(kept, f)
		free = f.end() + c.alone()
		budget -= takes
	}
	return kept
}

// awayFrom leaves out the faults of masters and links that are too near to a
// clock that is set.
func (c *Config) awayFrom(clocks, others []Fault) []Fault {
	return slices.DeleteFunc(others, func(f Fault) bool {
		if f.Kind.component == aClient {
			return false
		}
		return slices.ContainsFunc(clocks, func(clock Fault) bool {
			return f.end() > clock.At-c.alone() && f.At < clock.end()+c.alone()
		})
	})
}

// oneAtATime leaves out faults whose target still has another one.
func oneAtATime(faults []Fault) (kept []Fault) {
	// A master that is killed needs some time to start again, and one whose clock was
	// set needs to be looked at: otherwise the next fault could set it right.
	const rest, looked = 300 * time.Millisecond, 2 * time.Second
	type target struct {
		what   component
		number int
	}
	busy := map[target]time.Duration{}
	for _, f := range faults {
		what := f.Kind.component
		if what == aDurable || what == aClock {
			what = aMaster
		}
		taken := slices.ContainsFunc(f.Targets, func(n int) bool { return busy[target{what, n}] > f.At })
		if taken {
			continue
		}
		pause := rest
		if f.Kind.component == aClock {
			pause = looked
		}
		for _, n := range f.Targets {
			busy[target{what, n}] = f.end() + pause
		}
		kept = append(kept, f)
	}
	return kept
}
