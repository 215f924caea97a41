package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// report writes which witness noticed which break, class by class, and then the unnoticed ones.
func (m *mutation) report(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nclass\tbreaks")
	for _, w := range m.witnesses {
		fmt.Fprintf(t, "\t%s", w.name)
	}
	fmt.Fprintf(t, "\tnobody\tequivalent\n")
	for _, class := range append(m.classes(), "") {
		m.row(t, class)
	}
	t.Flush()
	n := 0
	for _, f := range m.findings {
		if f.unnoticed() {
			n++
			fmt.Fprintf(w, "\nNobody noticed, %s (breaks.txt:%d), %s: %s\n", f.File, f.line, f.Class, f.About)
		}
	}
	for _, b := range m.breaks {
		if b.Equivalent != "" {
			fmt.Fprintf(w, "\nEquivalent, %s (breaks.txt:%d), %s: %s\n    %s\n", b.File, b.line, b.Class, b.About, b.Equivalent)
		}
	}
	if n > 0 && len(m.witnesses) == len(witnesses(0)) {
		return fmt.Errorf("%d of %d breaks were noticed by nobody", n, len(m.findings))
	}
	return nil
}

func (m *mutation) classes() []string {
	var list []string
	for _, b := range m.breaks {
		if !slices.Contains(list, b.Class) {
			list = append(list, b.Class)
		}
	}
	return list
}

// row counts one class; the empty one is all of them.
func (m *mutation) row(w io.Writer, class string) {
	noticed := make([]int, len(m.witnesses))
	breaks, nobody, equivalent := 0, 0, 0
	for _, b := range m.breaks {
		if (class == "" || b.Class == class) && b.Equivalent != "" {
			equivalent++
		}
	}
	for _, f := range m.findings {
		if class != "" && f.Class != class {
			continue
		}
		breaks++
		if f.unnoticed() {
			nobody++
		}
		for i, what := range f.noticed {
			if what != "" {
				noticed[i]++
			}
		}
	}
	if class == "" {
		class = "all"
	}
	fmt.Fprintf(w, "%s\t%d", class, breaks)
	for _, n := range noticed {
		fmt.Fprintf(w, "\t%d (%d %%)", n, n*100/max(1, breaks))
	}
	fmt.Fprintf(w, "\t%d\t%d\n", nobody, equivalent)
}
