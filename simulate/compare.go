package simulate

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/words"
	"github.com/quorumlock/quorumlock/internal/wrap"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
	"github.com/quorumlock/quorumlock/simulate/internal/view"
)

// Comparison is a naive lock and this library in the same schedules: the same
// masters and networks, the same faults at the same instants, and callers who want
// the lock at the same instants and work for as long.
type Comparison struct {
	Naive, Ours *Report

	rung *plan.Rung
}

// Compare runs the naive lock of that name, V1 to V6 or R0, and this library in as
// many schedules as cfg says. Seed, Seeds, Workers, Interrupt and Progress of cfg
// count, Progress over both runs; the world is that of the naive lock's scenario.
func Compare(name string, cfg plan.Config) (*Comparison, error) {
	sc := Find("ladder-" + name)
	if sc == nil {
		return nil, fmt.Errorf("simulate: naive lock %q: must be one of %s", name, strings.Join(Naive(), ", "))
	}
	naive := sc.Config()
	naive.Seed, naive.Seeds, naive.Workers = cfg.Seed, cfg.Seeds, cfg.Workers
	naive.Interrupt, naive.Progress = cfg.Interrupt, cfg.Progress
	ours := guarded(naive)
	if show := cfg.Progress; show != nil { // of both together
		ours.Progress = func(done int) { show(cfg.Seeds + done) }
	}
	c := &Comparison{rung: naive.Rung}
	var err error
	if c.Naive, err = Run(naive, nil); err != nil {
		return nil, err
	}
	c.Naive.Breaks = sc.Breaks
	if done := c.Naive.Stats.Schedules; done > 0 {
		ours.Seeds = done // all, unless it was interrupted
	}
	if c.Ours, err = Run(ours, nil); err != nil {
		return nil, err
	}
	return c, nil
}

// guarded returns the config of the library in the world of a naive lock, with the
// guards that the library has.
func guarded(naive plan.Config) plan.Config {
	ours := naive
	ours.Rung, ours.Beside, ours.RestartGuard, ours.ClockGuard = nil, naive.Rung, naive.TTL, defaults.ClockGuard
	return ours
}

// Even reports whether both locks ran the same schedules. After an early Interrupt the table
// would compare schedules that one of the locks never ran.
func (c *Comparison) Even() bool {
	n := c.Naive.Stats.Schedules
	return n > 0 && n == c.Ours.Stats.Schedules
}

// mustBeEven returns an error unless both locks ran the same schedules.
func (c *Comparison) mustBeEven() error {
	if c.Even() {
		return nil
	}
	return fmt.Errorf("simulate: nothing can be compared: %s ran %d schedules, %s %d",
		c.rung.Name, c.Naive.Stats.Schedules, ourName, c.Ours.Stats.Schedules)
}

// Naive lists the naive locks that there are.
func Naive() (names []string) {
	for _, sc := range Catalogue {
		if name, ok := strings.CutPrefix(sc.Name, "ladder-"); ok {
			names = append(names, name)
		}
	}
	return names
}

// WriteText writes the promises that each lock broke as one table. It returns an error unless
// the comparison is Even.
func (c *Comparison) WriteText(w io.Writer) error {
	if err := c.mustBeEven(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %s\n\n", c.rung.Name, c.rung.About)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "of %s schedules, broken in\t%s\t%s\n", words.Thousands(c.Naive.Stats.Schedules), c.rung.Name, ourName)
	for _, r := range c.rows() {
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.What, r.Naive, r.Ours)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, sentence := range c.below() {
		if _, err := fmt.Fprintf(w, "\n%s\n", wrap.Text(sentence, 0, 80)); err != nil {
			return err
		}
	}
	return nil
}

const ourName = "quorumlock"

// rows are the promises that one of them broke, and the schedules in which one did.
func (c *Comparison) rows() (rows []view.Row) {
	add := func(what string, naive, ours int) {
		rows = append(rows, view.Row{What: what, Naive: words.Thousands(naive), Ours: words.Thousands(ours)})
	}
	for _, p := range promised {
		if a, b := c.Naive.Stats.Violations[p.kind], c.Ours.Stats.Violations[p.kind]; a+b > 0 {
			add(p.text, a, b)
		}
	}
	add("any of them", c.Naive.Stats.Unsafe, c.Ours.Stats.Unsafe)
	return rows
}

// below says which of the rows matters most, and how much work was done meanwhile.
func (c *Comparison) below() []string {
	naive, ours := c.Naive.Stats, c.Ours.Stats
	matters := "No two clients held the lock at the same time. What clients are told, or what masters keep, was wrong."
	switch a, b := naive.Violations[tally.Overlap], ours.Violations[tally.Overlap]; {
	case a+b > 0:
		matters = fmt.Sprintf("The first row matters most, since it is what a lock is for: in %s of %s schedules two clients held it at the same time with %s, in %s with %s. "+
			"Where only other rows broke there was one holder at a time, and what clients are told or what masters keep was wrong.",
			words.Thousands(a), words.Thousands(naive.Schedules), c.rung.Name, words.Thousands(b), ourName)
	case naive.Unsafe+ours.Unsafe == 0:
		matters = "Neither broke a promise."
	}
	return []string{matters, fmt.Sprintf("The lock was acquired %s times with %s, and %s times with %s.",
		words.Thousands(naive.Acquisitions), c.rung.Name, words.Thousands(ours.Acquisitions), ourName)}
}

// Timelines returns the schedule in which the naive lock tells most, reduced to
// what matters, as each of the two ran it; nil if it broke nothing.
func (c *Comparison) Timelines() (naive, ours *view.Timeline, err error) {
	if len(c.Naive.Failures) == 0 {
		return nil, nil, nil
	}
	s, err := c.Naive.Shrink(c.Naive.Telling())
	if err != nil {
		return nil, nil, err
	}
	if naive, err = c.Naive.Replay(s); err != nil {
		return nil, nil, err
	}
	same, cfg := *s, guarded(*s.Config)
	same.Config = &cfg
	ours, err = c.Ours.Replay(&same)
	return naive, ours, err
}

// WriteHTML writes the table, and the two timelines one above the other on the same scale. It
// returns an error unless the comparison is Even.
func (c *Comparison) WriteHTML(w io.Writer) error {
	if err := c.mustBeEven(); err != nil {
		return err
	}
	naive, ours, err := c.Timelines()
	if err != nil {
		return err
	}
	data := view.Sheet{
		Title: fmt.Sprintf("%s beside %s", c.rung.Name, ourName),
		Sub: fmt.Sprintf("%s stands for: %s. Both ran %s schedules: the same masters, networks and faults, and the same work.",
			c.rung.Name, c.rung.About, words.Thousands(c.Naive.Stats.Schedules)),
		Head: [3]string{"broken in so many schedules", c.rung.Name, ourName},
		Rows: c.rows(), Below: c.below(),
	}
	if naive != nil {
		from, to := naive.Window()
		ours.Beside(naive)
		n := naive.Run(c.rung.Name, "What went wrong", from, to)
		o := ours.Run(ourName, "The same faults at the same instants", from, to)
		o.Why = "While a lease is valid no other client has the lock, and its holder is told before it ends."
		if len(ours.Violations) > 0 {
			o.Why = ""
		}
		data.Faults, data.Runs = ours.Faults(), []view.RunView{n, o}
		data.Seed = naive.Schedule.Seed
	}
	return view.Page.Execute(w, data)
}
