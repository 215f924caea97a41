package bench

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/alicebob/miniredis/v2"

	"github.com/quorumlock/quorumlock/internal/loopback"
)

// embedded is a miniredis in a process of its own, so that it can be stopped
// and its CPU time told from ours.
type embedded struct {
	port *loopback.Port
	argv []string
	cmd  *exec.Cmd
	life io.Closer // the child's standard input: it ends when that does
}

// ServeEmbedded is what the child process does: it is a master at addr until
// its standard input ends, which it does with its parent at the latest.
func ServeEmbedded(addr string, stdin io.Reader, stdout io.Writer) error {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	if err := server.StartAddr(addr); err != nil {
		return err
	}
	defer server.Close()
	fmt.Fprintln(stdout, "ready")
	_, err := io.Copy(io.Discard, stdin)
	return err
}

func startEmbedded(argv []string) (*embedded, error) {
	port, err := loopback.Reserve()
	if err != nil {
		return nil, err
	}
	e := &embedded{port: port, argv: argv}
	if err := e.start(); err != nil {
		port.Close()
		return nil, err
	}
	return e, nil
}

func (e *embedded) start() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, append(e.argv[:len(e.argv):len(e.argv)], e.port.Addr())...)
	// A group of its own: ^C at a terminal is for us, who then end it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	life, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	e.cmd, e.life = cmd, life
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		e.Kill()
		return fmt.Errorf("it said %q instead of ready: %v", line, err)
	}
	return nil
}

func (e *embedded) URL() string { return e.port.Addr() }
func (e *embedded) Pid() int    { return e.cmd.Process.Pid }
func (e *embedded) Stop()       { e.cmd.Process.Signal(syscall.SIGSTOP) }
func (e *embedded) Continue()   { e.cmd.Process.Signal(syscall.SIGCONT) }

func (e *embedded) Kill() {
	e.cmd.Process.Kill() // an error says that it has ended
	e.life.Close()
	e.cmd.Wait() // how it ended is of no interest
}

func (e *embedded) Restart() {
	e.Kill()
	if err := e.start(); err != nil {
		panic(fmt.Sprintf("bench: restart an embedded master: %v", err))
	}
}

func (e *embedded) Close() {
	e.Kill()
	e.port.Close()
}
