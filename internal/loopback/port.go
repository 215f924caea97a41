// Package loopback keeps TCP ports of 127.0.0.1 for servers that come and go
// during a test.
package loopback

import (
	"errors"
	"net"
	"strconv"
)

// Port is a TCP port of 127.0.0.1 that belongs to its holder until Close,
// also while nothing listens there: connections are refused then, no other process
// is given the port, and no outgoing connection takes it as its own end (a
// client that keeps dialling a dead port of the ephemeral range can otherwise
// connect to itself). A listener on it must set SO_REUSEADDR, as
// redis-server and package net do.
//
// On systems other than Linux the port is only free when Reserve returns.
type Port struct {
	number  int
	release func() error
}

// Reserve takes a free port.
func Reserve() (*Port, error) {
	number, release, err := hold()
	if err != nil {
		return nil, errors.Join(errors.New("loopback: no port of 127.0.0.1 to be had"), err)
	}
	return &Port{number, release}, nil
}

// Number returns the port's number.
func (p *Port) Number() int { return p.number }

// Addr returns 127.0.0.1 and the port, as net.Dial takes them.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

// Close gives the port back. It is called once; a listener on the port stays.
func (p *Port) Close() error { return p.release() }
