package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/internal/cli/clitest"
)

func TestGuidedFlagsAreChecked(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "odd.json"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, says := range map[string]string{
		"--corpus x":                    "--corpus: needs --guided",
		"--mutate 20":                   "--mutate: needs --guided",
		"--keep 3":                      "--keep: needs --guided",
		"--guided --keep 3":             "--keep: needs --corpus",
		"--guided --corpus x --keep -1": "--keep -1",
		"--guided --mutate 101":         "--mutate 101",
		"--guided --mutate -1":          "--mutate -1",
		"--guided --shard 1/2":          "--guided: guides random runs, and not a part of them",
		"--guided --explore":            "not small worlds",
		"--guided failover":             "not a scenario",
		"--guided --schedule x":         "not one schedule",
		"--guided --corpus " + dir:      "odd.json",
		// Not after a run, when what it found is lost.
		"--guided --corpus " + filepath.Join(dir, "odd.json"):        "--corpus: must be a directory",
		"--guided --corpus " + filepath.Join(dir, "odd.json", "new"): "--corpus: must be a directory",
	} {
		if out, code := simulated(strings.Fields(args)...); code != cli.ExitUsage || !strings.Contains(out, says) {
			t.Errorf("%s: exit code %d, and no %q in: %s", args, code, says, out)
		}
	}
}

func TestAGuidedRunGoesOnFromItsCorpus(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "corpus")
	run := func(want string, args ...string) {
		t.Helper()
		out, code := simulated(append([]string{"--guided", "--corpus", dir, "--duration", "5s"}, args...)...)
		if code != 0 || !strings.Contains(out, want) || !strings.Contains(out, "states reached, by") {
			t.Errorf("%v: exit code %d, and no %q in:\n%s", args, code, want, out)
		}
		clitest.WantColumns(t, strings.ReplaceAll(out, dir, "DIR"), 80)
	}
	files := func() int {
		names, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	run("schedules were added to "+dir, "--seeds", "6")
	before := files()
	if before < 2 {
		t.Fatalf("%d schedules were kept", before)
	}
	run("0 schedules were added", "--seeds", "6") // all of them are known
	if n := files(); n != before {
		t.Errorf("%d schedules, and %d after what was in them was run again", before, n)
	}
	run("2 schedules are left", "--seeds", "8", "--keep", "2")
	if n := files(); n != 2 {
		t.Errorf("%d schedules, want the 2 that are kept", n)
	}
	out, code := simulated("--guided", "--corpus", dir, "--faults", "calm", "--seeds", "4")
	if code != cli.ExitUsage || !strings.Contains(out, "of faults assumed") {
		t.Errorf("exit code %d, and the corpus is of other faults: %s", code, out)
	}
}

func TestAScheduleThatFailsInAGuidedRunCanBeRunAgain(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := filepath.Join(t.TempDir(), "corpus")
	args := []string{"--guided", "--corpus", dir, "--faults", "evict", "--ttl", "100ms", "--duration", "5s", "--seeds", "24"}
	simulated(args...)

	out, _ := simulated(append(args, "--fail-fast")...) // now the first ones are of the corpus

	_, command, found := strings.Cut(out, "To run it again: redlab simulate")
	if !found {
		t.Fatalf("no command to run it again in:\n%s", out)
	}
	command, _, _ = strings.Cut(command, ".json")
	again, code := simulated(strings.Fields(command + ".json")...)
	if code != cli.ExitFailure || !strings.Contains(again, "UNSAFE") {
		t.Errorf("exit code %d, it broke nothing:\n%s", code, again)
	}
}
