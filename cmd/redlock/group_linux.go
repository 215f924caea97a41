package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumlock/quorumlock/redlock"
)

// group is a command in a process group of its own, run by a supervisor. A signal also
// reaches the processes that the command started, unless they left the group; a kill
// reaches those, too.
type group struct {
	id      int                     // of the group, and of the command
	changes chan syscall.WaitStatus // the command was stopped; at last, it ended

	supervisor *os.Process
	orders     io.WriteCloser
	gone       atomic.Bool // nothing is left, also outside the group
	late       atomic.Bool // the supervisor found the deadline passed and kills
	deadline   time.Duration
	doomed     bool // it was told to kill
	ended      sync.WaitGroup
}

// startGroup runs the command at path, in the foreground of the terminal if it is
// offered. The command and its processes are dead by the deadline unless that is
// moved.
func startGroup(path string, argv, env []string, t *terminal, deadline time.Duration) (*group, error) {
	first := order{
		Start:    &start{Path: path, Argv: argv, Env: env, Foreground: t.offered()},
		Deadline: deadline,
	}
	// If the supervisor is killed, we inherit its processes.
	adoptOrphans()
	g, reports, err := startSupervisor()
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
		g.leave()
		reports.Close()
		return nil, err
	}
	g.id, g.deadline = r.Started, deadline
	if t != nil {
		t.lent = first.Start.Foreground
	}
	g.ended.Go(func() {
		defer reports.Close()
		g.follow(decoder)
	})
	return g, nil
}

// startSupervisor starts this very program again. It has a group of its own, so that
// neither ^C nor a signal to our group reaches it.
func startSupervisor() (g *group, reports *os.File, err error) {
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
	p, err := os.StartProcess("/proc/self/exe", []string{os.Args[0], superviseCommand}, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, ordersFD: ordersRead, reportsFD: reportsWrite},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		ordersWrite.Close()
		reports.Close()
		return nil, nil, err
	}
	return &group{changes: make(chan syscall.WaitStatus), supervisor: p, orders: ordersWrite}, reports, nil
}

// adoptOrphans makes us the parent of orphaned descendants. An old kernel that cannot
// do so leaves them to init.
func adoptOrphans() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// follow takes in the supervisor's reports.
func (g *group) follow(decoder *json.Decoder) {
	running := true
	for {
		var r report
		if decoder.Decode(&r) != nil {
			break
		}
		switch {
		case r.Status != nil:
			running = r.Status.Stopped()
			g.changes <- *r.Status
		case r.Expired:
			g.late.Store(true)
		case r.Gone:
			g.gone.Store(true)
		}
	}
	if running {
		g.inherit()
	}
}

// inherit ends the processes that a killed supervisor has left to us: the kernel has
// killed the command with it. A look takes a while, and finds nobody if the children were
// read before they became ours and the supervisor after it was gone. So two looks in a
// row must find nobody.
func (g *group) inherit() {
	nobody := 0
	for patience := boottime() + leftoverPatience; boottime() < patience; time.Sleep(leftoverPoll) {
		syscall.Kill(-g.id, syscall.SIGKILL)
		left := descendants(os.Getpid())
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
			syscall.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		if nobody++; len(left) > 0 {
			nobody = 0
		}
		if nobody == 2 {
			break
		}
	}
	g.gone.Store(true)
	g.changes <- syscall.WaitStatus(syscall.SIGKILL)
}

// tell gives the supervisor an order. If it is gone, its work is ours.
func (g *group) tell(o order) { json.NewEncoder(g.orders).Encode(o) }

// deadline is when the supervisor must have ended everything: a while before the
// validity ends, on CLOCK_BOOTTIME. The clock is read first, so that any delay in
// between makes it earlier.
func deadline(l *redlock.Lease, before time.Duration) time.Duration {
	at := boottime()
	return at + time.Until(l.Until()) - before
}

// renew moves the deadline.
func (g *group) renew(deadline time.Duration) {
	const news = time.Millisecond
	if deadline-g.deadline > news {
		g.deadline = deadline
		g.tell(order{Deadline: deadline})
	}
}

// kill ends every process that the command has started, in its group or not.
func (g *group) kill() {
	g.signal(syscall.SIGKILL)
	if !g.doomed {
		g.doomed = true
		g.tell(order{Kill: true})
	}
}

// expired reports whether the supervisor had to kill, because we stood still.
func (g *group) expired() bool { return g.late.Load() }

// empty reports whether no process of the group is left, and, if they are being
// killed, none outside of it either.
func (g *group) empty() bool {
	if g.doomed || g.expired() || g.gone.Load() {
		return g.gone.Load()
	}
	return syscall.Kill(-g.id, 0) == syscall.ESRCH
}

// leave lets go of what is left: processes that left the group of a command that has
// ended by itself, and those that could not be killed.
func (g *group) leave() {
	g.tell(order{Leave: true})
	g.orders.Close()
	g.supervisor.Wait()
	g.ended.Wait()
}
