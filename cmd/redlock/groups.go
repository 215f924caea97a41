package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/drift"
	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/internal/wrap"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/operate"
)

// groupsOptions are the flags of redlock groups.
type groupsOptions struct {
	masters
	over   []string
	guard  time.Duration
	names  string // the file of names to count
	asJSON bool
}

func newGroupsCommand() *cobra.Command {
	o := &groupsOptions{}
	cmd := &cobra.Command{
		Use:   "groups plan|apply",
		Short: "Spread names over several groups of masters",
		Long: `Groups is for locks that are too many for one group of masters. Their names are
spread over several groups, and each lock is in one of them. All masters keep
the map that says which groups have names. Name all groups in --nodes, also one
that is to lose its names:

  --nodes a=a1:6379,a2:6379,a3:6379,b=b1:6379,b2:6379,b3:6379

Groups plan writes nothing. It shows the map, the next one if the names are
spread over the groups --over, which groups get and lose what share of them, for
how long nobody gets a name that moves, and what stands in the way. The share is
that of many names; --names counts yours.

Groups apply spreads the names. Each group must have been declared new, by
"redlock init --group NAME". All masters must be reachable. Locks of names that
move end, and nobody gets them for the longest restart guard; apply waits for
that, and says how long. All other names are undisturbed. Fencing counters, the
sizes of semaphores, and arrivals at latches move along. The first time all
clients without WithSpread are shut out, but not those without a restart guard:
end these before. If it fails, or is interrupted, run it again with the same
--over: until then nobody gets the names that move.

The exit code is 0 when nothing stands in the way, or the names are spread, and
otherwise
    1  something stands in the way; or the answer cannot be written
   64  the command line makes no sense
   78  the masters refuse us: wrong password, no permission, another group of
       masters, or one server is listed twice
  130  it was interrupted`,
		Example: `  redlock groups plan --over a,b,c
  redlock groups apply --over a,b,c
  redlock status --json | jq -r '.locks[].name' | redlock groups plan --names -`,
		Args:      checkGroupsArgs,
		ValidArgs: []string{"plan", "apply"},
		RunE: func(cmd *cobra.Command, args []string) error {
			groups, err := o.check()
			switch {
			case err != nil:
				return err
			case args[0] == "plan":
				return o.plan(cmd, groups)
			case o.asJSON || o.names != "":
				return cli.Usage("groups apply: --json and --names are for groups plan")
			}
			return o.apply(cmd, groups)
		},
	}
	flags := cmd.Flags()
	o.Register(flags, defaults.NodeTimeout)
	flags.StringSliceVar(&o.over, "over", nil, "the `groups` that have all names in the end, separated by commas (default those of --nodes)")
	flags.DurationVar(&o.guard, "guard", defaults.TTL, "the longest TTL of any client, if the masters do not know of a longer one")
	flags.StringVar(&o.names, "names", "", "plan: count the names in this `file`, one in each line, or - for the standard input")
	cli.JSONFlag(cmd, &o.asJSON)
	cli.FromCommandLine(flags, "over")
	cli.FromCommandLine(flags, "names")
	return cmd
}

func checkGroupsArgs(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || !slices.Contains(cmd.ValidArgs, args[0]) {
		return fmt.Errorf("say what to do, and nothing else: redlock groups %s", strings.Join(cmd.ValidArgs, ", or redlock groups "))
	}
	return nil
}

// check returns the masters of each group, and refuses flags that cannot work, before any master is asked.
func (o *groupsOptions) check() (map[string][]string, error) {
	groups, err := o.Groups()
	if err != nil {
		return nil, err
	}
	if groups == nil {
		return nil, cli.Usage("--nodes: names no group: must be a=host:port,host:port,host:port,b=host:port,...")
	}
	given := slices.Sorted(maps.Keys(groups))
	if o.Group != "" {
		return nil, cli.Usage("--group %q: is not for redlock groups, which is about all groups of --nodes", o.Group)
	}
	if len(o.over) == 0 {
		o.over = given
	}
	for i, name := range o.over {
		if groups[name] == nil {
			return nil, cli.Usage("--over %q: must be of the groups that --nodes gives, %s", name, cli.Enumerated(given))
		}
		if slices.Contains(o.over[:i], name) {
			return nil, cli.Usage("--over %q: is given twice", name)
		}
	}
	for _, name := range given {
		if n := len(groups[name]); n < operate.LeastSpread {
			return nil, cli.Usage("--nodes: group %q: has %d masters, and must have %d at least", name, n, operate.LeastSpread)
		}
	}
	if o.guard <= o.NodeTimeout {
		return nil, cli.Usage("--guard %v: must be more than --node-timeout, %v", o.guard, o.NodeTimeout)
	}
	return groups, nil
}

