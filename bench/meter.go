package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// meter reads what work has cost so far.
type meter struct {
	at                     time.Time
	client, servers, lines time.Duration // CPU
	known                  bool          // servers is known
	mallocs                uint64
}

// read reads all meters. It stops the world for a moment, so it stands before
// and after a measurement.
func (t *Trial) read() meter {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	m := meter{client: clientCPU(), mallocs: mem.Mallocs, known: len(t.Masters) > 0}
	for _, master := range t.Masters {
		b, ok := master.(Breakable)
		if !ok {
			m.known = false
			continue
		}
		cpu, err := processCPU(b.Pid())
		m.servers += cpu
		m.known = m.known && err == nil
	}
	if t.distance != nil {
		m.lines, _ = processCPU(t.distance.pid)
	}
	m.at = time.Now()
	return m
}

// cost sets the values of everything between two readings, for each of n
// operations.
func (t *Trial) cost(from, to meter, n int64) {
	if n == 0 {
		return
	}
	per := func(d time.Duration) float64 { return micros(d) / float64(n) }
	t.Set(PerSecond, float64(n)/to.at.Sub(from.at).Seconds())
	t.Set(ClientCPU, per(to.client-from.client))
	t.Set(Allocations, float64(to.mallocs-from.mallocs)/float64(n))
	if to.known {
		t.Set(ServerCPU, per(to.servers-from.servers))
	}
	if t.distance != nil {
		t.Set(LineCPU, per(to.lines-from.lines))
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// clientCPU is what this process has used, user and system.
func clientCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// processCPU is the CPU time of another process, by the scheduler's own account.
func processCPU(pid int) (time.Duration, error) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	var sum time.Duration
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has just ended
		}
		ns, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(ns, 10, 64)
		sum += time.Duration(n)
	}
	if sum == 0 {
		return 0, fmt.Errorf("process %d: its CPU time is unknown", pid)
	}
	return sum, nil
}

// Latencies from 100 ns to a minute, to one percent.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(100*time.Nanosecond), int64(time.Minute), 2)
}

// record takes a latency; a latency beyond the scale counts as its end.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	h.RecordValue(min(max(int64(d), h.LowestTrackableValue()), h.HighestTrackableValue()))
}

// latencies keeps a distribution under a name, and sets the percentiles of the
// unnamed one as values.
func (t *Trial) latencies(name string, h *hdrhistogram.Histogram) {
	t.latency[name] = h
	if h.TotalCount() == 0 {
		return
	}
	t.Set(named(name, P50), micros(time.Duration(h.ValueAtQuantile(50))))
	t.Set(named(name, P99), micros(time.Duration(h.ValueAtQuantile(99))))
}

// named is the metric of a part of a workload: "two hung/p50_us".
func named(part string, m Metric) Metric {
	if part == "" {
		return m
	}
	return Metric(part) + "/" + m
}

// settleGoroutines waits until no more than want goroutines are left, but no
// longer than patience, and returns how many are too many.
func settleGoroutines(want int, patience time.Duration) int {
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if extra := runtime.NumGoroutine() - want; extra <= 0 || time.Now().After(deadline) {
			return max(extra, 0)
		}
	}
}

// steadyGoroutines waits until the number of goroutines has not changed for a
// while, two seconds at most, and returns it: a client may still be connecting
// to the last masters when it is ready for use.
func steadyGoroutines() int {
	n, since := runtime.NumGoroutine(), time.Now()
	for deadline := since.Add(2 * time.Second); time.Since(since) < 100*time.Millisecond && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
		if now := runtime.NumGoroutine(); now != n {
			n, since = now, time.Now()
		}
	}
	return n
}
