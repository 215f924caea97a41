package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/node/guard"
)

// sound is a master that nothing is wrong with.
func sound() facts {
	return facts{
		Node: "a:1", Version: "7.0.0", RunID: "run-a", Uptime: span(time.Hour),
		AppendOnly: "yes", AppendFsync: "always", Policy: "noeviction", UsedMemory: 1,
		ClockError: span(time.Millisecond), P50: span(time.Millisecond), P99: span(2 * time.Millisecond),
	}
}

func TestEvery_finding_has_its_severity(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*facts)
		want   severity
		says   string
	}{
		"sound":               {func(f *facts) {}, "", ""},
		"evicts":              {func(f *facts) { f.Policy, f.MaxMemory = "allkeys-lru", 1<<20 }, critical, "allkeys-lru"},
		"would evict":         {func(f *facts) { f.Policy = "volatile-ttl" }, note, "volatile-ttl"},
		"full":                {func(f *facts) { f.MaxMemory, f.UsedMemory = 100, 95 }, warning, "95 %"},
		"over the limit":      {func(f *facts) { f.MaxMemory, f.UsedMemory = 100, 101 }, warning, "grants no locks (OOM)"},
		"too few replicas":    {func(f *facts) { f.MinReplicas, f.InSync = "2", 1 }, warning, "has 1 of the replicas"},
		"enough replicas":     {func(f *facts) { f.MinReplicas, f.InSync = "1", 1 }, "", ""},
		"no replicas counted": {func(f *facts) { f.MinReplicas, f.InSync = "1", -1 }, "", ""}, // min-replicas-max-lag 0
		"writes on":           {func(f *facts) { f.Trouble, f.Save, f.StopWrites = "rdb_last_bgsave_status", "3600 1", "no" }, warning, "rdb_last_bgsave_status"},
		"no marker":           {func(f *facts) { f.NoMarker = true }, warning, "is not a marker of ours"},
		"disk":                {func(f *facts) { f.Trouble = "aof_last_write_status" }, warning, "aof_last_write_status"},
		"clock ahead":         {func(f *facts) { f.ClockOffset = span(2 * time.Second) }, warning, "2s ahead of ours"},
		"clock behind":        {func(f *facts) { f.ClockOffset = span(-3 * time.Second) }, warning, "3s behind ours"},
		"clock within bounds": {func(f *facts) { f.ClockOffset, f.ClockError = span(2*time.Second), span(time.Second) }, "", ""},
		"denied":              {func(f *facts) { f.Denied = []string{"SET: NOPERM"} }, critical, "SET: NOPERM"},
		"limited":             {func(f *facts) { f.Limited = []string{"ZADD: NOPERM"} }, warning, "ZADD: NOPERM"},
		"no persistence":      {func(f *facts) { f.AppendOnly = "no" }, note, "forgets locks"},
		"everysec":            {func(f *facts) { f.AppendFsync = "everysec" }, note, "last second"},
		"replicas":            {func(f *facts) { f.Replicas = 1 }, note, "replicas"},
		"unseen":              {func(f *facts) { f.Unseen = []string{"INFO"} }, note, "INFO"},
		"quarantined":         {func(f *facts) { f.Quarantine, f.Forgot = span(time.Second), "it restarted" }, note, "must not grant locks yet: it restarted"},
		"slow":                {func(f *facts) { f.P99 = span(40 * time.Millisecond) }, warning, "40ms"},
		"silent":              {func(f *facts) { f.Error = "connection refused" }, warning, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			all := []facts{sound(), sound(), sound()}
			all[1].Node, all[1].RunID = "b:1", "run-b"
			all[2].Node, all[2].RunID = "c:1", "run-c"
			test.change(&all[1])
			found := judge(all, 50*time.Millisecond, guard.GroupID{})
			if test.want == "" {
				if len(found) != 0 {
					t.Errorf("found %+v, want nothing", found)
				}
				return
			}
			if len(found) != 1 || found[0].Severity != test.want || !strings.Contains(found[0].What, test.says) ||
				!slices.Equal(found[0].Nodes, []string{"b:1"}) || found[0].Do == "" {
				t.Errorf("found %+v, want one %s that says %q", found, test.want, test.says)
			}
		})
	}
}

