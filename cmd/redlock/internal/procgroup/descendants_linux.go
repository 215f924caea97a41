package procgroup

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// descendants returns the processes that pid has started, and their descendants, as
// far as they can be found by their parents. Some may have ended.
func descendants(pid int) (all []int) {
	return descendantsIn(os.DirFS("/proc"), pid)
}

// descendantsIn reads nothing of other processes: there may be thousands of them, and
// the time in which to kill is short.
func descendantsIn(proc fs.FS, pid int) (all []int) {
	if _, err := fs.Stat(proc, "thread-self/children"); err != nil {
		return descendantsByParent(proc, pid)
	}
	for next := children(proc, pid); len(next) > 0; next = next[1:] {
		all = append(all, next[0])
		next = append(next, children(proc, next[0])...)
	}
	return all
}

// children returns those of every thread of pid. A thread that has ended has none.
func children(proc fs.FS, pid int) (all []int) {
	threads, _ := fs.ReadDir(proc, fmt.Sprintf("%d/task", pid))
	for _, thread := range threads {
		list, _ := fs.ReadFile(proc, fmt.Sprintf("%d/task/%s/children", pid, thread.Name()))
		for _, field := range bytes.Fields(list) {
			child, _ := strconv.Atoi(string(field))
			all = append(all, child)
		}
	}
	return all
}

// descendantsByParent is for a kernel that does not list children
// (CONFIG_PROC_CHILDREN).
func descendantsByParent(proc fs.FS, pid int) (all []int) {
	children := map[int][]int{}
	folders, _ := fs.Glob(proc, "[0-9]*")
	for _, folder := range folders {
		child, _ := strconv.Atoi(folder)
		if parent, ok := parentOf(proc, child); ok {
			children[parent] = append(children[parent], child)
		}
	}
	for next := children[pid]; len(next) > 0; next = next[1:] {
		all = append(all, next[0])
		next = append(next, children[next[0]]...)
	}
	return all
}

// parentOf reports false for a process that is gone.
func parentOf(proc fs.FS, pid int) (parent int, ok bool) {
	stat, err := fs.ReadFile(proc, fmt.Sprintf("%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The state stands behind the name, which is in parentheses and may contain
	// anything.
	var state string
	fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent)
	return parent, true
}
