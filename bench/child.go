package bench

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// child is this program again, in a process of its own. So it can be stopped, and its
// CPU time is not mixed with ours. It ends when its standard input does, at the
// latest when we end.
type child struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	lines *bufio.Reader // what it says
}

// startChild runs a command line that begins with the program, and returns the
// first line that it says.
func startChild(argv []string, env ...string) (*child, string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	// A group of its own: ^C at a terminal is for us, who then end it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	c := &child{cmd, input, bufio.NewReader(output)}
	first, err := c.hear()
	if err != nil {
		c.kill()
		return nil, "", err
	}
	return c, first, nil
}

// hear returns the next line that the child says.
func (c *child) hear() (string, error) {
	line, err := c.lines.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("it said %q and ended: %w", line, err)
	}
	return strings.TrimSuffix(line, "\n"), nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) signal(s os.Signal) { c.cmd.Process.Signal(s) } // an error says that it has ended

func (c *child) kill() {
	c.signal(os.Kill)
	c.input.Close()
	c.cmd.Wait() // how it ended is of no interest
}

// ourselves is the command line of a child: this program with argv.
func ourselves(argv []string, more ...string) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return append(append([]string{program}, argv...), more...), nil
}
