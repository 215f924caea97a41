package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/child"
)

// process is one run of redis-server.
type process struct {
	cmd    *exec.Cmd
	exited <-chan struct{}
}

// launch starts redis-server. Its output goes to log, and so does how it ended.
func launch(binary, conf, dir string, env []string, log *os.File) (*process, error) {
	cmd := exec.Command(binary, conf)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	ended, err := child.Start(cmd)
	return &process{cmd, ended}, err
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

func (p *process) kill() {
	p.cmd.Process.Kill() // an error says that it has ended
	<-p.exited
}

func (p *process) resume() error { return p.cmd.Process.Signal(continueSignal) }

// stop returns when the process has stopped, which is a little after the
// signal was sent.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(stopSignal); err != nil {
		return err
	}
	return poll(callTimeout, func() (bool, error) {
		if p.ended() {
			return false, os.ErrProcessDone
		}
		return p.stopped(), nil
	})
}

// stopped reads the state behind the process name, which is in parentheses. A
// system without /proc has to be trusted to be quick.
func (p *process) stopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid()))
	if err != nil {
		return true
	}
	return strings.HasPrefix(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " T")
}

// poll asks until done, at growing intervals, and gives up at the first error.
func poll(timeout time.Duration, done func() (bool, error)) error {
	deadline := time.Now().Add(timeout)
	for pause := 500 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("no answer within " + timeout.String())
		}
		time.Sleep(pause)
	}
}
