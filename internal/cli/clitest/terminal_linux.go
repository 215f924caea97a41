package clitest

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// InShell makes the command a shell's, which finds redlock in $REDLOCK.
func (c *Command) InShell(argv ...string) {
	c.T.Helper()
	c.Env = append(c.Env, "REDLOCK="+c.Path)
	c.Path, c.Args = "/bin/sh", argv
}

// testTerminal is what a person would sit at.
type testTerminal struct {
	c             *Command
	master, Slave *os.File

	mu     sync.Mutex
	screen strings.Builder
}

// AtTerminal starts the process at a terminal of its own.
func (c *Command) AtTerminal() *testTerminal {
	c.T.Helper()
	master, slave, err := openPTY()
	if err != nil {
		c.T.Fatal(err)
	}
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	c.Begin()
	tty := &testTerminal{c: c, master: master, Slave: slave}
	done := make(chan struct{})
	go tty.record(done)
	c.T.Cleanup(func() {
		slave.Close()
		master.Close()
		<-done
		if c.T.Failed() {
			c.T.Logf("the terminal shows:\n%s", tty.Text())
		}
	})
	return tty
}

func openPTY() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0); err != nil {
		return nil, nil, err
	}
	raw, err := master.SyscallConn() // Fd would make reads block, so that Close could not end them
	if err != nil {
		return nil, nil, err
	}
	var number int
	var failure error
	err = raw.Control(func(fd uintptr) {
		if failure = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failure == nil {
			number, failure = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err == nil {
		err = failure
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	return master, slave, err
}

func (tty *testTerminal) record(done chan<- struct{}) {
	defer close(done)
	buf := make([]byte, 4096)
	for {
		n, err := tty.master.Read(buf)
		tty.mu.Lock()
		tty.screen.Write(buf[:n])
		tty.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (tty *testTerminal) Text() string {
	tty.mu.Lock()
	defer tty.mu.Unlock()
	return tty.screen.String()
}

// Enter types a line, or presses a control key.
func (tty *testTerminal) Enter(line string) {
	tty.c.T.Helper()
	if line >= " " {
		line += "\n"
	}
	if _, err := tty.master.WriteString(line); err != nil {
		tty.c.T.Fatal(err)
	}
}

// Shows waits until the text is on the screen.
func (tty *testTerminal) Shows(text string) {
	tty.c.T.Helper()
	tty.c.Until("the terminal shows "+text, func() bool { return strings.Contains(tty.Text(), text) })
}
