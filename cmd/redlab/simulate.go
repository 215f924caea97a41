package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/progress"
	"github.com/quorumlock/quorumlock/internal/wrap"
	"github.com/quorumlock/quorumlock/simulate"
)

func newSimulateCommand() *cobra.Command {
	s := simulation{config: simulate.Config{Swarm: true}}
	var faults, kind string
	var list, explore bool
	var schedule string
	var part shard
	var e exploration
	cmd := &cobra.Command{
		Use:   "simulate [flags] [SCENARIO | all | WORLD]",
		Short: "Run the lock through failures in virtual time",
		Long: `Simulate runs the production code of the lock on simulated masters, clocks and
networks, in as many schedules of faults as you like. The same seed gives the
same run, to the last bit.

Without a SCENARIO, every fault within the assumptions of the lock is tried in
any combination, and no promise may break. A SCENARIO is one known failure: it
is run without the protection that is made for it, to see the promise break, and
with it. "all" runs every scenario.

With --explore, every order of what can happen is tried in small worlds instead,
of two clients and three masters; then the argument is the name of one of them.
As it is, --bound 3, all of them take one to two minutes of one core. --bound 0
tries really every order: seconds to minutes for most worlds, and no end that
anybody has waited for where somebody waits.

When a promise breaks, the first schedule in which it does is reduced to the few
faults that matter, and told line by line.

The exit code is 0 when nothing broke that must not, and otherwise
    1  something did
   64  the command line makes no sense`,
		Example: `  redlab simulate                         1,000 schedules, all different
  redlab simulate restart-amnesia         one known failure, both ways
  redlab simulate --faults anything --html run.html
  redlab simulate --seed 4711 --seeds 1   one schedule, line by line`,
		Args: cli.AtMostOne("SCENARIO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.stdout, s.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if s.out = s.stdout; s.json {
				s.out = io.Discard
			}
			if err := e.check(cmd.Flags(), list, explore); err != nil {
				return err
			}
			if list {
				return s.list()
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			s.config.Interrupt = ctx.Done()
			if part.n > 0 && (explore || schedule != "" || len(args) > 0) {
				return cli.Usage("--shard %s: splits the schedules of random runs, and nothing else", &part)
			}
			if explore {
				e.out, e.err, e.failFast, e.config.Interrupt = s.out, s.err, s.config.FailFast, ctx.Done()
				return e.explore(args)
			}
			var err error
			if s.config.Faults, err = simulate.ParseMix(faults); err != nil {
				return cli.Usage("--%w", err)
			}
			if kind != "" {
				if s.config.Lock, err = simulate.ParseLockKind(kind); err != nil {
					return cli.Usage("--%w", err)
				}
			}
			if s.config.Seeds < 1 {
				return cli.Usage("--seeds %d: must be at least 1", s.config.Seeds)
			}
			if s.config.Seed, s.config.Seeds, err = part.of(s.config.Seed, s.config.Seeds); err != nil {
				return err
			}
			if schedule != "" && len(args) > 0 {
				return cli.Usage("--schedule: runs a schedule and no scenario")
			}
			if len(args) > 0 && args[0] == "all" && s.html != "" {
				return cli.Usage("--html: is the timeline of one schedule; name one scenario")
			}
			if s.page, err = cli.Create(s.html); err != nil {
				return err
			}
			switch {
			case schedule != "":
				return s.saved(schedule)
			case len(args) == 0:
				return s.free()
			}
			for _, flag := range []string{"nodes", "clients", "ttl", "duration", "faults", "kind"} {
				if cmd.Flags().Changed(flag) {
					return cli.Usage("--%s: a scenario has its own", flag)
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
				return cli.Usage("unknown scenario %q (see --list)", args[0])
			}
			return s.scenario(sc)
		},
	}
	cmd.AddCommand(newCompareCommand(), newMergeCommand())
	f := cmd.Flags()
	f.IntVar(&s.config.Seeds, "seeds", 1000, "how many schedules")
	f.Uint64Var(&s.config.Seed, "seed", 0, "the seed of the first schedule")
	f.IntVar(&s.config.Nodes, "nodes", 0, "masters, from 1 to 26 (0: drawn for each schedule)")
	f.IntVar(&s.config.Clients, "clients", 0, "clients, from 1 to 100 (0: drawn)")
	f.DurationVar(&s.config.TTL, "ttl", 0, "TTL of the locks, from 25ms to 1h (0: drawn, up to 1m)")
	f.DurationVar(&s.config.Duration, "duration", 0, "simulated time of a schedule (default: 60 TTLs, from 5s to 1m)")
	f.StringVar(&kind, "kind", "", "of lock: plain, fenced, fair, fair-fenced, multi, fenced-multi, read-write, semaphore, fenced-semaphore, re-entrant, cached, latch, election or groups (default: drawn)")
	f.StringVar((*string)(&s.config.Transport), "transport", "", "fast, production (the one that talks to Redis), or a few in production (default)")
	f.StringVar(&faults, "faults", "assumed", "calm, assumed, one-clock, anything, or kinds of faults separated by commas")
	f.StringVar(&s.html, "html", "", "write the timeline of the failing schedule, or of the first one, to this file")
	cli.JSONFlag(cmd, &s.json)
	f.StringVar(&schedule, "schedule", "", "run the schedule in this file: what --json wrote, changed by hand or not")
	f.Var(&part, "shard", "run only the i-th of n parts of the schedules; see simulate merge")
	f.BoolVar(&s.config.FailFast, "fail-fast", false, "end with the first schedule or world in which a promise breaks, and only name it")
	f.BoolVar(&explore, "explore", false, "try every order in small worlds, and find what each protection is for")
	f.IntVar(&e.config.Bound, "bound", usualBound, "with --explore: leave the usual course of a run at most so often (0: any number of times)")
	f.IntVar(&e.config.Runs, "runs", 0, "with --explore: stop a world after so many runs (0: never)")
	f.BoolVar(&list, "list", false, "list the scenarios")
	// The environment and the top of the file mean real masters and their locks.
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names := []string{"all\tevery scenario"}
		for _, sc := range simulate.Catalogue {
			names = append(names, sc.Name+"\t"+sc.About)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// simulation is one run of redlab simulate.
type simulation struct {
	config   simulate.Config
	html     string
	json     bool
	page     *cli.Output
	title    string    // of the page
	out, err io.Writer // the output for people
	stdout   io.Writer
}

// errBroken is the outcome that the exit code tells; the tables have shown it.
var errBroken = cli.Fail(cli.ExitFailure, nil)

// free runs schedules of the mix that the flags ask for.
func (s *simulation) free() error {
	r, err := s.run(s.config, "")
	if err != nil {
		return err
	}
	if err := r.WriteText(s.out); err != nil {
		return err
	}
	speed := fmt.Sprintf(" (%.0f schedules/s)", float64(r.Stats.Schedules)/r.Took.Seconds())
	verdict := s.verdict(r)
	if s.complete(r) != nil {
		verdict = strings.Replace(verdict, "no promise was broken.", "no promise was broken so far.", 1)
	}
	fmt.Fprintf(s.out, "\n%s\n", wrap.Text(verdict+speed, 0, cli.Width(s.out)))
	if err := s.show(r); err != nil {
		return err
	}
	if !r.Safe() && r.Config.Faults.Strict {
		return errBroken
	}
	return s.complete(r)
}

// complete returns an error if ^C cut the run short.
func (s *simulation) complete(r *simulate.Report) error {
	if r.Stats.Schedules == s.config.Seeds {
		return nil
	}
	return cli.Interrupted(fmt.Sprintf("%d of %d schedules were run", r.Stats.Schedules, s.config.Seeds))
}

// saved runs the schedule of a file and prints it line by line.
func (s *simulation) saved(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return cli.Usage("--schedule: %w", err)
	}
	defer f.Close()
	sch, err := simulate.ReadSchedule(f)
	if err != nil {
		return cli.Usage("--schedule %s: %w", name, err)
	}
	r, err := simulate.RunSchedule(sch)
	if err != nil {
		return err
	}
	tl, err := r.Replay(sch)
	if err != nil {
		return err
	}
	if err := tl.WriteText(s.out); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\n%s\n", s.verdict(r))
	if s.html != "" {
		if err := s.page.Write(tl.WriteHTML); err != nil {
			return err
		}
	}
	var failing *simulate.Schedule
	var broken error
	if !r.Safe() {
		failing, broken = sch, errBroken
	}
	if s.json {
		return cmp.Or(r.WriteJSON(s.stdout, failing), broken)
	}
	return broken
}

func (s *simulation) verdict(r *simulate.Report) string {
	switch {
	case r.Safe():
		return cli.Good.On(s.out, "SAFE") + ": no promise was broken."
	case r.Config.Faults.Strict:
		return cli.Bad.On(s.out, "UNSAFE") + ": a promise was broken within the assumptions."
	}
	return cli.Caution.On(s.out, "UNSAFE") + ", as was to be expected: these faults are outside of the assumptions."
}

// widestProtection is how long the name of one may be for a table of 80 columns.
const widestProtection = 15

// scenario runs one known failure without and with its protection.
func (s *simulation) scenario(sc *simulate.Scenario) error {
	s.title = fmt.Sprintf("%s %s: %s", sc.Row, sc.Name, sc.About)
	fmt.Fprintf(s.out, "%s\n\n", wrap.Text(s.title, 0, cli.Width(s.out)))
	without, label := "without "+sc.Against, "as it is"
	if sc.Against != "" {
		label = "with " + sc.Against
	}
	if len(sc.Against) > widestProtection {
		fmt.Fprintf(s.out, "%s\n\n", wrap.Text("Stopped by: "+sc.Against+".", 0, cli.Width(s.out)))
		without, label = "without it", "with it"
	}
	with, bare, err := s.both(sc)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\tschedules\tbroken\t95%% interval\tverdict\n")
	if bare != nil {
		row(t, without, bare, sc.Breaks)
	}
	row(t, label, with, sc.Breaks)
	t.Flush()
	if sc.Limit != "" {
		fmt.Fprintf(s.out, "\n%s\n", wrap.Text("Known limit: "+sc.Limit+".", 0, cli.Width(s.out)))
	}
	telling := with
	if with.Safe() && bare != nil {
		telling = bare
		s.title += ", without " + sc.Against
	}
	if err := s.show(telling); err != nil {
		return err
	}
	if !with.Safe() && sc.Limit == "" {
		return errBroken
	}
	return s.complete(with)
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

// outcome is the result of one scenario of the catalogue.
type outcome struct {
	Row        string `json:"row"`
	Scenario   string `json:"scenario"`
	About      string `json:"about"`
	Schedules  int    `json:"schedules"`
	Without    *int   `json:"unsafe_without,omitempty"` // schedules that broke without the protection
	With       int    `json:"unsafe_with"`
	Protection string `json:"protection,omitempty"`
	Limit      string `json:"limit,omitempty"` // why nothing protects
}

// all runs the whole catalogue.
func (s *simulation) all() error {
	var outcomes []outcome
	var unfinished, broken error
	for _, sc := range simulate.Catalogue {
		with, without, err := s.both(sc)
		if err != nil {
			return err
		}
		if unfinished = s.complete(with); unfinished != nil {
			break
		}
		o := outcome{Row: sc.Row, Scenario: sc.Name, About: sc.About, Schedules: with.Stats.Schedules,
			With: with.Stats.Unsafe, Protection: sc.Against, Limit: sc.Limit}
		if without != nil {
			o.Without = &without.Stats.Unsafe
		}
		if o.With > 0 && sc.Limit == "" {
			broken = errBroken
		}
		outcomes = append(outcomes, o)
	}
	if s.json {
		return cmp.Or(cli.WriteJSON(s.stdout, outcomes), broken, unfinished)
	}
	const line = "%-5s %-20s %-11s %-10s %s\n"
	fmt.Fprintf(s.out, line, "ROW", "SCENARIO", "WITHOUT", "WITH", "PROTECTION")
	for _, o := range outcomes {
		before, after, what := "-", "safe", o.Protection
		if o.Without != nil {
			before = fmt.Sprintf("%d unsafe", *o.Without)
		}
		if o.Limit != "" {
			what = "none: " + o.Limit
		}
		if o.With > 0 {
			after = fmt.Sprintf("%d unsafe", o.With)
		}
		fmt.Fprintf(s.out, line, o.Row, o.Scenario, before, after, wrap.Text(what, 50, cli.Width(s.out)))
	}
	fmt.Fprintf(s.out, "\nOf %d schedules each. Rows V1 to R0 are naive locks.\n", s.config.Seeds)
	return cmp.Or(broken, unfinished)
}

// collectSeldom makes garbage collection rare during simulations, but before memory is
// full: some schedules keep hundreds of megabytes. It returns a function that undoes
// that.
func collectSeldom() (undo func()) {
	const most = 2 << 30
	percent, limit := debug.SetGCPercent(simulate.GCPercent), debug.SetMemoryLimit(most)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// run runs cfg with the seeds of the command line.
func (s *simulation) run(cfg simulate.Config, breaks simulate.ViolationKind) (*simulate.Report, error) {
	cfg.Seed, cfg.Seeds, cfg.FailFast = s.config.Seed, s.config.Seeds, s.config.FailFast
	show, done := s.progress(cfg.Seeds)
	cfg.Progress = show
	defer done()
	defer collectSeldom()()
	r, err := simulate.Run(cfg, nil)
	if err != nil {
		return nil, cli.Refusal(orDrawn(err), nil)
	}
	r.Breaks = breaks
	return r, nil
}

// orDrawn adds the value that has a schedule draw the option.
func orDrawn(err error) error {
	for _, option := range []string{"Nodes", "Clients", "TTL"} {
		if strings.HasPrefix(err.Error(), "simulate: "+option+"(") {
			return fmt.Errorf("%w, or 0 (drawn)", err)
		}
	}
	return err
}

// progress returns a function that shows how many of so many schedules are done, if
// there is a terminal, and a function that removes it.
func (s *simulation) progress(of int) (show func(int), done func()) {
	bar, end := progress.Bar(s.err, of, 30, progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond))
	return func(n int) { bar(n, "schedules") }, end
}

// show tells what happened in the first schedule that failed, reduced to what
// matters, or in the only one there is, and writes the files.
func (s *simulation) show(r *simulate.Report) error {
	var failing *simulate.Schedule
	var tl *simulate.Timeline
	var err error
	switch {
	case len(r.Failures) > 0 && s.config.FailFast:
		f := r.Failures[0]
		fmt.Fprintf(s.out, "\nSeed %d broke it first:\n%v\n", f.Seed, f.Violations[0])
	case len(r.Failures) > 0:
		telling := r.Telling()
		if failing, err = r.Shrink(telling); err != nil {
			return err
		}
		if tl, err = r.Replay(failing); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "\nSeed %d, reduced to what matters:\n", telling.Seed)
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
	if s.html != "" && tl != nil {
		if s.title != "" {
			tl.Title = s.title + ", " + tl.Title
		}
		if err := s.page.Write(tl.WriteHTML); err != nil {
			return err
		}
	}
	if s.json {
		return r.WriteJSON(s.stdout, failing)
	}
	return nil
}

// list prints the catalogue.
func (s *simulation) list() error {
	if !s.json {
		return listScenarios(s.out)
	}
	var all []outcome
	for _, sc := range simulate.Catalogue {
		all = append(all, outcome{Row: sc.Row, Scenario: sc.Name, About: sc.About, Protection: sc.Against, Limit: sc.Limit})
	}
	return cli.WriteJSON(s.stdout, all)
}

func listScenarios(w io.Writer) error {
	const line = "%-5s %-20s %s\n"
	fmt.Fprintf(w, line, "ROW", "SCENARIO", "WHAT HAPPENS")
	for _, sc := range simulate.Catalogue {
		what := sc.About
		switch {
		case sc.Limit != "":
			what += ". Nothing stops it: " + sc.Limit
		case sc.Against != "":
			what += ". Stopped by: " + sc.Against
		}
		// A long name takes from its first line alone.
		room := cli.Width(w) - max(0, len(sc.Name)-20)
		first, rest, _ := strings.Cut(wrap.Text(what, 27, room), "\n")
		if rest != "" {
			first += "\n" + strings.Repeat(" ", 27) + wrap.Text(rest, 27, cli.Width(w))
		}
		if _, err := fmt.Fprintf(w, line, sc.Row, sc.Name, first); err != nil {
			return err
		}
	}
	return nil
}
