package chaos

import (
	"reflect"
	"testing"
	"time"
)

func fiveMinutes(seed uint64) *Config {
	return &Config{Seed: seed, Duration: 5 * time.Minute, Masters: 5, Clients: 5, Kinds: Kinds, Workloads: Workloads}
}

func TestA_seed_always_has_the_same_faults(t *testing.T) {
	if !reflect.DeepEqual(fiveMinutes(7).plan(), fiveMinutes(7).plan()) {
		t.Error("two plans of seed 7 differ")
	}
	if reflect.DeepEqual(fiveMinutes(7).plan(), fiveMinutes(8).plan()) {
		t.Error("the plans of seeds 7 and 8 are the same")
	}
}

func TestFive_minutes_have_every_kind_of_fault(t *testing.T) {
	for seed := range uint64(20) {
		seen := map[string]int{}
		for _, f := range fiveMinutes(seed).plan() {
			seen[f.Kind.Name]++
		}
		for _, k := range Kinds {
			if seen[k.Name] == 0 {
				t.Errorf("seed %d has no %s", seed, k.Name)
			}
		}
	}
}

func TestClocks_are_set_while_nothing_else_happens_to_masters_and_links(t *testing.T) {
	for seed := range uint64(50) {
		c := fiveMinutes(seed)
		faults := c.plan()
		for _, clock := range faults {
			if clock.Kind.component != aClock {
				continue
			}
			for _, f := range faults {
				if f.Kind == clock.Kind && f.At == clock.At || f.Kind.component == aClient {
					continue
				}
				if f.end() > clock.At-c.alone() && f.At < clock.end()+c.alone() {
					t.Errorf("seed %d: %s from %v to %v is near to %s from %v to %v",
						seed, f.Kind.Name, f.At, f.end(), clock.Kind.Name, clock.At, clock.end())
				}
			}
		}
	}
}

func TestFaults_of_one_target_come_one_after_the_other(t *testing.T) {
	for seed := range uint64(50) {
		faults := fiveMinutes(seed).plan()
		for i, a := range faults {
			for _, b := range faults[i+1:] {
				if a.Kind.component == b.Kind.component && b.At < a.end() && haveInCommon(a.Targets, b.Targets) {
					t.Errorf("seed %d: %s at %v and %s at %v hit the same %s", seed, a.Kind.Name, a.At, b.Kind.Name, b.At, a.Kind.component)
				}
			}
		}
	}
}

func haveInCommon(a, b []int) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				return true
			}
		}
	}
	return false
}

func TestKinds_are_found_by_name(t *testing.T) {
	kinds, err := KindsOf("flush, kill")
	if err != nil || len(kinds) != 2 || kinds[0].Name != "kill" || kinds[1].Name != "flush" {
		t.Errorf("got %v, %v", kindNames(kinds), err)
	}
	if _, err := KindsOf("flush,earthquake"); err == nil {
		t.Error("an earthquake was accepted")
	}
}
