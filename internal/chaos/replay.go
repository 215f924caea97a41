package chaos

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/simulate"
)

// This file looks for two holders that a run has found in the simulator. There the
// same faults strike at the same times, and the holders of the lock want it again.
// The delays in between are unknown, so many seeds are tried.

const (
	// The part that is run again begins several of the longest TTLs before two
	// holders met.
	replayedBefore = 6 * longTTL
	replayedAfter  = time.Second
	// settling is how long the simulated clients are let alone first.
	settling = 200 * time.Millisecond
	// replaySeeds is how many seeds are tried.
	replaySeeds = 300
)

// Replay looks in the simulator for the two holders. It writes the schedule that it
// tries into a folder. If two hold the lock there as well, it writes that schedule
// without everything that is not needed for it. It returns what to say.
func (r *Report) Replay(dir string) (string, error) {
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == Overlap })
	if i < 0 {
		return "", nil
	}
	tried, err := r.schedule(r.Findings[i])
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "schedule.json")
	if err := writeSchedule(file, tried); err != nil {
		return "", err
	}
	found, err := simulate.Search(tried, simulate.Overlap, replaySeeds)
	if err != nil {
		return "", err
	}
	if found == nil {
		return fmt.Sprintf("the simulator has no two holders in %d runs with these faults:\nredlock simulate --schedule %s", replaySeeds, file), nil
	}
	file = filepath.Join(dir, "overlap.json")
	return "the simulator has two holders, too:\nredlock simulate --schedule " + file, writeSchedule(file, found)
}

func writeSchedule(name string, s *simulate.Schedule) error {
	text, err := json.MarshalIndent(s, "", "  ")
	return errors.Join(err, os.WriteFile(name, text, 0o600))
}

// schedule is what happened around a finding, as the simulator runs it.
func (r *Report) schedule(f Finding) (*simulate.Schedule, error) {
	w := r.Workloads[slices.IndexFunc(r.Workloads, func(w *Workload) bool { return slices.Contains(w.Locks, f.Lock) })]
	p := &replay{report: r, workload: w, lock: f.Lock, from: max(r.Start, f.At-replayedBefore), to: f.At + replayedAfter}
	world := simulate.World{
		Nodes: r.Masters, Clients: r.Clients, TTL: longTTL, Duration: p.to - p.from, RestartGuard: longTTL,
		NodeTimeout: nodeTimeout, RetryInterval: defaults.RetryInterval, ClockGuard: defaults.ClockGuard,
		Faults: "chaos", Tail: 10, Lock: w.Simulated, Permits: w.Capacity,
	}
	if r.Unguarded {
		world.RestartGuard = -1
	}
	return simulate.NewSchedule(world, p.faults(), p.actions())
}

// replay is the part of a run that the simulator is given.
type replay struct {
	report   *Report
	workload *Workload
	lock     string
	from, to time.Duration
}

// at is an instant of the run in the simulator. Zero would be none.
func (p *replay) at(t time.Duration) time.Duration { return max(1, t-p.from) }

// faults are the faults that lasted into the part, in the simulator's terms.
func (p *replay) faults() (all []simulate.Fault) {
	for _, d := range p.report.Faults {
		from, until := p.report.Start+d.From, p.report.Start+d.Until
		if until < p.from || from > p.to || d.Err != nil {
			continue
		}
		f := simulate.Fault{At: p.at(from), Node: d.Target, Client: d.Target}
		f.For = p.at(until) - f.At
		switch d.Kind.component {
		case aLink:
			f.Client, f.Node = d.Target/p.report.Masters, d.Target%p.report.Masters
		case aClient:
			f.Node = 0
		default:
			f.Client = 0
		}
		all = append(all, p.report.simulated(d.Kind.Name, f)...)
	}
	slices.SortStableFunc(all, func(a, b simulate.Fault) int { return cmp.Compare(a.At, b.At) })
	return all
}

// rebooting is about how long a master takes that is down only to have its clock
// set.
const rebooting = 50 * time.Millisecond

