package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// warnOfMisspelt names variables that look as if they should set a flag, and set none.
// Others may begin with REDLOCK_ without concerning us: Kubernetes makes such
// variables for a service of that name.
func warnOfMisspelt(w io.Writer, root *cobra.Command) {
	flags := settable(root)
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, variable("")) || value == "" || slices.Contains([]string{NameEnv, ValueEnv, TokenEnv, MasterEnv, variable(configFlag)}, name) {
			continue
		}
		flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, variable(""))), "_", "-")
		if slices.Contains(flags, flag) {
			continue
		}
		if meant := nearest(flag, flags); meant != "" {
			fmt.Fprintln(w, prefixed(fmt.Sprintf("%s is ignored: did you mean %s?", name, variable(meant))))
		}
	}
}

// settable are the flags that the environment may set, of whatever command.
func settable(root *cobra.Command) (flags []string) {
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Annotations[OnlyGiven] == nil && !slices.Contains(flags, f.Name) {
				flags = append(flags, f.Name)
			}
		})
	}
	return flags
}

// nearest is the name that was probably meant, or empty: a name that differs in few
// letters, or the shortest of which some words were given.
func nearest(given string, names []string) (meant string) {
	closest := max(1, len(given)/4) + 1
	for _, name := range names {
		if d := distance(given, name); d < closest {
			meant, closest = name, d
		}
	}
	if meant != "" || len(given) < 4 {
		return meant
	}
	for _, name := range names {
		has := strings.HasPrefix(name, given+"-") || strings.HasSuffix(name, "-"+given)
		if has && (meant == "" || len(name) < len(meant)) {
			meant = name
		}
	}
	return meant
}

// distance is how many letters must be inserted, deleted, replaced, or swapped with the
// next one, to turn one word into the other (Damerau and Levenshtein).
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row
		row = append([]int{i + 1}, last[1:]...)
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before = last
	}
	return row[len(b)]
}
