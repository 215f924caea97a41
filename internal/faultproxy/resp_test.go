package faultproxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReplies_are_read_whole(t *testing.T) {
	for _, text := range []string{
		"+OK\r\n", "-ERR no\r\n", ":1\r\n", "$-1\r\n", "$0\r\n\r\n", "$4\r\n\r\n\r\n\r\n", "*-1\r\n", "*0\r\n",
		"*2\r\n*1\r\n:1\r\n$-1\r\n",
	} {
		next := "+next\r\n"
		reader := bufio.NewReader(iotest.OneByteReader(strings.NewReader(text + next)))
		if _, raw, err := readValue(reader); string(raw) != text || err != nil {
			t.Errorf("%q: read %q, %v", text, raw, err)
		}
		if rest, _ := io.ReadAll(reader); string(rest) != next {
			t.Errorf("%q: left %q, want %q", text, rest, next)
		}
	}
}

func TestWhat_is_not_RESP_is_told(t *testing.T) {
	for _, text := range []string{
		"\r\n", "hello\r\n", "$x\r\n", "$-2\r\n", "$1\r\nabc\r\n", "*1048577\r\n", "$536870913\r\n", "|1\r\n", "_\r\n", "PING\r\n",
		strings.Repeat("*1\r\n", 100),
	} {
		if _, _, err := readValue(bufio.NewReader(strings.NewReader(text))); !errors.Is(err, errProtocol) {
			t.Errorf("%.20q: %v, want %v", text, err, errProtocol)
		}
	}
}

// FuzzReadValue: whatever is read is passed on as it came, however it comes in
// pieces.
func FuzzReadValue(f *testing.F) {
	for _, text := range []string{"*2\r\n$4\r\nECHO\r\n$1\r\na\r\n", "PING\r\n", "%1\r\n+a\r\n_\r\n", "$3\r\nab"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, raw, err := readValue(bufio.NewReader(bytes.NewReader(text)))
		if !bytes.HasPrefix(text, raw) {
			t.Fatalf("%q was read as %q", text, raw)
		}
		pieces, rawPieces, errPieces := readValue(bufio.NewReader(iotest.OneByteReader(bytes.NewReader(text))))
		if !reflect.DeepEqual(whole, pieces) || !bytes.Equal(raw, rawPieces) || (err == nil) != (errPieces == nil) {
			t.Fatalf("%q: whole %v, %v; in pieces %v, %v", text, whole, err, pieces, errPieces)
		}
	})
}
