package procgroup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Group is a command in a process group of its own, run by a supervisor. A signal also
// reaches the processes that the command started, unless they left the group; a kill
// reaches those, too.
type Group struct {
	ID      int                     // of the group, and of the command
	Changes chan syscall.WaitStatus // the command was stopped; at last, it ended

	supervisor *os.Process
	orders     io.WriteCloser
	gone       atomic.Bool // nothing is left, also outside the group
	late       atomic.Bool // the supervisor found the deadline passed and kills
	deadline   time.Duration
	doomed     atomic.Bool   // it was told to kill
	stuck      time.Duration // when it should have done so, on CLOCK_BOOTTIME
	ended      sync.WaitGroup
}

// Start runs the command at path, in the foreground of the terminal if it is
// offered. The command and its processes are dead by the deadline unless that is
// moved.
func Start(path string, argv, env []string, t *Terminal, deadline time.Duration) (*Group, error) {
	first := order{Deadline: deadline, Foreground: t.offered()}
	// If the supervisor is killed, we inherit its processes.
	adoptOrphans()
	g, reports, err := startSupervisor(path, argv, env)
	if err != nil {
		return nil, fmt.Errorf("the supervisor of the command: %w", err)
	}
	g.tell(first)
	decoder := json.NewDecoder(reports)
	var r report
	err = decoder.Decode(&r)
	if err == nil && r.Failure != "" {
		err = errors.New(r.Failure)
	}
	if err != nil {
		g.Leave()
		reports.Close()
		return nil, err
	}
	g.ID, g.deadline = r.Started, deadline
	if t != nil {
		t.lent = first.Foreground
	}
	g.ended.Go(func() {
		defer reports.Close()
		g.follow(decoder)
	})
	return g, nil
}

// startSupervisor starts this very program again. It has a group of its own, so that
// neither ^C nor a signal to our group reaches it. Its ends of the pipes keep their
// numbers, which no descriptor has that we inherited for the command.
func startSupervisor(path string, argv, env []string) (g *Group, reports *os.File, err error) {
	ordersRead, ordersWrite, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer ordersRead.Close()
	reports, reportsWrite, err := os.Pipe()
	if err != nil {
		ordersWrite.Close()
		return nil, nil, err
	}
	defer reportsWrite.Close()
	args := []string{os.Args[0], superviseCommand, inheritable(ordersRead), inheritable(reportsWrite), path}
	p, err := os.StartProcess("/proc/self/exe", append(args, argv...), &os.ProcAttr{
		Env:   env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		ordersWrite.Close()
		reports.Close()
		return nil, nil, err
	}
	g = &Group{Changes: make(chan syscall.WaitStatus), supervisor: p, orders: ordersWrite}
	go g.keepGoing()
	return g, reports, nil
}

// inheritable has the next process inherit a descriptor, and returns its number.
func inheritable(f *os.File) string {
	fd := f.Fd()
	unix.FcntlInt(fd, unix.F_SETFD, 0)
	return strconv.Itoa(int(fd))
}

// keepGoing continues a supervisor that was stopped, and returns when it has ended.
func (g *Group) keepGoing() {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(g.supervisor.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil || !status.Stopped():
			return
		default:
			g.supervisor.Signal(syscall.SIGCONT)
		}
	}
}

// adoptOrphans makes us the parent of orphaned descendants. An old kernel that cannot
// do so leaves them to init.
func adoptOrphans() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// follow takes in the supervisor's reports.
func (g *Group) follow(decoder *json.Decoder) {
	running := true
	for {
		var r report
		if decoder.Decode(&r) != nil {
			break
		}
		switch {
		case r.Status != nil:
			running = r.Status.Stopped()
			g.Changes <- *r.Status
		case r.Expired:
			g.late.Store(true)
		case r.Gone:
			g.gone.Store(true)
		}
	}
	if running || g.doomed.Load() && !g.gone.Load() {
		g.inherit()
	}
	if running {
		g.Changes <- syscall.WaitStatus(syscall.SIGKILL)
	}
}

// inherit ends the processes that a killed supervisor has left to us: the kernel has
// killed the command with it. Orphans become our children, so no descendants
// run when no child is left.
func (g *Group) inherit() {
	for patience := boottime() + Patience; boottime() < patience; time.Sleep(Poll) {
		killAll(g.ID)
		if reapAll() == syscall.ECHILD {
			break
		}
	}
	g.gone.Store(true)
}

// reapAll reaps the children that have ended, and returns why it found no other: nil while
// children run, else ECHILD.
func reapAll() error {
	for {
		pid, err := syscall.Wait4(-1, nil, unix.WNOHANG, nil)
		if err != syscall.EINTR && pid <= 0 {
			return err
		}
	}
}

// tell gives the supervisor an order. If it is gone, its work is ours.
func (g *Group) tell(o order) { json.NewEncoder(g.orders).Encode(o) }

// Deadline is when left has passed, on CLOCK_BOOTTIME. The clock is read before left is called, so
// that any delay in between makes it earlier.
func Deadline(left func() time.Duration) time.Duration {
	now := boottime()
	return now + left()
}

// Renew moves the deadline.
func (g *Group) Renew(deadline time.Duration) {
	const news = time.Millisecond
	if deadline-g.deadline > news {
		g.deadline = deadline
		g.tell(order{Deadline: deadline})
	}
}

// Kill ends every process that the command has started, in its group or not. It is
// repeated until they are gone. A supervisor that has not ended them in time may be
// stuck, in a debugger for example: it is killed, and we inherit its work.
func (g *Group) Kill() {
	g.Signal(syscall.SIGKILL)
	switch {
	case !g.doomed.Load():
		g.doomed.Store(true)
		g.stuck = boottime() + stuckAfter
		g.tell(order{Kill: true})
	case boottime() > g.stuck:
		g.supervisor.Kill()
	}
}

// stuckAfter is less than half of the shortest killLead.
const stuckAfter = 20 * time.Millisecond

// Expired reports whether the supervisor had to kill, because we stood still.
func (g *Group) Expired() bool { return g.late.Load() }

// Empty reports whether no process of the group is left, and, if they are being
// killed, none outside of it either.
func (g *Group) Empty() bool {
	if g.doomed.Load() || g.Expired() || g.gone.Load() {
		return g.gone.Load()
	}
	return syscall.Kill(-g.ID, 0) == syscall.ESRCH
}

// Leave lets the remaining processes go: processes that left the group of a command
// which has ended by itself, and processes that could not be killed.
func (g *Group) Leave() {
	g.tell(order{Leave: true})
	g.orders.Close()
	g.ended.Wait()
}
