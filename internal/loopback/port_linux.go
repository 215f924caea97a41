package loopback

import (
	"os"
	"syscall"
)

// hold binds a socket and never listens on it. Linux lets a second socket
// listen on the port if both have SO_REUSEADDR. It is set after bind, so that
// bind itself refuses a port that anybody else has, even one about to listen.
func hold() (int, func() error, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	number, err := bind(fd)
	if err != nil {
		syscall.Close(fd)
		return 0, nil, err
	}
	return number, func() error { return syscall.Close(fd) }, nil
}

func bind(fd int) (int, error) {
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	address, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	return address.(*syscall.SockaddrInet4).Port, nil
}
