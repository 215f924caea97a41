package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/world"
)

// verdict is a Report as JSON.
type verdict struct {
	Schedules    int                `json:"schedules"`
	Seed         uint64             `json:"seed"`
	Nodes        int                `json:"nodes"`
	Clients      int                `json:"clients"`
	TTL          time.Duration      `json:"ttl_ns"`
	Duration     time.Duration      `json:"duration_ns"`
	Mix          string             `json:"faults"`
	Lock         plan.LockKind      `json:"lock,omitempty"`
	Transport    plan.Transport     `json:"transport"`
	Hash         string             `json:"hash"`
	Took         time.Duration      `json:"took_ns"`
	Simulated    time.Duration      `json:"simulated_ns"`
	Events       uint64             `json:"events"`
	Calls        int                `json:"calls"`
	Acquisitions int                `json:"acquisitions"`
	NoQuorum     int                `json:"no_quorum"`
	Renewals     int                `json:"renewals"`
	Losses       int                `json:"losses"`
	WaitP50      time.Duration      `json:"wait_p50_ns"`
	WaitP99      time.Duration      `json:"wait_p99_ns"`
	Waits        map[int]int32      `json:"waits"` // by the buckets of a Histogram
	Injected     map[plan.Kind]int  `json:"injected"`
	Sometimes    []tally.Count      `json:"sometimes"`
	KindChecks   []tally.KindChecks `json:"kind_checks,omitempty"`
	Unsafe       int                `json:"unsafe"`
	Broken       []breach           `json:"broken"`
	Failures     []Failure          `json:"failures"`
	Failing      *plan.Schedule     `json:"failing_schedule,omitempty"`
}

// breach is in how many schedules a promise was broken, and the 95 % interval of their
// share.
type breach struct {
	Promise   tally.ViolationKind `json:"promise"`
	Schedules int                 `json:"schedules"`
	Low       float64             `json:"low"`
	High      float64             `json:"high"`
}

// WriteJSON writes the verdict, the failures and, unless it is nil, a failing schedule.
// ReadReport reads it.
func (r *Report) WriteJSON(w io.Writer, failing *plan.Schedule) error {
	s, c := r.Stats, r.Config
	out := verdict{
		Schedules: s.Schedules, Seed: c.Seed, Nodes: c.Nodes, Clients: c.Clients, TTL: c.TTL, Duration: c.Duration,
		Mix: c.Faults.Name, Lock: c.Lock, Transport: c.Transport,
		Hash: fmt.Sprintf("%016x", r.Hash), Took: r.Took, Simulated: s.Simulated, Events: s.Events,
		Calls: s.Calls, Acquisitions: s.Acquisitions, NoQuorum: s.NoQuorum, Renewals: s.Renewals, Losses: s.Losses,
		WaitP50: s.Waits.Quantile(0.5), WaitP99: s.Waits.Quantile(0.99), Waits: s.Waits.Counts(),
		Injected: s.Faults, Sometimes: s.Sometimes(), KindChecks: s.KindChecks(), Unsafe: s.Unsafe, Failures: r.Failures,
		Failing: failing,
	}
	for _, p := range promised {
		n := s.Violations[p.kind]
		lo, hi := tally.Interval(n, s.Schedules)
		out.Broken = append(out.Broken, breach{p.kind, n, lo, hi})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// ReadReport reads what WriteJSON wrote. Such a report can be merged and written, but its
// schedules cannot be run again.
func ReadReport(r io.Reader) (*Report, error) {
	var v verdict
	if err := json.NewDecoder(r).Decode(&v); err != nil {
		return nil, fmt.Errorf("simulate: report: %w", err)
	}
	hash, err := strconv.ParseUint(v.Hash, 16, 64)
	if err != nil || v.Schedules < 1 || v.Transport == "" {
		return nil, fmt.Errorf("simulate: report: this is not a verdict as redlab simulate --json of this version writes it")
	}
	s := tally.New()
	s.Schedules, s.Simulated, s.Events, s.Unsafe = v.Schedules, v.Simulated, v.Events, v.Unsafe
	s.Calls, s.Acquisitions, s.NoQuorum, s.Renewals, s.Losses = v.Calls, v.Acquisitions, v.NoQuorum, v.Renewals, v.Losses
	s.Waits.Restore(v.Waits)
	for k, n := range v.Injected {
		s.Faults[k] = n
	}
	for _, b := range v.Broken {
		if b.Schedules > 0 {
			s.Violations[b.Promise] = b.Schedules
		}
	}
	s.AddKindChecks(v.KindChecks)
	for _, known := range s.Counters() {
		for _, c := range v.Sometimes {
			if c.Name == known.Name {
				*known.N = c.N
			}
		}
	}
	return &Report{
		Config: plan.Config{
			Seed: v.Seed, Seeds: v.Schedules, Nodes: v.Nodes, Clients: v.Clients, TTL: v.TTL, Duration: v.Duration,
			Faults: plan.MixNamed(v.Mix), Lock: v.Lock, Transport: v.Transport, Swarm: true,
		},
		Stats: s, Failures: v.Failures, Hash: hash, Took: v.Took,
	}, nil
}

// Merge adds up reports on parts of one run, in any order, as --shard makes them. It refuses
// parts of different worlds, and parts that have seeds in common. missing names ranges of seeds
// that no part has. The hash is made of the parts' hashes: it is not the hash of one run of all
// seeds.
func Merge(parts []*Report) (all *Report, missing []string, err error) {
	if len(parts) == 0 {
		return nil, nil, fmt.Errorf("simulate: Merge: there is nothing to merge")
	}
	parts = slices.SortedFunc(slices.Values(parts), func(a, b *Report) int { return cmp.Compare(a.Config.Seed, b.Config.Seed) })
	all = &Report{Config: parts[0].Config, Stats: tally.New(), Hash: world.HashOffset}
	next := all.Config.Seed
	for _, p := range parts {
		switch c, want := p.Config, all.Config; {
		case worldOf(&c) != worldOf(&want):
			return nil, nil, fmt.Errorf("simulate: Merge: seeds from %d are of %s, and seeds from %d of %s", want.Seed, worldOf(&want), c.Seed, worldOf(&c))
		case c.Seed < next:
			return nil, nil, fmt.Errorf("simulate: Merge: seed %d is in two of the parts", c.Seed)
		case c.Seed > next:
			missing = append(missing, fmt.Sprintf("%d to %d", next, c.Seed-1))
		}
		next = p.Config.Seed + uint64(p.Stats.Schedules)
		all.add(&part{Stats: p.Stats, hash: p.Hash, failures: p.Failures})
		all.Took += p.Took
	}
	all.Config.Seeds = all.Stats.Schedules
	return all, missing, nil
}

// world describes what all schedules of a run have in common, for Merge to compare.
func worldOf(cfg *plan.Config) string {
	kind := "every kind of lock"
	if cfg.Lock != "" {
		kind = "locks of kind " + string(cfg.Lock)
	}
	return fmt.Sprintf("faults %s, %s, transport %s, %s", cfg.Faults.Name, kind, cfg.Transport, worlds(cfg))
}
