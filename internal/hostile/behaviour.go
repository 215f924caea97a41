package hostile

import (
	"errors"
	"io"
	"net"
	"strings"
)

// Behaviour is a way to treat a request.
type Behaviour struct {
	Name string
	// Answers: it is an answer that a good master could give, at least to some
	// requests, so that a client cannot see through it immediately.
	Answers bool

	act func(s *session, r Request, raw string) error
}

// errOver ends a session.
var errOver = errors.New("hostile master: the connection is over")

// Behaviours are all ways to misbehave.
func Behaviours() []Behaviour {
	all := []Behaviour{
		{Name: "silence", act: func(*session, Request, string) error { return nil }},
		{Name: "silence for ever", act: silentForEver},
		{Name: "silence after doing it", act: func(s *session, r Request, raw string) error {
			_, err := s.reply(r, raw)
			return err
		}},
		{Name: "hanging up", act: func(*session, Request, string) error { return errOver }},
		{Name: "hanging up after doing it", act: func(s *session, r Request, raw string) error {
			s.reply(r, raw)
			return errOver
		}},
		{Name: "reset", act: func(s *session, _ Request, _ string) error {
			s.conn.(*net.TCPConn).SetLinger(0)
			return errOver
		}},
		{Name: "half of the reply, hanging up", act: half(func(*session, Request, string) error { return errOver })},
		{Name: "half of the reply, silence", act: half(silentForEver)},
		{Name: "the reply twice", Answers: true, act: around("", true)},
		{Name: "an OK before the reply", Answers: true, act: around("+OK\r\n", false)},
		{Name: "a nil before the reply", Answers: true, act: around("$-1\r\n", false)},
		{Name: "a one before the reply", Answers: true, act: around(":1\r\n", false)},
		{Name: "an error before the reply", Answers: true, act: around("-ERR out of the blue\r\n", false)},
		{Name: "an empty line before the reply", act: around("\r\n", false)},
		{Name: "a message before the reply", act: around("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n", false)},
	}
	for name, s := range pairs(says) {
		all = append(all, Behaviour{Name: name, act: say(s)})
	}
	for name, s := range pairs(answers) {
		all = append(all, Behaviour{Name: name, Answers: true, act: say(s)})
	}
	for _, s := range errorReplies {
		all = append(all, Behaviour{Name: "error " + strings.ToValidUTF8(s, "?"), act: say("-" + s + "\r\n")})
	}
	for name, s := range pairs(floods) {
		all = append(all, Behaviour{Name: name + " without end", act: pour(s)})
	}
	for name, s := range pairs(floodsOfAnswers) {
		all = append(all, Behaviour{Name: name + " without end", Answers: true, act: pour(s)})
	}
	return all
}

// says are no RESP2 at all, or claims without end. Each comes once.
var says = []string{
	"prose", "hello\r\n",
	"an empty line", "\r\n",
	"an integer without digits", ":\r\n",
	"an integer that is none", ":1e3\r\n",
	"an integer of 20 digits", ":18446744073709551616\r\n",
	"a line feed alone", "+OK\n",
	"a bulk string of a length that is none", "$abc\r\n",
	"a bulk string of length -2", "$-2\r\n",
	"a bulk string longer than it says", "$3\r\nabcde\r\n",
	"a bulk string of 2 GB", "$2147483647\r\n",
	"a bulk string of a terabyte", "$1099511627776\r\n",
	"a bulk string of 2^63-1", "$9223372036854775807\r\n",
	"a bulk string of 2^64", "$18446744073709551616\r\n",
	"an array of length -5", "*-5\r\n",
	"an array of 2^31-1", "*2147483647\r\n",
	"an array of 10^11", "*100000000000\r\n",
	"an array of 10^18", "*1000000000000000000\r\n",
	"nine arrays in each other", strings.Repeat("*1\r\n", 9) + ":1\r\n",
	"a map of RESP3", "%1\r\n+a\r\n+b\r\n",
	"a set of RESP3", "~1\r\n+a\r\n",
	"a null of RESP3", "_\r\n",
	"a boolean of RESP3", "#t\r\n",
	"a double of RESP3", ",1.5\r\n",
	"a big number of RESP3", "(12345678901234567890\r\n",
	"a blob error of RESP3", "!5\r\nERR x\r\n",
	"a verbatim string of RESP3", "=6\r\ntxt:OK\r\n",
	"a push of RESP3", ">2\r\n+message\r\n+x\r\n",
	"an attribute of RESP3", "|1\r\n+a\r\n+b\r\n",
	"a streamed string of RESP3", "$?\r\n;2\r\nOK\r\n;0\r\n",
	"HTTP", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
	"SMTP", "220 mail.example.com ESMTP\r\n",
	"SSH", "SSH-2.0-OpenSSH_9.2p1\r\n",
	"a TLS alert", "\x15\x03\x03\x00\x02\x02\x28",
	"memcached", "ERROR\r\n",
	"zeros", strings.Repeat("\x00", 512),
	"ones", strings.Repeat("\xff", 512),
	"control characters", "\x1b[2J\x9b31m\u202e\x7f\r\n",
	"UTF-16", "\xff\xfe+\x00O\x00K\x00\r\x00\n\x00",
}

