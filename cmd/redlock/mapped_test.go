package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/node/guard"
)

// tellers are masters of the groups a and b that tell these maps.
func tellers(maps ...string) (all []facts) {
	for i, text := range maps {
		of := "ab"[i/3 : i/3+1]
		all = append(all, facts{Node: of + string(rune('1'+i%3)), Of: of, group: guard.GroupID{Size: 3, Name: of, Map: text}})
	}
	return all
}

func TestEvery_finding_about_the_map_has_its_severity(t *testing.T) {
	for name, test := range map[string]struct {
		all      []facts
		ungiven  bool // --nodes names no groups
		severity severity
		nodes    string
		says     string
		do       string
	}{
		"one map":      {tellers("2:a,b", "2:a,b", "2:a,b", "2:a,b", "2:a,b", "2:a,b"), false, "", "", "", ""},
		"no groups":    {tellers("", "", ""), true, "", "", "", ""},
		"no map":       {tellers("", "", "", "", "", ""), false, critical, "a1 a2 a3 b1 b2 b3", "no map", "redlock groups apply"},
		"not given":    {tellers("2:a,b", "", ""), true, critical, "a1", "spread names over several groups", "Give all groups in --nodes"},
		"forgotten":    {tellers("2:a,b", "2:a,b", "2:a,b", "2:a,b", "", "2:a,b"), false, warning, "b2", "do not tell the newest map, 2:a,b", "--over a,b."},
		"older":        {tellers("2:a,b", "2:a,b", "2:a,b", "2:a,b", "2:a,b", "1:a>a,b"), false, warning, "b3", "do not tell the newest map", "--over a,b."},
		"not ended":    {tellers("3:a>a,b", "3:a>a,b", "3:a>a,b", "3:a>a,b", "3:a>a,b", "3:a>a,b"), false, warning, "a1 a2 a3 b1 b2 b3", "names move", "run it again, --over a,b."},
		"more groups":  {tellers("2:a,b,c", "2:a,b,c", "2:a,b,c", "2:a,b,c", "2:a,b,c", "2:a,b,c"), false, warning, "a1 a2 a3 b1 b2 b3", "does not give: c", "add them to --nodes"},
		"fewer groups": {tellers("2:a", "2:a", "2:a", "2:a", "2:a", "2:a"), false, note, "b1 b2 b3", "have no names", "Give the group some"},
	} {
		found := mapped(test.all, !test.ungiven, true)
		switch {
		case test.severity == "" && len(found) == 0:
		case len(found) != 1 || found[0].Severity != test.severity || strings.Join(found[0].Nodes, " ") != test.nodes ||
			!strings.Contains(found[0].What, test.says) || !strings.Contains(found[0].Do, test.do):
			t.Errorf("%s: found %+v, want one %s about %s that says %q and %q", name, found, test.severity, test.nodes, test.says, test.do)
		}
	}
}

func TestDoctor_looks_at_every_group(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b")
	tell(t, all.all(), "2:a,b")
	c := all.command(t, "doctor", "--node-timeout", "10s").Begin()
	c.WantExit(0)
	wantSaid(t, c, "group a", "group b", all["b"][2].Addr())
	clitest.WantColumns(t, c.Out.String(), 80)

	tell(t, all["b"], "3:a,b>a")
	c = all.command(t, "doctor", "--node-timeout", "10s").Begin()
	c.WantExit(exitWarning)
	wantSaid(t, c, "all masters of group a: do not tell the newest map, 3:a,b>a",
		"all masters of group b: tell that names move (map 3:a,b>a), and nobody gets these", "run it again, --over a.")

	c = all.command(t, "doctor", "--node-timeout", "10s", "--group", "a", "--json").Begin()
	c.WantExit(0)
	var got checkup
	clitest.Must(t, json.Unmarshal(c.Out.Bytes(), &got))
	if len(got.Masters) != 3 || got.Masters[0].Of != "a" {
		t.Errorf("JSON: %+v", got)
	}

	c = clitest.New(t, "doctor", "--nodes", strings.TrimPrefix(all.nodes("a"), "a="), "--node-timeout", "10s").Begin()
	c.WantExit(exitCritical)
	wantSaid(t, c, "spread names over several groups (map 2:a,b)")
}

func TestHealthcheck_is_about_every_group(t *testing.T) {
	t.Parallel()
	all := startGroups(t, "a", "b", "c") // c gets no names
	args := []string{"healthcheck", "--restart-guard", "1s"}
	c := all.command(t, append(args, "--timeout", "1s")...).Begin()
	c.WantExit(69)
	c.WantStderr("it has no map of groups")
	all.apply(t, "a,b").Begin().WantExit(0)
	all.command(t, args...).Begin().WantExit(0)
	all["b"][0].Kill()
	all["b"][1].Kill()
	c = all.command(t, append(args, "--timeout", "1s")...).Begin()
	c.WantExit(69)
	c.WantStderr(all["b"][0].Addr())
}
