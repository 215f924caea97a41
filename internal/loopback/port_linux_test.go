package loopback_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/quorumlock/quorumlock/internal/loopback"
)

func TestReserved_port_refuses_connections_until_somebody_listens(t *testing.T) {
	port := reserve(t)

	if _, err := net.Dial("tcp", port.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial with no listener: %v, want connection refused", err)
	}

	for range 3 { // a server that comes and goes
		listener, err := net.Listen("tcp", port.Addr())
		if err != nil {
			t.Fatalf("the holder cannot listen: %v", err)
		}
		conn, err := net.Dial("tcp", port.Addr())
		if err != nil {
			t.Fatalf("dial with a listener: %v", err)
		}
		conn.Close()
		listener.Close()
	}
}

func TestReserved_port_is_given_to_nobody_else(t *testing.T) {
	port := reserve(t)

	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port.Number(), Addr: [4]byte{127, 0, 0, 1}})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("bind by somebody else: %v, want address in use", err)
	}
}

func TestReserved_ports_differ(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		port := reserve(t)
		if seen[port.Number()] {
			t.Fatalf("port %d was given out twice", port.Number())
		}
		seen[port.Number()] = true
	}
}

func reserve(t *testing.T) *loopback.Port {
	t.Helper()
	port, err := loopback.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := port.Close(); err != nil {
			t.Error(err)
		}
	})
	return port
}
