package simulate

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorumlock/quorumlock/internal/words"
	"github.com/quorumlock/quorumlock/internal/wrap"
	"github.com/quorumlock/quorumlock/simulate/internal/plan"
	"github.com/quorumlock/quorumlock/simulate/internal/tally"
)

// promised are the promises that are checked, in the order of a report.
var promised = []struct {
	kind tally.ViolationKind
	text string
}{
	{tally.Overlap, "at most one client holds the lock"},
	{tally.Unbacked, "a quorum of masters keeps every valid lease"},
	{tally.GaveAway, "no master grants what it has promised"},
	{tally.OwnDelete, "nobody deletes the key of a valid lease"},
	{tally.EndedLease, "Lock returns no lease that has ended"},
	{tally.Revived, "no lease that has ended is valid again"},
	{tally.LateLoss, "the end of a lease is announced in time"},
	{tally.FalseLoss, "no Unlock tells of a loss that there was not"},
	{tally.FalseRelease, "no Unlock succeeds before a quorum let go"},
	{tally.LostUpdate, "no update is lost"},
	{tally.ForeignDelete, "nobody deletes another's lock"},
	{tally.Leftover, "nothing is left behind"},
	{tally.Token, "fencing tokens rise"},
	{tally.Passed, "nobody gets a fair lock before who came earlier"},
	{tally.Zombie, "no key outlives its holder by more than a TTL"},
	{tally.FreeAndWanted, "a lock that is free and wanted is taken soon"},
	{tally.LateAnswer, "no call waits longer than its masters may"},
	{tally.Unfounded, "a quorum is found where nothing is wrong"},
	{tally.Unrepaired, "a renewed lease is at all masters again"},
	{tally.KeptOut, "no master is kept out without a reason"},
	{tally.NeedlessLoss, "no renewed lease ends where nothing is wrong"},
	{tally.Stuck, "everybody gets the lock when all is well again"},
	{tally.Custom, "the workload's own"},
}

// WriteText writes the verdict as tables.
func (r *Report) WriteText(w io.Writer) error {
	s := r.Stats
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	c := r.Config
	fmt.Fprintf(t, "schedules\t%s, seeds from %d, faults %s\n", words.Thousands(s.Schedules), c.Seed, c.Faults.Name)
	fmt.Fprintf(t, "each\t%s\n", worlds(&c))
	fmt.Fprintf(t, "events\t%s in %v of simulated time\n", words.Thousands(int(s.Events)), s.Simulated.Round(time.Second))
	fmt.Fprintf(t, "locks\t%s acquired in %s\n", words.Thousands(s.Acquisitions), words.Counted(s.Calls, "call"))
	fmt.Fprintf(t, "\t%s, %s lost\n", words.Counted(s.Renewals, "renewal"), words.Counted(s.Losses, "lease"))
	if s.Calls > 0 {
		fmt.Fprintf(t, "availability\t%.3f%% of the calls found a quorum\n", 100*s.Availability())
		fmt.Fprintf(t, "wait\tp50 %v, p99 %v\n", plan.Short(s.Waits.Quantile(0.5)), plan.Short(s.Waits.Quantile(0.99)))
	}
	for i, line := range r.faults() {
		fmt.Fprintf(t, "%s\t%s\n", []string{"faults", ""}[min(i, 1)], line)
	}
	for i, line := range r.sometimes() {
		fmt.Fprintf(t, "%s\t%s\n", []string{"sometimes", ""}[min(i, 1)], line)
	}
	fmt.Fprintf(t, "state hash\t%016x\n", r.Hash)
	t.Flush()
	fmt.Fprintln(w)
	fmt.Fprintf(t, "promise\tbroken in\t95%% interval\n")
	for _, p := range promised {
		n := s.Violations[p.kind]
		if n == 0 && p.kind == tally.Custom {
			continue
		}
		lo, hi := tally.Interval(n, s.Schedules)
		fmt.Fprintf(t, "%s\t%s\t%s to %s\n", p.text, words.Thousands(n), percent(lo), percent(hi))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := writeKindChecks(s, w); err != nil {
		return err
	}
	return r.seeds(w)
}

// maxSeeds is how many schedules that broke a promise are listed.
const maxSeeds = 20

// seeds lists the first schedules that broke a promise. Each can be run again, without
// waiting until one of them has been shrunk.
func (r *Report) seeds(w io.Writer) error {
	if len(r.Failures) == 0 {
		return nil
	}
	type row struct{ seed, broke string }
	rows := []row{{"seed", "broke first, and when"}}
	for _, f := range r.Failures[:min(len(r.Failures), maxSeeds)] {
		rows = append(rows, row{fmt.Sprint(f.Seed), f.Violations[0].String()})
	}
	if n := r.Stats.Unsafe - maxSeeds; n > 0 {
		rows = append(rows, row{"", fmt.Sprintf("and %s more", words.Thousands(n))})
	}
	width := 0
	for _, row := range rows {
		width = max(width, len(row.seed))
	}
	var b strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&b, "\n%-*s  %s", width, row.seed, wrap.Text(row.broke, width+2, 80))
	}
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

// worlds describes the sizes and times that the schedules have in common.
func worlds(cfg *plan.Config) string {
	var parts []string
	for _, p := range []struct {
		open bool
		text string
	}{
		{cfg.Nodes == 0, fmt.Sprintf("%d masters", cfg.Nodes)},
		{cfg.Clients == 0, fmt.Sprintf("%d clients", cfg.Clients)},
		{cfg.TTL == 0, fmt.Sprintf("TTL %v", cfg.TTL)},
		{cfg.Duration == 0, fmt.Sprintf("%v each", cfg.Duration)},
	} {
		if !p.open {
			parts = append(parts, p.text)
		}
	}
	if len(parts) < 4 {
		parts = append(parts, "the rest drawn for each")
	}
	return strings.Join(parts, ", ")
}

// faults lists how many faults there were of each kind, a few to a line.
func (r *Report) faults() []string {
	var list []string
	n := 0
	for _, k := range plan.Kinds {
		if f := r.Stats.Faults[k]; f > 0 {
			list = append(list, fmt.Sprintf("%s %s", k, words.Thousands(f)))
			n += f
		}
	}
	lines := []string{words.Thousands(n)}
	for part := range slices.Chunk(list, 3) {
		lines = append(lines, strings.Join(part, ", "))
	}
	return lines
}

// sometimes lists Stats.Sometimes, in lines that fit a terminal.
func (r *Report) sometimes() []string {
	const room = 80 - len("availability  ")
	var lines []string
	for _, c := range r.Stats.Sometimes() {
		one := fmt.Sprintf("%s: %s", c.Name, words.Thousands(c.N))
		if last := len(lines) - 1; last >= 0 && len(lines[last])+len(", ")+len(one) <= room {
			lines[last] += ", " + one
		} else {
			lines = append(lines, one)
		}
	}
	return lines
}

// percent writes a share with as many digits as it takes not to look like zero.
func percent(p float64) string {
	digits := 1
	if p > 0 && p < 0.01 {
		digits = min(6, 1-int(math.Floor(math.Log10(p*100))))
	}
	return fmt.Sprintf("%.*f%%", digits, 100*p)
}

// writeKindChecks writes the checks that only some kinds of locks have.
func writeKindChecks(s *tally.Stats, w io.Writer) error {
	list := s.KindChecks()
	if len(list) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\ncheck of the kind of lock\tmade\tfailed\n")
	for _, c := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.Check, words.Thousands(c.Made), words.Thousands(c.Failed))
	}
	return t.Flush()
}
