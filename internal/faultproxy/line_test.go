package faultproxy_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
)

func runLine(t *testing.T, target string) *faultproxy.Line {
	t.Helper()
	c, err := faultproxy.NewCarrier()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	l, err := faultproxy.RunLine(c, target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func TestLine_changes_nothing(t *testing.T) {
	line := runLine(t, miniredis.RunT(t).Addr())
	direct, far := redial(t, miniredis.RunT(t).Addr()), redial(t, line.Addr())
	line.SetDelay(time.Millisecond)
	binary := strings.Repeat("\r\n$-1\x00\xff*3", 100_000)
	for _, command := range [][]any{{"SET", "key", binary}, {"GET", "key"}, {"GET", "absent"}, {"NOSUCH"}, {"PING"}} {
		want, wantErr := direct.Do(command[0].(string), command[1:]...)
		got, err := far.Do(command[0].(string), command[1:]...)
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(err, wantErr) {
			t.Errorf("%.60q: %.60q, %v, want %.60q, %v", command, got, err, want, wantErr)
		}
	}
}

func TestLine_is_as_long_in_both_directions(t *testing.T) {
	line := runLine(t, miniredis.RunT(t).Addr())
	conn := redial(t, line.Addr())
	const oneWay = 10 * time.Millisecond
	line.SetDelay(oneWay)
	for range 3 {
		began := time.Now()
		if _, err := conn.Do("PING"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 2*oneWay {
			t.Errorf("a round trip took %v, want at least %v", took, 2*oneWay)
		}
	}
}

func TestLine_keeps_the_order_of_a_pipeline(t *testing.T) {
	line := runLine(t, miniredis.RunT(t).Addr())
	conn := redial(t, line.Addr())
	line.SetDelay(time.Millisecond)
	const all = 1000
	go func() {
		for range all {
			conn.Send("INCR", "n")
			conn.Flush()
		}
	}()
	for want := 1; want <= all; want++ {
		if n, err := redis.Int(conn.Receive()); err != nil || n != want {
			t.Fatalf("answer %d is %d, %v", want, n, err)
		}
	}
}

func TestLine_ends_with_either_end(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond} {
		server := miniredis.RunT(t)
		line := runLine(t, server.Addr())
		line.SetDelay(delay)

		conn := redial(t, line.Addr())
		if _, err := conn.Do("PING"); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		eventually(t, "the server has seen its client go", func() bool { return server.CurrentConnectionCount() == 0 })

		conn = redial(t, line.Addr())
		if _, err := conn.Do("PING"); err != nil {
			t.Fatal(err)
		}
		server.Close()
		if _, err := conn.Receive(); err == nil || isTimeout(err) {
			t.Errorf("delay %v: the server is gone, and its client was told %v", delay, err)
		}
	}
}

func TestLine_Close_loses_what_is_on_its_way(t *testing.T) {
	line := runLine(t, miniredis.RunT(t).Addr())
	conn := redial(t, line.Addr())
	line.SetDelay(time.Hour)
	if err := conn.Send("PING"); err != nil {
		t.Fatal(err)
	}
	conn.Flush()
	line.Close() // goleak looks for what does not end
	if _, err := conn.Receive(); err == nil || isTimeout(err) {
		t.Errorf("the line is gone, and its client was told %v", err)
	}
}

func isTimeout(err error) bool {
	timeout, ok := err.(interface{ Timeout() bool })
	return ok && timeout.Timeout()
}
