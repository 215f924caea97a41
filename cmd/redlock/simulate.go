package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quorumlock/quorumlock/simulate"
)

func newSimulateCommand() *cobra.Command {
	s := simulation{config: simulate.Config{}}
	var faults string
	var list bool
	cmd := &cobra.Command{
		Use:   "simulate [flags] [SCENARIO | all]",
		Short: "Run the lock through failures in virtual time",
		Long: `Simulate runs the production code of the lock on simulated masters, clocks and
networks, in as many schedules of faults as you like. The same seed gives the
same run, to the last bit.

Without a SCENARIO, every fault within the assumptions of the lock is tried in
any combination, and no promise may break. A SCENARIO is one known failure: it is
run without the protection that is made for it, to see the promise break, and
with it. "all" runs every scenario.

When a promise breaks, the first schedule in which it does is reduced to the few
faults that matter, and told line by line.

The exit code is 0 when nothing broke that must not, and otherwise
    1  something did
   64  the command line makes no sense`,
		Example: `  redlock simulate                          1,000 schedules of a minute each
  redlock simulate restart-amnesia          one known failure, with and without protection
  redlock simulate --faults anything --html run.html
  redlock simulate --seed 4711 --seeds 1    one schedule, line by line`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.out, s.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if list {
				return listScenarios(s.out)
			}
			var err error
			if s.config.Faults, err = simulate.ParseMix(faults); err != nil {
				return usage("--%w", err)
			}
			if s.config.Seeds < 1 {
				return usage("--seeds %d: must be at least 1", s.config.Seeds)
			}
			if len(args) == 0 {
				return s.free()
			}
			for _, flag := range []string{"nodes", "clients", "ttl", "duration", "faults"} {
				if cmd.Flags().Changed(flag) {
					return usage("--%s: a scenario has its own", flag)
				}
			}
			if !cmd.Flags().Changed("seeds") {
				s.config.Seeds = 500
			}
			if args[0] == "all" {
				return s.all()
			}
			sc := simulate.Find(args[0])
			if sc == nil {
				return usage("scenario %q: there is none of that name (see --list)", args[0])
			}
			return s.scenario(sc)
		},
	}
	f := cmd.Flags()
	f.IntVar(&s.config.Seeds, "seeds", 1000, "how many schedules")
	f.Uint64Var(&s.config.Seed, "seed", 0, "the seed of the first schedule")
	f.IntVar(&s.config.Nodes, "nodes", 5, "masters")
	f.IntVar(&s.config.Clients, "clients", 3, "clients")
	f.DurationVar(&s.config.TTL, "ttl", time.Second, "TTL of the lock")
	f.DurationVar(&s.config.Duration, "duration", time.Minute, "simulated time of a schedule")
	f.StringVar(&faults, "faults", "assumed", "calm, assumed, anything, or kinds of faults separated by commas")
	f.StringVar(&s.html, "html", "", "write the timeline of the failing schedule, or of the first one, to this file")
	f.StringVar(&s.json, "json", "", "write the verdict to this file")
	f.BoolVar(&list, "list", false, "list the scenarios")
	return cmd
}

// simulation is one run of redlock simulate.
type simulation struct {
	config     simulate.Config
	html, json string
	title      string // of the page
	out, err   io.Writer
}

// errBroken is the outcome that the exit code tells; the tables have said it.
var errBroken = &exit{exitFailure, nil}

// free runs schedules of the mix that the flags ask for.
func (s *simulation) free() error {
	r, err := s.run(s.config, "")
	if err != nil {
		return err
	}
	if err := r.WriteText(s.out); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\n%s (%.0f schedules/s)\n", verdict(r), float64(r.Stats.Schedules)/r.Took.Seconds())
	if err := s.show(r); err != nil {
		return err
	}
	if !r.Safe() && r.Config.Faults.Strict {
		return errBroken
	}
	return nil
}

func verdict(r *simulate.Report) string {
	switch {
	case r.Safe():
		return "SAFE: no promise was broken."
	case r.Config.Faults.Strict:
		return "UNSAFE: a promise was broken within the assumptions."
	}
	return "UNSAFE, as was to be expected: these faults are outside of the assumptions."
}

// scenario runs one known failure without and with its protection.
func (s *simulation) scenario(sc *simulate.Scenario) error {
	s.title = fmt.Sprintf("%s %s: %s", sc.Row, sc.Name, sc.About)
	fmt.Fprintf(s.out, "%s\n\n", s.title)
	with, without, err := s.both(sc)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\tschedules\tbroken\t95%% interval\tverdict\n")
	if without != nil {
		row(t, "without "+sc.Against, without, sc.Breaks)
	}
	label := "as it is"
	if sc.Against != "" {
		label = "with " + sc.Against
	}
	row(t, label, with, sc.Breaks)
	t.Flush()
	if sc.Limit != "" {
		fmt.Fprintf(s.out, "\nKnown limit: %s.\n", sc.Limit)
	}
	telling := with
	if with.Safe() && without != nil {
		telling = without
		s.title += ", without " + sc.Against
	}
	if err := s.show(telling); err != nil {
		return err
	}
	if !with.Safe() && sc.Limit == "" {
		return errBroken
	}
	return nil
}

