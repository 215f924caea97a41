package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// descendants returns the processes that pid has started, and their descendants, as
// far as they can be found by their parents.
func descendants(pid int) (all []int) {
	children := map[int][]int{}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		child, _ := strconv.Atoi(filepath.Base(folder))
		if parent, ok := parentOf(child); ok {
			children[parent] = append(children[parent], child)
		}
	}
	for next := children[pid]; len(next) > 0; next = next[1:] {
		all = append(all, next[0])
		next = append(next, children[next[0]]...)
	}
	return all
}

// parentOf reports false for a process that is gone or waits to be reaped.
func parentOf(pid int) (parent int, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The state stands behind the name, which is in parentheses and may contain
	// anything.
	var state string
	fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent)
	return parent, state != "Z"
}
