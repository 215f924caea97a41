package faultproxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
)

const (
	patience = 20 * time.Second      // for what must come
	silence  = 50 * time.Millisecond // for what must not come
)

// client speaks RESP by hand, because a Redis library gives a connection up at
// the first sign of what is tested here.
type client struct {
	*net.TCPConn
	reader *bufio.Reader
}

func dial(t *testing.T, p *faultproxy.Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{c.(*net.TCPConn), bufio.NewReader(c)}
}

// connect dials and makes sure that the proxy knows of it.
func connect(t *testing.T, p *faultproxy.Proxy) *client {
	t.Helper()
	c := dial(t, p)
	c.send(t, "PING")
	c.wants(t, "+PONG")
	return c
}

func (c *client) send(t *testing.T, command ...string) {
	t.Helper()
	text := fmt.Sprintf("*%d\r\n", len(command))
	for _, part := range command {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(part), part)
	}
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatalf("send %q: %v", command, err)
	}
}

// wants reads as many lines as are wanted.
func (c *client) wants(t *testing.T, lines ...string) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	for _, want := range lines {
		got, err := c.reader.ReadString('\n')
		if strings.TrimSuffix(got, "\r\n") != want || err != nil {
			t.Fatalf("reply %q, %v, want %q", got, err, want)
		}
	}
}

func (c *client) wantsSilence(t *testing.T) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(silence))
	if got, err := c.reader.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %q, %v, want silence", got, err)
	}
}

func (c *client) wantsReset(t *testing.T) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	if got, err := c.reader.ReadByte(); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read %q, %v, want connection reset", got, err)
	}
}

func (c *client) wantsEnd(t *testing.T) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	if got, err := c.reader.ReadByte(); err != io.EOF {
		t.Fatalf("read %q, %v, want EOF", got, err)
	}
}

func await(t *testing.T, p *faultproxy.Proxy, enough func(faultproxy.Stats) bool) {
	t.Helper()
	eventually(t, "counts of the proxy", func() bool { return enough(p.Stats()) })
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
