package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quorumlock/quorumlock/bench"
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
begin with bench:, none is stopped.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&b.nodes, "nodes", nil, "measure on these `masters`: host:port, redis://..., rediss://..., unix:///path")
	f.BoolVar(&b.redis, "redis", false, "start real redis-servers (they must be installed)")
	f.IntVar(&b.masters, "masters", 7, "how many masters to start")
	f.BoolVar(&b.quick, "quick", false, "about 15 seconds, one round each: an impression")
	f.BoolVar(&b.full, "full", false, "about five minutes: everything, and the goals of this library")
	f.StringSliceVar(&b.only, "only", nil, "measure only these `workloads`, such as pair/64 or handoff")
	f.StringVar(&b.json, "json", "", "write everything measured to this `file`")
	f.StringVar(&b.html, "html", "", "write a page with pictures to this `file`")
	cmd.AddCommand(newServeMasterCommand())
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

type benchmark struct {
	nodes       []string
	redis       bool
	masters     int
	quick, full bool
	only        []string
	json, html  string
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
		return &exit{exitNoQuorum, err}
	}
	plan := bench.Plan{Masters: masters}
	if plan.Workloads, err = bench.Only(b.only, bench.Workloads(b.effort(), masters)); err != nil {
		return usage("--only: %w", err)
	}
	if f, ok := cmd.ErrOrStderr().(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		plan.Progress = progress(f)
	}
	report, err := plan.Run(cmd.Context())
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	report.WriteText(out)
	if b.full && len(b.only) == 0 {
		report.Goals = report.Judge()
		bench.WriteGoals(out, report.Goals)
	}
	return errors.Join(write(b.json, report.WriteJSON), write(b.html, report.WriteHTML))
}

func (b *benchmark) check(cmd *cobra.Command) error {
	switch {
	case b.redis && len(b.nodes) > 0:
		return usage("--redis and --nodes exclude each other")
	case b.quick && b.full:
		return usage("--quick and --full exclude each other")
	case len(b.nodes) > 0 && cmd.Flags().Changed("masters"):
		return usage("--masters is for masters that are started; --nodes names them all")
	case b.masters < 1 || b.masters > 9:
		return usage("--masters %d: must be from 1 to 9", b.masters)
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

// progress draws a bar that is gone when everything is done.
func progress(w io.Writer) func(done, all int, what string) {
	var bar *progressbar.ProgressBar
	return func(done, all int, what string) {
		if bar == nil {
			bar = progressbar.NewOptions(all, progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(20),
				progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false))
		}
		bar.Describe(fmt.Sprintf("%-60.60s", what))
		bar.Set(done)
	}
}

func write(name string, to func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(to(f), f.Close())
}
