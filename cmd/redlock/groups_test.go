package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/internal/spread"
	"github.com/quorumlock/quorumlock/node/guard"
)

// someGroups are groups of three masters, by name, that were declared new.
type someGroups map[string][]*redistest.Server

func startGroups(t *testing.T, names ...string) someGroups {
	t.Helper()
	all := someGroups{}
	for _, name := range names {
		all[name] = redistest.StartN(t, 3)
		clitest.OnMasters(t, all[name], "init", "--group", name).Begin().WantExit(0)
	}
	return all
}

// nodes is what --nodes says of these groups, or of all.
func (g someGroups) nodes(names ...string) string {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(g))
	}
	var all []string
	for _, name := range names {
		var addrs []string
		for _, s := range g[name] {
			addrs = append(addrs, s.Addr())
		}
		all = append(all, name+"="+strings.Join(addrs, ","))
	}
	return strings.Join(all, ",")
}

// command prepares redlock with the masters of all groups in the environment.
func (g someGroups) command(t *testing.T, args ...string) *clitest.Command {
	t.Helper()
	c := clitest.New(t, args...)
	c.Env = append(c.Env, "REDLOCK_NODES="+g.nodes(), "REDLOCK_NODE_TIMEOUT=900ms")
	return c
}

func (g someGroups) all() (all []*redistest.Server) {
	for _, name := range slices.Sorted(maps.Keys(g)) {
		all = append(all, g[name]...)
	}
	return all
}

// dump is all that the masters store.
func (g someGroups) dump(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, s := range g.all() {
		keys, err := s.Do("KEYS", "*")
		clitest.Must(t, err)
		for _, key := range slices.Sorted(slices.Values(texts(keys))) {
			value, err := s.Do("DUMP", key)
			clitest.Must(t, err)
			fmt.Fprintf(&b, "%s %s %q\n", s.Addr(), key, value)
		}
	}
	return b.String()
}

// tell has masters tell a map, as an operator who was killed would leave it.
func tell(t *testing.T, masters []*redistest.Server, text string) {
	t.Helper()
	for _, s := range masters {
		m := markerOf(t, s)
		m.Group.Map = text
		clitest.Set(t, []*redistest.Server{s}, "redlock:marker", m.String())
	}
}

func markerOf(t *testing.T, s *redistest.Server) guard.Marker {
	t.Helper()
	stored, err := s.Do("GET", "redlock:marker")
	clitest.Must(t, err)
	m, err := guard.ParseMarker(text(stored))
	clitest.Must(t, err)
	return m
}

func TestGroups_plan_says_what_would_be_and_writes_nothing(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b", "c")
	for _, test := range []struct {
		told string
		over string
		says []string
	}{
		{"", "a,b", []string{"no master tells one", "number 2, groups a and b", "100.0 % of the names", "shut out", "nobody gets them for 1.02", "nothing stands in the way"}},
		{"2:a,b", "", []string{"number 2, groups a and b", "number 4, groups a, b and c", "33.3 % of the names", "a 3 50.0 % 33.3 % - 16.7 %", "c 3 - 33.3 % 33.3 % -"}},
		{"2:a,b", "b,a", []string{"the same: no name moves"}},
		{"3:a,b>a,b,c", "", []string{"moving from the groups a and b to the groups a, b and c", "number 4, groups a, b and c"}},
	} {
		tell(t, all.all(), test.told)
		before := all.dump(t)
		c := all.command(t, "groups", "plan", "--guard", "1s", "--over", test.over).Begin()
		c.WantExit(0)
		wantSaid(t, c, test.says...)
		clitest.WantColumns(t, c.Out.String(), 80)
		if after := all.dump(t); after != before {
			t.Errorf("it has changed\n%sto\n%s", before, after)
		}
	}
}

