package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// World is what a schedule needs to know of its configuration to run again.
type World struct {
	Nodes         int           `json:"nodes"`
	Clients       int           `json:"clients"`
	TTL           time.Duration `json:"ttl"`
	Duration      time.Duration `json:"duration"`
	RestartGuard  time.Duration `json:"restart_guard"`
	ClockGuard    time.Duration `json:"clock_guard"`
	NodeTimeout   time.Duration `json:"node_timeout"`
	RetryInterval time.Duration `json:"retry_interval"`
	Tail          int           `json:"tail"` // Mix.TailThousandths
	Faults        string        `json:"faults"`
	Strict        bool          `json:"strict"` // Mix.Strict
	Transport     Transport     `json:"transport"`
	Lock          LockKind      `json:"lock,omitempty"`
	Permits       int           `json:"permits,omitempty"` // of a semaphore
	Resizes       bool          `json:"resizes,omitempty"` // their number changes
	Locks         int           `json:"locks,omitempty"`   // how many; zero: one
	Adopts        bool          `json:"adopts,omitempty"`  // who crashed takes its lease up again
	Polling       bool          `json:"polling,omitempty"` // waiters poll
	Deaf          int           `json:"deaf,omitempty"`    // at so many masters clients may not subscribe
	Durable       bool          `json:"durable,omitempty"` // masters lose nothing when they restart
}

// saved is a schedule in a file.
type saved struct {
	World World `json:"world"`
	*bareSchedule
}

// bareSchedule is a Schedule without its methods.
type bareSchedule Schedule

// MarshalJSON writes the schedule with the world that it is of. What a scenario
// switches off is not in it.
func (s *Schedule) MarshalJSON() ([]byte, error) {
	c := s.config
	return json.Marshal(saved{
		World{
			c.Nodes, c.Clients, c.TTL, c.Duration, c.RestartGuard, c.ClockGuard,
			c.nodeTimeout, c.retryInterval, c.Faults.TailThousandths, c.Faults.Name, c.Faults.Strict, c.Transport, c.Lock, c.permits, c.resizes, c.locks, c.adopts, c.polling, c.deaf, c.durable,
		}, (*bareSchedule)(s),
	})
}

// ReadSchedule reads a schedule, or the failing one of a verdict, as they were
// written or changed by hand.
func ReadSchedule(r io.Reader) (*Schedule, error) {
	file, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("simulate: schedule: %w", err)
	}
	var verdict struct {
		Failing json.RawMessage `json:"failing_schedule"`
		Hash    *string         `json:"hash"`
	}
	switch err := json.Unmarshal(file, &verdict); {
	case err == nil && verdict.Failing != nil:
		file = verdict.Failing
	case err == nil && verdict.Hash != nil:
		return nil, errors.New("simulate: schedule: this is a verdict that no schedule failed in, so there is none to run")
	}
	from := saved{bareSchedule: &bareSchedule{}}
	if err := json.Unmarshal(file, &from); err != nil {
		return nil, fmt.Errorf("simulate: schedule: %w", err)
	}
	s := (*Schedule)(from.bareSchedule)
	s.config = from.World.config(s.Seed)
	if err := s.config.check(); err != nil {
		return nil, err
	}
	return s, s.check()
}

// config is that of one schedule in the world.
func (w World) config(seed uint64) *Config {
	return &Config{
		Nodes: w.Nodes, Clients: w.Clients, TTL: w.TTL, Duration: w.Duration,
		RestartGuard: w.RestartGuard, ClockGuard: w.ClockGuard, Seed: seed, Seeds: 1,
		Transport: w.Transport, nodeTimeout: w.NodeTimeout, retryInterval: w.RetryInterval,
		Lock: w.Lock, permits: w.Permits, resizes: w.Resizes, locks: w.Locks, adopts: w.Adopts, polling: w.Polling, deaf: w.Deaf, durable: w.Durable,
		Faults: Mix{Name: w.Faults, Kinds: mixNamed(w.Faults).Kinds, TailThousandths: w.Tail, Strict: w.Strict, oneClock: mixNamed(w.Faults).oneClock},
	}
}

// check refuses a schedule that is about clients or masters that there are not.
func (s *Schedule) check() error {
	for i, f := range s.Faults {
		if f.Node < -1 || f.Node >= s.config.Nodes || f.Client < -1 && (!f.Held || f.Client != grantee) || f.Client >= s.config.Clients {
			return fmt.Errorf("simulate: schedule: fault %d: node %d and client %d: must be from -1 (every one) to %d and %d",
				i, f.Node, f.Client, s.config.Nodes-1, s.config.Clients-1)
		}
	}
	return nil
}

// NewSchedule returns a schedule of your own.
func NewSchedule(w World, faults []Fault, actions [][]Action) (*Schedule, error) {
	s := &Schedule{Faults: faults, Actions: actions, config: w.config(0)}
	if err := s.config.check(); err != nil {
		return nil, err
	}
	return s, s.check()
}

// RunSchedule runs one schedule, as read from a file, and reports on it.
func RunSchedule(s *Schedule) (*Report, error) {
	began := time.Now() // for the speed in the report; no run reads it
	res, err := s.run(options{})
	if err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	r := &Report{Config: *s.config, Stats: res.stats, Hash: res.hash, Took: time.Since(began)}
	if len(res.violations) > 0 {
		r.Failures = []Failure{{Seed: s.Seed, Violations: res.violations}}
	}
	return r, nil
}