// plan shows what apply would do.
func (o *groupsOptions) plan(cmd *cobra.Command, groups map[string][]string) error {
	names, err := o.readNames(cmd.InOrStdin())
	if err != nil {
		return err
	}
	config, err := o.config(addressesOf(groups))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), o.Patience())
	defer cancel()
	found, err := operate.PlanSpread(ctx, groups, o.over, config)
	if err != nil {
		return cli.Fail(cli.ExitUsage, err)
	}
	p := planned(found, groups, names)
	show := p.show
	if o.asJSON {
		show = func(w io.Writer) error { return cli.WriteJSON(w, p) }
	}
	if err := show(cmd.OutOrStdout()); err != nil {
		return err
	}
	return exitOf(found.InTheWay)
}

// exitOf is the exit code for what stands in the way. The plan has said it.
func exitOf(inTheWay []error) error {
	switch all := errors.Join(inTheWay...); {
	case all == nil:
		return nil
	case cli.Misconfigured(all), slices.ContainsFunc(inTheWay, anyRefusesUs):
		return cli.Fail(cli.ExitConfig, nil)
	}
	return cli.Fail(cli.ExitFailure, nil)
}

func addressesOf(groups map[string][]string) []string {
	return slices.Concat(slices.Collect(maps.Values(groups))...)
}

// config is how to ask the masters.
func (o *groupsOptions) config(addrs []string) (c node.Config, err error) {
	c = node.Config{KeyPrefix: o.Prefix, Logger: slog.New(slog.DiscardHandler), NodeTimeout: o.NodeTimeout}
	c.Guard = guard.Config{Hold: o.guard + drift.Allowance(o.guard, drift.DefaultFactor)}
	if c.Credentials, err = o.Credentials(); err != nil {
		return c, err
	}
	c.TLS, err = o.TLSConfig(addrs)
	return c, err
}

// readNames reads the names of --names.
func (o *groupsOptions) readNames(stdin io.Reader) (names []string, err error) {
	if o.names == "" {
		return nil, nil
	}
	if o.names != "-" {
		file, err := os.Open(o.names)
		if err != nil {
			return nil, cli.Usage("--names: %w", err)
		}
		defer file.Close()
		stdin = file
	}
	lines := bufio.NewScanner(stdin)
	for lines.Scan() {
		if name := lines.Text(); name != "" {
			names = append(names, name)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, cli.Usage("--names %s: %w", o.names, err)
	}
	if len(names) == 0 {
		return nil, cli.Usage("--names %s: has no names in it: must have one in each line", o.names)
	}
	return names, nil
}

// plan is what redlock groups plan --json prints.
type plan struct {
	Map      string   `json:"map"`     // as the masters keep it; empty: no master tells one
	Untold   []string `json:"untold"`  // the masters of its groups that do not tell it
	Next     string   `json:"next"`    // the same: no name moves
	RestMS   int64    `json:"rest_ms"` // for how long nobody gets a name that moves
	Names    int      `json:"names"`   // that were counted; 0: the shares are those of many names
	Moves    float64  `json:"moves"`   // the share of the names that move
	Groups   []move   `json:"groups"`  // all of --nodes
	InTheWay []string `json:"in_the_way"`

	now, next spread.Map
}

// move is what share of the names a group has and gets.
type move struct {
	Group   string  `json:"group"`
	Masters int     `json:"masters"`
	Now     float64 `json:"now"`
	Next    float64 `json:"next"`
	Gets    float64 `json:"gets"`
	Loses   float64 `json:"loses"`
}

func planned(found operate.Plan, groups map[string][]string, names []string) plan {
	p := plan{Map: found.Now.String(), Next: found.Next.String(), RestMS: found.Rest.Milliseconds(), Names: len(names), InTheWay: []string{}, now: found.Now, next: found.Next}
	p.Untold = append([]string{}, found.Untold...)
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		m := expected(found.Now.Groups, found.Next.Groups, group)
		if len(names) > 0 {
			m = counted(found.Now.Groups, found.Next.Groups, group, names)
		}
		m.Group, m.Masters = group, len(groups[group])
		p.Moves += m.Gets
		p.Groups = append(p.Groups, m)
	}
	for _, err := range found.InTheWay {
		for _, one := range cli.Parts(err) {
			p.InTheWay = append(p.InTheWay, cli.Spoken(one.Error()))
		}
	}
	return p
}

