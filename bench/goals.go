package bench

import (
	"fmt"
	"math"
)

// Verdict is a goal and whether it was reached.
type Verdict struct {
	Row      string  `json:"row"`
	Goal     string  `json:"goal"`
	Measured float64 `json:"-"`
	Shown    string  `json:"measured"`
	Met      bool    `json:"met"`
}

// Judge compares a Full run on five masters with what this library promises of its
// speed. A goal without a measurement is not met.
func (r *Report) Judge() []Verdict {
	us, floor, pool, them := on("redlock", 5), Redigo().Name, RedigoPool(64).Name, on("redsync", 5)
	one, many := PairsOf(1), PairsOf(64)
	hung := func(callers int, m Metric) float64 {
		w := DegradedOf(callers)
		return math.Max(r.Value(w, us, named(OneHung, m)), r.Value(w, us, named(TwoHung, m)))
	}
	killed := func(callers int, m Metric) float64 { return r.Value(DegradedOf(callers), us, named(OneKilled, m)) }
	left := 0.0
	for _, callers := range []int{1, 64} {
		left += r.Value(DegradedOf(callers), us, LeftAfter) + r.Value(DegradedOf(callers), us, Leaked)
	}
	times := "%.2fx"
	return []Verdict{
		atMost("one caller: p50 of a pair / plain redigo on one", 2, times, r.Ratio(one, us, floor, P50)),
		atLeast("64 callers: pairs/s on 5 / redsync on 5", 8, times, r.Ratio(many, us, them, PerSecond)),
		atLeast("64 callers: pairs/s on 5 / redigo pool on one", 1.2, times, r.Ratio(many, us, pool, PerSecond)),
		atMost("64 callers: client CPU per pair", 10, "%.1f µs", r.Value(many, us, ClientCPU)),
		atMost("64 callers, 1 or 2 of 5 hung: p50 / healthy", 1.1, times, hung(64, P50Ratio)),
		atMost("64 callers, 1 or 2 of 5 hung: p99 / healthy", 1.1, times, hung(64, P99Ratio)),
		atMost("one caller, 1 or 2 of 5 hung: p50 / healthy", 1.1, times, hung(1, P50Ratio)),
		atMost("one caller, 1 or 2 of 5 hung: p99 / healthy", 1.1, times, hung(1, P99Ratio)),
		below("one caller, 1 or 2 of 5 hung: p99", 1000, "%.0f µs", hung(1, P99)),
		atMost("64 callers, 1 of 5 killed: p50 / healthy", 1.1, times, killed(64, P50Ratio)),
		atMost("one caller, 1 of 5 killed: p50 / healthy", 1.1, times, killed(1, P50Ratio)),
		below("one caller, 1 of 5 killed: p99", 1000, "%.0f µs", killed(1, P99)),
		atMost("hung and killed: goroutines left", 0, "%.0f", left),
		atMost("hand-off: p50 of the gap", 200, "%.0f µs", r.Value(RelaxedHandoff, us, P50)),
		atMost("hand-off: commands per acquisition, all servers", 15, "%.1f", r.Value(RelaxedHandoff, us, Commands)),
		atMost("10,000 held: bytes each", 400, "%.0f B", r.Value("held", us, BytesHeld)),
		atMost("10,000 held: goroutines", 20, "%.0f", r.Value("held", us, GoroutinesHeld)),
		atMost("10,000 held: share of a core", 5, "%.1f %%", r.Value("held", us, CoreShare)),
		atMost("allocations per pair, one caller", 20, "%.1f", r.Value(one, us, Allocations)),
		atMost("allocations per pair, 64 callers", 20, "%.1f", r.Value(many, us, Allocations)),
		atMost("keys left by 100,000 pairs", 0, "%.0f", r.Value("orphans", us, Leftover)),
	}
}

// JudgeRemote compares every distance of a run on five masters with what this
// library promises of networks, in units of R, see Distance.R.
func (r *Report) JudgeRemote() (all []Verdict) {
	us, poll, tuned := on("redlock", 5), RedigoPolling().Name, "redsync tuned"
	const trips, times = "%.2f R", "%.2fx"
	for _, d := range r.distances() {
		one, handoff := PairsOf(1)+"@"+d, RelaxedHandoff+"@"+d
		all = append(all,
			atMost(d+": one caller: p50 of a pair", 2.2, trips, r.Value(one, us, P50R)),
			atMost(d+": hand-off: p50 of the gap", 1.15, trips, r.Value(handoff, us, P50R)),
			atMost(d+": hand-off: p99 of the gap", 2, trips, r.Value(handoff, us, P99R)),
			atMost(d+": hand-off: commands per acquisition", 15, "%.1f", r.Value(handoff, us, Commands)),
			atLeast(d+": hand-offs/s / redsync tuned", 1.3, times, r.Ratio(handoff, us, tuned, PerSecond)),
			atLeast(d+": hand-off: fairness", 0.95, "%.2f", r.Value(handoff, us, Fairness)),
		)
		if r.isEven(d) {
			all = append(all, atLeast(d+": hand-offs/s / redigo polling one", 1, times, r.Ratio(handoff, us, poll, PerSecond)))
		}
	}
	return all
}

func atMost(row string, goal float64, format string, v float64) Verdict {
	return verdict(row, "<= ", goal, format, v, v <= goal)
}

func atLeast(row string, goal float64, format string, v float64) Verdict {
	return verdict(row, ">= ", goal, format, v, v >= goal)
}

func below(row string, goal float64, format string, v float64) Verdict {
	return verdict(row, "< ", goal, format, v, v < goal)
}

func verdict(row, relation string, goal float64, format string, v float64, met bool) Verdict {
	shown := "not measured"
	if !math.IsNaN(v) {
		shown = fmt.Sprintf(format, v)
	}
	return Verdict{Row: row, Goal: relation + fmt.Sprintf(format, goal), Measured: v, Shown: shown, Met: met}
}
