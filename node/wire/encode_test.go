package wire

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// written collects what redigo would send.
type written struct {
	net.Conn
	bytes.Buffer
}

func (w *written) Write(p []byte) (int, error)      { return w.Buffer.Write(p) }
func (w *written) Read(p []byte) (int, error)       { return w.Buffer.Read(p) }
func (w *written) SetReadDeadline(time.Time) error  { return nil }
func (w *written) SetWriteDeadline(time.Time) error { return nil }
func (w *written) Close() error                     { return nil }

// byRedigo is what redigo makes of cmd.
func byRedigo(t testing.TB, cmd *Command, by Form) []byte {
	name, args := cmd.Name, []any{}
	if cmd.Script != nil {
		name, args = "EVALSHA", append(args, cmd.Script.SHA, len(cmd.Keys))
		if by == BySource {
			name, args[0] = "EVAL", cmd.Script.Source
		}
	}
	for _, s := range append(append([]string{}, cmd.Keys...), cmd.Args...) {
		args = append(args, s)
	}
	var w written
	c := redis.NewConn(&w, 0, 0)
	if err := c.Send(name, args...); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

func FuzzEncoder_writes_what_redigo_writes(f *testing.F) {
	f.Add("SET", "name", "value", "NX", 0)
	f.Add("", "", "", "", 1)
	f.Add("GET", "key with spaces\r\n", "\x00\xff", "$5\r\nhello\r\n", 2)
	f.Add("SET", "ключ:замок", "10000000000", "-1", 3)
	f.Fuzz(func(t *testing.T, name, key, arg1, arg2 string, kind int) {
		cmd := &Command{Name: name, Keys: []string{key}, Args: []string{arg1, arg2}}
		switch kind % 4 {
		case 1:
			cmd.Keys = nil
		case 2:
			cmd.Script = &Script{Source: arg2, SHA: arg1}
		case 3:
			cmd.Script, cmd.Keys = ScriptRelease, []string{key, arg1, key}
		}
		for _, by := range []Form{ByHash, BySource} {
			got, want := Append(nil, cmd, by), byRedigo(t, cmd, by)
			if !bytes.Equal(got, want) {
				t.Fatalf("%q, redigo %q", got, want)
			}
			if room := Size(cmd, by); room < len(got) || room > len(got)+500 {
				t.Fatalf("room for %d bytes, of %d: %q", room, len(got), got)
			}
		}
	})
}

func TestEncoder_writes_large_arguments(t *testing.T) {
	cmd := Acquire(strings.Repeat("k", 10_000), strings.Repeat("v", 100_000), time.Second)
	if got, want := Append(nil, cmd, ByHash), byRedigo(t, cmd, ByHash); !bytes.Equal(got, want) {
		t.Errorf("%d bytes, redigo writes %d", len(got), len(want))
	}
}

func TestCommands_reach_the_wire_as_other_Redlock_clients_send_them(t *testing.T) {
	got := string(Append(nil, Acquire("name", "value", 1500*time.Millisecond), ByHash))
	want := "*6\r\n$3\r\nSET\r\n$4\r\nname\r\n$5\r\nvalue\r\n$2\r\nNX\r\n$2\r\nPX\r\n$4\r\n1500\r\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
