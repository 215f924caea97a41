package simulate

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumlock/quorumlock/simulate/internal/plan"
)

func hashes(t *testing.T, cfg plan.Config) []uint64 {
	t.Helper()
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	var list []uint64
	for i := range cfg.Seeds {
		r, err := run(plan.Draw(&cfg, cfg.Seed+uint64(i)), options{})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r.hash)
	}
	return list
}

func TestA_seed_always_gives_the_same_run(t *testing.T) {
	cfg := plan.Config{Seeds: 40, Duration: 20 * time.Second / slower, Faults: plan.Anything}
	first := hashes(t, cfg)

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	again := hashes(t, cfg)

	distinct := map[uint64]bool{}
	for i := range first {
		if first[i] != again[i] {
			t.Errorf("seed %d: hash %x, then %x", i, first[i], again[i])
		}
		distinct[first[i]] = true
	}
	if len(distinct) != len(first) {
		t.Errorf("%d seeds gave %d different runs", len(first), len(distinct))
	}
}

// hashOnly in the environment makes the test binary print one hash and exit.
const hashOnly = "SIMULATE_HASH_ONLY"

func TestMain(m *testing.M) {
	if slower == 1 {
		debug.SetGCPercent(GCPercent)
		debug.SetMemoryLimit(1 << 30)
	}
	if os.Getenv(hashOnly) != "" {
		fmt.Printf("%016x\n", manyRuns())
		os.Exit(0)
	}
	if os.Getenv(panicOnly) != "" {
		panicInACallback()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func manyRuns() uint64 {
	r, err := Run(plan.Config{Seeds: 100, Duration: 10 * time.Second / slower, Faults: plan.Anything}, nil)
	if err != nil {
		panic(err)
	}
	return r.Hash
}

func TestEvery_process_sees_the_same_runs(t *testing.T) {
	want := fmt.Sprintf("%016x\n", manyRuns())
	for _, procs := range []string{"1", "2"} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), hashOnly+"=1", "GOMAXPROCS="+procs)
		got, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("GOMAXPROCS=%s in another process: hash %s, want %s", procs, got, want)
		}
	}
}

func TestHow_many_workers_does_not_matter(t *testing.T) {
	run := func(workers int) *Report {
		r, err := Run(plan.Config{Seeds: 40, Duration: 10 * time.Second / slower, Workers: workers}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	one, three := run(1), run(3)
	if one.Hash != three.Hash {
		t.Errorf("hash %x with one worker, %x with three", one.Hash, three.Hash)
	}
}

func BenchmarkSchedule(b *testing.B) {
	b.Run("drawn", func(b *testing.B) { benchmark(b, plan.Config{Swarm: true}) }) // as redlab simulate does
	b.Run("fast", func(b *testing.B) { benchmark(b, plan.Config{}) })
	b.Run("production", func(b *testing.B) { benchmark(b, plan.Config{Transport: plan.Production}) })
}

func benchmark(b *testing.B, cfg plan.Config) {
	if err := cfg.Check(); err != nil {
		b.Fatal(err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(GCPercent))
	events := uint64(0)
	seed := uint64(0)
	for b.Loop() {
		r, err := run(plan.Draw(&cfg, seed), options{})
		if err != nil {
			b.Fatal(err)
		}
		events += r.stats.Events
		seed++
	}
	s := b.Elapsed().Seconds()
	b.ReportMetric(float64(b.N)/s, "schedules/s")
	b.ReportMetric(float64(events)/s, "events/s")
}