func TestFindings_about_all_masters(t *testing.T) {
	twice := []facts{sound(), sound(), sound()}
	twice[1].Node, twice[2].Node, twice[2].RunID = "b:1", "c:1", "run-c"
	down := []facts{sound(), {Node: "b:1", Error: "no"}, {Node: "c:1", Error: "no"}}
	resting := []facts{sound(), sound(), sound()}
	for i := range resting {
		resting[i].RunID, resting[i].Quarantine = string(rune('a'+i)), span(time.Second)
	}
	split := []facts{sound(), sound(), sound()}
	for i := range split {
		split[i].RunID, split[i].Group = string(rune('a'+i)), "3 masters"
	}
	split[2].Group = "5 masters"
	even := []facts{sound(), sound(), sound(), sound()}
	for i := range even {
		even[i].RunID = string(rune('a' + i))
	}
	for code, makes := range map[string]func(f *facts){
		"OOM":        func(f *facts) { f.MaxMemory, f.UsedMemory = 100, 100 },
		"MISCONF":    func(f *facts) { f.Trouble, f.Save = "rdb_last_bgsave_status", "3600 1" },
		"MISCONF 2":  func(f *facts) { f.Trouble = "aof_last_write_status" },
		"NOREPLICAS": func(f *facts) { f.MinReplicas = "1" },
	} {
		all := []facts{sound(), sound(), sound()}
		for i := range all {
			all[i].RunID = string(rune('a' + i))
			if i > 0 {
				makes(&all[i])
			}
		}
		if found := judge(all, 50*time.Millisecond, guard.GroupID{}); found[0].Severity != critical || found[0].What != "only 1 of 3 store locks, 2 are needed" {
			t.Errorf("%s: found %+v", code, found)
		}
	}
	mixed := []facts{sound(), sound(), sound()}
	for i := range mixed {
		mixed[i].RunID = string(rune('a' + i))
	}
	mixed[0].MinReplicas, mixed[1].Quarantine = "1", span(time.Second)
	both := finding{warning, []string{mixed[0].Node, mixed[1].Node, mixed[2].Node}, "only 1 of 3 vote and store locks, 2 are needed", "They grant no new lock until more of them do."}
	if found := judge(mixed, 50*time.Millisecond, guard.GroupID{}); !slices.ContainsFunc(found, func(f finding) bool { return reflect.DeepEqual(f, both) }) {
		t.Errorf("found %+v, want %+v among them", found, both)
	}
	for says, test := range map[string]struct {
		all  []facts
		want severity
	}{
		"the same server":     {twice, critical},
		"only 1 of 3 answer":  {down, critical},
		"only 0 of 3 vote":    {resting, warning},
		"one group":           {split, critical},
		"an even number":      {even, note},
		"no locks without it": {[]facts{sound()}, note},
	} {
		found := judge(test.all, 50*time.Millisecond, guard.GroupID{})
		if len(found) == 0 || found[0].Severity != test.want || !strings.Contains(found[0].What, says) {
			t.Errorf("found %+v, want first a %s that says %q", found, test.want, says)
		}
	}
}

func TestDoctor_on_real_masters(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 3)
	clitest.OnMasters(t, masters, "init").Begin().WantExit(0)
	keys := func() int64 {
		n, err := masters[0].Do("DBSIZE")
		if err != nil {
			t.Fatal(err)
		}
		return n.(int64)
	}
	before := keys()
	args := []string{"doctor", "--node-timeout", "10s"}
	c := clitest.OnMasters(t, masters, args...)
	c.Begin().WantExit(0)
	c.WantStdout("7.", "note", "all masters: forgets locks when it restarts")
	for line := range strings.Lines(c.Out.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if after := keys(); after != before {
		t.Errorf("%d keys before doctor looked, %d afterwards", before, after)
	}

	masters[2].Kill()
	c = clitest.OnMasters(t, masters, args...)
	c.Begin().WantExit(exitWarning)
	c.WantStdout("refused")

	for _, set := range [][]any{{"maxmemory", "100mb"}, {"maxmemory-policy", "allkeys-lru"}} {
		if _, err := masters[0].Do("CONFIG", append([]any{"SET"}, set...)...); err != nil {
			t.Fatal(err)
		}
	}
	c = clitest.OnMasters(t, masters, append(args, "--json")...)
	c.Begin().WantExit(exitCritical)
	var got checkup
	if err := json.Unmarshal(c.Out.Bytes(), &struct{ Findings *[]finding }{&got.Findings}); err != nil {
		t.Fatal(err)
	}
	if len(got.Findings) == 0 || got.Findings[0].Severity != critical || !strings.Contains(got.Findings[0].What, "allkeys-lru") {
		t.Errorf("findings: %+v", got.Findings)
	}
}

