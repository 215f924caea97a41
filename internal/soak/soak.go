// Package soak keeps clients and real redis-servers busy for long, or loads
// them heavily, and looks at what must not grow: memory, goroutines,
// connections and keys.
package soak

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorumlock/internal/redistest"
)

// Load is one way to burden clients and masters.
type Load struct {
	Name, Does string
	run        func(ctx context.Context, t *trial) error
}

// Size says how much there is of everything.
type Size struct {
	Duration time.Duration // of the loads that last: leases, many
	Leases   int           // kept through rolling restarts
	Many     int           // kept at a short TTL
	Clients  int           // of the crowd
	Callers  int           // of each of them; the waiters are all of them at one client
	Idle     time.Duration // how long their commands are counted, before and while they wait
	Dials    int
}

// Full is what docs/reliability.md has the numbers of, Short an impression.
var (
	Full  = Size{10 * time.Minute, 10_000, 100_000, 50, 40, 20 * time.Second, 500}
	Short = Size{45 * time.Second, 2_000, 20_000, 10, 20, 5 * time.Second, 50}
)

// Loads are all that there are, for a size.
func Loads(size Size) []Load {
	return []Load{
		{
			"leases", fmt.Sprintf("%d leases for %v, masters restarting empty one after the other", size.Leases, size.Duration),
			func(ctx context.Context, t *trial) error { return t.keep(ctx, rolling(size)) },
		},
		{
			"many", fmt.Sprintf("%d leases with a TTL of 10s for %v", size.Many, size.Duration),
			func(ctx context.Context, t *trial) error { return t.keep(ctx, quiet(size)) },
		},
		{
			"waiters", fmt.Sprintf("%d waiters of one client for one lock", size.Clients*size.Callers),
			func(ctx context.Context, t *trial) error {
				return t.crowd(ctx, crowd{1, size.Clients * size.Callers, size.Idle})
			},
		},
		{
			"crowd", fmt.Sprintf("%d clients with %d waiters each for one lock", size.Clients, size.Callers),
			func(ctx context.Context, t *trial) error {
				return t.crowd(ctx, crowd{size.Clients, size.Callers, size.Idle})
			},
		},
		{
			"dials", fmt.Sprintf("%d x Dial, Lock, Close", size.Dials),
			func(ctx context.Context, t *trial) error { return t.dials(ctx, size.Dials) },
		},
	}
}

// Only returns the loads with these names.
func Only(names []string, loads []Load) ([]Load, error) {
	for _, name := range names {
		if !slices.ContainsFunc(loads, func(l Load) bool { return l.Name == name }) {
			return nil, fmt.Errorf("no load is named %q", name)
		}
	}
	if len(names) == 0 {
		return loads, nil
	}
	return slices.DeleteFunc(loads, func(l Load) bool { return !slices.Contains(names, l.Name) }), nil
}

// masters is how many servers there are.
const masters = 5

// Run burdens five fresh masters, and reports the outcome. It ends early
// when ctx ends.
func Run(ctx context.Context, l Load, progress func(share float64, what string)) (*Report, error) {
	servers, err := redistest.RunN(masters)
	if err != nil {
		return nil, fmt.Errorf("soak: %w", err)
	}
	defer func() {
		for _, s := range servers {
			s.Close()
		}
	}()
	t := &trial{masters: servers, addrs: redistest.URLs(servers), report: &Report{Load: l}, progress: progress}
	begin := time.Now()
	if err := l.run(ctx, t); err != nil {
		return nil, fmt.Errorf("soak: %s: %w", l.Name, err)
	}
	t.report.Took = time.Since(begin)
	return t.report, nil
}

// trial is a load under way.
type trial struct {
	masters  []*redistest.Server
	addrs    []string
	report   *Report
	progress func(share float64, what string)
}
