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
)

// ErrNotNew: a master that was to be declared new has been used.
var ErrNotNew = errors.New("not new")

// Init marks masters that never held a lock, so that they may vote at once. Without
// it, clients let a master without a marker wait for a restart guard, because it may
// have lost its memory. Init returns what it did at each master.
//
// It marks all masters or, as far as it can know before, none. It writes nothing if a
// master cannot be reached, is a replica, is the same server as another, holds what
// may be a lock, or was marked before (ErrNotNew). It goes on only with an Init that
// failed halfway: beside masters that are in use, one without a marker has lost its
// memory. If all are marked already and may vote, it does nothing. The group's name
// may be empty; of the Config it heeds KeyPrefix and what belongs to connecting.
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

// Regroup makes masters one group, of which some are in use: from three to five, say.
// Every client that knows the old group is shut out at once and loses its locks in
// time. The masters vote again, for clients of the new group, when the longest restart
// guard of any client has passed.
//
// That is the longest of Config.Guard.Hold and of those that the masters know of. It
// makes Regroup safe: a quorum of the old group must be among the masters, so that
// nothing new is granted there, and all of them count as having lost their memory
// after the last of them was told.
func Regroup(ctx context.Context, addrs []string, group string, c Config) ([]string, error) {
	s, err := openSites(ctx, addrs, group, c)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.mustOutvoteTheOld(); err != nil {
		return nil, err
	}
	if err := s.mustShutOutTheOld(); err != nil {
		return nil, err
	}
	for range 2 { // the second time, when the last of them knows
		if err := s.each((*site).regroup); err != nil {
			return nil, err
		}
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
		&Command{Op: OpRead, Name: "ROLE"},
		&Command{Op: OpRead, Name: "INFO", Args: []string{"replication"}},
		&Command{Op: OpRead, Name: "INFO", Args: []string{"server"}},
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
		return fmt.Errorf("%s: is not a marker of ours", MarkerKey(s.config.KeyPrefix))
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
	}
	if age, hold := s.seen.Time.Sub(m.Since), max(m.Hold, s.config.Guard.Hold); age < hold {
		return fmt.Errorf("%w: it was marked %v ago; it may vote in %v, and needs nothing until then", ErrNotNew, age.Round(time.Second), (hold - age).Round(time.Second))
	}
	return nil
}

