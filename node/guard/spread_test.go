package guard

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/node/wire"
)

// newSpreadFleet has masters of group a, which tell a map.
func newSpreadFleet(t *testing.T, n int, text string) fleet {
	f := newFleet(t, n)
	id := f.group("a")
	id.Map = text
	for _, w := range f {
		w.marker.Group = id
	}
	return f
}

// spreadClient is a guard of each master, of a client that goes by maps.
func (f fleet) spreadClient() []*watched {
	group := NewSpread(f.group("a"))
	guards := make([]*watched, len(f))
	for i, w := range f {
		guards[i] = &watched{Guard: New(Config{Hold: hold}, f[0].clock, group), w: w}
	}
	return guards
}

func TestMap_stands_in_a_marker_behind_the_name(t *testing.T) {
	id := GroupID{Size: 3, Set: "00aa", Name: "a", Map: "3:a>a,b"}
	m := NewMarker("run", time.Unix(1700000000, 0)).with(time.Second, id)
	if got, err := ParseMarker(m.String()); err != nil || got != m {
		t.Errorf("%q: %+v, %v", m, got, err)
	}
	for _, name := range []string{"a@", "a@b", "me@host"} { // were names before there were maps
		m.Group = GroupID{Size: 3, Name: name}
		if got, err := ParseMarker(m.String()); err != nil || got != m {
			t.Errorf("%q: %+v, %v", m, got, err)
		}
	}
}

// S83: a vote counts by whatever map, and its client knows that map then. The map is not the memory.
func TestS83_a_vote_tells_its_map(t *testing.T) {
	f := newSpreadFleet(t, 3, "2:a,b")
	c := f.spreadClient()
	lookAll(c)
	for _, step := range []struct{ told, newest string }{{"2:a,b", "2:a,b"}, {"3:a,b>a", "3:a,b>a"}, {"2:a,b", "3:a,b>a"}} {
		f[0].marker.Group.Map = step.told
		if !c[0].Vouched(f[0].marker.String()) || c[0].Admit(wire.OpAcquire) != nil {
			t.Errorf("a vote by the map %s does not count", step.told)
		}
		if m, _ := c[0].group.Map(); m.String() != step.newest {
			t.Errorf("the newest map is %s after a vote by %s", m, step.told)
		}
	}
	f[0].marker.Group.Map = "4:a"
	told := f[0].marker.String()
	if !c[0].Vouched(told) {
		t.Error("a vote by another map does not count")
	}
	if c[0].look(); c[0].Accepted() != told {
		t.Errorf("each vote has the master looked at: it tells %q, and %q is accepted", told, c[0].Accepted())
	}
	for _, text := range []string{"no map", ""} {
		f[0].marker.Group.Map = text
		if c[0].Vouched(f[0].marker.String()) {
			t.Errorf("a vote with the map %q counts", text)
		}
	}
}

// S83: a master that has lost its map, or was away, gets the newest one, and does not vote without any.
func TestS83_a_master_gets_the_newest_map(t *testing.T) {
	for _, c := range []struct {
		why   string
		told  []string // by each master
		want  string   // that the last one tells after two looks at each
		votes bool     // and whether it votes then
	}{
		{"all tell the same", []string{"2:a,b", "2:a,b", "2:a,b"}, "2:a,b", true},
		{"it was away", []string{"3:a,b>a", "3:a,b>a", "2:a,b"}, "3:a,b>a", true},
		{"it was the only one that was not away", []string{"2:a,b", "2:a,b", "3:a,b>a"}, "3:a,b>a", true},
		{"one has forgotten the map, and one was away", []string{"", "3:a,b>a", "2:a,b"}, "3:a,b>a", true},
		{"it has forgotten the map", []string{"2:a,b", "2:a,b", ""}, "2:a,b", true},
		{"two have: nobody knows whether the third has the newest", []string{"2:a,b", "", ""}, "", false},
		{"nobody has told one", []string{"", "", ""}, "", false},
		{"half of four have told one, which are not most", []string{"2:a,b", "2:a,b", "", ""}, "", false},
		{"three of four have", []string{"2:a,b", "2:a,b", "2:a,b", ""}, "2:a,b", true},
		{"two operators have told one of the same number: all clients take the same", []string{"3:a,b>b", "3:a,b>a", "3:a,b>a"}, "3:a,b>b", true},
		{"and the other way around", []string{"3:a,b>a", "3:a,b>b", "3:a,b>b"}, "3:a,b>b", true},
	} {
		f := newSpreadFleet(t, len(c.told), "")
		for i, text := range c.told {
			f[i].marker.Group.Map = text
		}
		guards := f.spreadClient()
		for range 2 {
			lookAll(guards)
		}
		end := len(f) - 1
		last := guards[end]
		if got := f[end].marker.Group.Map; got != c.want || (last.Admit(wire.OpAcquire) == nil) != c.votes {
			t.Errorf("%s: the map is %q, want %q; votes: %v", c.why, got, c.want, last.Admit(wire.OpAcquire))
		}
	}
}

