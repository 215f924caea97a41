package bench

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/quorumlock/quorumlock/internal/child"
)

// process is this program again, in a process of its own. So it can be stopped, and its
// CPU time is not mixed with ours. It ends when its standard input does, at the
// latest when we end.
type process struct {
	cmd   *exec.Cmd
	ended <-chan struct{}
	input io.WriteCloser
	lines *bufio.Reader // its output
}

// startChild runs a command line that begins with the program, and returns the
// first line that it says.
func startChild(argv []string, env ...string) (*process, string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	ended, err := child.Start(cmd)
	if err != nil {
		return nil, "", err
	}
	c := &process{cmd, ended, input, bufio.NewReader(output)}
	first, err := c.hear()
	if err != nil {
		c.kill()
		return nil, "", err
	}
	return c, first, nil
}

// hear returns the next line that the child says.
func (c *process) hear() (string, error) {
	line, err := c.lines.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("it said %q and ended: %w", line, err)
	}
	return strings.TrimSuffix(line, "\n"), nil
}

func (c *process) pid() int { return c.cmd.Process.Pid }

func (c *process) signal(s os.Signal) { c.cmd.Process.Signal(s) } // an error says that it has ended

func (c *process) kill() {
	c.signal(os.Kill)
	c.input.Close()
	<-c.ended
}

// ourselves is the command line of a child: this program with argv.
func ourselves(argv []string, more ...string) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return append(append([]string{program}, argv...), more...), nil
}