func TestGroups_plan_names_the_masters_that_lack_the_newest_map(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b", "c")
	tell(t, all.all(), "4:a,b")
	tell(t, all["a"][:1], "2:a,b")
	tell(t, all["b"][2:], "")
	tell(t, all["c"], "") // it is new, and is told the next map
	late := []string{all["a"][0].Addr(), all["b"][2].Addr()}
	c := all.command(t, "groups", "plan", "--over", "a,b").Begin()
	c.WantExit(0)
	wantSaid(t, c, "not told: "+late[0]+" and "+late[1]+": apply does it")
	c = all.command(t, "groups", "plan", "--json").Begin()
	c.WantExit(0)
	var p plan
	clitest.Must(t, json.Unmarshal(c.Out.Bytes(), &p))
	if !slices.Equal(p.Untold, late) {
		t.Errorf("untold: %q, want %q", p.Untold, late)
	}
}

// wantSaid is WantStdout, wherever lines are broken.
func wantSaid(t *testing.T, c *clitest.Command, parts ...string) {
	t.Helper()
	said := strings.Join(strings.Fields(c.Out.String()), " ")
	for _, part := range parts {
		if !strings.Contains(said, part) {
			t.Errorf("stdout does not say %q:\n%s", part, &c.Out)
		}
	}
}

func TestGroups_plan_counts_the_names_of_a_file(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	tell(t, all.all(), "2:a")
	c := all.command(t, "groups", "plan", "--names", "-", "--json")
	var names []string
	goes := 0
	for i := range 40 {
		name := fmt.Sprint("orders ", i)
		if spread.Highest([]string{"a", "b"}, name) == "b" {
			goes++
		}
		names = append(names, name)
	}
	c.Stdin = strings.NewReader(strings.Join(names, "\n") + "\n\n")
	c.Begin().WantExit(0)
	var p plan
	clitest.Must(t, json.Unmarshal(c.Out.Bytes(), &p))
	if p.Names != 40 || p.share(p.Moves) != fmt.Sprint(goes) || p.share(p.Groups[1].Next) != fmt.Sprint(goes) || p.Map != "2:a" || p.Next != "4:a,b" || p.RestMS < 30_000 {
		t.Errorf("%d names move, and the plan is %+v", goes, p)
	}
}

func TestGroups_plan_names_what_stands_in_the_way(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b", "c")
	nodes := func(names ...string) string { return all.nodes(names...) }
	other := "d=" + strings.TrimPrefix(nodes("c"), "c=")
	for _, test := range []struct {
		told, nodes, over string
		code              int
		says              []string
	}{
		{"3:a,b>b", nodes("a", "b"), "a", cli.ExitFailure, []string{"names are moving to the groups b: spread them over these first"}},
		{"2:a,b,c", nodes("a", "b"), "a", cli.ExitFailure, []string{`group "c": its masters must be given`}},
		{"2:a,b", nodes("a", "b") + "," + other, "", cli.ExitConfig, []string{`its clients call it "c", this one "d"`}},
		{"2:a,b", nodes("a") + ",127.0.0.1:1," + nodes("b"), "", cli.ExitConfig, []string{"127.0.0.1:1: ", "connection refused", "its clients have 3 masters", "number 2, groups a and b"}},
		{"2:a", strings.Replace(nodes("a", "b"), all["b"][0].Addr(), "127.0.0.1:1", 1), "", cli.ExitFailure, []string{"127.0.0.1:1: ", "connection refused", "number 4, groups a and b"}},
		{"2:a", strings.Replace(nodes("a", "b"), all["b"][0].Addr(), all["a"][0].Addr(), 1), "", cli.ExitConfig, []string{"same server"}},
	} {
		tell(t, all.all(), test.told)
		c := clitest.New(t, "groups", "plan", "--nodes", test.nodes, "--over", test.over).Begin()
		if code := c.End(); code != test.code {
			t.Errorf("%s over %q: exit code %d, want %d\n%s%s", test.nodes, test.over, code, test.code, &c.Out, &c.Errors)
		}
		wantSaid(t, c, append(test.says, "in the way:")...)
	}
}