func (s *simulation) both(sc *simulate.Scenario) (with, without *simulate.Report, err error) {
	with, err = s.run(sc.Config(), sc.Breaks)
	if err != nil {
		return nil, nil, err
	}
	if cfg, ok := sc.Without(); ok {
		without, err = s.run(cfg, sc.Breaks)
	}
	return with, without, err
}

func row(w io.Writer, label string, r *simulate.Report, breaks simulate.ViolationKind) {
	n, word := r.Stats.Unsafe, "safe"
	if n > 0 {
		word = "unsafe: " + string(breaks)
	}
	lo, hi := simulate.Interval(n, r.Stats.Schedules)
	fmt.Fprintf(w, "%s\t%d\t%d\t%.2f%% to %.2f%%\t%s\n", label, r.Stats.Schedules, n, 100*lo, 100*hi, word)
}

// all runs the whole catalogue.
func (s *simulation) all() error {
	t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "row\tscenario\twithout\twith\tprotection\n")
	broken := false
	for _, sc := range simulate.Catalogue {
		with, without, err := s.both(sc)
		if err != nil {
			return err
		}
		before := "-"
		if without != nil {
			before = fmt.Sprintf("%d unsafe", without.Stats.Unsafe)
		}
		after, what := "safe", sc.Against
		if sc.Limit != "" {
			what = "none: " + sc.Limit
		}
		if n := with.Stats.Unsafe; n > 0 {
			after = fmt.Sprintf("%d unsafe", n)
			broken = broken || sc.Limit == ""
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", sc.Row, sc.Name, before, after, what)
	}
	t.Flush()
	fmt.Fprintf(s.out, "\nOf %d schedules each. Rows V1 to R0 are naive locks.\n", s.config.Seeds)
	if broken {
		return errBroken
	}
	return nil
}

// run runs cfg with the seeds of the command line.
func (s *simulation) run(cfg simulate.Config, breaks simulate.ViolationKind) (*simulate.Report, error) {
	cfg.Seed, cfg.Seeds = s.config.Seed, s.config.Seeds
	if f, ok := s.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		bar := progressbar.NewOptions(cfg.Seeds,
			progressbar.OptionSetWriter(s.err),
			progressbar.OptionSetDescription("schedules"),
			progressbar.OptionShowCount(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(30))
		cfg.Progress = func(done int) { bar.Set(done) }
		defer bar.Finish()
	}
	defer debug.SetGCPercent(debug.SetGCPercent(simulate.GCPercent))
	r, err := simulate.Run(cfg, nil)
	if err != nil {
		return nil, &exit{exitUsage, err}
	}
	r.Breaks = breaks
	return r, nil
}

// show tells what happened in the first schedule that failed, reduced to what
// matters, or in the only one there is, and writes the files.
func (s *simulation) show(r *simulate.Report) error {
	var failing *simulate.Schedule
	var tl *simulate.Timeline
	var err error
	switch {
	case len(r.Failures) > 0:
		if failing, err = r.Shrink(r.Telling()); err != nil {
			return err
		}
		if tl, err = r.Replay(failing); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "\nSeed %d, reduced to what matters:\n", failing.Seed)
	case s.html != "" || s.config.Seeds == 1:
		if tl, err = r.ReplaySeed(s.config.Seed); err != nil {
			return err
		}
	}
	if tl != nil && (failing != nil || s.config.Seeds == 1) {
		if err := tl.WriteText(s.out); err != nil {
			return err
		}
	}
	if s.html != "" {
		if s.title != "" {
			tl.Title = s.title + ", " + tl.Title
		}
		if err := writeFile(s.html, tl.WriteHTML); err != nil {
			return err
		}
	}
	if s.json != "" {
		return writeFile(s.json, func(w io.Writer) error { return r.WriteJSON(w, failing) })
	}
	return nil
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func listScenarios(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "ROW\tSCENARIO\tWITHOUT\tWITH\tABOUT\n")
	for _, sc := range simulate.Catalogue {
		without, with := "-", "safe"
		if sc.Against != "" {
			without, with = "unsafe", "safe: "+sc.Against
		}
		if sc.Limit != "" {
			with = "unsafe"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", sc.Row, sc.Name, without, with, sc.About)
	}
	return t.Flush()
}
