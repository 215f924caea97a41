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

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/wrap"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// exitFree says, in redlock status only, that the lock is free.
const exitFree = 1

// statusOptions are the flags of redlock status.
type statusOptions struct {
	masters
	asJSON bool
	watch  bool
	blocks bool // list the waits
	limit  int
}

func newStatusCommand() *cobra.Command {
	o := &statusOptions{}
	cmd := &cobra.Command{
		Use:   "status [flags] [NAME]",
		Short: "Show who holds a lock, or which locks are held",
		Long: `Status asks every master who holds the lock NAME, of whatever kind: with the
fencing token, readers, permits, who waits, and what a leader says. It changes
nothing. Since when it is held is known of locks with metadata, as those of
redlock run are: that is when the holder asked for it, by its own clock. An
election shows as a mutex, because the masters store its leader as they store
the holder of a fenced mutex. A lock that its holder has unlocked, and that
redlock run --at-least keeps, is shown as kept, and is not free. A lock that is
cached stays in the process of its holder until another process waits for it.

Without NAME it lists the locks that a quorum of the masters holds, also if
another group of masters cannot be read: the exit code then says why, 69 or 78.
It looks at --limit keys of each master at most, in steps that do not hold the
master up.

With --blocked it lists who waits for whom, over all locks that are held.
Clients that wait for each other are a circle. It is a deadlock if in each of
them one and the same goroutine holds and waits; it ends when one gives up.

The exit code is 0 when the lock is held, or the list of all groups is printed,
else
    1  it is free: a quorum of the masters does not have the same value; or
       the answer cannot be written
   64  the command line makes no sense
   69  no quorum: too few masters answered
   78  the masters refuse us: wrong password, no permission, or one server is
       listed twice`,
		Example: `  redlock status deploy:web
  redlock status --watch deploy:web
  redlock status --blocked
  redlock status --json | jq -r '.locks[].name'`,
		Args: cli.AtMostOne("the name of the lock"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			show := o.list
			switch {
			case o.blocks && len(args) == 1:
				return cli.Usage("--blocked is about all locks: redlock status --blocked")
			case o.blocks:
				show = o.blocked
			case len(args) == 1:
				show = func(ctx context.Context, w io.Writer) error { return o.one(ctx, w, args[0]) }
			}
			return o.repeat(ctx, cmd.OutOrStdout(), show)
		},
	}
	flags := cmd.Flags()
	o.Register(flags, defaults.NodeTimeout)
	cli.JSONFlag(cmd, &o.asJSON)
	flags.BoolVar(&o.blocks, "blocked", false, "show who waits for whom, and who waits in a circle")
	flags.BoolVar(&o.watch, "watch", false, "show it again every second, until ^C")
	flags.IntVar(&o.limit, "limit", 100_000, "how many keys of each master to look at for a list")
	cmd.ValidArgsFunction = completeLock(&o.masters)
	return cmd
}

