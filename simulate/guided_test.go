package simulate

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// guided runs schedules that are short, and enough of them for a generation of mutants.
func guided(t *testing.T, cfg Config) *Report {
	t.Helper()
	cfg.Guided, cfg.Seeds, cfg.Duration = true, generation+64, 3*time.Second
	r, err := Run(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Coverage.Mutants == 0 || r.Coverage.States == 0 {
		t.Fatalf("nothing was guided: %+v", r.Coverage)
	}
	return r
}

func TestAGuidedRunDoesNotDependOnHowManyWorkersThereAre(t *testing.T) {
	t.Parallel()
	one, two := guided(t, Config{Swarm: true, Workers: 1}), guided(t, Config{Swarm: true, Workers: 2})

	if one.Hash != two.Hash || *one.Coverage != *two.Coverage {
		t.Errorf("with one worker %x, %+v; with two %x, %+v", one.Hash, one.Coverage, two.Hash, two.Coverage)
	}
	if a, b := inJSON(t, one.Kept()), inJSON(t, two.Kept()); !bytes.Equal(a, b) {
		t.Error("with two workers other schedules were kept than with one")
	}
}

func inJSON(t *testing.T, what any) []byte {
	t.Helper()
	text, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestLookingAtStatesChangesNothing(t *testing.T) {
	t.Parallel()
	for _, transport := range []Transport{Fast, Production} {
		cfg := Config{Swarm: true, Duration: 5 * time.Second, Faults: Anything, Transport: transport}
		if err := cfg.check(); err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(20) {
			blind, err := draw(&cfg, seed).run(options{})
			if err != nil {
				t.Fatal(err)
			}
			looking, err := draw(&cfg, seed).run(options{cover: true})
			if err != nil {
				t.Fatal(err)
			}
			if blind.hash != looking.hash || len(looking.reached) == 0 {
				t.Errorf("%s, seed %d: hash %x, and %x if it is asked for states, of which %d were reached", transport, seed, blind.hash, looking.hash, len(looking.reached))
			}
		}
	}
}

// A mutant is no seed: its file must bring back what it broke, as it was and reduced.
func TestAMutantThatBreaksAPromiseDoesSoFromItsFile(t *testing.T) {
	t.Parallel()
	r := guided(t, Config{Swarm: true, TTL: 100 * time.Millisecond, Seed: 400, Faults: Only(Evict, Delete)})
	for _, f := range r.Failures {
		if !f.Mutant {
			continue
		}
		again, err := ReadSchedule(bytes.NewReader(inJSON(t, f.Schedule())))
		if err != nil {
			t.Fatal(err)
		}
		same, err := RunSchedule(again)
		if err != nil {
			t.Fatal(err)
		}
		if same.Safe() || !reflect.DeepEqual(same.Failures[0].Violations, f.Violations) {
			t.Errorf("from its file: %v\nwant %v", same.Failures, f.Violations)
		}
		small, err := r.Shrink(f)
		if err != nil {
			t.Fatal(err)
		}
		if again, err = ReadSchedule(bytes.NewReader(inJSON(t, small))); err != nil {
			t.Fatal(err)
		}
		if same, err = RunSchedule(again); err != nil {
			t.Fatal(err)
		}
		if same.Safe() || same.Failures[0].Violations[0].Kind != f.Violations[0].Kind {
			t.Errorf("reduced, from its file: %v\nwant %v", same.Failures, f.Violations[0])
		}
		return
	}
	t.Fatalf("no mutant broke a promise: %+v, %d of %d schedules did", r.Coverage, r.Stats.Unsafe, r.Stats.Schedules)
}

// Within the assumptions, a mutant that breaks a promise must prove something.
func TestMutantsKeepToTheAssumptions(t *testing.T) {
	cfg := Config{Swarm: true}
	if err := cfg.check(); err != nil {
		t.Fatal(err)
	}
	dice, steps := newStream(1, "test"), 0
	s := draw(&cfg, 0)
	for seed := range uint64(3000) {
		s = s.mutant(dice, draw(&cfg, seed))
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
		kinds, stepped := map[Kind]int{}, map[int]bool{}
		for _, f := range s.Faults {
			switch {
			case f.At < 0 || f.At > s.config.Duration || f.For < 0:
				t.Errorf("mutant %d: %v", seed, f)
			case f.Kind == Step && f.Size > 0:
				kinds["forward"]++
				stepped[f.Node] = true
			case f.Kind == Step:
				kinds["back"]++
			case f.Kind == ClientStep && f.Size < 0:
				kinds["client back"]++
			}
			kinds[f.Kind]++
		}
		steps += len(stepped)
		if kinds["forward"] > 0 && (kinds["back"] > 0 || kinds[Freeze] > 0 || len(stepped) > (s.config.Nodes-1)/2) {
			t.Errorf("mutant %d: clocks that lie in two ways, or of too many masters:\n%v", seed, s)
		}
		if kinds["client back"] > 0 && kinds[ClientSuspend] > 0 {
			t.Errorf("mutant %d: a client's clocks lie about the same time:\n%v", seed, s)
		}
		if seed%10 == 0 {
			s = draw(&cfg, seed) // of another world
		}
	}
	if steps == 0 {
		t.Error("no clock was set forward")
	}
}

func TestDistilledSchedulesReachWhatIsSaid(t *testing.T) {
	t.Parallel()
	r := guided(t, Config{Swarm: true})
	few, states, err := r.Distil(5)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Run(Config{Swarm: true, Guided: true, Corpus: few, Seeds: len(few)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(few) != 5 || again.Coverage.States != states {
		t.Errorf("%d schedules reach %d states, not %d", len(few), again.Coverage.States, states)
	}
	if n := len(again.Kept()); n != 0 {
		t.Errorf("%d schedules of the corpus are kept as new ones", n)
	}
}