// A master that is full would be told no map, after others were told one.
func TestGroups_are_not_spread_where_a_master_stores_nothing(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	tell(t, all.all(), "2:a")
	full := all["b"][2]
	full.Do("CONFIG", "SET", "maxmemory", "1")
	before := all.dump(t)
	for _, what := range []string{"plan", "apply"} {
		c := all.command(t, "groups", what, "--guard", "1s", "--over", "a,b").Begin()
		c.WantExit(cli.ExitFailure)
		if said := c.Out.String() + c.Errors.String(); !strings.Contains(said, full.Addr()+": OOM") {
			t.Errorf("%s does not name the master that is full:\n%s", what, said)
		}
	}
	if after := all.dump(t); after != before {
		t.Errorf("it has changed\n%sto\n%s", before, after)
	}
}

// Each refusal names the flag, the value and what is allowed.
func TestGroups_refuses_bad_flags(t *testing.T) {
	t.Parallel()
	const three = "a=h:1,h:2,h:3"
	for _, test := range []struct {
		args []string
		says []string
	}{
		{[]string{"plan", "--nodes", "h:1,h:2,h:3"}, []string{"--nodes: names no group: must be a=host:port"}},
		{[]string{"plan", "--nodes", "h:1,a=h:2"}, []string{"--nodes: address 1 of 2: must have its group before it"}},
		{[]string{"plan", "--nodes", "a=h:1,a=h:2"}, []string{`--nodes: group "a": is given twice`}},
		{[]string{"plan", "--nodes", "a=,b=h:2"}, []string{`--nodes: group "a": must have a master behind its =`}},
		{[]string{"plan", "--nodes", "=h:1"}, []string{`--nodes: group name "": must be 1 to 64`}},
		{[]string{"plan", "--nodes", "a=h:1,h:2"}, []string{`--nodes: group "a": has 2 masters, and must have 3 at least`}},
		{[]string{"plan", "--nodes", three, "--over", "a,b"}, []string{`--over "b": must be of the groups that --nodes gives, a`}},
		{[]string{"plan", "--nodes", three, "--over", "a,a"}, []string{`--over "a": is given twice`}},
		{[]string{"plan", "--nodes", three, "--group", "a"}, []string{`--group "a": is not for redlock groups`}},
		{[]string{"plan", "--nodes", three, "--guard", "10ms"}, []string{"--guard 10ms: must be more than --node-timeout, 50ms"}},
		{[]string{"plan", "--nodes", three, "--names", "none"}, []string{"--names: open none"}},
		{[]string{"plan", "--nodes", three, "--names", "-"}, []string{"--names -: has no names in it"}},
		{[]string{"plan", "--nodes", "a=user:secret@h:1"}, []string{"--nodes: address 1 of 1 has an @"}},
		{[]string{"apply", "--nodes", three, "--json"}, []string{"--json and --names are for groups plan"}},
		{[]string{"--nodes", three}, []string{"say what to do"}},
		{[]string{"do", "--nodes", three}, []string{"say what to do"}},
	} {
		c := clitest.New(t, append([]string{"groups"}, test.args...)...).Begin()
		c.WantExit(cli.ExitUsage)
		c.WantStderr(test.says...)
		c.WantNoSecret("secret")
	}
}

// A command about one group takes it from those of --nodes.
func TestNodes_of_several_groups_are_chosen_by_group(t *testing.T) {
	t.Parallel()
	all := someGroups{"a": redistest.StartN(t, 3), "b": redistest.StartN(t, 3)}
	c := all.command(t, "init").Begin()
	c.WantExit(cli.ExitUsage)
	c.WantStderr("--nodes gives the groups a and b", "choose it with --group")
	c = all.command(t, "init", "--group", "c").Begin()
	c.WantExit(cli.ExitUsage)
	c.WantStderr(`--group "c": must be one of the groups that --nodes gives, a and b`)

	all.command(t, "init", "--group", "b").Begin().WantExit(0)
	clitest.New(t, "init", "--nodes", all.nodes("a")).Begin().WantExit(0)

	for name, masters := range all {
		if m := markerOf(t, masters[1]); m.Group.Name != name {
			t.Errorf("group %s is marked %v", name, m.Group)
		}
	}
}
