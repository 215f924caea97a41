package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
)

// What several machines ran is what one would have run.
func TestShards_merge_to_the_whole_run(t *testing.T) {
	whole := savedVerdict(t, "--seed", "100", "--seeds", "10")
	var parts []string
	for _, part := range []string{"3/3", "1/3", "2/3"} { // in any order
		parts = append(parts, savedVerdict(t, "--seed", "100", "--seeds", "10", "--shard", part))
	}

	out, code := simulated(append([]string{"merge", "--json"}, parts...)...)

	if code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	file, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := counts(t, out), counts(t, string(file)); got != want {
		t.Errorf("merged:\n%s\nwant:\n%s", got, want)
	}
	if out, code := simulated(append([]string{"merge"}, parts...)...); code != 0 || !strings.Contains(out, "SAFE") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestMerge_refuses_what_does_not_belong_together(t *testing.T) {
	first := savedVerdict(t, "--seeds", "2")
	third := savedVerdict(t, "--seeds", "2", "--seed", "4")
	fair := savedVerdict(t, "--seeds", "2", "--seed", "2", "--kind", "fair")
	odd := filepath.Join(t.TempDir(), "odd.json")
	if err := os.WriteFile(odd, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		files []string
		code  int
		says  string
	}{
		{[]string{first, first}, cli.ExitUsage, "seed 0 is in two of the parts"},
		{[]string{first, fair}, cli.ExitUsage, "locks of kind fair"},
		{[]string{third, first}, cli.ExitFailure, "missing: seeds 2 to 3"},
		{[]string{odd}, cli.ExitUsage, "not a verdict"},
		{[]string{"nowhere.json"}, cli.ExitUsage, "nowhere.json"},
	} {
		if out, code := simulated(append([]string{"merge"}, c.files...)...); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%v: exit code %d, want %d, and %q in: %s", c.files, code, c.code, c.says, out)
		}
	}
}

func TestShard_is_checked(t *testing.T) {
	for args, says := range map[string]string{
		"--shard 1":             "i from 1 to n",
		"--shard 0/2":           "i from 1 to n",
		"--shard 3/2":           "i from 1 to n",
		"--shard a/b":           "i from 1 to n",
		"--shard 1/2/3":         "i from 1 to n",
		"--seeds 2 --shard 1/3": "only 2 schedules",
		"--shard 1/2 failover":  "nothing else",
		"--shard 1/2 --explore": "nothing else",
	} {
		if out, code := simulated(strings.Fields(args)...); code == 0 || !strings.Contains(out, says) {
			t.Errorf("%s: exit code %d, and no %q in: %s", args, code, says, out)
		}
	}
}

// savedVerdict runs some schedules and returns the file with the verdict.
func savedVerdict(t *testing.T, args ...string) string {
	t.Helper()
	out, code := simulated(append(args, "--json")...)
	if code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, out)
	}
	file := filepath.Join(t.TempDir(), "verdict.json")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// counts is a verdict without its hash and the time that it took.
func counts(t *testing.T, text string) string {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	delete(v, "hash")
	delete(v, "took_ns")
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
