package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/wrap"
	"github.com/quorumlock/quorumlock/simulate"
)

// guidance is what the flags of a guided run say.
type guidance struct {
	on     bool
	mutate int
	corpus string // a directory; empty: none
	keep   int
}

func (g *guidance) flags(f *pflag.FlagSet) {
	f.BoolVar(&g.on, "guided", false, "keep the schedules that reach states which none before did, and run mutants of them, too")
	f.IntVar(&g.mutate, "mutate", 50, "with --guided: how many of a hundred schedules are mutants")
	f.StringVar(&g.corpus, "corpus", "", "with --guided: run the schedules in this directory first, and write those that are kept to it")
	f.IntVar(&g.keep, "keep", 0, "with --corpus: leave so many schedules there that reach most, each reduced (0: all, as they are)")
}

// check refuses what makes no sense together. alone is what else is run than random
// schedules, or a part of them; empty: nothing.
func (g *guidance) check(f *pflag.FlagSet, alone string) error {
	for _, name := range []string{"mutate", "corpus", "keep"} {
		if f.Changed(name) && !g.on {
			return cli.Usage("--%s: needs --guided", name)
		}
	}
	switch {
	case g.on && alone != "":
		return cli.Usage("--guided: guides random runs, and not %s", alone)
	case g.mutate < 0 || g.mutate > 100:
		return cli.Usage("--mutate %d: must be from 0 to 100", g.mutate)
	case g.keep < 0:
		return cli.Usage("--keep %d: must not be negative", g.keep)
	case g.keep > 0 && g.corpus == "":
		return cli.Usage("--keep: needs --corpus")
	}
	return nil
}

// begin reads what was kept before.
func (g *guidance) begin(cfg *simulate.Config) (err error) {
	if !g.on {
		return nil
	}
	cfg.Guided, cfg.Mutate = true, g.mutate
	if g.mutate == 0 {
		cfg.Mutate = -1
	}
	if g.corpus == "" {
		return nil
	}
	if err := mustBeWritable(g.corpus); err != nil {
		return cli.Usage("--corpus: must be a directory that can be written to: %w", err)
	}
	if cfg.Corpus, err = simulate.ReadCorpus(g.corpus); err != nil {
		return cli.Usage("--corpus: %w", err)
	}
	return nil
}

// mustBeWritable makes the directory before the run that it is for, and a file in it:
// after the run is too late to find out that it cannot be written to.
func mustBeWritable(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	trial, err := os.CreateTemp(dir, "trial-*")
	if err != nil {
		return err
	}
	return errors.Join(trial.Close(), os.Remove(trial.Name()))
}

// end writes what was kept.
func (s *simulation) end(r *simulate.Report) error {
	g := &s.guidance
	switch {
	case g.corpus == "":
		return nil
	case g.keep > 0:
		return s.distil(r)
	}
	names, err := simulate.WriteCorpus(g.corpus, r.Kept())
	if err != nil {
		return fmt.Errorf("--corpus: %w", err)
	}
	fmt.Fprintf(s.out, "\n%d schedules were added to %s.\n", len(names), g.corpus)
	return nil
}

// distil leaves a few schedules in the directory.
func (s *simulation) distil(r *simulate.Report) error {
	dir := s.guidance.corpus
	few, states, err := r.Distil(s.guidance.keep)
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	names, err := simulate.WriteCorpus(dir, few)
	if err != nil {
		return fmt.Errorf("--corpus: %w", err)
	}
	for _, name := range old {
		if slices.Contains(names, name) {
			continue
		}
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.out, "\n%d schedules are left in %s: they reach %d of the states.\n", len(few), dir, states)
	return nil
}

// save writes a failing schedule that its seed alone does not make, so that it can be
// run again.
func (s *simulation) save(sch *simulate.Schedule) error {
	f, err := os.CreateTemp("", "redlock-schedule-*.json")
	if err != nil {
		return err
	}
	if err := json.NewEncoder(f).Encode(sch); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\n%s\n", wrap.Text("To run it again: redlab simulate --schedule "+f.Name(), 0, cli.Width(s.out)))
	return f.Close()
}
