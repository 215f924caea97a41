//go:build !linux

package loopback

import "net"

func hold() (int, func() error, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	return listener.Addr().(*net.TCPAddr).Port, func() error { return nil }, listener.Close()
}