// S83: a client does not know of a master that has gone whether it has told another map since.
func TestS83_what_was_told_on_a_connection_that_has_gone_does_not_count(t *testing.T) {
	f := newSpreadFleet(t, 3, "2:a,b")
	c := f.spreadClient()
	lookAll(c)
	c[0].Leave()
	c[1].Leave()
	f[2].marker.Group.Map = ""
	if c[2].look(); f[2].marker.Group.Map != "" {
		t.Errorf("the map is %q, by what masters told that have gone", f[2].marker.Group.Map)
	}
	c[0].look()
	if c[2].look(); f[2].marker.Group.Map != "2:a,b" {
		t.Errorf("the map is %q, want what another master tells again", f[2].marker.Group.Map)
	}
}

// A master that has no map says where one comes from.
func TestMap_that_nobody_has_told_is_missing(t *testing.T) {
	c := newSpreadFleet(t, 3, "").spreadClient()
	lookAll(c)
	if err := c[0].Admit(wire.OpAcquire); !errors.Is(err, ErrQuarantined) || !strings.Contains(err.Error(), "redlock.Spread") {
		t.Errorf("Admit: %v", err)
	}
}

// S83: where the marker cannot be read a change of the map would go unnoticed.
func TestS83_a_master_whose_marker_cannot_be_read_does_not_vote(t *testing.T) {
	f := newSpreadFleet(t, 3, "2:a,b")
	c := f.spreadClient()
	lookAll(c[1:])
	c[0].edit = func(e *Evidence) { e.Blind, e.Marker = true, Marker{} }
	c[0].look()
	f[0].pass(2 * hold)
	if err := c[0].Admit(wire.OpAcquire); !errors.Is(err, ErrQuarantined) || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("it votes: %v", err)
	}
	f[0].pass(LongestAttempt)
	if young, err := c[0].Weigh(wire.OpExtend, true); !young || err != nil {
		t.Errorf("its extension counts (%v)", err)
	}
}

func TestMap_makes_the_masters_others_than_those_of_a_client_without_one(t *testing.T) {
	f := newSpreadFleet(t, 3, "2:a,b")
	for _, name := range []string{"a", ""} {
		c := f.client(Config{Hold: hold}, name)
		v := c[0].look()
		c[1].look()
		if err := c[1].Admit(wire.OpAcquire); !errors.Is(v.Stranger, ErrOtherGroup) || !errors.Is(err, ErrOtherGroup) {
			t.Errorf("group %q: %v, %v", name, v.Stranger, err)
		}
	}
}

// S83: who waits for a name is told of another map, once, and the masters that have not told it vote.
func TestS83_another_map_is_told_once(t *testing.T) {
	f := newSpreadFleet(t, 3, "2:a,b")
	c := f.spreadClient()
	lookAll(c)
	changes := 0
	c[0].group.OnMap(func() { changes++ })
	lookAll(c)
	if changes != 0 {
		t.Errorf("the same map: %d changes", changes)
	}
	f[1].marker.Group.Map = "3:a,b>a"
	c[1].look()
	if err := c[0].Admit(wire.OpAcquire); changes != 1 || err != nil {
		t.Errorf("another map: %d changes; a master that has not told it: %v", changes, err)
	}
	lookAll(c) // the others are looked at, and marked
	if err := c[0].Admit(wire.OpAcquire); changes != 1 || err != nil {
		t.Errorf("told by all: %d changes; %v", changes, err)
	}
}

// S83: a master that tells a map which nobody can read is of another group.
func TestS83_a_map_that_cannot_be_read_is_of_another_group(t *testing.T) {
	id := newFleet(t, 3).group("a")
	g := NewSpread(id)
	if err := g.noteMap(&standing{}, "2:b,"); !errors.Is(err, ErrOtherGroup) {
		t.Errorf("error %v, want %v", err, ErrOtherGroup)
	}
}

// S83: what another group tells is learned like what our own masters tell, and only if it is newer.
func TestS83_the_newest_map_of_all_groups_counts(t *testing.T) {
	f := newSpreadFleet(t, 3, "4:a,b")
	c := f.spreadClient()
	lookAll(c)
	group := c[0].group
	for _, step := range []struct {
		text, newest string
		learned      bool
	}{{"3:a>a,b", "4:a,b", false}, {"4:a,b", "4:a,b", false}, {"5:a,b>b", "5:a,b>b", true}} {
		m, err := spread.Parse(step.text)
		if err != nil {
			t.Fatal(err)
		}
		learned := group.Learn(m)
		if newest, _ := group.Map(); learned != step.learned || newest.String() != step.newest {
			t.Errorf("%s: learned %v, and the newest is %s, want %v and %s", step.text, learned, newest, step.learned, step.newest)
		}
	}
}
