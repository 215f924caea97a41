//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/bench"
	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/progress"
)

func newBenchCommand() *cobra.Command {
	var b benchmark
	cmd := &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure what a quorum costs on this machine, in about a minute",
		Long: `Bench compares locks on one master with locks on three, five and seven, and with
redsync: latency, throughput, hand-off between clients, and what hung and dead
masters do to them.

By default the masters are embedded: small Redis look-alikes, a process each,
that need nothing installed but are several times slower than Redis. --redis
starts real redis-servers instead, and --nodes uses yours: they get keys that
begin with bench:, none is stopped.

All of that is on one machine, where a round trip costs next to nothing. With
--rtt the masters are behind delay lines, and what is measured is what a network
adds; R is the round trip of a PING. Repeat the flag for several distances.

--full and --only kinds measure every kind of lock, beside the algorithms that
Redisson documents, on one master.

The exit code is 0 when everything was measured, and otherwise
    1  operations failed, a lock had two holders, or keys were left at the
       masters after every lock was released; the cases are named
   64  the command line makes no sense
   69  a master did not answer before the measurements
What fails while masters hang or are killed is no error: that is measured.`,
		Example: `  redlab bench
  redlab bench --redis --masters 5 --rtt 1ms,10ms
  redlab bench --redis --only kinds --html kinds.html
  redlab bench --redis --rtt near=0.5ms*3,far=20ms*2 --only handoff`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&b.nodes, "nodes", nil, "measure on these `masters`: host:port, redis://..., rediss://..., unix:///path")
	f.BoolVar(&b.redis, "redis", false, "start real redis-servers (they must be installed)")
	f.IntVar(&b.masters, "masters", 7, "how many masters to start")
	f.BoolVar(&b.quick, "quick", false, "about 15 seconds, one round each: an impression")
	f.BoolVar(&b.full, "full", false, "about six minutes: everything, and the goals of this library")
	f.StringSliceVar(&b.only, "only", nil, "measure only these `workloads`, such as pair/64 or handoff")
	cli.JSONFlag(cmd, &b.json)
	f.StringVar(&b.html, "html", "", "write a page with pictures to this `file`")
	f.StringArrayVar(&b.rtt, "rtt", nil, "measure at these `distances` instead: 1ms,10ms or near=0.5ms*3,far=20ms*2")
	cmd.AddCommand(newServeMasterCommand(), newServeLinesCommand())
	return cmd
}

