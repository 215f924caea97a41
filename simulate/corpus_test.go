package simulate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

// The schedules in testdata/corpus reach more than as many seeds do: they are what was left
// of 5,000, of which each reached something that none before it had. Those in testdata/found
// broke a promise once, reduced: the names of their files tell why.
func TestSchedules_in_files_break_no_promise(t *testing.T) {
	for _, dir := range []string{"corpus", "found"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			names, err := filepath.Glob(filepath.Join("testdata", dir, "*.json"))
			if err != nil || len(names) == 0 {
				t.Fatalf("no schedules: %v", err)
			}
			for _, name := range names {
				mustKeepThePromises(t, name)
			}
		})
	}
}

func mustKeepThePromises(t *testing.T, name string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := plan.ReadSchedule(f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := RunSchedule(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, failed := range r.Failures {
		t.Errorf("%s: %v\n%v", name, failed.Violations, s)
	}
}
