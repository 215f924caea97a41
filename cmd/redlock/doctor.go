package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/wrap"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/redlock"
)

// The exit codes of redlock doctor, by the worst finding.
const (
	exitWarning  = 1
	exitCritical = 2
)

// doctorOptions are the flags of redlock doctor.
type doctorOptions struct {
	guarded
	asJSON bool
	wait   bool // until the masters vote
}

func newDoctorCommand() *cobra.Command {
	o := &doctorOptions{}
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Look for what is wrong with the masters",
		Long: `Doctor looks at every master: its role, version and uptime, what it does when it
restarts and when its memory is full, its clock, how fast it answers, and
whether we may run what a lock needs. It changes nothing. What a master would
not tell is said too. Of several groups (see "redlock help groups") it looks at
all, and whether their masters tell one map.

With --wait it first looks at the masters as a client does, and waits until
those vote that were restarted, at most for --restart-guard. Run it after a
restart: the time for which such a master must not vote begins when the first
client has seen the restart, and without one that is the next job. Name the
same --durable-nodes as clients do: a client that does not know that a master
is durable has it wait, for all of them.

The exit code is
    0  nothing is wrong, or only worth knowing
    1  something is wrong: the locks are safe, but may be hard to get
    2  something is dangerous: a lock may have two holders, or cannot be taken
   64  the command line makes no sense`,
		Example: `  redlock doctor
  redlock doctor --json | jq '.findings[] | select(.severity=="critical")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			o.stderr = cmd.ErrOrStderr()
			return o.run(ctx, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	o.register(flags)
	cli.JSONFlag(cmd, &o.asJSON)
	flags.BoolVar(&o.wait, "wait", false, "wait until the masters vote that may have forgotten locks")
	return cmd
}

// checkup is what redlock doctor --json prints.
type checkup struct {
	Masters  []facts   `json:"masters"`
	Findings []finding `json:"findings"`
}

// checkupPatience is how long the whole checkup may take.
const checkupPatience = 15 * time.Second

func (o *doctorOptions) run(ctx context.Context, w io.Writer) error {
	all, err := o.each()
	if err != nil {
		return err
	}
	if o.wait {
		for _, group := range all {
			if err := o.sitOut(ctx, group); err != nil {
				return err
			}
		}
	}
	c, err := o.examine(ctx, all)
	if err != nil {
		return err
	}
	show := c.show
	if o.asJSON {
		show = func(w io.Writer) error { return cli.WriteJSON(w, c) }
	}
	if err := show(w); err != nil {
		return err
	}
	if len(c.Findings) == 0 {
		return nil
	}
	return c.Findings[0].Severity.exit()
}

// examine looks at the masters of each group.
func (o *doctorOptions) examine(ctx context.Context, all []masters) (c checkup, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkupPatience)
	defer cancel()
	for _, group := range all {
		f, err := group.open()
		if err != nil {
			return c, err
		}
		defer f.Close()
		found := make([]facts, len(f))
		f.each(ctx, func(i int, m *node.Master, err error) { found[i] = examine(ctx, m, o.Prefix, o.guard, err) })
		for _, one := range judge(found, o.NodeTimeout, group.group(f)) {
			c.Findings = merge(c.Findings, one)
		}
		if o.Grouped() {
			for i := range found {
				found[i].Of = group.Name()
			}
		}
		c.Masters = append(c.Masters, found...)
	}
	c.Findings = append(c.Findings, mapped(c.Masters, o.Grouped(), len(all) > 1)...)
	c.sort()
	return c, nil
}

// sitOut looks at the masters as a client does, so that their quarantine begins,
// and waits. Masters that do not answer are left to the checkup.
func (o *doctorOptions) sitOut(ctx context.Context, group masters) error {
	limited, cancel := context.WithTimeout(ctx, o.Patience())
	defer cancel()
	g := o.guarded
	g.masters = group
	client, err := g.connect(limited)
	if err != nil {
		if errors.Is(err, redlock.ErrNoQuorum) {
			return nil
		}
		return cli.Failed(err)
	}
	defer client.Close()
	g.masters.sitOut(ctx, client, o.guard, o.stderr)
	return nil
}

func (c checkup) show(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	of := ""
	fmt.Fprintf(t, "MASTER\tVERSION\tUP\tCLOCK\tP50\tP99\tMEMORY\n")
	for _, f := range c.Masters {
		if f.Of != of {
			of = f.Of
			fmt.Fprintf(t, "group %s\t\t\t\t\t\t\n", cli.Cut(of, 20))
		}
		if f.Error != "" {
			fmt.Fprintf(t, "%s\tno answer\t\t\t\t\t\n", cli.Plain(f.Node))
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cli.Plain(f.Node), cli.Cut(cli.Printable(f.Version), 10), age(time.Duration(f.Uptime)), f.clock(),
			brief(time.Duration(f.P50)), brief(time.Duration(f.P99)), f.memory())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if len(c.Findings) == 0 {
		fmt.Fprintln(w, cli.Good.On(w, "Nothing is wrong."))
	}
	for _, f := range c.Findings {
		label := fmt.Sprintf("%-8s", f.Severity)
		fmt.Fprintf(w, "%s  %s\n", f.Severity.style().On(w, label), wrap.Text(c.whose(f)+": "+f.What, 10, cli.Width(w)))
		fmt.Fprintf(w, "%10s%s\n", "", wrap.Text(f.Do, 10, cli.Width(w)))
	}
	return nil
}

// whose names the masters that a finding is about.
func (c checkup) whose(f finding) string {
	if len(f.Nodes) == len(c.Masters) && len(f.Nodes) > 1 {
		if len(c.groups()) > 1 {
			return "all masters of all groups"
		}
		return "all masters"
	}
	var whole []string // groups
	rest := slices.Clone(f.Nodes)
	for _, group := range c.groups() {
		nodes := c.of(group)
		if len(nodes) > 1 && !slices.ContainsFunc(nodes, func(n string) bool { return !slices.Contains(f.Nodes, n) }) {
			whole = append(whole, group)
			rest = slices.DeleteFunc(rest, func(n string) bool { return slices.Contains(nodes, n) })
		}
	}
	masters := cli.Plain(strings.Join(rest, ", "))
	switch {
	case len(whole) == 0:
		return masters
	case len(rest) > 0:
		masters = "; " + masters
	}
	if len(whole) == 1 {
		return "all masters of group " + whole[0] + masters
	}
	return "all masters of groups " + cli.Enumerated(whole) + masters
}

// groups are the groups of the masters, where there are several.
func (c checkup) groups() (all []string) {
	for _, f := range c.Masters {
		if f.Of != "" && !slices.Contains(all, f.Of) {
			all = append(all, f.Of)
		}
	}
	return all
}

// of names the masters of a group.
func (c checkup) of(group string) (nodes []string) {
	for _, f := range c.Masters {
		if f.Of == group {
			nodes = append(nodes, f.Node)
		}
	}
	return nodes
}

// sort has the worst findings first.
func (c checkup) sort() {
	slices.SortStableFunc(c.Findings, func(a, b finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
}

// age is an uptime in one unit.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "?"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// brief is a duration with three digits at most.
func brief(d time.Duration) string {
	switch {
	case d <= 0:
		return "?"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// registerDurable adds the flag of clients that know which masters remember.
func registerDurable(flags *pflag.FlagSet, durable *[]string) {
	flags.StringSliceVar(durable, "durable-nodes", nil, "those of the `masters` that lose nothing when they restart (appendfsync always), as --nodes names them")
}
