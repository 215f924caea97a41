package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/go-multierror"

	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// site is a master that an operator looks at.
type site struct {
	index    int // in the list
	address  string
	addr     string // its name
	config   *node.Config
	group    guard.GroupID
	spread   spread.Map // the newest of its group; zero: none
	dialogue dialogue

	host   wire.Host
	seen   wire.Seen
	marker guard.Marker // that was seen
	was    int          // of how many masters it was one before
	result string
}

// dialogue is what a *node.Dialogue does.
type dialogue interface {
	Ask(...*wire.Command) ([]wire.Reply, error)
	Close()
}

type sites []*site

// openSites connects to all masters and looks at each.
func openSites(ctx context.Context, addrs []string, group string, c node.Config) (sites, error) {
	s, err := newSites(addrs, group, c)
	if err != nil {
		return nil, err
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

// newSites names the masters, and asks none.
func newSites(addrs []string, group string, c node.Config) (s sites, err error) {
	if c, err = c.Checked(); err != nil {
		return nil, err
	}
	if err := guard.CheckGroupName(group); err != nil {
		return nil, err
	}
	var names []string
	for i, addr := range addrs {
		name, err := node.Name(addr)
		if err != nil {
			return nil, err
		}
		s, names = append(s, &site{index: i, address: addr, addr: name, config: &c}), append(names, name)
	}
	for _, each := range s {
		each.group = guard.GroupOf(group, names...)
	}
	return s, nil
}

func (s *site) open(ctx context.Context) error {
	d, err := node.Talk(ctx, s.address, *s.config)
	if err != nil {
		return err
	}
	s.dialogue = d
	return s.look()
}

// look reads what a handshake reads.
func (s *site) look() error {
	answers, err := s.dialogue.Ask(wire.Greeting(s.config.KeyPrefix)...)
	if err != nil {
		return err
	}
	if r := wire.RoleOf(answers[0], answers[1]); r != "" && r != "master" {
		return fmt.Errorf("%w: its role is %s", node.ErrNotMaster, r)
	}
	s.host = wire.HostOf(answers[2])
	return s.read(answers[3])
}

// read takes the answer to a look.
func (s *site) read(r wire.Reply) (err error) {
	if refusal := r.Refused(); refusal != nil {
		return refusal
	}
	seen, ok := wire.SeenOf(r)
	marker, err := guard.ParseMarker(seen.Marker)
	switch {
	case !ok || err != nil:
		return fmt.Errorf("%s: is not a marker of ours: find out who wrote that key, and delete it", wire.MarkerKey(s.config.KeyPrefix))
	case seen.Time.IsZero():
		return errors.New("does not tell the time (TIME), which a marker needs")
	}
	s.seen, s.marker = seen, marker
	return nil
}

// maxMarks bounds how often a master is marked whose clients change the marker meanwhile.
const maxMarks = 5

// mark replaces the marker that was seen.
func (s *site) mark(m guard.Marker) error { return s.replace(m, "", "") }

// markAlone is mark, and forgets what clients have written of the clock: it may name only other memories
// of the masters, so that no client could compare the clock with theirs (L60).
func (s *site) markAlone(m guard.Marker) error {
	const nothing = "-"
	return s.replace(m, s.seen.Offsets, nothing)
}

// replace replaces the marker that was seen, and the offsets of the clock unless both are empty.
func (s *site) replace(m guard.Marker, over, offsets string) error {
	answers, err := s.dialogue.Ask(wire.Mark(s.config.KeyPrefix, s.marker.String(), m.String(), over, offsets))
	if err != nil {
		return err
	}
	return s.read(answers[0])
}

// mustStore refuses a master that stores nothing, because it is full, say: otherwise it would fail after others were
// told. The SET is only for a key that exists, and nobody writes this one, so nothing is written.
func (s *site) mustStore() error {
	_, err := s.ask(&wire.Command{Op: wire.OpRead, Name: "SET", Keys: []string{s.config.KeyPrefix + reservedKeys + "stores"}, Args: []string{"", "XX"}})
	return err
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
		run := each.host.RunID
		if other, found := runs[run]; found && run != "" {
			return &wire.Error{Node: each.addr, Err: fmt.Errorf("%w: %s (run_id %s)", guard.ErrSameNode, other, run)}
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
		if each.dialogue != nil {
			each.dialogue.Close()
		}
	}
}
