package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/quorumlock/quorumlock/node/wire"
)

// ErrNotNew: a master that was to be declared new has been used.
var ErrNotNew = errors.New("not new")

// Init marks masters that never held a lock, so that they may vote at once. Without
// it, clients let a master without a marker wait for a restart guard, because it may
// have lost its memory. Init returns what it did at each master.
//
// It marks all masters or, as far as it can know before, none. It writes nothing if a
// master cannot be reached, is a replica, is the same server as another, holds what
// may be a lock, or was used before (ErrNotNew). A master that has only been marked by a
// client that met it is as new as before, until its restart guard has passed. Init goes
// on only with an Init that failed halfway or runs at the same time: beside masters that
// are in use, one without a marker has lost its memory. If all are marked already and may
// vote, also for clients with the restart guard of the Config, it does nothing. The
// group's name may be empty; beside that it heeds KeyPrefix and what belongs to
// connecting.
func Init(ctx context.Context, addrs []string, group string, c Config) ([]string, error) {
	s, err := openSites(ctx, addrs, group, c)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.each((*site).mustBeNew); err != nil {
		return nil, err
	}
	if err := s.mustBeginTogether(); err != nil {
		return nil, err
	}
	if err := s.each((*site).declareNew); err != nil {
		return nil, err
	}
	return s.results(), nil
}

// site is a master that an operator looks at.
type site struct {
	address  address
	addr     string // its name
	config   *Config
	group    GroupID
	dialogue dialogue
	close    func()

	info   serverInfo
	seen   Evidence
	was    int // of how many masters it was one before
	result string
}

type sites []*site