// simulated is what a fault is in the simulator. A client that leaves gives up its
// leases, which does not count as a fault there.
func (c *Config) simulated(kind string, f simulate.Fault) []simulate.Fault {
	as := func(kind simulate.Kind) simulate.Fault {
		f := f
		f.Kind = kind
		return f
	}
	end := f.At + f.For
	switch kind {
	case "kill":
		return []simulate.Fault{as(simulate.RestartEmpty)}
	case "restart":
		return []simulate.Fault{c.comesBack(f)}
	case "freeze", "sleep":
		return []simulate.Fault{as(simulate.Pause)}
	case "flush":
		return []simulate.Fault{as(simulate.Flush)}
	case "memory", "busy":
		refuses := as(simulate.Errors)
		refuses.Code = map[string]string{"memory": "OOM", "busy": "BUSY"}[kind]
		return []simulate.Fault{refuses}
	case "disconnect":
		all := as(simulate.Reset)
		all.Client = -1
		return []simulate.Fault{all}
	case "forward":
		return []simulate.Fault{stepped(f, f.At, clockStep), stepped(f, end, -clockStep)}
	case "revive":
		return append(c.reset(f, f.At, clockStep), stepped(f, end, -clockStep))
	case "backward":
		return append(c.reset(f, end, clockStep), stepped(f, f.At, -clockStep))
	case "deaf":
		return []simulate.Fault{as(simulate.CutOut)}
	case "mute":
		return []simulate.Fault{as(simulate.CutIn)}
	case "lossy": // delayed messages are lost with the connections
		broken := as(simulate.Reset)
		broken.At, broken.For = end, 0
		return []simulate.Fault{as(simulate.Partition), broken}
	case "slow":
		late := as(simulate.Slow)
		late.Size = linkDelay
		return []simulate.Fault{late}
	case "reset":
		return []simulate.Fault{as(simulate.Reset)}
	case "stop":
		return []simulate.Fault{as(simulate.ClientPause)}
	case "die":
		return []simulate.Fault{as(simulate.ClientCrash)}
	}
	return nil
}

// comesBack is a master that is down and comes back, with its data if it has a file.
// Writes to the file outlive the process, synced or not.
func (c *Config) comesBack(f simulate.Fault) simulate.Fault {
	f.Kind = simulate.RestartEmpty
	if c.durable(f.Node) {
		f.Kind = simulate.Restart
	}
	return f
}

// reset is a master whose clock is set while it is down.
func (c *Config) reset(f simulate.Fault, at, by time.Duration) []simulate.Fault {
	f.At, f.For = at, rebooting
	return []simulate.Fault{c.comesBack(f), stepped(f, at+rebooting/2, by)}
}

func stepped(f simulate.Fault, at, by time.Duration) simulate.Fault {
	f.Kind, f.At, f.For, f.Size = simulate.Step, at, 0, by
	return f
}

// actions are what the callers of each client do. They want the lock at the time when
// they wanted it in the run, and use it for as long as they had it. Callers who did
// not get it are left out.
func (p *replay) actions() [][]simulate.Action {
	clients := p.report.Clients
	callers := make([][]simulate.Action, clients)
	var ends []time.Duration // of the last action of each caller
	for _, u := range p.uses() {
		i := u.client
		for i < len(ends) && ends[i] > u.action.At {
			i += clients // another caller of the same client
		}
		for i >= len(callers) {
			callers = append(callers, make([][]simulate.Action, clients)...)
		}
		ends = append(ends, make([]time.Duration, len(callers)-len(ends))...)
		callers[i], ends[i] = append(callers[i], u.action), u.end
	}
	return callers
}

// use is one use of the lock.
type use struct {
	client int
	action simulate.Action
	end    time.Duration
}

// uses are those of the lock within the part, by the instant at which it was
// wanted.
func (p *replay) uses() (all []*use) {
	byLease := map[string]*use{}
	for _, s := range p.report.History.Spans {
		several := len(p.workload.Locks) > 1 && p.workload.Simulated != simulate.PlainLock && s.Workload == p.workload.Name
		if s.To < p.from || s.From > p.to || s.Lock != p.lock && !several {
			continue
		}
		id, downgraded := strings.CutSuffix(strings.TrimSuffix(s.Lease, " "+s.Lock), " downgraded")
		u := byLease[id]
		switch {
		case u == nil:
			u = p.use(s)
			byLease[id], all = u, append(all, u)
		case downgraded:
			u.action.Downgrade = true
		}
		if several {
			u.action.Names = append(u.action.Names, p.name(s.Lock))
		}
	}
	slices.SortStableFunc(all, func(a, b *use) int { return cmp.Compare(a.action.At, b.action.At) })
	return all
}

// use is the use of the lock in one span.
func (p *replay) use(s *Span) *use {
	held := s.To - s.From
	at := max(p.at(s.Since), settling)
	ttl := p.report.ttlOf(s.Client)
	return &use{client: s.Client, end: max(p.at(s.To), at), action: simulate.Action{
		At: at, Patience: max(s.From-s.Since, 0) + ttl, Hold: held,
		Renew: true, TTL: ttl, Read: p.workload.Simulated == simulate.ReadWriteLock && s.Weight == oneReader, Permits: s.Weight,
	}}
}

// name is that of a lock in the simulator.
func (p *replay) name(lock string) string {
	if i := slices.Index(p.workload.Locks, lock); i > 0 {
		return fmt.Sprintf("lock%d", i)
	}
	return "lock"
}
