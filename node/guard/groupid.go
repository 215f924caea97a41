package guard

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/internal/spread"
)

// GroupID is what a client says of the group of masters that it locks with.
// Clients exclude each other only if their quorums intersect, and so only if
// they mean the same group (S14). The zero GroupID says nothing.
type GroupID struct {
	Size int    // how many masters
	Set  string // a fingerprint of their addresses
	Name string // given by the user, or empty
	Map  string // which names the group has, in the form of spread.Map; empty: all
}

// ErrOtherGroup: a master belongs to another group of masters than this client
// means.
var ErrOtherGroup = errors.New("belongs to another group of masters")

// GroupOf returns the id of the masters with these names, see Name. Their order
// does not matter.
func GroupOf(group string, masters ...string) GroupID {
	sorted := slices.Sorted(slices.Values(masters))
	h := fnv.New64a()
	for _, m := range sorted {
		h.Write([]byte(m + "\n"))
	}
	return GroupID{Size: len(masters), Set: fmt.Sprintf("%016x", h.Sum64()), Name: group}
}

// CheckGroupName refuses a name that cannot stand in a marker.
func CheckGroupName(name string) error {
	if len(name) > 64 || name == "-" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Errorf("group name %.100q: must be at most 64 visible ASCII characters without spaces, and not -", name)
	}
	if _, text, ok := strings.Cut(name, "@"); ok && text != "" {
		if _, err := spread.Parse(text); err == nil {
			return fmt.Errorf("group name %q: must not have a map of groups behind an @", name)
		}
	}
	return nil
}

// String returns the stored form: size, fingerprint and name, with - for what
// is empty. The map stands behind an @ in the name, so that clients which know
// nothing of maps take the group for another one.
func (id GroupID) String() string {
	name := orDash(id.Name)
	if id.Map != "" {
		name += "@" + id.Map
	}
	return strconv.Itoa(id.Size) + " " + orDash(id.Set) + " " + name
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// parseGroupID reads the three fields of String.
func parseGroupID(fields []string) (GroupID, error) {
	size, err := strconv.Atoi(fields[0])
	if err != nil || size < 0 {
		return GroupID{}, fmt.Errorf("group of %q masters", fields[0])
	}
	id := GroupID{Size: size, Set: fields[1], Name: fields[2]}
	if name, text, ok := strings.Cut(fields[2], "@"); ok && text != "" {
		if _, err := spread.Parse(text); err == nil { // else the @ belongs to the name
			id.Name, id.Map = name, text
		}
	}
	if id.Set == "-" {
		id.Set = ""
	}
	if id.Name == "-" {
		id.Name = ""
	}
	return id, nil
}

// Differs returns in what a master's group certainly differs from ours, or nil.
// Addresses do not prove a difference: the same master can have several.
func (id GroupID) Differs(theirs GroupID) error {
	switch {
	case id.Size == 0 || theirs.Size == 0:
		return nil
	case id.Size != theirs.Size:
		return fmt.Errorf("%w: its clients have %d masters, this one has %d (see WithGroup and redlock init)", ErrOtherGroup, theirs.Size, id.Size)
	case id.Name != "" && theirs.Name != "" && id.Name != theirs.Name:
		return fmt.Errorf("%w: its clients call it %q, this one %q (see WithGroup and redlock init)", ErrOtherGroup, theirs.Name, id.Name)
	}
	return nil
}

// Doubtful reports whether the masters may be others, though nothing proves it:
// a name that both give says that they are the same.
func (id GroupID) Doubtful(theirs GroupID) bool {
	return id.Set != "" && theirs.Set != "" && id.Set != theirs.Set && (id.Name == "" || id.Name != theirs.Name)
}

// over returns the group that our marker names in place of theirs: known fields
// stay, and missing fields are added.
func (id GroupID) over(theirs GroupID) GroupID {
	if theirs.Size == 0 {
		return id
	}
	if theirs.Name == "" {
		theirs.Name = id.Name
	}
	return theirs
}