// answers are of kinds that some commands are answered by.
var answers = []string{
	"OK", "+OK\r\n",
	"QUEUED", "+QUEUED\r\n",
	"PONG", "+PONG\r\n",
	"an empty status", "+\r\n",
	"a status with control characters", "+\x1b[2J\u202e\r\n",
	"nil", "$-1\r\n",
	"a nil array", "*-1\r\n",
	"an empty string", "$0\r\n\r\n",
	"OK as a bulk string", "$2\r\nOK\r\n",
	"one as a bulk string", "$1\r\n1\r\n",
	"0", ":0\r\n",
	"1", ":1\r\n",
	"-1", ":-1\r\n",
	"2^63-1", ":9223372036854775807\r\n",
	"-2^63", ":-9223372036854775808\r\n",
	"an empty array", "*0\r\n",
	"an array with an OK", "*1\r\n+OK\r\n",
	"an array with an error", "*2\r\n:1\r\n-ERR inside\r\n",
	"an array of arrays", "*2\r\n*1\r\n:1\r\n*0\r\n",
}

var errorReplies = []string{
	"", "ERR", "ERR max number of clients reached", "LOADING Redis is loading the dataset in memory", "BUSY Redis is busy running a script",
	"MISCONF Redis is configured to save RDB snapshots", "OOM command not allowed when used memory > 'maxmemory'",
	"READONLY You can't write against a read only replica", "MASTERDOWN Link with MASTER is down", "NOAUTH Authentication required",
	"NOPERM this user has no permissions", "NOSCRIPT No matching script", "WRONGTYPE Operation against a key", "NOREPLICAS Not enough good replicas",
	"MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381", "CLUSTERDOWN The cluster is down", "TRYAGAIN Multiple keys", "CROSSSLOT Keys",
	"EXECABORT Transaction discarded", "ERR \x1b]0;title\a\x9b31m\u202e\x7f\x00", "ERR " + strings.Repeat("long ", 10_000),
}

// floods come again and again until the client stops reading.
var floods = []string{
	"arrays in arrays", "*1\r\n",
	"arrays in arrays of a million", "*1000000\r\n",
	"a line", "x",
	"an error", "-ERR x",
	"large strings", "$8192\r\n" + strings.Repeat("x", 8192) + "\r\n",
}

var floodsOfAnswers = []string{
	"statuses", "+OK\r\n",
	"nils", "$-1\r\n",
	"integers", ":1\r\n",
	"empty arrays", "*0\r\n",
	"errors", "-ERR again\r\n",
	"messages", "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n",
}

// pairs goes through a list of names and values.
func pairs(list []string) func(yield func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for i := 0; i+1 < len(list); i += 2 {
			if !yield(list[i], list[i+1]) {
				return
			}
		}
	}
}

func silentForEver(s *session, _ Request, _ string) error {
	io.Copy(io.Discard, s.in)
	return errOver
}

func say(text string) func(*session, Request, string) error {
	return func(s *session, _ Request, _ string) error {
		_, err := io.WriteString(s.conn, text)
		return err
	}
}

// half begins the right reply and goes on otherwise.
func half(then func(*session, Request, string) error) func(*session, Request, string) error {
	return func(s *session, r Request, raw string) error {
		reply, err := s.reply(r, raw)
		if err != nil {
			return err
		}
		io.WriteString(s.conn, reply[:len(reply)/2])
		return then(s, r, raw)
	}
}

// around puts something before the right reply, or repeats it.
func around(before string, twice bool) func(*session, Request, string) error {
	return func(s *session, r Request, raw string) error {
		reply, err := s.reply(r, raw)
		if err != nil {
			return err
		}
		if twice {
			reply += reply
		}
		_, err = io.WriteString(s.conn, before+reply)
		return err
	}
}

// pour sends text until the client is gone, a gigabyte at most.
func pour(text string) func(*session, Request, string) error {
	return func(s *session, _ Request, _ string) error {
		chunk := strings.Repeat(text, max(1, 32<<10/len(text)))
		for range 1 << 30 / len(chunk) {
			if _, err := io.WriteString(s.conn, chunk); err != nil {
				return err
			}
		}
		return errOver
	}
}
