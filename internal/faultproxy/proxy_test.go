package faultproxy_test

import (
	"errors"
	"net"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"

	"github.com/quorumlock/quorumlock/internal/faultproxy"
	"github.com/quorumlock/quorumlock/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var eachWay = map[string]faultproxy.Direction{"requests": faultproxy.Requests, "replies": faultproxy.Replies}

func start(t *testing.T) (*miniredis.Miniredis, *faultproxy.Proxy) {
	t.Helper()
	server := miniredis.RunT(t)
	return server, faultproxy.Start(t, server.Addr())
}

func TestProxy_changes_nothing_by_itself(t *testing.T) {
	servers := redistest.StartN(t, 2)
	for name, addrs := range map[string][2]string{
		"redis-server": {servers[0].Addr(), servers[1].Addr()},
		"miniredis":    {miniredis.RunT(t).Addr(), miniredis.RunT(t).Addr()},
	} {
		t.Run(name, func(t *testing.T) {
			p := faultproxy.Start(t, addrs[1])
			direct, proxied := redial(t, addrs[0]), redial(t, p.Addr())
			binary := strings.Repeat("\r\n$-1\x00\xff*3", 100_000)
			for _, command := range [][]any{
				{"SET", "key", binary}, {"GET", "key"}, {"GET", "absent"}, {"SET", "", ""}, {"GET", ""}, {"INCR", "key"},
				{"RPUSH", "list", "a", "b"}, {"LRANGE", "list", 0, -1}, {"LRANGE", "none", 0, -1}, {"NOSUCH"},
				{"EVAL", "return {1, {'two', {}}, false}", 0}, {"CONFIG", "GET", "nothing"}, {"PING"},
			} {
				want, wantErr := direct.Do(command[0].(string), command[1:]...)
				got, err := proxied.Do(command[0].(string), command[1:]...)
				if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(err, wantErr) {
					t.Errorf("%.60q: %.60q, %v, want %.60q, %v", command, got, err, want, wantErr)
				}
			}
		})
	}
}

func TestPipeline_keeps_its_order_and_is_counted(t *testing.T) {
	_, p := start(t)
	conn := redial(t, p.Addr())
	for i := range 1000 {
		conn.Send("incr", "n")
		conn.Send("ECHO", i)
	}
	conn.Flush()
	for i := range 1000 {
		n, err := redis.Int(conn.Receive())
		echo, errEcho := redis.Int(conn.Receive())
		if n != i+1 || echo != i || err != nil || errEcho != nil {
			t.Fatalf("replies number %d: %d, %v and %d, %v", i, n, err, echo, errEcho)
		}
	}
	want := faultproxy.Stats{
		Received: map[string]int{"INCR": 1000, "ECHO": 1000}, Delivered: map[string]int{"INCR": 1000, "ECHO": 1000},
		Accepted: 1, Open: 1,
	}
	if got := p.Stats(); !reflect.DeepEqual(got, want) {
		t.Errorf("stats %+v, want %+v", got, want)
	}
	conn.Close()
	await(t, p, func(s faultproxy.Stats) bool { return s.Open == 0 && s.Accepted == 1 })
}

func TestDelay_is_the_links_and_not_each_commands(t *testing.T) {
	const delay = 50 * time.Millisecond
	for name, dir := range eachWay {
		t.Run(name, func(t *testing.T) {
			_, p := start(t)
			c := connect(t, p)
			p.Delay(dir, delay)

			// One after the other they would take nearly a minute.
			const commands = 1000
			began := time.Now()
			for range commands {
				c.send(t, "PING")
			}
			for range commands {
				c.wants(t, "+PONG")
			}
			if took := time.Since(began); took < delay || took > commands*delay/2 {
				t.Errorf("%d pipelined commands took %v, want a little over %v", commands, took, delay)
			}
		})
	}
}

func TestCut_requests_arrive_after_heal_also_from_a_closed_connection(t *testing.T) { // L3
	server, p := start(t)
	c := connect(t, p)
	p.Cut(faultproxy.Requests)

	c.send(t, "SET", "name", "value")
	c.wantsSilence(t)
	c.Close()
	await(t, p, func(s faultproxy.Stats) bool { return s.Received["SET"] == 1 && s.Open == 0 })
	if server.Exists("name") || p.Stats().Delivered["SET"] != 0 {
		t.Fatal("the command came through the cut")
	}

	p.Heal()
	eventually(t, "the command is done", func() bool { return server.Exists("name") })
}

func TestCut_replies_arrive_after_heal(t *testing.T) {
	server, p := start(t)
	c := connect(t, p)
	p.Cut(faultproxy.Replies)

	c.send(t, "SET", "name", "value")
	eventually(t, "the command is done", func() bool { return server.Exists("name") })
	c.wantsSilence(t)

	p.Heal()
	c.wants(t, "+OK")
}

func TestCut_both_ways_holds_new_connections_too(t *testing.T) {
	_, p := start(t)
	p.Cut()
	c := dial(t, p)
	c.send(t, "PING")
	c.wantsSilence(t)
	p.Heal()
	c.wants(t, "+PONG")
}

func TestDrop_kills_a_connection_for_good_and_not_the_next(t *testing.T) {
	for name, tc := range map[string]struct {
		dirs []faultproxy.Direction
		done bool
	}{
		"requests": {[]faultproxy.Direction{faultproxy.Requests}, false},
		"replies":  {[]faultproxy.Direction{faultproxy.Replies}, true},
		"both":     {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			server, p := start(t)
			c := connect(t, p)
			p.Drop(tc.dirs...)

			c.send(t, "SET", "name", "value")
			c.wantsSilence(t)
			if done := server.Exists("name"); done != tc.done {
				t.Errorf("the command was done: %t, want %t", done, tc.done)
			}

			p.Heal()
			c.send(t, "PING")
			c.wantsSilence(t)
			connect(t, p)
		})
	}
}

