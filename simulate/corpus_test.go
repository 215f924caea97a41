package simulate

import "testing"

// The schedules in testdata/corpus are what `make corpus` left of a long guided run. They
// reach far more than as many seeds do, in less time.
func TestTheCorpusBreaksNoPromise(t *testing.T) {
	t.Parallel()
	corpus, err := ReadCorpus("testdata/corpus")
	if err != nil {
		t.Fatal(err)
	}
	run := func(cfg Config) *Report {
		t.Helper()
		cfg.Swarm, cfg.Guided, cfg.Seeds = true, true, len(corpus)
		r, err := Run(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Failures {
			t.Errorf("schedule %d: %v", f.Seed, f.Violations)
		}
		return r
	}
	kept, fresh := run(Config{Corpus: corpus}), run(Config{Mutate: -1})

	t.Logf("%d schedules reach %d states, in %v; as many fresh ones %d, in %v",
		len(corpus), kept.Coverage.States, kept.Took, fresh.Coverage.States, fresh.Took)
	if kept.Coverage.States < fresh.Coverage.States*5/4 {
		t.Errorf("%d schedules reach %d states, and as many fresh ones %d: time for make corpus", len(corpus), kept.Coverage.States, fresh.Coverage.States)
	}
}

// Mutants and stressed schedules that broke a promise once, reduced. The names of the
// files tell why.
func TestMutantsThatOnceBrokeAPromise(t *testing.T) {
	found, err := ReadCorpus("testdata/found")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("there are none")
	}
	for _, s := range found {
		r, err := RunSchedule(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Failures {
			t.Errorf("%v\n%v", f.Violations, s)
		}
	}
}
