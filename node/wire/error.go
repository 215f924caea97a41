package wire

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is one node's failure to answer a command.
type Error struct {
	Node string // the address
	Op   Op     // the question; zero for the connection itself
	Err  error  // one of the sentinels, a ServerError, or wraps what went wrong
}

func (e *Error) Error() string {
	if e.Op == 0 {
		return e.Node + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s: %s: %v", e.Node, e.Op, e.Err)
}

// Unwrap makes errors.Is and errors.As look at Err. A nil Error, which a Reply
// without failure has, is none of the errors above.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// ServerError is an error reply of Redis, classified by its first word, or by the reason
// that stopped a script.
type ServerError struct {
	Code    string // NOSCRIPT, LOADING, READONLY, MISCONF, OOM, BUSY, NOAUTH, ...
	Message string // the reply, without what it quotes of a command that the server does not know
}

// Server returns the ServerError for an error reply. What stopped a script is worded in
// another way than what a command answers: no server says NOPERM there (L51), and Redis
// before 7 puts the place before the reason.
//
// A server that does not know a command quotes its arguments. Those of a login are a password,
// so they are left out.
func Server(reply string) *ServerError {
	reply, _, _ = strings.Cut(reply, quoted)
	code, _, _ := strings.Cut(reply, " ")
	if !isCode(code) || code == "ERR" {
		code = scriptCode(reply, code)
	}
	return &ServerError{Code: code, Message: reply}
}

// quoted is what stands before the arguments of a command that a server does not know.
const quoted = ", with args beginning with: "

// scriptCode returns the code of the reason that stopped a script, or else if there is
// none. Redis before 7 writes "PLACE: REASON" or "PLACE: -REASON", with several places.
func scriptCode(reply, otherwise string) string {
	for _, denied := range deniedInScript {
		if strings.Contains(reply, denied) {
			return "NOPERM"
		}
	}
	for {
		_, reason, more := strings.Cut(reply, ": ")
		if !more {
			return otherwise
		}
		if code, _, _ := strings.Cut(strings.TrimPrefix(reason, "-"), " "); isCode(code) {
			return code
		}
		reply = reason
	}
}

// isCode reports whether a word of a reply is a code: at least two capital letters.
func isCode(word string) bool {
	return len(word) > 1 && !strings.ContainsFunc(word, func(r rune) bool { return r < 'A' || r > 'Z' })
}

// deniedInScript is how a script says that its user may not use a command, a key or a
// channel.
var deniedInScript = []string{
	"The user executing the script ", // Redis before 7.2
	"ACL failure in script: ",        // Redis 7.2 and Valkey 7.2 and later
}

func (e *ServerError) Error() string { return Printable(e.Message) }

// Is makes errors.Is(err, &ServerError{Code: "OOM"}) true for every OOM reply.
func (e *ServerError) Is(target error) bool {
	t, ok := target.(*ServerError)
	return ok && t.Code == e.Code && (t.Message == "" || t.Message == e.Message)
}

// Refuses reports whether the master refused the command for a reason that
// passes by itself or by an operator's hand, so that a release should be sent
// again (L5).
func (e *ServerError) Refuses() bool {
	switch e.Code {
	case "LOADING", "BUSY", "MISCONF", "NOREPLICAS", "READONLY", "MASTERDOWN", "OOM", "NOAUTH", "NOPERM", "TRYAGAIN":
		return true
	}
	return false
}

// Denied reports whether our user must not run the command, so that nothing of it was run. What stops a script
// half-way is worded in another way; see Server.
func (e *ServerError) Denied() bool { return strings.HasPrefix(e.Message, "NOPERM ") }

// Unwritable reports whether the master stores nothing for us, whatever the name: it is full, cannot save, or
// has too few replicas, or our user must not run the command.
func (e *ServerError) Unwritable() bool {
	switch e.Code {
	case "OOM", "MISCONF", "NOREPLICAS":
		return true
	case "NOPERM":
		return strings.Contains(e.Message, " run ")
	}
	return false
}

// Demoted reports whether only a replica answers so: the server is no master any more.
func (e *ServerError) Demoted() bool { return e.Code == "READONLY" || e.Code == "MASTERDOWN" }

// maxShown bounds how much of a server's message is shown.
const maxShown = 300

// Printable returns what a server said as it may be shown: not too long, and
// with anything escaped that a terminal or the reader of a log could take for
// something else.
func Printable(s string) string {
	if len(s) > maxShown {
		s = s[:maxShown] + "..."
	}
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if unprintable(r) {
			quoted := strconv.Quote(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

func unprintable(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }
