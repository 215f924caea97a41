package redlock_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/defaults"
	"github.com/quorumlock/quorumlock/internal/hostile"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

// BenchmarkHostile is what masters that misbehave, whatever they are asked, cost a
// client in a process of its own. It locks and unlocks fifty times, of which the
// median and the slowest are told, and does nothing for a second, of which the
// processor time is told. Each is that of the way to misbehave by which it is most.
// None of five masters is hostile, one, two; or three, and then no attempt succeeds.
func BenchmarkHostile(b *testing.B) {
	servers := redistest.StartN(b, 5)
	for hostiles := range 4 {
		b.Run(fmt.Sprintf("of five=%d", hostiles), func(b *testing.B) {
			var median, slowest, busiest, largest most
			behaviours := hostile.Behaviours()
			if hostiles == 0 {
				behaviours = behaviours[:1]
			}
			for _, what := range behaviours {
				cost := costOf(b, servers, hostiles, what)
				median.see(cost.took[len(cost.took)/2].Seconds()*1e3, what.Name)
				slowest.see(cost.took[len(cost.took)-1].Seconds()*1e3, what.Name)
				busiest.see(cost.cpu*100, what.Name)
				largest.see(float64(cost.resident)/1e6, what.Name)
			}
			b.ReportMetric(median.value, "ms-median")
			b.ReportMetric(slowest.value, "ms-slowest")
			b.ReportMetric(busiest.value, "%-idle")
			b.ReportMetric(largest.value, "MB")
			b.Logf("median: %v; slowest: %v; busiest: %v; largest: %v", median, slowest, busiest, largest)
		})
	}
}

// most is the highest value, and whose it is.
type most struct {
	value float64
	name  string
}

func (m *most) see(value float64, name string) {
	if value >= m.value {
		*m = most{value, fmt.Sprintf("%.40s", name)}
	}
}

type hostileCost struct {
	took     []time.Duration
	cpu      float64 // of one core
	resident int
}

// costOf has some of five masters misbehave from when a client is connected.
func costOf(b *testing.B, servers []*redistest.Server, hostiles int, what hostile.Behaviour) (cost hostileCost) {
	var masters []*hostile.Master
	var addrs []string
	for i, s := range servers {
		m, err := hostile.Start(fmt.Sprint("hostile-", i), s.Addr())
		if err != nil {
			b.Fatal(err)
		}
		defer m.Close()
		masters, addrs = append(masters, m), append(addrs, m.Addr())
	}
	p := startProcess(b, addrs, 10*time.Second, processTimeout+"="+defaults.NodeTimeout.String())
	defer p.kill()
	eventually(b, "it is connected", func() bool { return strings.HasSuffix(p.ask("pair"), "<nil>") })
	for _, m := range masters[:hostiles] {
		m.Misbehave(func(hostile.Request) bool { return true }, what)
	}
	for range 50 {
		said, _, _ := strings.Cut(p.ask("pair"), " ")
		took, err := time.ParseDuration(said)
		if err != nil {
			b.Fatal(err)
		}
		cost.took = append(cost.took, took)
	}
	slices.Sort(cost.took)
	before, began := processorTime(b, p), time.Now()
	time.Sleep(time.Second)
	cost.cpu = float64(processorTime(b, p)-before) / float64(time.Since(began))
	cost.resident = residentSet(b, p)
	return cost
}

// processorTime is what a process has used so far.
func processorTime(b *testing.B, p *process) (sum time.Duration) {
	b.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, task := range tasks {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", p.cmd.Process.Pid, task.Name()))
		ran, _, _ := strings.Cut(string(stat), " ")
		n, _ := strconv.ParseInt(ran, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// residentSet is the most memory that a process has had, in bytes.
func residentSet(b *testing.B, p *process) int {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(string(status), "\n")
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "VmHWM:") })
	kilobytes := 0
	if i >= 0 {
		fmt.Sscanf(lines[i], "VmHWM: %d kB", &kilobytes)
	}
	return kilobytes << 10
}