// documentedRights are the rules in docs/permissions.md.
func documentedRights(t *testing.T) []string {
	t.Helper()
	_, rules, ok := strings.Cut(clitest.Read(t, clitest.Tree+"/docs/permissions.md"), ">password ")
	rules, _, _ = strings.Cut(rules, "```")
	if !ok {
		t.Fatal("docs/permissions.md has no rules")
	}
	return strings.Fields(rules)
}

func TestDoctor_is_content_with_the_documented_rights(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 1, redistest.User("ann", "pw", documentedRights(t)...))
	c := clitest.New(t, "doctor", "--json", "--nodes", masters[0].URL(), "--prefix", "app:", "--node-timeout", "10s")
	c.Begin().End()
	var got checkup
	if err := json.Unmarshal(c.Out.Bytes(), &got); err == nil && len(got.Masters) == 1 {
		if m := got.Masters[0]; m.Error != "" || len(m.Denied)+len(m.Limited) > 0 {
			t.Errorf("error %q, denied %q, limited %q", m.Error, m.Denied, m.Limited)
		}
	} else {
		t.Errorf("error %v: %s%s", err, &c.Out, &c.Errors)
	}
}

// Whatever right is missing, doctor says which.
func TestDoctor_names_every_missing_right(t *testing.T) {
	t.Parallel()
	rights := documentedRights(t)
	for _, right := range rights {
		name, ok := strings.CutPrefix(right, "+")
		if !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			others := slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return r == right })
			masters := redistest.StartN(t, 1, redistest.User("ann", "pw", append(others, "+acl|whoami", "+acl|dryrun")...))
			c := clitest.New(t, "doctor", "--nodes", masters[0].URL(), "--prefix", "app:", "--node-timeout", "10s")
			code := c.Begin().End()
			command, _, _ := strings.Cut(strings.ToUpper(name), "|")
			want := exitWarning
			if slices.Contains(needed, command) {
				want = exitCritical
			}
			said := "refuses " + strings.ReplaceAll(strings.ToUpper(name), "|", " ") + " (NOPERM)"
			if command == "SADD" && !dryRuns(t, masters[0]) {
				said = "whether SADD is allowed"
			}
			if code != want || !strings.Contains(oneLine(c.Out.String()), said) {
				t.Errorf("exit code %d, want %d, and %s named:\n%s", code, want, command, &c.Out)
			}
		})
	}
}

// dryRuns reports whether a server answers ACL DRYRUN: Redis 7 and later does.
func dryRuns(t *testing.T, s *redistest.Server) bool {
	t.Helper()
	_, err := s.Do("ACL", "DRYRUN", "default", "PING")
	if err != nil && !strings.Contains(strings.ToLower(err.Error()), "unknown subcommand") {
		t.Fatal(err)
	}
	return err == nil
}

// Who may do nothing is told so once, with a list, and not once for every command.
func TestDoctor_lists_the_missing_rights_of_a_master_once(t *testing.T) {
	t.Parallel()
	masters := redistest.StartN(t, 1, redistest.User("ann", "pw", append(documentedRights(t), "-set", "-get", "-del", "-zadd", "-publish")...))
	c := clitest.New(t, "doctor", "--nodes", masters[0].URL(), "--prefix", "app:", "--node-timeout", "10s")
	c.Begin().WantExit(exitCritical)
	said := oneLine(c.Out.String())
	for _, want := range []string{"refuses SET, GET and DEL (NOPERM)", "refuses ZADD and PUBLISH (NOPERM)"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, &c.Out)
		}
	}
	if n := strings.Count(said, "NOPERM"); n != 2 {
		t.Errorf("it says NOPERM %d times:\n%s", n, &c.Out)
	}
}

