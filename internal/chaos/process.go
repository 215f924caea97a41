package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quorumlock/quorumlock/internal/child"
)

// client is a place among the clients: one process after the other, each with
// an id and a journal of its own. Its methods are called by one goroutine at a
// time.
type client struct {
	number  int
	command []string
	config  ClientConfig // of the next process, but for its id and journal
	dir     string

	lives    []*life
	problems []Finding
}

// life is one process of a client.
type life struct {
	id      string
	journal string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	exited  <-chan struct{}
	polite  bool // it was told to end, and did so by itself
}

// closePatience is how long a client may take to give everything up.
const closePatience = 10 * time.Second

func (c *client) start() error {
	l := &life{id: fmt.Sprintf("c%d.%d", c.number, len(c.lives)+1)}
	l.journal = filepath.Join(c.dir, l.id+".journal")
	log, err := os.OpenFile(filepath.Join(c.dir, l.id+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	l.cmd = exec.Command(c.command[0], c.command[1:]...)
	l.cmd.Stdout, l.cmd.Stderr = log, log
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		return err
	}
	if l.exited, err = child.Start(l.cmd); err != nil {
		return err
	}
	c.lives = append(c.lives, l)
	config := c.config
	config.ID, config.Journal = l.id, l.journal
	return json.NewEncoder(l.stdin).Encode(config)
}

func (c *client) current() *life { return c.lives[len(c.lives)-1] }

func (c *client) stop() error   { return c.current().cmd.Process.Signal(syscall.SIGSTOP) }
func (c *client) resume() error { return c.current().cmd.Process.Signal(syscall.SIGCONT) }

// kill returns when the process is gone.
func (c *client) kill() {
	if len(c.lives) == 0 {
		return
	}
	l := c.current()
	l.cmd.Process.Kill() // an error says that it has ended
	<-l.exited
}

// dismiss has the process give everything up and end. It is a finding if the process
// is late, or fails.
func (c *client) dismiss() error {
	l := c.current()
	l.stdin.Close()
	select {
	case <-l.exited:
	case <-time.After(closePatience):
		l.cmd.Process.Signal(syscall.SIGABRT) // its stacks go to the log
		<-l.exited
	}
	if l.polite = l.cmd.ProcessState.ExitCode() == 0; !l.polite {
		c.problems = append(c.problems, Finding{
			Check: Progress, At: now(),
			Text: fmt.Sprintf("client %s did not end as it was told: %v; see %s.log", l.id, l.cmd.ProcessState, l.id),
		})
	}
	return nil
}
