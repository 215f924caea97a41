package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/values"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// listed is one lock that a quorum of masters holds: for one client alone, or for
// readers or holders of permits.
type listed struct {
	Name        string     `json:"name"`
	Group       string     `json:"group,omitempty"` // of masters, where there are several
	Kept        bool       `json:"kept,omitempty"`  // as in status
	Value       string     `json:"value,omitempty"`
	Client      string     `json:"client,omitempty"`
	Metadata    string     `json:"metadata,omitempty"`
	Since       *time.Time `json:"since"`             // when the holder asked for it, by its clock; null: unknown
	RemainingMS int64      `json:"remaining_ms"`      // -1: it has no expiry
	Masters     int        `json:"masters"`           // that hold it
	Shares      int        `json:"shares,omitempty"`  // readers, or holders of permits
	Permits     int        `json:"permits,omitempty"` // of a semaphore
	Available   *int       `json:"available,omitempty"`

	by string // its holder, for people
}

// listing is what status --json prints without a name.
type listing struct {
	Locks    []listed `json:"locks"`
	Complete bool     `json:"complete"`         // neither Cut nor Unread
	Cut      bool     `json:"cut,omitempty"`    // a master that answered has more keys than --limit
	Unread   []string `json:"unread,omitempty"` // the groups of which no quorum has answered
	// OtherGroup says why clients with this list and group of masters are refused.
	OtherGroup string `json:"other_group,omitempty"`
}

// list shows the locks that a quorum of the masters holds.
func (o *statusOptions) list(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	found, err := o.masters.list(ctx, o.limit)
	if err != nil && len(found.Locks) == 0 {
		return cli.Failed(err)
	}
	return o.print(w, found, err)
}

// print shows what was found. It fails with err all the same: a group could not be read.
func (o *statusOptions) print(w io.Writer, found interface{ show(io.Writer) error }, err error) error {
	show := found.show
	if o.asJSON {
		show = func(w io.Writer) error { return cli.WriteJSON(w, found) }
	}
	if unwritten := show(w); unwritten != nil || err == nil {
		return unwritten
	}
	return cli.Failed(err)
}

// listPatience is how long a list may take.
const listPatience = 30 * time.Second