func TestReset_breaks_connections_and_loses_what_was_on_its_way(t *testing.T) {
	server, p := start(t)
	c := connect(t, p)
	p.Cut(faultproxy.Requests)
	c.send(t, "SET", "name", "value")
	await(t, p, func(s faultproxy.Stats) bool { return s.Received["SET"] == 1 })

	p.Reset()
	p.Heal()

	c.wantsReset(t)
	connect(t, p)
	if server.Exists("name") {
		t.Error("the command arrived after the reset")
	}
}

func TestHang_accepts_and_never_answers(t *testing.T) {
	server, p := start(t)
	before := connect(t, p)
	p.Hang()

	c := dial(t, p)
	c.send(t, "SET", "name", "value")
	c.wantsSilence(t)
	before.send(t, "PING")
	before.wants(t, "+PONG")

	p.Heal()
	c.wantsSilence(t)
	connect(t, p)
	if server.Exists("name") || p.Stats().Received["SET"] != 1 {
		t.Error("the hanging connection reached the server")
	}
	c.Close()
	await(t, p, func(s faultproxy.Stats) bool { return s.Open == 2 })
}

func TestRefuse_turns_new_connections_away(t *testing.T) {
	_, p := start(t)
	before := connect(t, p)

	for range 3 {
		p.Refuse()
		if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial: %v, want connection refused", err)
		}
		before.send(t, "PING")
		before.wants(t, "+PONG")

		p.Heal()
		connect(t, p)
	}
}

func TestServer_that_goes_and_comes_back(t *testing.T) {
	server := redistest.Start(t)
	p := faultproxy.Start(t, server.Addr())
	c := connect(t, p)

	server.Kill()
	c.wantsEnd(t)
	eventually(t, "a new connection is reset, on dialling or a little later", func() bool {
		c, err := net.Dial("tcp", p.Addr())
		if err == nil {
			defer c.Close()
			_, err = c.Read(make([]byte, 1))
		}
		return errors.Is(err, syscall.ECONNRESET)
	})

	server.Restart()
	connect(t, p)
}

func TestConnections_end_at_the_server_when_the_client_closes(t *testing.T) {
	for name, disturb := range map[string]func(*faultproxy.Proxy){
		"healthy":         func(*faultproxy.Proxy) {},
		"dropped replies": func(p *faultproxy.Proxy) { p.Drop(faultproxy.Replies) },
		"a dropped reply": func(p *faultproxy.Proxy) {
			p.DropNext(faultproxy.Replies, faultproxy.Command("SET", ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			p := faultproxy.Start(t, server.Addr())
			c := connect(t, p)
			disturb(p)
			c.send(t, "SET", "name", "value")
			c.Close()
			eventually(t, "the server has one client, who asks", func() bool {
				list, err := redis.String(server.Do("CLIENT", "LIST"))
				return err == nil && strings.Count(list, "\n") == 1
			})
		})
	}
}

func TestWhat_is_not_RESP_is_reset(t *testing.T) {
	_, p := start(t)
	for _, text := range []string{"*1\r\n?\r\n", "*x\r\n", "*1\r\n$-2\r\n", "*1\r\n$1\r\nabc", "*2000000\r\n"} {
		c := dial(t, p)
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		c.wantsReset(t)
	}
}

func TestClose_ends_everything_and_refuses(t *testing.T) {
	p, err := faultproxy.Run(miniredis.RunT(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	p.Cut()
	c := dial(t, p)
	c.send(t, "PING")
	await(t, p, func(s faultproxy.Stats) bool { return s.Received["PING"] == 1 })

	p.Close()

	c.wantsReset(t)
	p.Heal()
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v, want connection refused", err)
	}
}

func redial(t *testing.T, addr string) redis.Conn {
	t.Helper()
	conn, err := redis.Dial("tcp", addr, redis.DialReadTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
