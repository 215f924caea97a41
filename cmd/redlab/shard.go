package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/simulate"
)

// shard is one of n parts of a run, so that several machines can share it. The zero
// shard is the whole run.
type shard struct{ i, n int }

// Type implements pflag.Value.
func (s *shard) Type() string { return "i/n" }

// String implements pflag.Value.
func (s *shard) String() string {
	if s.n == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.i, s.n)
}

// Set implements pflag.Value.
func (s *shard) Set(text string) error {
	first, second, _ := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(first)
	n, err2 := strconv.Atoi(second)
	if err1 != nil || err2 != nil || i < 1 || i > n {
		return fmt.Errorf("must be i/n, with i from 1 to n")
	}
	*s = shard{i, n}
	return nil
}

// of returns which part of so many seeds it is.
func (s shard) of(first uint64, seeds int) (uint64, int, error) {
	if s.n == 0 {
		return first, seeds, nil
	}
	if s.n > seeds {
		return 0, 0, cli.Usage("--shard %s: there are only %d schedules", &s, seeds)
	}
	from, to := (s.i-1)*seeds/s.n, s.i*seeds/s.n
	return first + uint64(from), to - from, nil
}

func newMergeCommand() *cobra.Command {
	var s simulation
	cmd := &cobra.Command{
		Use:   "merge FILE...",
		Short: "Add up the verdicts of parts of one run",
		Long: `Merge adds up what "redlab simulate --shard i/n --json" wrote on several
machines, and prints the verdict on the whole. It refuses parts that have seeds
in common or are of different worlds, and names seeds that are missing.

The exit code is 1 if a promise was broken within the assumptions, or if seeds
are missing.`,
		Example: `  redlab simulate --seeds 100000 --shard 1/2 --json >1.json  on one machine
  redlab simulate --seeds 100000 --shard 2/2 --json >2.json  on another
  redlab simulate merge 1.json 2.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.out, s.stdout = cmd.OutOrStdout(), cmd.OutOrStdout()
			return s.merge(args)
		},
	}
	cli.JSONFlag(cmd, &s.json)
	return cmd
}

// merge prints the verdict on all parts.
func (s *simulation) merge(files []string) error {
	var parts []*simulate.Report
	for _, name := range files {
		part, err := readReport(name)
		if err != nil {
			return cli.Usage("%s: %w", name, err)
		}
		parts = append(parts, part)
	}
	all, missing, err := simulate.Merge(parts)
	if err != nil {
		return cli.Usage("%w", err)
	}
	if s.json {
		err = all.WriteJSON(s.stdout, nil)
	} else if err = all.WriteText(s.out); err == nil {
		_, err = fmt.Fprintf(s.out, "\n%s\n", s.verdict(all))
	}
	switch {
	case err != nil:
		return err
	case !all.Safe() && all.Config.Faults.Strict:
		return errBroken
	case len(missing) > 0:
		return fmt.Errorf("missing: seeds %s", strings.Join(missing, ", "))
	}
	return nil
}

func readReport(name string) (*simulate.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return simulate.ReadReport(f)
}
