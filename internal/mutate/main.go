// Mutate asks whether anybody would notice: it breaks the production code, one
// rule at a time and in a copy, and runs the simulator, the
// exploration of small worlds and the tests on it. A
// break that stays unnoticed is a hole in the nets, or equivalent to sound code;
// the list, breaks.txt, then says why.
//
//	go run ./internal/mutate                          every break, every witness
//	go run ./internal/mutate -by simulator -seeds 200 the simulator alone, fewer schedules
//	go run ./internal/mutate -first                   the exploration and the tests only where the simulator saw nothing
//	go run ./internal/mutate -shard 3/10              the third tenth of the list
//	go run ./internal/mutate -only counting           one class, or what a description contains
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	var m mutation
	by := flag.String("by", strings.Join(names(witnesses(0)), ","), "who looks, separated by commas")
	seeds := flag.Int("seeds", 1000, "how many schedules the simulator runs at most")
	only := flag.String("only", "", "a class, or a part of a description or of a file name")
	flag.BoolVar(&m.first, "first", false, "ask the next witness only if those before noticed nothing")
	shard := shard{1, 1}
	flag.Var(&shard, "shard", "i/n: the i-th of n parts of the list; today/n: another one every day")
	flag.Parse()
	if err := m.start(*by, *seeds, *only, shard); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(64)
	}
	if err := m.run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// mutation is one run over the list.
type mutation struct {
	root      string
	breaks    []*Break
	witnesses []witness
	first     bool // the first witness that notices is enough
	findings  []finding
}

// finding is what the witnesses said of one break, in their order.
type finding struct {
	*Break
	noticed []string
}

func (f finding) unnoticed() bool {
	return strings.Join(f.noticed, "") == ""
}

func witnesses(seeds int) []witness {
	return []witness{simulator(seeds), explorer(), tests()}
}

func names(all []witness) []string {
	var list []string
	for _, w := range all {
		list = append(list, w.name)
	}
	return list
}

// start reads the list and what the command line makes of it. All of the list
// must apply, whatever part of it is run.
func (m *mutation) start(by string, seeds int, only string, part shard) error {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("go list -m: %w", err)
	}
	m.root = strings.TrimSpace(string(root))
	all, err := parse(list)
	if err != nil {
		return fmt.Errorf("breaks.txt: %w", err)
	}
	if err := applyAll(m.root, all); err != nil {
		return err
	}
	for _, b := range part.of(all) {
		if strings.Contains(b.Class+": "+b.About+" "+b.File, only) {
			m.breaks = append(m.breaks, b)
		}
	}
	for name := range strings.SplitSeq(by, ",") {
		found := false
		for _, w := range witnesses(seeds) {
			if w.name == name {
				m.witnesses, found = append(m.witnesses, w), true
			}
		}
		if !found {
			return fmt.Errorf("-by %q: must be some of %s", by, strings.Join(names(witnesses(0)), ","))
		}
	}
	return nil
}

// applyAll names the breaks that no longer apply to the sources.
func applyAll(root string, all []*Break) error {
	var errs []error
	for _, b := range all {
		source, err := os.ReadFile(filepath.Join(root, b.File))
		if err != nil {
			errs = append(errs, b.wrong(err))
			continue
		}
		if _, err := b.apply(string(source)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (m *mutation) run() error {
	t, err := copyTree(m.root)
	if err != nil {
		return err
	}
	defer t.remove()
	for i, b := range m.breaks {
		fmt.Printf("[%d/%d] %s: %s\n", i+1, len(m.breaks), b.Class, b.About)
		if b.Equivalent != "" {
			fmt.Printf("    equivalent: %s\n", b.Equivalent)
			continue
		}
		f := finding{Break: b}
		err := t.with(b, func() error { return f.ask(t, m.witnesses, m.first) })
		if err != nil {
			return err
		}
		m.findings = append(m.findings, f)
	}
	return m.report(os.Stdout)
}

// ask has the witnesses look at the break that is in the tree: all of them, or until
// the first has noticed it.
func (f *finding) ask(t *tree, all []witness, first bool) error {
	if err := t.build(f.Break); err != nil {
		return err
	}
	for _, w := range all {
		if first && !f.unnoticed() {
			f.noticed = append(f.noticed, "")
			continue
		}
		began := time.Now()
		what, err := w.look(t, f.Break)
		if err != nil {
			return err
		}
		f.noticed = append(f.noticed, what)
		if what == "" {
			what = "-"
		}
		fmt.Printf("    %-10s %s  (%v)\n", w.name, what, time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}
