package redlock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// process is a client in a process of its own, which a test can stop, continue
// and kill. It takes one command after the other and answers each in a line.
type process struct {
	t       testing.TB
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string
}

const (
	processAddrs = "REDLOCK_TEST_ADDRS" // set: this process is one
	processTTL   = "REDLOCK_TEST_TTL"
	// processTimeout is the node timeout; it is long if this is not set.
	processTimeout = "REDLOCK_TEST_NODE_TIMEOUT"
)

// startProcess starts a client of the masters with those addresses.
func startProcess(t testing.TB, addrs []string, ttl time.Duration, env ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), env...), processAddrs+"="+strings.Join(addrs, ","), processTTL+"="+ttl.String())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, in: in, answers: make(chan string, 10)}
	go func() {
		defer close(p.answers)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.answers <- lines.Text()
		}
	}()
	t.Cleanup(p.kill)
	if got := p.answer(); got != "ready" {
		t.Fatalf("the client's process says %q", got)
	}
	return p
}

// tell gives a command; a stopped process reads it when it goes on.
func (p *process) tell(command string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) answer() string {
	p.t.Helper()
	return arrival(p.t, "an answer of the client's process", p.answers)
}

func (p *process) ask(command string) string {
	p.t.Helper()
	p.tell(command)
	return p.answer()
}

// stop returns when the process has stopped.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	eventually(p.t, "the client's process has stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	})
}

func (p *process) resume() { p.t.Helper(); p.signal(syscall.SIGCONT) }

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// kill returns when the process is gone.
func (p *process) kill() {
	p.cmd.Process.Kill()
	for range p.answers { // until its output ends, as Wait asks
	}
	p.cmd.Wait()
}

// serve is the other end: it runs until its input ends.
func serve(addrs, ttl string) {
	d, err := time.ParseDuration(ttl)
	if err != nil {
		panic(err)
	}
	timeout := patience
	if set, err := time.ParseDuration(os.Getenv(processTimeout)); err == nil {
		timeout = set
	}
	c, err := tryDial(strings.Split(addrs, ","), redlock.WithTTL(d), redlock.WithNodeTimeout(timeout))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready")
	m := c.Mutex("orders")
	var lease *redlock.Lease
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if name, exits := strings.CutPrefix(lines.Text(), "exit at the end of "); exits {
			c.Mutex(name, redlock.NoRenew(), redlock.StopWithin(d/4, redlock.Exit(7))).TryLock(ctx)
		}
		switch lines.Text() {
		case "try":
			lease, err = m.TryLock(ctx)
			fmt.Println(err)
		case "pair":
			began := time.Now()
			if lease, err = m.TryLock(ctx); err == nil {
				lease.Unlock(ctx)
			}
			fmt.Println(time.Since(began), err)
		case "valid":
			fmt.Println(lease.Valid())
		case "extend":
			fmt.Println(lease.Extend(ctx, d))
		case "hold all":
			fmt.Println(holdAll(c))
		case "wait for all":
			waitForAll(c)
			fmt.Println("waiting")
		case "turn all":
			var turns atomic.Int32
			turnAll(c, func() {
				if turns.Add(1) == 200 {
					fmt.Println("turned")
				}
			})
		case "await the end":
			<-lease.Done()
			fmt.Println(context.Cause(lease.Context()))
		}
	}
}