// newServeMasterCommand is what an embedded master's process runs.
func newServeMasterCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "serve-master ADDRESS",
		Short:  "Be an embedded master until standard input ends",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return bench.ServeEmbedded(args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// newServeLinesCommand is what the delay lines' process runs.
func newServeLinesCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "serve-lines ADDRESS...",
		Short:  "Be a delay line to each address until standard input ends",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return bench.ServeLines(args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

type benchmark struct {
	nodes       []string
	rtt         []string
	distances   []*bench.Distance // what rtt says
	redis       bool
	masters     int
	quick, full bool
	only        []string
	json        bool
	html        string
}

func (b *benchmark) run(cmd *cobra.Command) error {
	if err := b.check(cmd); err != nil {
		return err
	}
	masters, err := b.start()
	if err != nil {
		return err
	}
	defer masters.Close()
	if err := masters.Check(); err != nil {
		return cli.Fail(cli.ExitNoQuorum, err)
	}
	workloads, err := b.workloads(masters)
	if err != nil {
		return err
	}
	plan := bench.Plan{Masters: masters}
	if plan.Workloads, err = bench.Only(b.only, workloads); err != nil {
		return cli.Usage("--only: %w", err)
	}
	show, _ := progress.Bar(cmd.ErrOrStderr(), plan.Trials(), 20, progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false))
	plan.Progress = func(done int, what string) { show(done, fmt.Sprintf("%-34.34s", what)) }
	page, err := cli.Create(b.html)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()
	report, err := plan.Run(ctx)
	if err != nil && (report == nil || ctx.Err() == nil) {
		return errors.Join(err, page.Abandon())
	}
	if err == nil {
		report.Goals = b.judge(report)
	}
	failed := errors.Join(b.print(cmd.OutOrStdout(), report), page.Write(report.WriteHTML))
	if err != nil && failed == nil {
		failed = cli.Interrupted("what was measured until now is all there is")
	}
	return cmp.Or(failed, failedCases(report.Failed()))
}

// failedCases is the error of a run in which operations failed: its latencies may
// be the time that it takes to fail.
func failedCases(cases []string) error {
	if len(cases) == 0 {
		return nil
	}
	wrong := &multierror.Error{ErrorFormat: func([]error) string { return strings.Join(cases, "; ") }}
	for _, one := range cases {
		wrong.Errors = append(wrong.Errors, errors.New(one))
	}
	return cli.Fail(cli.ExitFailure, fmt.Errorf("bench: not as it should be: %w", wrong))
}

func (b *benchmark) print(out io.Writer, report *bench.Report) error {
	if b.json {
		return report.WriteJSON(out)
	}
	report.WriteText(out)
	if len(report.Goals) > 0 {
		bench.WriteGoals(out, report.Goals)
	}
	return nil
}

// workloads are those of this machine, or those at a distance.
func (b *benchmark) workloads(masters *bench.Masters) (all []bench.Workload, err error) {
	if len(b.distances) == 0 {
		all = bench.Workloads(b.effort(), masters)
		if !b.full && slices.ContainsFunc(b.only, isKind) {
			all = append(all, bench.Kinds(b.effort(), masters)...)
		}
		return all, nil
	}
	for _, d := range b.distances {
		if d.Masters() > masters.Len() {
			return nil, cli.Usage("--rtt %s: names %d masters, there are %d", d.Name, d.Masters(), masters.Len())
		}
		all = append(all, bench.Remote(b.effort(), masters, d)...)
	}
	return all, masters.Extend("bench", "serve-lines")
}

// isKind reports whether a workload is about kinds of locks. They take as long as all
// the others, so a short run has them only if they are asked for.
func isKind(workload string) bool {
	return workload == "kinds" || strings.HasPrefix(workload, "kinds/")
}

// judge compares a run that measured everything with the goals.
func (b *benchmark) judge(report *bench.Report) []bench.Verdict {
	switch {
	case len(b.only) > 0:
		return nil
	case len(b.distances) > 0:
		return report.JudgeRemote()
	case b.full:
		return report.Judge()
	}
	return nil
}

func (b *benchmark) check(cmd *cobra.Command) error {
	switch {
	case b.redis && len(b.nodes) > 0:
		return cli.Usage("--redis and --nodes exclude each other")
	case b.quick && b.full:
		return cli.Usage("--quick and --full exclude each other")
	case len(b.nodes) > 0 && cmd.Flags().Changed("masters"):
		return cli.Usage("--masters is for masters that are started; --nodes names them all")
	case b.masters < 1 || b.masters > 9:
		return cli.Usage("--masters %d: must be from 1 to 9", b.masters)
	}
	for _, text := range b.rtt {
		some, err := bench.ParseDistances(text)
		if err != nil {
			return cli.Usage("--rtt %w", err)
		}
		b.distances = append(b.distances, some...)
	}
	return nil
}

func (b *benchmark) effort() bench.Effort {
	switch {
	case b.quick:
		return bench.Quick
	case b.full:
		return bench.Full
	}
	return bench.Normal
}

func (b *benchmark) start() (*bench.Masters, error) {
	switch {
	case len(b.nodes) > 0:
		return bench.Given(b.nodes), nil
	case b.redis:
		return bench.Real(b.masters)
	}
	return bench.Embedded(b.masters, "bench", "serve-master")
}
