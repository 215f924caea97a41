package plan

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
	Rest          time.Duration `json:"rest,omitempty"`    // clients rest after that
	Groups        int           `json:"groups,omitempty"`  // of masters; zero: one
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
	c := s.Config
	return json.Marshal(saved{
		World{
			c.Nodes, c.Clients, c.TTL, c.Duration, c.RestartGuard, c.ClockGuard,
			c.NodeTimeout, c.RetryInterval, c.Faults.TailThousandths, c.Faults.Name, c.Faults.Strict, c.Transport, c.Lock, c.Permits, c.Resizes, c.locks, c.Adopts, c.Polling, c.Deaf, c.Durable, c.Rest, c.Groups,
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
	s.Config = from.World.config(s.Seed)
	if err := s.Config.Check(); err != nil {
		return nil, err
	}
	return s, s.check()
}

// Config is that of one schedule in the world.
func (w World) config(seed uint64) *Config {
	return &Config{
		Nodes: w.Nodes, Clients: w.Clients, TTL: w.TTL, Duration: w.Duration,
		RestartGuard: w.RestartGuard, ClockGuard: w.ClockGuard, Seed: seed, Seeds: 1,
		Transport: w.Transport, NodeTimeout: w.NodeTimeout, RetryInterval: w.RetryInterval,
		Lock: w.Lock, Permits: w.Permits, Resizes: w.Resizes, locks: w.Locks, Adopts: w.Adopts, Polling: w.Polling, Deaf: w.Deaf, Durable: w.Durable, Rest: w.Rest, Groups: w.Groups,
		Faults: Mix{Name: w.Faults, Kinds: MixNamed(w.Faults).Kinds, TailThousandths: w.Tail, Strict: w.Strict, OneClock: MixNamed(w.Faults).OneClock},
	}
}

// Check refuses a schedule that is about clients or masters that there are not.
func (s *Schedule) check() error {
	for i, f := range s.Faults {
		if f.Node < -1 || f.Node >= s.Config.Nodes || f.Client < -1 && (!f.Held || f.Client != Grantee) || f.Client >= s.Config.Clients {
			return fmt.Errorf("simulate: schedule: fault %d: node %d and client %d: must be from -1 (every one) to %d and %d",
				i, f.Node, f.Client, s.Config.Nodes-1, s.Config.Clients-1)
		}
	}
	return nil
}

// NewSchedule returns a schedule of your own.
func NewSchedule(w World, faults []Fault, actions [][]Action) (*Schedule, error) {
	s := &Schedule{Faults: faults, Actions: actions, Config: w.config(0)}
	if err := s.Config.Check(); err != nil {
		return nil, err
	}
	return s, s.check()
}
