package procgroup

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/quorumlock/quorumlock/internal/cli"
)

// A supervisor is a process between redlock run and its command. It outlives the
// wrapper for as long as it takes to end the command: when the wrapper is gone, as the
// end of a pipe tells, and when the lease ends, of which it knows the deadline, so
// that a wrapper that stands still does not keep the command running. It is the
// subreaper of all that the command starts, so that no process gets out of its reach,
// whatever group or session it makes for itself.

// The wrapper calls
//
//	redlock supervise ORDERS REPORTS PATH ARGV...
//
// with two pipes, which it names by their descriptors. The command's arguments are
// arguments here, its environment is the supervisor's own, and its descriptors are
// the ones that both inherit: nothing of them is encoded, so nothing can change on its way.

// order is what the wrapper tells the supervisor; the first one starts the
// command. The end of the orders means that the wrapper is gone.
type order struct {
	Deadline   time.Duration `json:",omitempty"` // when all must be dead, on CLOCK_BOOTTIME
	Foreground bool          `json:",omitempty"` // of the terminal, for the command
	Kill       bool          `json:",omitempty"` // immediately
	Leave      bool          `json:",omitempty"` // the remaining processes alone: the command has ended by itself
}

// report is what the supervisor tells the wrapper.
type report struct {
	Started int                 `json:",omitempty"` // the process id
	Failure string              `json:",omitempty"` // it could not be started
	Status  *syscall.WaitStatus `json:",omitempty"` // the command was stopped, or ended
	Expired bool                `json:",omitempty"` // the deadline has come: all is being killed
	Gone    bool                `json:",omitempty"` // nothing is left
}

// superviseCommand is the name by which the wrapper calls itself.
const superviseCommand = "supervise"

func Commands() []*cobra.Command {
	return []*cobra.Command{{
		Use: superviseCommand, Short: "Run a command for redlock run", Hidden: true,
		DisableFlagParsing: true, // the flags are the command's
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) < 4 {
				return errNotByHand
			}
			orders, reports := ownPipe(args[0]), ownPipe(args[1])
			if orders == nil || reports == nil {
				return errNotByHand
			}
			return supervise(orders, reports, args[2], args[3:])
		},
	}}
}

var errNotByHand = cli.Usage("redlock %s is for redlock run to call", superviseCommand)

// ownPipe opens a descriptor that the command must not inherit.
func ownPipe(descriptor string) *os.File {
	fd, err := strconv.Atoi(descriptor)
	if err != nil || fd <= 2 {
		return nil
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "pipe")
}

// supervisor is the state of that process.
type supervisor struct {
	reports  *json.Encoder
	command  int // its process id, and that of its group
	deadline time.Duration
	doomed   bool // everything is being killed
	alone    bool // the wrapper is gone
	patience time.Duration
}

func supervise(orders io.Reader, reports io.Writer, path string, argv []string) error {
	adoptOrphans()
	withstandSignals()
	// The kernel kills the command when the thread that forked it ends.
	runtime.LockOSThread()

	decoder := json.NewDecoder(orders)
	var first order
	if err := decoder.Decode(&first); err != nil {
		return errNotByHand
	}
	s := &supervisor{reports: json.NewEncoder(reports), deadline: first.Deadline}
	if err := s.start(path, argv, first.Foreground); err != nil {
		s.tell(report{Failure: err.Error()})
		return nil
	}
	s.tell(report{Started: s.command})
	s.watch(follow(decoder), s.reap())
	return nil
}

// withstandSignals keeps us alive: signals are meant for the command, and the wrapper
// passes them on. They are caught rather than ignored, since the command would inherit
// that.
func withstandSignals() {
	caught := make(chan os.Signal, 1) // and never read
	for _, sig := range append(Forwarded, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGPIPE) {
		if !signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
}

// start starts the command. It inherits our environment, and every descriptor that
// the wrapper has inherited: only descriptors that Go opens are closed for it.
func (s *supervisor) start(path string, argv []string, foreground bool) error {
	if boottime() >= s.deadline {
		return errors.New("the lock ended before the command could be started")
	}
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if foreground {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer tty.Close()
		attr.Foreground, attr.Ctty = true, int(tty.Fd())
	}
	p, err := os.StartProcess(path, argv, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   attr,
	})
	if err != nil {
		return err
	}
	s.command = p.Pid
	return p.Release() // package os does not report stops
}

// follow delivers the orders, and is closed after the last one.
func follow(decoder *json.Decoder) <-chan order {
	orders := make(chan order)
	go func() {
		defer close(orders)
		for {
			var o order
			if decoder.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	return orders
}

// reap waits for every child, adopted ones too, delivers the changes of the command,
// and is closed when no child is left: then no descendants run.
func (s *supervisor) reap() <-chan syscall.WaitStatus {
	changes := make(chan syscall.WaitStatus)
	go func() {
		defer close(changes)
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
			switch {
			case err == syscall.EINTR:
			case err != nil:
				return
			case pid == s.command:
				changes <- status
			}
		}
	}()
	return changes
}

// watch returns when nothing is left to watch over.
func (s *supervisor) watch(orders <-chan order, changes <-chan syscall.WaitStatus) {
	for {
		nap := time.NewTimer(s.look())
		select {
		case o, ok := <-orders:
			if o.Leave {
				return
			}
			if !ok {
				orders, s.alone = nil, true
			}
			s.obey(o)
		case status, ok := <-changes:
			if ok {
				s.tell(report{Status: &status})
				break
			}
			s.tell(report{Gone: true})
			if s.alone {
				return
			}
			changes = nil
		case <-nap.C:
		}
		nap.Stop()
		if s.alone && changes == nil || s.doomed && boottime() > s.patience {
			return // the remaining processes cannot be killed: they may run as another user
		}
	}
}

func (s *supervisor) obey(o order) {
	if o.Deadline != 0 {
		s.deadline = o.Deadline
	}
	if o.Kill || s.alone {
		s.doom()
	}
}

// look does what the time requires, and returns when to look again.
func (s *supervisor) look() time.Duration {
	if !s.doomed && boottime() >= s.deadline {
		s.tell(report{Expired: true})
		s.doom()
	}
	if s.doomed {
		killAll(s.command)
		return Poll
	}
	return min(s.deadline-boottime(), LongestNap)
}

func (s *supervisor) doom() {
	if !s.doomed {
		s.doomed, s.patience = true, boottime()+Patience
	}
}

// killAll kills a group and our descendants. It is repeated until nothing is left, to
// reach processes that were being forked meanwhile, and orphans that become ours.
func killAll(group int) {
	syscall.Kill(-group, syscall.SIGKILL)
	for _, pid := range descendants(os.Getpid()) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (s *supervisor) tell(r report) { s.reports.Encode(r) } // if the wrapper is gone, it does not matter

// boottime is a monotonic clock that does not stand still while the machine is
// suspended, the same one for all processes.
func boottime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // every Linux that Go runs on has it
	}
	return time.Duration(t.Nano())
}
