package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/words"
	"github.com/quorumlock/quorumlock/internal/wrap"
	"github.com/quorumlock/quorumlock/simulate/explore"
)

// usualBound is the bound at which the exploration of every world ends within minutes.
const usualBound = 3

// exploration is one run of redlab simulate --explore.
type exploration struct {
	config   explore.Config
	failFast bool // leave the other worlds alone when one is unsafe
	out, err io.Writer
}

// check refuses flags that would have no effect.
func (e *exploration) check(flags *pflag.FlagSet, list, explore bool) error {
	for name, n := range map[string]int{"bound": e.config.Bound, "runs": e.config.Runs} {
		switch {
		case !explore && flags.Lookup(name).Changed:
			return cli.Usage("--%s: needs --explore", name)
		case n < 0:
			return cli.Usage("--%s %d: must not be negative", name, n)
		}
	}
	switch {
	case list:
		return refuseBeside(flags, "list", "json")
	case explore && !flags.Lookup("shard").Changed: // which says more
		return refuseBeside(flags, "explore", "bound", "runs", "fail-fast")
	}
	return nil
}

// refuseBeside refuses flags that are given beside a flag that heeds only some.
func refuseBeside(flags *pflag.FlagSet, what string, heeded ...string) error {
	var idle string
	flags.Visit(func(f *pflag.Flag) {
		if f.Changed && f.Name != what && !slices.Contains(heeded, f.Name) {
			idle = f.Name
		}
	})
	if idle == "" {
		return nil
	}
	return cli.Usage("--%s: has no effect with --%s", idle, what)
}

// explore tries every order of one small world, or of all of them, and then finds how
// each breaks without one of its protections.
func (e *exploration) explore(args []string) error {
	defer collectSeldom()()
	worlds := explore.Worlds
	if len(args) > 0 {
		w := explore.Find(args[0])
		if w == nil {
			return cli.Usage("unknown small world %q (redlab simulate --explore tries them all)", args[0])
		}
		worlds = []*explore.World{w}
	}
	tried, broken := e.worlds(worlds)
	switch {
	case broken:
		return errBroken
	case e.interrupted():
		return cli.Interrupted(fmt.Sprintf("%d of %d small worlds were tried, the last one in part", tried, len(worlds)))
	case len(args) > 0 || e.failFast:
		return nil
	}
	return e.knownBad()
}

// interrupted reports whether ^C came.
func (e *exploration) interrupted() bool {
	select {
	case <-e.config.Interrupt:
		return true
	default:
		return false
	}
}

// worlds prints a line for each world, when it is done. It returns how many it tried.
func (e *exploration) worlds(worlds []*explore.World) (tried int, broken bool) {
	fmt.Fprintf(e.out, "%s\n\n", wrap.Text(e.extent(worlds), 0, cli.Width(e.out)))
	const line = "%-23s %8s %8s %5s %8s  %s:\n  %s\n" // with the longest name and verdict, 80 columns
	fmt.Fprintf(e.out, line, "world", "runs", "pruned", "depth", "seconds", "verdict", "what happens there")
	for i, w := range worlds {
		x := e.run(w, fmt.Sprintf("%d of %d", i+1, len(worlds)))
		tried++
		fmt.Fprintf(e.out, line, w.Name, fmt.Sprint(x.Runs), fmt.Sprint(x.Pruned), fmt.Sprint(x.Depth),
			fmt.Sprintf("%.1f", x.Took.Seconds()), verdictOf(x), wrap.Text(w.About, 2, cli.Width(e.out)))
		if x.Violation == nil {
			if e.interrupted() {
				break
			}
			continue
		}
		broken = true
		fmt.Fprintf(e.out, "\n%s\n", wrap.Text(fmt.Sprintf("%s: %s", x.Violation.Kind, x.Violation.What), 2, cli.Width(e.out)))
		for _, step := range x.Told {
			fmt.Fprintln(e.out, step)
		}
		fmt.Fprintln(e.out)
		if e.failFast || e.interrupted() {
			break
		}
	}
	return tried, broken
}

// extent says how many worlds there are, and how much of each is tried.
func (e *exploration) extent(worlds []*explore.World) string {
	what := words.Counted(len(worlds), "small world")
	switch n := e.config.Bound; {
	case n == 0:
		what += ", every order"
	case n == 1:
		what += ", every order that leaves the usual course at most once (--bound)"
	default:
		what += fmt.Sprintf(", every order that leaves the usual course at most %d times (--bound)", n)
	}
	if len(worlds) > 1 && !e.failFast {
		what += fmt.Sprintf(", then %d without one of their protections", len(explore.KnownBads))
	}
	return what + "."
}

func verdictOf(x *explore.Exploration) string {
	switch {
	case x.Violation != nil:
		return "UNSAFE"
	case x.Complete:
		return "safe in every order"
	}
	return "safe as far as tried"
}

// knownBad switches off one protection after the other; each break must be found, however
// far from the usual course it is.
func (e *exploration) knownBad() error {
	e.config.Bound = 0
	say := func(format string, args ...any) {
		fmt.Fprintln(e.out, wrap.Text(fmt.Sprintf(format, args...), 2, cli.Width(e.out)))
	}
	fmt.Fprintf(e.out, "\nwithout its protection: what broke, in which world, after how many runs\n")
	missed := false
	for i, b := range explore.KnownBads {
		x := e.run(b.World(), fmt.Sprintf("%d of %d without protection", i+1, len(explore.KnownBads)))
		if x.Violation == nil && e.interrupted() {
			return cli.Interrupted(fmt.Sprintf("%d of %d small worlds without their protection were tried", i, len(explore.KnownBads)))
		}
		if x.Violation == nil {
			missed = true
			say("%s: nothing, %s, %d", b.Name, x.World.Name, x.Runs)
			continue
		}
		say("%s: %s, %s, %d", b.Name, x.Violation.Kind, x.World.Name, x.Runs)
	}
	if missed {
		return errBroken
	}
	return nil
}

// run explores one world, and shows on a terminal which of them it is, and its progress.
func (e *exploration) run(w *explore.World, which string) *explore.Exploration {
	cfg := e.config
	if f, ok := e.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		last := time.Time{}
		cfg.Progress = func(s explore.Stats) {
			if time.Since(last) > 200*time.Millisecond {
				last = time.Now()
				fmt.Fprintf(e.err, "\rworld %s: %s, %d runs\033[K", which, w.Name, s.Runs)
			}
		}
		cfg.Progress(explore.Stats{})
		defer fmt.Fprint(e.err, "\r\033[K")
	}
	return w.Explore(cfg)
}