// expected is the share of many names. Each group has as many as every other, and a name stays in a group
// if that has the highest score of all groups, old and new.
func expected(now, next []string, group string) (m move) {
	all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(now, next))))
	had, has := slices.Contains(now, group), slices.Contains(next, group)
	if had {
		m.Now = 1 / float64(len(now))
	}
	if has {
		m.Next = 1 / float64(len(next))
	}
	m.Loses, m.Gets = m.Now, m.Next
	if stays := 1 / float64(len(all)); had && has {
		m.Loses, m.Gets = m.Loses-stays, m.Gets-stays
	}
	return m
}

// counted is the share of these names.
func counted(now, next []string, group string, names []string) (m move) {
	one := 1 / float64(len(names))
	for _, name := range names {
		had, has := spread.Highest(now, name) == group, spread.Highest(next, name) == group
		if had {
			m.Now += one
		}
		if has {
			m.Next += one
		}
		if had && !has {
			m.Loses += one
		}
		if has && !had {
			m.Gets += one
		}
	}
	return m
}

func (p plan) show(w io.Writer) error {
	say := func(label, text string) {
		fmt.Fprintf(w, "%-9s  %s\n", label, wrap.Text(text, 11, cli.Width(w)))
	}
	say("map now:", inWords(p.now))
	if len(p.Untold) > 0 {
		say("not told:", cli.Enumerated(p.Untold)+": apply does it")
	}
	switch {
	case p.Next == p.Map && p.now.Settled():
		say("map next:", "the same: no name moves")
	case p.Next != p.Map:
		say("map next:", inWords(p.next))
		say("moving:", fmt.Sprintf("%s of the names: nobody gets them for %s", p.share(p.Moves), cli.Seconds(time.Duration(p.RestMS)*time.Millisecond)))
	}
	if p.Map == "" && p.Next != "" {
		say("clients:", "those without WithSpread are shut out")
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "GROUP\tMASTERS\tNOW\tNEXT\tGETS\tLOSES\n")
	for _, m := range p.Groups {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", cli.Cut(m.Group, 30), m.Masters, p.share(m.Now), p.share(m.Next), p.share(m.Gets), p.share(m.Loses))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(p.InTheWay) == 0 {
		_, err := fmt.Fprintln(w, "\nnothing stands in the way")
		return err
	}
	fmt.Fprintln(w, "\nin the way:")
	for _, what := range p.InTheWay {
		if _, err := fmt.Fprintln(w, "  "+cli.Bad.On(w, wrap.Text(what, 4, cli.Width(w)))); err != nil {
			return err
		}
	}
	return nil
}

// share is a share of the names, or their number if they were counted.
func (p plan) share(of float64) string {
	switch {
	case of < 1e-9:
		return "-"
	case p.Names > 0:
		return fmt.Sprintf("%.0f", of*float64(p.Names))
	}
	return fmt.Sprintf("%.1f %%", 100*of)
}

// inWords is a map for people.
func inWords(m spread.Map) string {
	groups := func(names []string) string {
		if len(names) == 1 {
			return "group " + names[0]
		}
		return "groups " + cli.Enumerated(names)
	}
	number := fmt.Sprintf("number %d, ", m.Number)
	switch {
	case m.Number == 0:
		return "no master tells one"
	case m.Settled():
		return number + groups(m.Groups)
	case len(m.Groups) == 0:
		return number + "names are moving to the " + groups(m.Next)
	}
	return number + "names are moving from the " + groups(m.Groups) + " to the " + groups(m.Next)
}
