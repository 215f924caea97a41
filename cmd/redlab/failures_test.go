package main

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/cli/clitest"
	"github.com/quorumlock/quorumlock/simulate"
)

// Each argument about Redlock names scenarios that there are.
func TestEach_argument_is_a_scenario_to_run(t *testing.T) {
	debate := clitest.Between(t, clitest.Read(t, clitest.Tree+"/docs/guarantees.md"), "## The debate", "\n## ")
	rows := 0
	for line := range strings.Lines(debate) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.Contains(cells[3], "`") {
			continue
		}
		rows++
		for i, name := range strings.Split(cells[3], "`") {
			if i%2 == 1 && simulate.Find(name) == nil {
				t.Errorf("there is no scenario %s", name)
			}
		}
	}
	if rows < 9 {
		t.Errorf("only %d arguments", rows)
	}
}

// failure is a row of docs/failures.md.
type failure struct {
	name  string
	shown string // the last column
}

var rowOfFailures = regexp.MustCompile(`(?m)^\| ([SLVR]\d+[a-d]?) \| (.*) \|$`)

func knownFailures(t *testing.T) map[string]failure {
	t.Helper()
	rows := map[string]failure{}
	for _, m := range rowOfFailures.FindAllStringSubmatch(clitest.Read(t, clitest.Tree+"/docs/failures.md"), -1) {
		cells := strings.Split(m[2], " | ")
		if _, twice := rows[m[1]]; twice {
			t.Errorf("%s has two rows", m[1])
		}
		rows[m[1]] = failure{cells[0], cells[len(cells)-1]}
	}
	if len(rows) < 60 {
		t.Fatalf("only %d rows found", len(rows))
	}
	return rows
}

// sources calls do for every file that speaks of failures.
func sources(t *testing.T, do func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(clitest.Tree, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "peers"):
			return filepath.SkipDir
		case d.IsDir():
		case strings.Contains(".go .lua .md .txt", filepath.Ext(path)) && filepath.Ext(path) != "":
			do(path, clitest.Read(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A code in a comment, a page or the name of a test is explained somewhere.
func TestEvery_failure_that_is_named_has_its_row(t *testing.T) {
	code := regexp.MustCompile(`(?:\b|_|\bTest)([SL][1-9]\d?[a-d]?)(?:\b|_|[A-Z])`)
	rows := knownFailures(t)
	sources(t, func(path, text string) {
		for _, m := range code.FindAllStringSubmatch(text, -1) {
			if _, ok := rows[m[1]]; !ok {
				t.Errorf("%s speaks of %s, which has no row in docs/failures.md", path, m[1])
			}
		}
	})
}

// What a row names exists, and a row that names nothing says so.
func TestEvery_failure_is_shown_by_what_its_row_says(t *testing.T) {
	tests := testNames(t)
	named := regexp.MustCompile("`([^`]+)`")
	for code, row := range knownFailures(t) {
		shown := named.FindAllStringSubmatch(row.shown, -1)
		if honest := row.shown == "not shown yet"; honest == (len(shown) > 0) {
			t.Errorf("%s is shown by %q: must name tests and scenarios, or be %q", code, row.shown, "not shown yet")
		}
		for _, m := range shown {
			switch scenario := simulate.Find(m[1]); {
			case strings.HasPrefix(m[1], "Test"):
				if !tests[m[1]] {
					t.Errorf("%s: there is no %s", code, m[1])
				}
			case scenario == nil || scenario.Row != code:
				t.Errorf("%s: there is no scenario %s of this row", code, m[1])
			}
		}
	}
}

// Every scenario of the simulator stands in its row.
func TestEvery_scenario_is_in_its_row(t *testing.T) {
	rows := knownFailures(t)
	for _, s := range simulate.Catalogue {
		if !strings.Contains(rows[s.Row].shown, "`"+s.Name+"`") {
			t.Errorf("%s is shown by %q: the scenario %s is missing", s.Row, rows[s.Row].shown, s.Name)
		}
	}
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) {`)

func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	sources(t, func(path, text string) {
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range testFunction.FindAllStringSubmatch(text, -1) {
				names[m[1]] = true
			}
		}
	})
	return names
}
