package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Done is a fault as it happened, from the start of the run.
type Done struct {
	Kind        *Kind
	Target      int // the number of a master, a link or a client
	From, Until time.Duration
	Err         error // it could not be done
}

// run is a run under way.
type run struct {
	*Config
	fleet *fleet
	start time.Duration

	mu   sync.Mutex
	done []Done
	busy map[any]*sync.Mutex // of masters, links and clients, so that faults of one target come one after the other
}

// Run starts servers and clients, has the nemesis at them, and judges what
// they did. It ends early, and judges all the same, when ctx ends. An error
// says that there is nothing to judge.
func Run(ctx context.Context, c Config) (*Report, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("chaos: %w", err)
	}
	f, err := assemble(&c)
	if err != nil {
		return nil, fmt.Errorf("chaos: %w", err)
	}
	defer f.close()
	r := &run{Config: &c, fleet: f, busy: map[any]*sync.Mutex{}}
	for _, client := range f.clients {
		if err := client.start(); err != nil {
			return nil, fmt.Errorf("chaos: %w", err)
		}
	}
	r.start = now()
	r.nemesis(ctx)
	healed := now()
	r.await(context.WithoutCancel(ctx), c.calm(), "calm")
	dismissed := now()
	f.dismiss()
	report, err := r.judge(healed, dismissed, now())
	if err != nil {
		return nil, fmt.Errorf("chaos: %w", err)
	}
	return report, nil
}

// nemesis does all faults, and returns when everything works again.
func (r *run) nemesis(ctx context.Context) {
	var all sync.WaitGroup
	for _, f := range r.plan() {
		all.Go(func() {
			sleep(ctx, r.start+f.At-now())
			for _, target := range f.Targets {
				if ctx.Err() == nil {
					all.Go(func() { r.strike(ctx, f, target) })
				}
			}
		})
	}
	r.await(ctx, r.Duration, "faults")
	all.Wait()
}

// strike does a fault to one of its targets.
func (r *run) strike(ctx context.Context, f Fault, target int) {
	alone := r.target(f.Kind.component, target)
	alone.Lock()
	defer alone.Unlock()
	d := Done{Kind: f.Kind, Target: target, From: now() - r.start}
	d.Err = f.Kind.strike(r.fleet, target, func() { sleep(ctx, f.Lasts) })
	d.Until = now() - r.start
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = append(r.done, d)
}

func (r *run) target(what component, number int) *sync.Mutex {
	r.mu.Lock()
	defer r.mu.Unlock()
	var id any
	switch what {
	case aLink:
		id = r.fleet.links[number]
	case aClient:
		id = r.fleet.clients[number]
	default:
		id = r.fleet.masters[number]
	}
	if r.busy[id] == nil {
		r.busy[id] = new(sync.Mutex)
	}
	return r.busy[id]
}

// await lets time pass and shows the progress.
func (r *run) await(ctx context.Context, d time.Duration, what string) {
	const step = 250 * time.Millisecond
	for from := now(); now()-from < d && ctx.Err() == nil; {
		if r.Progress != nil {
			r.Progress(float64(now()-r.start)/float64(r.Duration+r.calm()), what)
		}
		sleep(ctx, min(step, d-(now()-from)))
	}
}

// judge reads what there is to read and checks it.
func (r *run) judge(healed, dismissed, closed time.Duration) (*Report, error) {
	h := &History{dir: r.Dir, workloads: r.Workloads, start: r.start, storage: openStorage(r.fleet.storage.Addr())}
	defer h.storage.pool.Close()
	var polite []string
	for _, c := range r.fleet.clients {
		for _, l := range c.lives {
			events, err := readJournal(l.journal)
			if err != nil {
				return nil, err
			}
			h.add(c.number, l.id, events)
		}
		if l := c.current(); l.polite {
			polite = append(polite, l.id)
		}
	}
	report := &Report{Config: *r.Config, Faults: r.faults(), History: h, Start: r.start, Healed: healed, Dismissed: dismissed, Closed: closed}
	report.LateWrites = h.allLateWrites()
	for _, c := range r.fleet.clients {
		report.Findings = append(report.Findings, c.problems...)
	}
	report.Findings = append(report.Findings, h.check()...)
	report.Findings = append(report.Findings, report.progress()...)
	for _, w := range r.Workloads {
		if w.Audit != nil {
			report.Findings = append(report.Findings, w.Audit(report)...)
		}
	}
	left, err := r.leftKeys(polite)
	if err != nil {
		return nil, err
	}
	report.Findings = append(report.Findings, left...)
	slices.SortStableFunc(report.Findings, func(a, b Finding) int { return int(a.At - b.At) })
	return report, nil
}

// faults returns the faults that were done, in order.
func (r *run) faults() []Done {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.done, func(a, b Done) int { return int(a.From - b.From) })
	return slices.Clone(r.done)
}

// mayStay are the beginnings of keys that may stay. The restart guard's marker has
// no end. The others outlive their locks: tokens, the sizes of semaphores, the values
// of leaders, and arrivals at latches.
var mayStay = []string{"redlock:marker", "redlock:clock", "redlock:token:", "redlock:permits:", "redlock:leader:", "redlock:latch:", "redlock:arrivals:", "redlock:digest:"}

// leftKeys looks for keys that should not be there. Right after the clients have
// given everything up, none may be left of a client that was alive at the end. When
// every TTL has passed, none may be left at all.
func (r *run) leftKeys(polite []string) (findings []Finding, err error) {
	keys, err := r.fleet.keys()
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		for _, id := range polite {
			if strings.HasPrefix(k.value, id+"/") {
				findings = append(findings, k.finding("after its client was closed"))
			}
		}
	}
	r.await(context.Background(), r.longestTTL()+time.Second, "waiting for the TTL")
	if keys, err = r.fleet.keys(); err != nil {
		return nil, err
	}
	for _, k := range keys {
		if !slices.ContainsFunc(mayStay, func(begin string) bool { return strings.HasPrefix(k.name, begin) }) {
			findings = append(findings, k.finding("after every TTL has passed"))
		}
	}
	return findings, nil
}

func (k key) finding(when string) Finding {
	text := fmt.Sprintf("%s at master %d: %q, %d ms left, %s", k.name, k.master, k.value, k.remaining, when)
	return Finding{Check: LeftKey, At: now(), Lock: k.name, Text: text}
}

// page is where a workload's page goes.
func (h *History) page(name string) string { return filepath.Join(h.dir, name+".html") }