// repeat shows something once, or with --watch until ctx ends: in the same place of a
// terminal, one below the other anywhere else.
func (o *statusOptions) repeat(ctx context.Context, w io.Writer, show func(context.Context, io.Writer) error) error {
	if o.limit < 1 {
		return cli.Usage("--limit %d: must be at least 1", o.limit)
	}
	if !o.watch {
		return show(ctx, w)
	}
	for {
		var screen strings.Builder
		err := show(ctx, &screen)
		if ctx.Err() != nil {
			return nil
		}
		if cli.CodeOf(err) == cli.ExitUsage || cli.CodeOf(err) == cli.ExitConfig {
			return err
		}
		if cli.IsTerminal(w) {
			io.WriteString(w, "\x1b[H\x1b[2J")
		}
		if _, err := io.WriteString(w, screen.String()); err != nil {
			return err
		}
		if err != nil {
			cli.Complain(w, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// one shows one lock.
func (o *statusOptions) one(ctx context.Context, w io.Writer, name string) error {
	seen, err := o.look(ctx, name)
	show := showTexts
	if o.asJSON {
		show = showJSON
	}
	switch unwritten := show(w, seen); {
	case err != nil:
		return cli.Failed(err)
	case unwritten != nil:
		return unwritten
	case !slices.ContainsFunc(seen, func(s sight) bool { return s.holder.Held }):
		return cli.Fail(exitFree, nil)
	}
	return nil
}

// sight is what the masters of a group say of a lock.
type sight struct {
	name   string
	group  string // empty: there is only one
	holder redlock.Holder
	surroundings
}

// look asks the group that has the lock, and while its name moves the old one and the new one.
func (m *masters) look(ctx context.Context, name string) (seen []sight, err error) {
	at, err := m.find(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, one := range at.groups {
		h, says, err := one.inspect(ctx, name)
		if h.Nodes != nil {
			s := sight{name, "", h, one.around(ctx, says)}
			if s.home = at.said; m.Grouped() {
				s.group = one.Name()
			}
			seen = append(seen, s)
		}
		if err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// around asks for the rest.
func (m *masters) around(ctx context.Context, says string) surroundings {
	all, ours := m.memories(ctx, defaults.TTL)
	s := surroundings{says: says, memories: all}
	for _, one := range all {
		s.group = cmp.Or(s.group, ours.Differs(one.group))
	}
	return s
}

// inspect asks who holds a lock, and what a leader says.
func (m *masters) inspect(ctx context.Context, name string) (h redlock.Holder, says string, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.Patience())
	defer cancel()
	client, err := m.client(ctx, name, io.Discard) // the answer names the problem of a master
	if err != nil {
		return h, "", err
	}
	defer client.Close()
	h, err = client.Inspect(ctx, name)
	if h.Token > 0 {
		says = proclaimed(ctx, client, name, h.Token)
	}
	return h, says, err
}

// proclaimed is what the leader with this token said after its campaign, if it did.
func proclaimed(ctx context.Context, client *redlock.Client, name string, token uint64) string {
	leader, err := client.Election(name).Leader(ctx)
	if err != nil || leader.Token != token || leader.Number == 0 {
		return ""
	}
	return leader.Value
}

// surroundings are the facts about a lock beside its holder.
type surroundings struct {
	home     string            // which group has it, where there are several
	says     string            // by a leader, after its campaign
	memories map[string]memory // by address
	group    error             // a client with this list and group is refused, and why
}

// showTexts shows the old group, and while a name moves the new one.
func showTexts(w io.Writer, seen []sight) error {
	for i, s := range seen {
		if i > 0 {
			fmt.Fprintln(w)
			s.home = s.group + ", to which the name moves"
		}
		if err := showText(w, s.name, s.holder, s.surroundings); err != nil {
			return err
		}
	}
	return nil
}

func showText(w io.Writer, name string, h redlock.Holder, s surroundings) error {
	who := "free (" + share(h) + ")"
	if h.Held || h.Permits > 0 {
		who = holder(h)
	}
	fmt.Fprintln(w, wrap.Text(cli.Printable(name)+": "+who, 2, cli.Width(w)))
	if s.home != "" {
		fmt.Fprintln(w, wrap.Text("group: "+s.home, 2, cli.Width(w)))
	}
	if h.Kind != "" {
		fmt.Fprintf(w, "kind: %s\n", h.Kind)
	}
	if !h.Since.IsZero() {
		fmt.Fprintf(w, "since: %s\n", sinceWhen(h.Since, time.Now()))
	}
	if s.says != "" {
		fmt.Fprintln(w, cli.Cut("says: "+cli.Printable(s.says), cli.Width(w)))
	}
	if h.Token > 0 {
		fmt.Fprintf(w, "fencing token: %d\n", h.Token)
	}
	if err := showShares(w, h.Shares); err != nil {
		return err
	}
	showWaiters(w, h)
	if s.group != nil {
		fmt.Fprintln(w, warningOfGroup(w, cli.Spoken(s.group.Error())))
	}
	return showNodes(w, h.Nodes, s.memories)
}

// warningOfGroup is a warning for people that a master belongs to another group.
func warningOfGroup(w io.Writer, why string) string {
	return cli.Caution.On(w, wrap.Text("warning: a master "+why+": it grants no lock to a client with this list", 2, cli.Width(w)))
}

// showNodes prints what each master says.
func showNodes(w io.Writer, nodes []redlock.NodeView, memories map[string]memory) error {
	longest := 0
	for _, v := range nodes {
		longest = max(longest, len(cli.Plain(v.Node)))
	}
	room := max(cli.Width(w)-2-longest-2, 20)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range nodes {
		said := view(v, memories[v.Node], max(room-2-len("no expiry"), 20))
		if !strings.Contains(said, "\t") { // no value: a sentence, which may take more lines
			said = strings.ReplaceAll(wrap.Text(said, 0, room), "\n", "\n  \t")
		}
		fmt.Fprintf(t, "  %s\t%s\n", cli.Plain(v.Node), said)
	}
	return t.Flush()
}

// share says how many masters hold a lock that is free.
func share(h redlock.Holder) string {
	holding := 0
	for _, v := range h.Nodes {
		if v.Value != "" || len(v.Shares) > 0 {
			holding++
		}
	}
	return fmt.Sprintf("%d of %d masters hold it, %d are needed", holding, len(h.Nodes), quorum.Size(len(h.Nodes)))
}

// view fits the room, but for errors and why a master does not vote: they are worth a
// second line.
func view(v redlock.NodeView, m memory, room int) string {
	switch {
	case v.Err != nil:
		if ne := new(wire.Error); errors.As(v.Err, &ne) {
			return cli.Spoken(cli.InWords(ne.Err.Error())) // the node is named beside it
		}
		return cli.Spoken(cli.InWords(v.Err.Error()))
	case len(v.Shares) > 0:
		return shared(v.Shares)
	case v.Value == "" && m.rest > 0:
		return "free, " + m.String()
	case v.Value == "":
		return "free"
	case v.Remaining < 0:
		return cli.Cut(cli.Printable(v.Value), room) + "\tno expiry"
	}
	return cli.Cut(cli.Printable(v.Value), room) + "\t" + cli.Seconds(v.Remaining)
}

// status is what --json prints. remaining_ms is -1 for a lock without expiry.
type status struct {
	Name        string         `json:"name"`
	Kind        string         `json:"kind,omitempty"` // mutex (also of an election), read-write or semaphore
	Held        bool           `json:"held"`
	Kept        bool           `json:"kept,omitempty"`   // its holder has released it: see redlock run --at-least
	Cached      bool           `json:"cached,omitempty"` // its holder need not use it
	Value       string         `json:"value,omitempty"`
	Client      string         `json:"client,omitempty"`
	Metadata    string         `json:"metadata,omitempty"`
	Since       *time.Time     `json:"since"` // when the holder asked for it, by its clock; null: unknown
	RemainingMS int64          `json:"remaining_ms,omitempty"`
	Token       uint64         `json:"token,omitempty"` // of a fenced lock
	Says        string         `json:"says,omitempty"`  // the leader, after its campaign
	Permits     int            `json:"permits,omitempty"`
	Available   *int           `json:"available,omitempty"`   // permits; only of a semaphore
	Shares      []shareStatus  `json:"shares,omitempty"`      // readers, or holders of permits
	Waiting     []string       `json:"waiting,omitempty"`     // clients, the next one first
	Queue       []waiterStatus `json:"queue,omitempty"`       // the same, and more of each
	Group       string         `json:"group,omitempty"`       // of masters that this is about, where there are several
	MovesTo     *status        `json:"moves_to,omitempty"`    // the same of the group to which the name moves; until then nobody gets it
	OtherGroup  string         `json:"other_group,omitempty"` // why clients with this list and group are refused
	Nodes       []nodeStatus   `json:"nodes"`
}

// shareStatus is a reader, or a holder of the permits in slots.
type shareStatus struct {
	Value       string     `json:"value"`
	Client      string     `json:"client,omitempty"`
	Metadata    string     `json:"metadata,omitempty"`
	Since       *time.Time `json:"since"`
	Slots       []int      `json:"slots,omitempty"`
	RemainingMS int64      `json:"remaining_ms"`
}

func sharesOf(all []redlock.Share) (shown []shareStatus) {
	for _, s := range all {
		shown = append(shown, shareStatus{s.Value, s.Client, s.Metadata, orNil(s.Since), s.Slots, millis(s.Remaining)})
	}
	return shown
}

type nodeStatus struct {
	Node        string `json:"node"`
	Value       string `json:"value,omitempty"`
	RemainingMS int64  `json:"remaining_ms,omitempty"`
	Shares      int    `json:"shares,omitempty"` // how many
	Error       string `json:"error,omitempty"`
	// For how long the master does not vote, and why.
	QuarantineMS int64  `json:"quarantine_ms,omitempty"`
	Quarantine   string `json:"quarantine,omitempty"`
}

func showJSON(w io.Writer, seen []sight) error {
	if len(seen) == 0 {
		return nil
	}
	s := statusOf(seen[0])
	if len(seen) > 1 {
		next := statusOf(seen[1])
		s.MovesTo = &next
	}
	return cli.WriteJSON(w, s)
}

func statusOf(seen sight) status {
	name, h, around := seen.name, seen.holder, seen.surroundings
	s := status{
		Name: name, Group: seen.group, Kind: h.Kind, Held: h.Held, Kept: h.Kept, Cached: h.Cached, Value: h.Value, Client: h.Client, Metadata: h.Metadata, Since: orNil(h.Since), RemainingMS: millis(h.Remaining),
		Token: h.Token, Says: around.says, Permits: h.Permits, Shares: sharesOf(h.Shares),
	}
	s.Waiting, s.Queue = queueOf(h.Queue)
	if around.group != nil {
		s.OtherGroup = cli.Spoken(around.group.Error())
	}
	if h.Kind == "semaphore" {
		s.Available = &h.Available
	}
	for _, v := range h.Nodes {
		n := nodeStatus{Node: v.Node, Value: v.Value, RemainingMS: millis(v.Remaining), Shares: len(v.Shares)}
		n.QuarantineMS, n.Quarantine = millis(around.memories[v.Node].rest), around.memories[v.Node].why
		if v.Err != nil {
			n.Error = v.Err.Error()
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// millis is -1 for a key without an end.
func millis(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return d.Milliseconds()
}