// show fits 80 columns, or what the terminal has.
func (l listing) show(w io.Writer) error {
	if len(l.Locks) == 0 {
		if _, err := fmt.Fprintln(w, "no lock is held"); err != nil {
			return err
		}
	} else {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "LOCK\tHELD BY\tEXPIRES IN\tMASTERS")
		room := cli.Width(w) - 2*3 - len("EXPIRES IN") - len("MASTERS")
		grouped := l.Locks[0].Group != ""
		if grouped {
			fmt.Fprint(t, "\tGROUP")
			room -= 2 + l.widestGroup()
		}
		fmt.Fprintln(t)
		room /= 2
		for _, lock := range l.Locks {
			who := cmp.Or(lock.by, named(cmp.Or(lock.Client, "another library"), lock.Metadata))
			if lock.Kept {
				who = "kept: " + who
			}
			left := "no expiry"
			if lock.RemainingMS >= 0 {
				left = cli.Seconds(time.Duration(lock.RemainingMS) * time.Millisecond)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%d", cli.Cut(cli.Printable(lock.Name), room), cli.Cut(who, room), left, lock.Masters)
			if grouped {
				fmt.Fprint(t, "\t"+cli.Cut(lock.Group, mostOfGroup))
			}
			fmt.Fprintln(t)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if l.OtherGroup != "" {
		if _, err := fmt.Fprintln(w, warningOfGroup(w, l.OtherGroup)); err != nil {
			return err
		}
	}
	return sayCut(w, l.Cut)
}

// mostOfGroup bounds how much of a group's name a list shows.
const mostOfGroup = 20

func (l listing) widestGroup() int {
	widest := len("GROUP")
	for _, lock := range l.Locks {
		widest = max(widest, min(len(lock.Group), mostOfGroup))
	}
	return widest
}

// sayCut says that locks may be missing, if there are more keys than --limit.
func sayCut(w io.Writer, cut bool) error {
	if !cut {
		return nil
	}
	_, err := fmt.Fprintln(w, "There are more keys than --limit: some locks may be missing.")
	return err
}

// stored is what one master has.
type stored struct {
	values   map[string]string // by key
	left     map[string]time.Duration
	shared   map[string]bool // the names of locks that many may have
	complete bool
	err      error
	memory   memory
}

// list lists the locks of all groups that can be read. Its error is about the others, which are in Unread.
func (m *masters) list(ctx context.Context, limit int) (listing, error) {
	whole := listing{Locks: []listed{}}
	unread, err := m.readEach(func(one *masters) error {
		found, err := one.listGroup(ctx, limit)
		for _, lock := range found.Locks {
			if m.Grouped() {
				lock.Group = one.Name()
			}
			whole.Locks = append(whole.Locks, lock)
		}
		whole.Cut = whole.Cut || found.Cut
		whole.OtherGroup = cmp.Or(whole.OtherGroup, found.OtherGroup)
		return err
	})
	whole.Unread, whole.Complete = unread, err == nil && !whole.Cut
	slices.SortFunc(whole.Locks, func(a, b listed) int { return cmp.Compare(a.Name, b.Name) })
	return whole, err
}

// readEach reads each group. It returns which groups could not be read, where there are several, and why.
func (m *masters) readEach(read func(one *masters) error) (unread []string, _ error) {
	all, err := m.each()
	if err != nil {
		return nil, err
	}
	var failed error
	for _, one := range all {
		err := one.inGroup(read(&one))
		switch {
		case err == nil:
			continue
		case failed == nil:
			failed = err
		default:
			failed = fmt.Errorf("%w; %w", failed, err)
		}
		if m.Grouped() {
			unread = append(unread, one.Name())
		}
	}
	return unread, failed
}

// inGroup has an error name the group, where there are several.
func (m *masters) inGroup(err error) error {
	if err == nil || !m.Grouped() {
		return err
	}
	return fmt.Errorf("group %s: %w", m.Name(), err)
}

// listGroup asks every master for its keys, and finds what a quorum of them shares.
func (m *masters) listGroup(ctx context.Context, limit int) (listing, error) {
	f, err := m.open()
	if err != nil {
		return listing{}, err
	}
	defer f.Close()
	all := make([]stored, len(f))
	f.each(ctx, func(i int, master *node.Master, err error) {
		if err == nil {
			all[i].read(ctx, master, m.Prefix, limit)
			all[i].memory, _ = recall(ctx, master, m.Prefix, defaults.TTL)
			return
		}
		all[i].err = err
	})
	if err := enough(f, all); err != nil {
		return listing{}, err
	}
	l := m.exclusive(all)
	ours := m.group(f)
	for _, s := range all {
		if err := ours.Differs(s.memory.group); err != nil {
			l.OtherGroup = cli.Spoken(err.Error())
		}
	}
	l.Locks, err = m.addShared(ctx, l.Locks, all)
	return l, err
}

// enough returns an error unless a quorum of the masters answered.
func enough(f fleet, all []stored) error {
	votes := make([]redlock.Vote, len(all))
	answered := 0
	for i, s := range all {
		votes[i] = redlock.Vote{Node: f[i].Addr(), Vote: quorum.Granted}
		if s.err != nil {
			votes[i].Vote, votes[i].Err = quorum.Failed, s.err
			continue
		}
		answered++
	}
	if answered < quorum.Size(len(all)) {
		return &redlock.Error{Op: "list", Err: redlock.ErrNoQuorum, Votes: votes}
	}
	return nil
}

// pageSize is how many keys a master looks at in one step.
const pageSize = 1000

// read fills in the values of all keys that may be locks, and how long they
// last.
func (s *stored) read(ctx context.Context, m *node.Master, prefix string, limit int) {
	s.values, s.left, s.shared = map[string]string{}, map[string]time.Duration{}, map[string]bool{}
	cursor := "0"
	for looked := 0; looked < limit; looked += pageSize {
		reply, err := ask(ctx, m, "SCAN", cursor, "MATCH", glob(prefix)+"*", "COUNT", strconv.Itoa(min(pageSize, limit-looked)))
		if err != nil {
			s.err = err
			return
		}
		page, ok := reply.([]any)
		if !ok || len(page) != 2 {
			s.err = fmt.Errorf("SCAN: unexpected answer")
			return
		}
		if s.err = s.take(ctx, m, prefix, texts(page[1])); s.err != nil {
			return
		}
		if cursor = text(page[0]); cursor == "0" {
			s.complete = true
			return
		}
	}
}

// take reads the values of some keys. A key of another type than string has none.
func (s *stored) take(ctx context.Context, m *node.Master, prefix string, keys []string) error {
	for _, key := range keys {
		for _, what := range []string{"readers:", "slots:"} {
			if name, ok := strings.CutPrefix(key, prefix+"redlock:"+what); ok {
				s.shared[name] = true
			}
		}
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return strings.HasPrefix(key, prefix+"redlock:") })
	if len(keys) == 0 {
		return nil
	}
	values, err := ask(ctx, m, "MGET", keys...)
	if err != nil {
		return err
	}
	for i, v := range texts(values) {
		if v == "" {
			continue
		}
		left, err := ask(ctx, m, "PTTL", keys[i])
		if err != nil {
			return err
		}
		ms, _ := left.(int64)
		s.values[keys[i]], s.left[keys[i]] = v, time.Duration(ms)*time.Millisecond
	}
	return nil
}

// exclusive are the locks that one client holds alone, by a quorum of the masters.
func (m *masters) exclusive(all []stored) listing {
	l := listing{Locks: []listed{}}
	need := quorum.Size(len(all))
	holders := map[[2]string][]time.Duration{} // how long each master keeps it, by key and value
	kept := map[[2]string]bool{}               // its holder has released it
	for _, s := range all {
		l.Cut = l.Cut || !s.complete && s.err == nil
		for key, value := range s.values {
			value, released := strings.CutPrefix(value, values.Kept)
			lock := [2]string{key, value}
			holders[lock], kept[lock] = append(holders[lock], s.left[key]), kept[lock] || released
		}
	}
	for lock, left := range holders {
		if len(left) < need {
			continue
		}
		slices.SortFunc(left, longestFirst)
		client, metadata, since := values.Parse(lock[1])
		l.Locks = append(l.Locks, listed{
			Name: strings.TrimPrefix(lock[0], m.Prefix), Kept: kept[lock], Value: lock[1], Client: client, Metadata: metadata, Since: orNil(since),
			RemainingMS: millis(left[need-1]), Masters: len(left),
		})
	}
	return l
}

// addShared adds the locks that are shared.
func (m *masters) addShared(ctx context.Context, locks []listed, all []stored) ([]listed, error) {
	masters := map[string]int{} // that know of the lock
	for _, s := range all {
		for name := range s.shared {
			masters[name]++
		}
	}
	if len(masters) == 0 {
		return locks, nil
	}
	client, err := m.Dial(ctx, io.Discard, m.unguarded()...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for _, name := range slices.Sorted(maps.Keys(masters)) {
		h, err := client.Inspect(ctx, name)
		if err != nil {
			return nil, err
		}
		if len(h.Shares) > 0 {
			locks = append(locks, listedOf(name, h, masters[name]))
		}
	}
	return locks, nil
}

func listedOf(name string, h redlock.Holder, masters int) listed {
	l := listed{
		Name: name, Masters: masters, RemainingMS: millis(longest(h.Shares)),
		Shares: len(h.Shares), Permits: h.Permits, by: shared(h.Shares),
	}
	if h.Permits > 0 {
		l.Available = &h.Available
		l.by = fmt.Sprintf("%d of %d permits free", h.Available, h.Permits)
	}
	return l
}

// longestFirst orders how long keys last; negative is without end.
func longestFirst(a, b time.Duration) int {
	switch {
	case a < 0 && b < 0:
		return 0
	case a < 0:
		return -1
	case b < 0:
		return 1
	}
	return cmp.Compare(b, a)
}

// glob is the pattern that matches s and nothing else.
func glob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}

// texts are the elements of a reply that is a list; other types than string are empty.
func texts(reply any) []string {
	list, _ := reply.([]any)
	all := make([]string, len(list))
	for i, v := range list {
		all[i] = text(v)
	}
	return all
}

func text(reply any) string {
	switch v := reply.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	}
	return ""
}

// completeLock completes the names of locks that are held.
func completeLock(m *masters) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || cli.Configure(cmd) != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
		defer cancel()
		found, err := m.list(ctx, 10*pageSize)
		if err != nil && len(found.Locks) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, lock := range found.Locks {
			names = append(names, lock.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
