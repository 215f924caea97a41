//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quorumlock/quorumlock/cmd/redlock/internal/procgroup"
	"github.com/quorumlock/quorumlock/internal/cli"
	"github.com/quorumlock/quorumlock/redlock"
)

// session is a command running under a lease. It ends the command before the
// lease ends: with SIGTERM while there is time, with SIGKILL when the time is
// over.
type session struct {
	lease    *redlock.Lease
	grace    time.Duration   // how much validity is left when SIGTERM comes
	lead     time.Duration   // how much is left when SIGKILL comes
	renewed  <-chan struct{} // delivers when the lease may have been renewed
	warns    warnSignal      // that the lease is at risk
	requests warnSignal      // that another client requests the lock
	tokenEnv string          // where the command finds its fencing token
	signals  chan os.Signal
	terminal *procgroup.Terminal
	stderr   io.Writer

	group    *procgroup.Group
	status   syscall.WaitStatus
	ended    bool      // the command itself; others of its group may be left
	patience time.Time // until when they are given time to end
	warned   bool      // SIGTERM was sent because of the lease
	killed   bool      // so was SIGKILL
	lost     bool      // while the command ran
}

// killLead is how long before the end of the validity the group is killed: time
// for a busy machine to get to it.
func killLead(ttl time.Duration) time.Duration {
	return min(max(ttl/20, 50*time.Millisecond), time.Second)
}

// run runs the command to its end, and the end of its group, and returns the
// exit code.
func (s *session) run(path string, argv []string) (int, error) {
	g, err := procgroup.Start(path, argv, s.environment(), s.terminal, s.deadline())
	if err != nil {
		return 0, cli.Fail(cli.ExitNotRun, err)
	}
	s.group = g
	defer g.Leave()
	signal.Notify(s.signals, syscall.SIGTSTP)
	// Writing to a terminal that listens to the command must not stop us.
	signal.Ignore(syscall.SIGTTOU)

	lost, atRisk := s.lease.Done(), (<-chan struct{})(nil)
	if s.warns != 0 {
		atRisk = s.lease.AtRisk()
	}
	var requests <-chan redlock.Request
	if s.requests != 0 {
		requests = s.lease.Requested()
	}
	for !s.ended || !g.Empty() && !s.outOfReach() {
		nap := time.NewTimer(s.watch())
		select {
		case status := <-g.Changes:
			s.changed(status)
		case sig := <-s.signals:
			s.forward(sig.(syscall.Signal))
		case <-s.renewed:
		case <-atRisk:
			s.alert()
		case r := <-requests:
			s.pass(r)
		case <-lost:
			lost = nil
		case <-nap.C:
		}
		nap.Stop()
	}
	return procgroup.Code(s.status), nil
}

// deadline is when the command must be dead, also if we stand still.
func (s *session) deadline() time.Duration {
	return procgroup.Deadline(func() time.Duration { return s.lease.Remaining() - s.lead/2 })
}

// outOfReach gives up processes that neither SIGTERM nor SIGKILL has ended in time:
// they may run as another user.
func (s *session) outOfReach() bool {
	if time.Since(s.patience) < procgroup.Patience {
		return false
	}
	s.say("some processes of the command's group cannot be ended")
	return true
}

// environment is ours, without the variables of a lock that we were started under.
func (s *session) environment() []string {
	told := []string{cli.NameEnv, cli.ValueEnv, cli.TokenEnv, s.tokenEnv}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(told, name)
	})
	env = append(env, cli.NameEnv+"="+s.lease.Name(), cli.ValueEnv+"="+s.lease.Value())
	if token := s.lease.Token(); token > 0 {
		env = append(env, s.tokenEnv+"="+strconv.FormatUint(token, 10))
	}
	return env
}

// watch does what the lease and the remains of the command require now, and returns
// when to look again.
func (s *session) watch() time.Duration {
	left := s.lease.Remaining()
	if left > s.lead {
		s.group.Renew(s.deadline())
	}
	switch {
	case left <= s.lead:
		s.kill(left)
	case left <= s.grace && !s.warned:
		s.warn(left)
	case s.ended && time.Now().After(s.patience):
		s.group.Signal(syscall.SIGKILL)
	}
	switch {
	case s.ended || s.killed:
		return procgroup.Poll
	case s.warned:
		return min(left-s.lead, procgroup.LongestNap)
	}
	return min(left-s.grace, procgroup.LongestNap)
}

func (s *session) warn(left time.Duration) {
	s.warned = true
	if !s.ended {
		s.lost = true
		s.say("could not be renewed, %v of its validity left: sending SIGTERM", left.Round(time.Millisecond))
	}
	s.group.Terminate()
}

// kill is final, and repeated only to reach processes that were being forked
// meanwhile.
func (s *session) kill(left time.Duration) {
	if !s.killed && !s.ended {
		s.lost = true
		s.say("%s, sending SIGKILL", s.why(left))
	}
	s.killed = true
	s.group.Kill()
}

func (s *session) why(left time.Duration) string {
	if err := s.lease.Err(); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("could not be renewed, %v of its validity left", left.Round(time.Millisecond))
}

func (s *session) say(format string, args ...any) {
	cli.Complain(s.stderr, fmt.Errorf("lock %q: %s", s.lease.Name(), fmt.Sprintf(format, args...)))
}

// changed handles a stop of the command, or its end.
func (s *session) changed(status syscall.WaitStatus) {
	if status.Stopped() {
		s.stopped(status.StopSignal())
		return
	}
	if s.group.Expired() && !s.killed {
		s.lost, s.killed = true, true
		s.say("it ended while we stood still; everything got SIGKILL")
	}
	s.status, s.ended = status, true
	s.terminal.Reclaim(s.group.ID)
	if status.Signaled() {
		s.terminal.Tidy()
	}
	s.patience = time.Now().Add(procgroup.Patience)
	s.group.Terminate()
}

// forward passes a signal on to the command. ^Z reaches us only while the terminal
// listens to us. The command then stops with us, immediately and without a say, because
// its lock is not renewed.
func (s *session) forward(sig syscall.Signal) {
	if sig != syscall.SIGTSTP {
		s.group.Signal(sig)
		return
	}
	s.group.Signal(syscall.SIGSTOP)
	s.pause(os.Getpid())
}

// stopped handles a stop of the command that a terminal caused: by ^Z, or because the
// command read from it without having it. Any other stop was decided elsewhere, and
// does not concern us.
func (s *session) stopped(sig syscall.Signal) {
	switch sig {
	case syscall.SIGTTIN, syscall.SIGTTOU:
		if s.terminal.Lend(s.group.ID) {
			s.group.Signal(syscall.SIGCONT)
			return
		}
		s.pause(0)
	case syscall.SIGTSTP:
		s.pause(0)
	}
}

// pause stops us, and with target 0 all of our group, as the command was stopped, so
// that the shell takes over. It continues the command when the shell continues us, if
// the lease is still good by then. A command that needs the terminal and does not have
// it stops again and asks for it.
func (s *session) pause(target int) {
	had := s.terminal.Reclaim(s.group.ID)
	procgroup.Suspend(target)
	if !s.lease.Valid() {
		return // it stays stopped until it is killed
	}
	if had {
		s.terminal.Lend(s.group.ID)
	}
	s.group.Signal(syscall.SIGCONT)
}
