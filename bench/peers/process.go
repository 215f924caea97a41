package main

import (
	"net"
	"os/exec"
	"syscall"
)

// launch starts a server that dies with us.
func launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}

func end(processes []*exec.Cmd) {
	for _, p := range processes {
		p.Process.Kill() // an error says that it has ended
		p.Wait()
	}
}

// freePorts returns free ports of loopback.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