// mustBeginTogether refuses to mark a master beside others that are in use: it
// has no marker because it has lost its memory (S14d). Those that an Init has just
// marked which failed halfway are not in use.
func (s sites) mustBeginTogether() error {
	var unmarked []string
	inUse := 0
	for _, each := range s {
		switch m := each.seen.Marker; {
		case m.RunID == "":
			unmarked = append(unmarked, each.addr)
		case !m.JustDeclared(each.seen.Time):
			inUse++
		}
	}
	switch {
	case len(unmarked) == 0:
		return nil // there is nothing to do
	case inUse > 0:
		return &Error{Node: strings.Join(unmarked, ", "), Err: besideMastersInUse(len(unmarked), inUse)}
	}
	return s.each(func(each *site) error {
		if each.seen.Marker.RunID == "" {
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

func (s *site) declareNew() error {
	if s.seen.Marker.RunID != "" {
		s.result = s.addr + ": was marked already"
		return nil
	}
	m := NewMaster(s.info.runID, s.seen.Time, s.config.Guard.Hold, s.group).promoted(s.seen.Promotion)
	if err := s.mark(m); err != nil {
		return err
	}
	if s.seen.Marker != m {
		return fmt.Errorf("%w: it was marked just now", ErrNotNew)
	}
	s.result = s.addr + ": marked as new"
	return nil
}

func (s *site) regroup() error {
	if old := s.seen.Marker.Group; old != s.group {
		s.was = old.Size
	}
	for range maxMarks {
		if err := s.look(); err != nil { // for the time now: it must be after the others were told
			return err
		}
		over := s.seen.Marker
		m := over.Regrouped(s.info.runID, s.seen.Time, s.config.Guard.Hold, s.group).promoted(s.seen.Promotion)
		if err := s.mark(m); err != nil {
			return err
		}
		if s.seen.Marker == m {
			s.result = fmt.Sprintf("%s: may vote in %v", s.addr, m.Hold.Round(time.Second))
			if s.was > 0 {
				s.result += fmt.Sprintf(", was one of %d masters", s.was)
			}
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
	cursor, seen := "0", 0
	for {
		answers, err := s.dialogue.ask(&Command{Op: OpRead, Name: "SCAN",
			Args: []string{cursor, "MATCH", globQuote(s.config.KeyPrefix) + "*", "COUNT", "1000"}})
		if err != nil {
			return err
		}
		fields, _ := answers[0].value.([]any)
		if answers[0].refusal != nil || len(fields) != 2 {
			return fmt.Errorf("cannot be searched for locks: %w", firstError(refusalError(answers[0]), errUnreadable))
		}
		list, _ := fields[1].([]any)
		locks, err := s.locks(list)
		if err != nil {
			return err
		}
		if len(locks) > 0 {
			return fmt.Errorf("%w: it has keys that may be locks: %.200s", ErrNotNew, strings.Join(locks, ", "))
		}
		if seen += len(list); seen > maxKeys {
			return fmt.Errorf("%w: it has more than %d keys, which are too many to look at", ErrNotNew, maxKeys)
		}
		if cursor = text(fields[0]); cursor == "0" {
			return nil
		}
	}
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
// holds nothing back: fencing counters, the sizes of semaphores, latches, and what
// leaders said.
func (s *site) lasts(key string) bool {
	name, ours := strings.CutPrefix(key, s.config.KeyPrefix+reservedKeys)
	what, _, _ := strings.Cut(name, ":")
	return ours && slices.Contains([]string{"token", "permits", "latch", "arrivals", "digest", "leader"}, what)
}

// locks returns which of the keys may be locks, at most a few.
func (s *site) locks(keys []any) (found []string, err error) {
	for _, k := range keys {
		key := text(k)
		if len(found) == 5 {
			return append(found, "..."), nil
		}
		if s.lasts(key) || key == MarkerKey(s.config.KeyPrefix) {
			continue
		}
		if s.config.KeyPrefix != "" {
			found = append(found, strconv.Quote(key))
			continue
		}
		answers, err := s.dialogue.ask(
			&Command{Op: OpRead, Name: "TYPE", Keys: []string{key}},
			&Command{Op: OpRead, Name: "PTTL", Keys: []string{key}},
		)
		if err != nil {
			return nil, err
		}
		// What this library stores beside its locks may be a lock itself: readers, and
		// the permits of a semaphore.
		mayBe := text(answers[0].value) == "string" || strings.HasPrefix(key, reservedKeys)
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
			wrong = multierror.Append(wrong, &Error{Node: each.addr, Err: err})
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
			return &Error{Node: each.addr, Err: fmt.Errorf("%w: %s (run_id %s)", ErrSameNode, other, run)}
		}
		runs[run] = each.addr
	}
	return nil
}

// mustOutvoteTheOld refuses to regroup unless a quorum of every group that the
// masters belonged to is among them.
func (s sites) mustOutvoteTheOld() error {
	members := make(map[int]int)
	for _, each := range s {
		members[each.seen.Marker.Group.Size]++
	}
	for size, here := range members {
		if size > 0 && 2*here <= size {
			return fmt.Errorf("%d of these masters belong to a group of %d: a quorum of it must be among them, or its clients go on without them", here, size)
		}
	}
	return nil
}

// mustShutOutTheOld refuses to regroup if clients of another list would not
// notice: those that have as many masters are told apart by names only.
func (s sites) mustShutOutTheOld() error {
	for _, each := range s {
		old := each.seen.Marker.Group
		if old.Size > 0 && old.Set != each.group.Set && each.group.Differs(old) == nil {
			return &Error{Node: each.addr, Err: fmt.Errorf("its clients have another list of %d masters, and would go on with it: stop them, or give both lists a name of their own (group %q, was %q)", old.Size, each.group.Name, old.Name)}
		}
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
