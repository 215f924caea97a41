package chaos

import (
	"testing"
	"time"
)

func TestA_wait_for_a_lock_that_nobody_has_is_found(t *testing.T) {
	const second = time.Second
	for name, test := range map[string]struct {
		waits []wait
		want  int
	}{
		"nobody wanted it":           {nil, 0},
		"wanted for a moment":        {[]wait{{"c0", "counter", 40 * second, 40*second + second/2}}, 0},
		"wanted while somebody had":  {[]wait{{"c0", "counter", 29 * second, 31 * second}}, 0},
		"wanted during the faults":   {[]wait{{"c0", "counter", 4 * second, 9 * second}}, 0},
		"wanted and free":            {[]wait{{"c0", "counter", 40 * second, 45 * second}}, 1},
		"wanted until told to end":   {[]wait{{"c0", "counter", 59 * second, 65 * second}}, 0},
		"another one wanted, free":   {[]wait{{"c0", "register-0", 40 * second, 45 * second}}, 0},
		"wanted twice, free":         {[]wait{{"c0", "counter", 40 * second, 45 * second}, {"c0", "counter", 41 * second, 46 * second}}, 2},
		"on a machine that stood":    {[]wait{{"c1", "counter", 40 * second, 42*second + second/2}}, 0},
		"others stood still":         {[]wait{{"c0", "counter", 40 * second, 42*second + second/2}}, 1},
		"wanted since the faults on": {[]wait{{"c0", "counter", 5 * second, 25 * second}}, 1},
	} {
		h := historyOf(held("a", 30*second, 31*second))
		h.waits = test.waits
		h.stalls = map[string][]stallSpan{"c1": {{41 * second, 42 * second}}}
		r := &Report{Config: Config{Workloads: []*Workload{counter}}, Healed: 10 * second, Dismissed: 60 * second, History: h}
		if got := r.progress(); len(got) != test.want {
			t.Errorf("%s: %d findings, want %d: %v", name, len(got), test.want, got)
		}
	}
}
