package faultproxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Request is a command as the client sent it.
type Request struct {
	Name string // in upper case
	Args []string
}

// Keys returns the keys of a script call, and of any other command the first
// argument.
func (r Request) Keys() []string {
	if len(r.Args) == 0 {
		return nil
	}
	switch r.Name {
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO":
		return r.scriptKeys()
	}
	return r.Args[:1]
}

func (r Request) scriptKeys() []string {
	if len(r.Args) < 2 {
		return nil
	}
	n, err := strconv.Atoi(r.Args[1])
	if err != nil || n < 0 {
		return nil
	}
	return r.Args[2:min(2+n, len(r.Args))]
}

// request reads a value as a command: an array of strings.
func request(v value) Request {
	var r Request
	for i, part := range v.parts {
		if i == 0 {
			r.Name = strings.ToUpper(part.text)
			continue
		}
		r.Args = append(r.Args, part.text)
	}
	return r
}

// value is a decoded RESP2 value.
type value struct {
	kind  byte
	text  string  // of a line or a bulk string
	parts []value // of an array
}

var errProtocol = errors.New("not RESP")

const (
	maxBulk  = 512 << 20 // Redis's own limit
	maxParts = 1 << 20   // Redis's own limit for a command
	maxDepth = 32
)

// readValue reads one whole value and returns it with its bytes. An error of
// the connection is returned unchanged, anything that is not RESP as
// errProtocol.
func readValue(r *bufio.Reader) (value, []byte, error) {
	d := decoder{reader: r}
	v, err := d.value(0)
	return v, d.raw.Bytes(), err
}

type decoder struct {
	reader *bufio.Reader
	raw    bytes.Buffer
}

func (d *decoder) value(depth int) (value, error) {
	line, err := d.line()
	if err != nil {
		return value{}, err
	}
	if line == "" || depth > maxDepth {
		return value{}, fmt.Errorf("%w: empty line or nested too deep", errProtocol)
	}
	v := value{kind: line[0]}
	switch v.kind {
	case '+', '-', ':':
		v.text = line[1:]
	case '$':
		v.text, err = d.bulk(line[1:])
	case '*':
		v.parts, err = d.array(line[1:], depth)
	default:
		err = fmt.Errorf("%w: type %q", errProtocol, v.kind)
	}
	return v, err
}

func (d *decoder) line() (string, error) {
	line, err := d.reader.ReadBytes('\n')
	if err != nil {
		return "", err
	}
	d.raw.Write(line)
	return strings.TrimRight(string(line), "\r\n"), nil
}

func (d *decoder) bulk(length string) (string, error) {
	n, err := size(length, maxBulk)
	if err != nil || n < 0 {
		return "", err
	}
	start := d.raw.Len()
	if _, err := io.CopyN(&d.raw, d.reader, int64(n)+2); err != nil {
		return "", err
	}
	text, ended := strings.CutSuffix(string(d.raw.Bytes()[start:]), "\r\n")
	if !ended {
		return "", fmt.Errorf("%w: string without an end", errProtocol)
	}
	return text, nil
}

func (d *decoder) array(count string, depth int) (parts []value, err error) {
	n, err := size(count, maxParts)
	if err != nil {
		return nil, err
	}
	for range n {
		part, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// size reads a length, which is -1 for null.
func size(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < -1 || n > most {
		return 0, fmt.Errorf("%w: length %q", errProtocol, text)
	}
	return n, nil
}
