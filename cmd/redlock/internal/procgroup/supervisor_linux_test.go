package procgroup

import (
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/cli/clitest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == superviseCommand { // Start calls this program
		if err := Commands()[0].RunE(nil, os.Args[2:]); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// opened counts what is read of each process.
type opened struct {
	fs.FS
	of map[string]int
}

func (o opened) Open(name string) (fs.File, error) {
	process, _, _ := strings.Cut(name, "/")
	o.of[process]++
	return o.FS.Open(name)
}

// Machines with thousands of processes kill as fast as others.
func TestS57_nothing_is_read_of_processes_that_the_command_has_not_started(t *testing.T) {
	c := exec.Command("sh", "-c", "sleep 60 & sh -c 'sleep 60 & wait' & wait")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		c.Wait()
	})
	var proc opened
	var found []int
	if !clitest.Eventually(30*time.Second, func() bool {
		proc = opened{os.DirFS("/proc"), map[string]int{}}
		found = descendantsIn(proc, c.Process.Pid)
		return len(found) == 3
	}) {
		t.Fatalf("found the processes %v, want three", found)
	}
	byParent := descendantsByParent(os.DirFS("/proc"), c.Process.Pid)
	slices.Sort(found)
	slices.Sort(byParent)
	if !slices.Equal(found, byParent) {
		t.Errorf("found %v, and by parents %v", found, byParent)
	}
	delete(proc.of, "thread-self")
	delete(proc.of, strconv.Itoa(c.Process.Pid))
	for _, pid := range found {
		delete(proc.of, strconv.Itoa(pid))
	}
	if len(proc.of) > 0 {
		t.Errorf("read of other processes: %v", proc.of)
	}
}

func TestA_supervisor_runs_nothing_when_the_lock_has_ended(t *testing.T) {
	path, err := exec.LookPath("touch")
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/ran"
	_, err = Start(path, []string{"touch", file}, os.Environ(), nil, boottime()-1)
	if err == nil {
		t.Error("the command was started")
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the command ran")
	}
}
