package wire

import (
	"strconv"
	"strings"
	"time"
)

// Request is what a client asks of the holder of a lock: to release it.
type Request struct {
	Number int64 // a later one is higher
	Client string
	Reason string
}

// askedKey returns the key of the request to the holder with that value. Values are never
// used again, so no other holder has that key.
func askedKey(prefix, value string) string { return prefix + "redlock:asked:" + value }

// RequestChannel is the channel on which that holder is notified of a request. A user with the
// right to every WaitChannel has the right to it.
func RequestChannel(prefix, value string) string { return prefix + "redlock:wait:" + value }

// MakeRequest stores a request to the holders with these values, and notifies them. OtherRequestOf
// reads the answer.
func MakeRequest(prefix string, values []string, r Request, keep time.Duration) *Command {
	cmd := &Command{Op: OpRequest, Script: ScriptRequest}
	cmd.Args = []string{strconv.FormatInt(r.Number, 10), r.Client + " " + r.Reason, atLeastMillis(keep)}
	for _, value := range values {
		cmd.Keys = append(cmd.Keys, askedKey(prefix, value))
		cmd.Args = append(cmd.Args, RequestChannel(prefix, value))
	}
	return cmd
}

// OtherRequestOf reads the answer to MakeRequest. later is the number of another request that stays
// in the place of ours, since it is not earlier; zero: ours is stored.
func OtherRequestOf(r Reply) (later int64, ok bool) {
	if r.Err == nil && r.Value == int64(1) {
		return 0, true
	}
	later, err := strconv.ParseInt(stringOf(r.Value), 10, 64)
	return later, r.Err == nil && err == nil && later > 0
}

// Requested asks for the last request to the holder with that value.
func Requested(prefix, value string) *Command {
	return &Command{Op: OpRead, Name: "GET", Keys: []string{askedKey(prefix, value)}}
}

// RequestOf reads the answer to Requested; not ok where no request is stored.
func RequestOf(r Reply) (req Request, ok bool) {
	number, rest, _ := strings.Cut(stringOf(r.Value), " ")
	client, reason, ok := strings.Cut(rest, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	return Request{n, client, reason}, ok && err == nil && r.Err == nil
}
