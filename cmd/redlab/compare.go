package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/simulate"
)

func newCompareCommand() *cobra.Command {
	s := simulation{config: simulate.Config{}}
	cmd := &cobra.Command{
		Use:   "compare [LOCK]",
		Short: "Run a naive lock and this library through the same failures",
		Long: `Compare runs one of the naive locks that are written again and again, and this
library, in the same schedules: the same masters, the same faults at the same
instants, and the same work. It prints which promises each of them broke.

LOCK is ` + strings.Join(simulate.Naive(), ", ") + `. The default is R0:
Redlock as it is commonly written.

The exit code is 1 if this library broke a promise. ^C before both have run the
same schedules ends it with 130 and without a table.`,
		Example: `  redlab simulate compare
  redlab simulate compare V4 --seeds 200
  redlab simulate compare --html compare.html   both, on one scale`,
		Args:      cli.AtMostOne("LOCK"),
		ValidArgs: simulate.Naive(),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.stdout, s.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			name := "R0"
			if len(args) > 0 {
				name = args[0]
			}
			if s.config.Seeds < 1 {
				return cli.Usage("--seeds %d: must be at least 1", s.config.Seeds)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			s.config.Interrupt = ctx.Done()
			var err error
			if s.page, err = cli.Create(s.html); err != nil {
				return err
			}
			return s.compare(name)
		},
	}
	f := cmd.Flags()
	f.IntVar(&s.config.Seeds, "seeds", 500, "how many schedules")
	f.Uint64Var(&s.config.Seed, "seed", 0, "the seed of the first schedule")
	f.StringVar(&s.html, "html", "", "write the table, and the timelines of both in one schedule, to this file")
	cli.JSONFlag(cmd, &s.json)
	return cmd
}

// compare runs both locks, and shows what each broke.
func (s *simulation) compare(name string) error {
	show, done := s.progress(2 * s.config.Seeds)
	s.config.Progress = show
	defer collectSeldom()()
	c, err := simulate.Compare(name, s.config)
	done()
	if err != nil {
		return cli.Usage("%w", err)
	}
	if !c.Even() {
		return errors.Join(s.cutShort(name, c), s.page.Abandon())
	}
	if s.json {
		err = cli.WriteJSON(s.stdout, comparison{c.Naive.Stats.Schedules, c.Naive.Stats.Unsafe, c.Ours.Stats.Unsafe,
			c.Naive.Stats.Violations, c.Ours.Stats.Violations, c.Naive.Stats.Acquisitions, c.Ours.Stats.Acquisitions})
	} else {
		err = c.WriteText(s.stdout)
	}
	if s.html != "" {
		err = errors.Join(err, s.page.Write(c.WriteHTML))
	}
	switch {
	case err != nil:
		return err
	case !c.Ours.Safe():
		return errBroken
	}
	return s.complete(c.Ours)
}

// cutShort is the outcome if ^C came before both had run the same: what each broke is
// not shown, since it would be read as if they had.
func (s *simulation) cutShort(name string, c *simulate.Comparison) error {
	ran := fmt.Sprintf("%s ran %d and quorumlock %d of %d schedules", name, c.Naive.Stats.Schedules, c.Ours.Stats.Schedules, s.config.Seeds)
	if n := c.Ours.Stats.Unsafe; n > 0 {
		return fmt.Errorf("interrupted: %s; quorumlock broke a promise in %d", ran, n)
	}
	return cli.Interrupted(ran)
}

// comparison is the outcome of a comparison.
type comparison struct {
	Schedules     int                            `json:"schedules"`
	Unsafe        int                            `json:"unsafe"`
	OurUnsafe     int                            `json:"our_unsafe"`
	Violations    map[simulate.ViolationKind]int `json:"violations"`
	OurViolations map[simulate.ViolationKind]int `json:"our_violations"`
	Acquired      int                            `json:"acquired"`
	OurAcquired   int                            `json:"our_acquired"`
}
