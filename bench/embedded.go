package bench

import (
	"fmt"
	"io"
	"syscall"

	"github.com/alicebob/miniredis/v2"

	"github.com/quorumlock/quorumlock/internal/loopback"
)

// embedded is a miniredis in a process of its own.
type embedded struct {
	port    *loopback.Port
	argv    []string
	process *process
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
	argv, err := ourselves(e.argv, e.port.Addr())
	if err != nil {
		return err
	}
	process, said, err := startChild(argv)
	if err != nil {
		return err
	}
	if said != "ready" {
		process.kill()
		return fmt.Errorf("it said %q instead of ready", said)
	}
	e.process = process
	return nil
}

func (e *embedded) URL() string { return e.port.Addr() }
func (e *embedded) Pid() int    { return e.process.pid() }
func (e *embedded) Stop()       { e.process.signal(syscall.SIGSTOP) }
func (e *embedded) Continue()   { e.process.signal(syscall.SIGCONT) }
func (e *embedded) Kill()       { e.process.kill() }

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
