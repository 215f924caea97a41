package simulate

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
)

// ReadCorpus reads the schedules of a directory, in the order of their names. One that
// is not there has none.
func ReadCorpus(dir string) ([]*Schedule, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("simulate: corpus: %w", err)
	}
	var all []*Schedule
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("simulate: corpus: %w", err)
		}
		s, err := ReadSchedule(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%w in %s", err, name)
		}
		all = append(all, s)
	}
	return all, nil
}

// WriteCorpus writes each schedule to a file of the directory, by a name that tells what
// is in it, and returns the names.
func WriteCorpus(dir string, schedules []*Schedule) (names []string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("simulate: corpus: %w", err)
	}
	for _, s := range schedules {
		text, err := json.Marshal(s)
		if err != nil {
			return names, fmt.Errorf("simulate: corpus: %w", err)
		}
		h := fnv.New64a()
		h.Write(text)
		name := filepath.Join(dir, fmt.Sprintf("%016x.json", h.Sum64()))
		if err := os.WriteFile(name, append(text, '\n'), 0o666); err != nil {
			return names, fmt.Errorf("simulate: corpus: %w", err)
		}
		names = append(names, name)
	}
	return names, nil
}

// Kept returns the schedules that a guided run has kept, in the order in which they were
// run, without those of its Corpus.
func (r *Report) Kept() []*Schedule {
	var kept []*Schedule
	for _, k := range r.guide.kept {
		if !k.isOld {
			kept = append(kept, k.schedule)
		}
	}
	return kept
}