// oneLine undoes the wrapping.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// SADD cannot be tried without making a key, so doctor asks. Who may not ask is told
// what was not seen, and that is no alarm.
func TestDoctor_says_what_of_a_latch_it_saw(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rights []string
		how    severity
		want   string
	}{
		"may not ask":        {nil, note, "whether SADD is allowed"},
		"may ask who it is":  {[]string{"+acl|whoami"}, note, "whether SADD is allowed"},
		"may ask":            {[]string{"+acl|whoami", "+acl|dryrun"}, "", ""},
		"may not SADD":       {[]string{"+acl|whoami", "+acl|dryrun", "-sadd"}, warning, "refuses SADD (NOPERM)"},
		"may not SADD there": {[]string{"+acl|whoami", "+acl|dryrun", "resetkeys", "~app:redlock:queue:*", "~app:redlock:wait:*", "~app:redlock:marker", "~app:doctor-*"}, warning, "the keys app:redlock:latch:*"},
		"may not SET there":  {[]string{"+acl|whoami", "+acl|dryrun", "resetkeys", "~app:redlock:queue:*", "~app:redlock:wait:*", "~app:redlock:marker", "~app:doctor-*", "~app:redlock:latch:*"}, warning, "the keys app:redlock:arrivals:*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			masters := redistest.StartN(t, 1, redistest.User("ann", "pw", append(documentedRights(t), test.rights...)...))
			c := clitest.New(t, "doctor", "--json", "--nodes", masters[0].URL(), "--prefix", "app:", "--node-timeout", "10s")
			c.Begin().End()
			var got checkup
			if err := json.Unmarshal(c.Out.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			how := severity("")
			for _, f := range got.Findings {
				if strings.Contains(f.What, "SADD") || strings.Contains(f.What, "latch") || strings.Contains(f.What, "arrivals") {
					how = f.Severity
				}
			}
			if test.how != note && !dryRuns(t, masters[0]) {
				test.how, test.want = note, "whether SADD is allowed"
			}
			if how != test.how || !strings.Contains(c.Out.String(), test.want) {
				t.Errorf("%q, want %q, and %q:\n%s", how, test.how, test.want, &c.Out)
			}
		})
	}
}

// Whichever keys or channels are out of reach, doctor says which.
func TestDoctor_names_every_missing_pattern(t *testing.T) {
	t.Parallel()
	for missing, test := range map[string]struct {
		instead []string
		code    int
		want    []string
	}{
		"~app:*": {
			[]string{"~app:doctor-*"}, exitCritical,
			[]string{"app:redlock:marker, app:redlock:queue:* and app:redlock:wait:* (NOPERM)"},
		},
		"&app:redlock:wait:*": {nil, exitWarning, []string{"refuses the channels app:redlock:wait:*"}},
	} {
		t.Run(missing, func(t *testing.T) {
			rights := slices.DeleteFunc(documentedRights(t), func(right string) bool { return right == missing })
			masters := redistest.StartN(t, 1, redistest.User("ann", "pw", append(test.instead, rights...)...))
			c := clitest.New(t, "doctor", "--json", "--nodes", masters[0].URL(), "--prefix", "app:", "--node-timeout", "10s")
			code := c.Begin().End()
			said := c.Out.String()
			for _, want := range test.want {
				if !strings.Contains(said, want) {
					t.Errorf("%s is not named", want)
				}
			}
			if code != test.code || t.Failed() {
				t.Errorf("exit code %d, want %d:\n%s", code, test.code, said)
			}
		})
	}
}

// A master that does not answer leaves the columns of the others where they are.
func TestThe_table_of_masters_keeps_its_columns(t *testing.T) {
	all := checkup{Masters: []facts{sound(), {Node: "b:1", Error: "connection refused"}, sound()}}
	all.Masters[2].P99 = span(12345 * time.Microsecond)
	var out strings.Builder
	if err := all.show(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	at := strings.Index(lines[0], "MEMORY")
	for _, i := range []int{1, 3} {
		if line := lines[i]; len(line) <= at || line[at-1] != ' ' || line[at] == ' ' {
			t.Errorf("no memory at column %d:\n%s", at, &out)
		}
	}
}
