package soak

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// Sample is what must not grow, at one moment.
type Sample struct {
	When        string
	Heap        uint64 // bytes that are in use after a garbage collection
	Resident    uint64 // bytes of this process
	Goroutines  int
	Descriptors int // open files of this process
	Connections int // at all masters
	Keys        int // at all masters, the restart guard's marker not counted
}

// sample takes one and keeps it.
func (t *trial) sample(when string) Sample {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	s := Sample{When: when, Heap: memory.HeapAlloc, Resident: resident(), Goroutines: runtime.NumGoroutine(), Descriptors: descriptors()}
	for _, m := range t.masters {
		s.Connections += t.clients(m)
		s.Keys += t.keys(m)
	}
	t.report.Samples = append(t.report.Samples, s)
	return s
}

type asker interface {
	Do(command string, args ...any) (any, error)
}

// clients counts the connections to a master, but for our own. A master that
// is just being restarted has none.
func (t *trial) clients(m asker) int {
	info, err := redis.String(m.Do("INFO", "clients"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(info) {
		if count, ok := strings.CutPrefix(strings.TrimSpace(line), "connected_clients:"); ok {
			n, _ := strconv.Atoi(count)
			return n - 1
		}
	}
	return 0
}

// The keys that stay: the restart guard's marker, and the record of the clock.
const (
	marker = "redlock:marker"
	clock  = "redlock:clock"
)

// keys counts the stored keys. It uses SCAN, which passes over keys that have expired.
// DBSIZE counts them until Redis has come across them, which takes minutes with
// 100,000 others.
func (t *trial) keys(m asker) (n int) {
	for cursor := "0"; ; {
		page, err := redis.Values(m.Do("SCAN", cursor, "COUNT", 10_000))
		if err != nil || len(page) != 2 {
			return n
		}
		names, _ := redis.Strings(page[1], nil)
		for _, name := range names {
			if name != marker && name != clock {
				n++
			}
		}
		if cursor, _ = redis.String(page[0], nil); cursor == "0" {
			return n
		}
	}
}

// resident is the memory that the system has given us, 0 where it cannot be
// known.
func resident() uint64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages uint64
	fmt.Sscan(string(statm), &size, &pages)
	return pages * uint64(os.Getpagesize())
}

func descriptors() int {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(files)
}