// openSites connects to all masters and looks at each.
func openSites(ctx context.Context, addrs []string, group string, c Config) (s sites, err error) {
	if c, err = c.check(); err != nil {
		return nil, err
	}
	if err := CheckGroupName(group); err != nil {
		return nil, err
	}
	var names []string
	for _, addr := range addrs {
		a, err := parseAddress(addr)
		if err != nil {
			return nil, err
		}
		s, names = append(s, &site{address: a, addr: a.String(), config: &c}), append(names, a.String())
	}
	for _, each := range s {
		each.group = GroupOf(group, names...)
	}
	if err = s.each(func(each *site) error { return each.open(ctx) }); err == nil {
		err = s.mustDiffer()
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *site) open(ctx context.Context) error {
	w, err := s.config.dial(ctx, s.address)
	if err != nil {
		return err
	}
	cut := context.AfterFunc(ctx, func() { w.Close() })
	s.dialogue, s.close = dialogue{w}, func() { cut(); w.Close() }
	return orCauseNil(ctx, s.look())
}

// orCauseNil is orCause for an error that may be nil.
func orCauseNil(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return orCause(ctx, err)
}

// look reads what a handshake reads.
func (s *site) look() error {
	answers, err := s.dialogue.ask(
		&wire.Command{Op: wire.OpRead, Name: "ROLE"},
		&wire.Command{Op: wire.OpRead, Name: "INFO", Args: []string{"replication"}},
		&wire.Command{Op: wire.OpRead, Name: "INFO", Args: []string{"server"}},
		readMarker(s.config.KeyPrefix),
	)
	if err != nil {
		return err
	}
	if r := role(answers[0], answers[1]); r != "" && r != "master" {
		return fmt.Errorf("%w: its role is %s", ErrNotMaster, r)
	}
	s.info.uptime = -1
	s.info.readServer(answers[2])
	return s.read(answers[3])
}

// read takes the answer of the marker's script.
func (s *site) read(a answer) error {
	if a.refusal != nil {
		return a.refusal
	}
	s.seen = readEvidence(s.info, a)
	switch {
	case s.seen.Blind:
		return fmt.Errorf("%s: is not a marker of ours", wire.MarkerKey(s.config.KeyPrefix))
	case s.seen.Time.IsZero():
		return errors.New("does not tell the time (TIME), which a marker needs")
	}
	return nil
}

// mark replaces the marker that was seen.
func (s *site) mark(m Marker) error {
	answers, err := s.dialogue.ask(writeMarker(s.config.KeyPrefix, Verdict{Write: m, Over: s.seen.Marker}))
	if err != nil {
		return err
	}
	return s.read(answers[0])
}

func (s *site) mustBeNew() error {
	m := s.seen.Marker
	switch {
	case m.RunID == "":
		return s.mustBeEmpty()
	case s.group.Differs(m.Group) != nil:
		return s.group.Differs(m.Group)
	case !m.after(s.seen.Promotion):
		return fmt.Errorf("%w: clients have used it before it was a replica; it may vote when the restart guard of its next client has passed", ErrNotNew)
	case !m.of(s.info.runID):
		return fmt.Errorf("%w: clients have used it before it was started anew; it may vote when the restart guard of its next client has passed", ErrNotNew)
	case s.unused():
		return s.mustBeEmpty()
	}
	return s.mustVote()
}

// mustVote refuses a master that may not vote yet.
func (s *site) mustVote() error {
	m := s.seen.Marker
	if age, hold := s.seen.Time.Sub(m.Since), max(m.Hold, s.config.Guard.Hold); age < hold {
		return fmt.Errorf("%w: it was marked %v ago; it may vote in %v, and needs nothing until then", ErrNotNew, age.Round(time.Second), (hold - age).Round(time.Second))
	}
	return nil
}

// unused reports whether no client has used the master, as far as markers tell.
func (s *site) unused() bool {
	m := s.seen.Marker
	return m.RunID == "" || m.of(s.info.runID) && m.after(s.seen.Promotion) && m.Unused(s.seen.Time)
}

// mustBeginTogether refuses to mark a master beside others that are in use: it
// has no marker because it has lost its memory (S14d). Those that an Init has just
// marked which failed halfway are not in use.
func (s sites) mustBeginTogether() error {
	var unmarked []string
	unused, inUse := 0, 0
	for _, each := range s {
		switch m := each.seen.Marker; {
		case m.RunID == "":
			unmarked = append(unmarked, each.addr)
		case each.unused():
			unused++
		case !m.JustDeclared(each.seen.Time):
			inUse++
		}
	}
	switch {
	case len(unmarked)+unused == 0:
		return nil // there is nothing to do
	case inUse > 0 && len(unmarked) > 0:
		return &wire.Error{Node: strings.Join(unmarked, ", "), Err: besideMastersInUse(len(unmarked), inUse)}
	case inUse > 0:
		return s.each((*site).mustVote)
	}
	return s.each(func(each *site) error {
		if each.unused() {
			return nil // which was looked at before
		}
		return each.mustBeEmpty()
	})
}

// besideMastersInUse says once why some masters without a marker are not new.
func besideMastersInUse(unmarked, inUse int) error {
	others := "another master is in use"
	if inUse > 1 {
		others = fmt.Sprintf("%d other masters are in use", inUse)
	}
	if unmarked == 1 {
		return fmt.Errorf("%w: it has no marker, but %s, so it may have forgotten locks; "+
			"it may vote when the restart guard of its next client has passed", ErrNotNew, others)
	}
	return fmt.Errorf("%w: they have no marker, but %s, so they may have forgotten locks; "+
		"they may vote when the restart guard of their next client has passed", ErrNotNew, others)
}

// declareNew marks the master, unless it is in use. Clients that meet it meanwhile mark it,
// too, and another Init may declare it new before we do.
func (s *site) declareNew() error {
	for range maxMarks {
		m := s.seen.Marker
		switch {
		case s.group.Differs(m.Group) != nil:
			return s.group.Differs(m.Group)
		case !s.unused() && (m.New || s.result == ""):
			s.result = s.addr + ": was marked already"
			return nil
		case !s.unused():
			return fmt.Errorf("%w: it was marked just now", ErrNotNew)
		}
		declared := NewMaster(s.info.runID, s.seen.Time, 0, s.group).promoted(s.seen.Promotion)
		if err := s.mark(declared); err != nil {
			return err
		}
		s.result = s.addr + ": marked as new"
		if s.seen.Marker == declared {
			return nil
		}
	}
	return errors.New("clients keep changing its marker")
}

// maxKeys bounds how many keys are looked at.
const maxKeys = 100_000

// mustBeEmpty looks for keys that may be locks: all that begin with the prefix,
// or, without one, strings and keys of this library that expire. Those that last
// are no locks.
func (s *site) mustBeEmpty() error {
	seen := 0
	return s.scan("*", func(keys []string) error {
		locks, err := s.locks(keys)
		if err != nil {
			return err
		}
		if len(locks) > 0 {
			return fmt.Errorf("%w: it has keys that may be locks: %.200s", ErrNotNew, strings.Join(locks, ", "))
		}
		if seen += len(keys); seen > maxKeys {
			return fmt.Errorf("%w: it has more than %d keys, which are too many to look at", ErrNotNew, maxKeys)
		}
		return nil
	})
}

// scan goes through the keys behind our prefix that match, page by page. A key may come
// twice.
func (s *site) scan(match string, page func(keys []string) error) error {
	for cursor := "0"; ; {
		a, err := s.ask(&wire.Command{Op: wire.OpRead, Name: "SCAN",
			Args: []string{cursor, "MATCH", globQuote(s.config.KeyPrefix) + match, "COUNT", "1000"}})
		if err != nil {
			return fmt.Errorf("cannot be searched for keys: %w", err)
		}
		var keys []string
		if cursor, keys, err = readPage(a); err != nil {
			return fmt.Errorf("cannot be searched for keys: %w", err)
		}
		if err := page(keys); err != nil || cursor == "0" {
			return err
		}
	}
}

// readPage reads an answer to SCAN or SSCAN: where to go on, "0" at the end, and what
// was found.
func readPage(a answer) (cursor string, found []string, err error) {
	fields, _ := a.value.([]any)
	if len(fields) != 2 {
		return "", nil, wire.ErrUnreadable
	}
	list, _ := fields[1].([]any)
	for _, each := range list {
		found = append(found, wire.Text(each))
	}
	return wire.Text(fields[0]), found, nil
}

// ask asks one question. A refusal is an error.
func (s *site) ask(cmd *wire.Command) (answer, error) {
	answers, err := s.dialogue.ask(cmd)
	if err != nil {
		return answer{}, err
	}
	return answers[0], refusalError(answers[0])
}

func refusalError(a answer) error {
	if a.refusal == nil {
		return nil
	}
	return a.refusal
}

// reservedKeys begins the keys that this library stores beside the locks.
const reservedKeys = "redlock:"

// lasts reports whether a key is one that stays for a week after its last use and
// holds nothing back: fencing counters, the sizes of semaphores, latches, what leaders
// said, and what is known of the clock.
func (s *site) lasts(key string) bool {
	name, ours := strings.CutPrefix(key, s.config.KeyPrefix+reservedKeys)
	what, _, _ := strings.Cut(name, ":")
	return ours && slices.Contains([]string{"token", "permits", "latch", "arrivals", "digest", "leader", "clock"}, what)
}

// locks returns which of the keys may be locks, at most a few.
func (s *site) locks(keys []string) (found []string, err error) {
	for _, key := range keys {
		if len(found) == 5 {
			return append(found, "..."), nil
		}
		if s.lasts(key) || key == wire.MarkerKey(s.config.KeyPrefix) {
			continue
		}
		if s.config.KeyPrefix != "" {
			found = append(found, strconv.Quote(key))
			continue
		}
		answers, err := s.dialogue.ask(
			&wire.Command{Op: wire.OpRead, Name: "TYPE", Keys: []string{key}},
			&wire.Command{Op: wire.OpRead, Name: "PTTL", Keys: []string{key}},
		)
		if err != nil {
			return nil, err
		}
		// What this library stores beside its locks may be a lock itself: readers, and
		// the permits of a semaphore.
		mayBe := wire.Text(answers[0].value) == "string" || strings.HasPrefix(key, reservedKeys)
		if ttl, _ := answers[1].value.(int64); mayBe && ttl > 0 {
			found = append(found, fmt.Sprintf("%q (%v left)", key, time.Duration(ttl)*time.Millisecond))
		}
	}
	return found, nil
}

// globQuote makes MATCH take a prefix literally.
func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// each does something at every master, in order.
func (s sites) each(do func(*site) error) error {
	var wrong *multierror.Error
	for _, each := range s {
		if err := do(each); err != nil {
			wrong = multierror.Append(wrong, &wire.Error{Node: each.addr, Err: err})
		}
	}
	if wrong == nil {
		return nil
	}
	return oneLine(wrong)
}

// oneLine makes an error of several read as one line.
func oneLine(e *multierror.Error) error {
	e.ErrorFormat = func(all []error) string {
		lines := make([]string, len(all))
		for i, err := range all {
			lines[i] = err.Error()
		}
		return strings.Join(lines, "; ")
	}
	return e
}

func (s sites) mustDiffer() error {
	runs := make(map[string]string)
	for _, each := range s {
		run := each.info.runID
		if other, found := runs[run]; found && run != "" {
			return &wire.Error{Node: each.addr, Err: fmt.Errorf("%w: %s (run_id %s)", ErrSameNode, other, run)}
		}
		runs[run] = each.addr
	}
	return nil
}

func (s sites) results() []string {
	lines := make([]string, len(s))
	for i, each := range s {
		lines[i] = each.result
	}
	return lines
}

func (s sites) close() {
	for _, each := range s {
		if each.close != nil {
			each.close()
		}
	}
}
