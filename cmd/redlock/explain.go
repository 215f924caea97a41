package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// complain prints an error: as one line, and on a terminal with a line for each
// master. The library's errors name it already.
func complain(w io.Writer, err error) {
	text := err.Error()
	if text == "" {
		return
	}
	failed := new(redlock.Error)
	if !errors.As(err, &failed) || len(failed.Votes) == 0 || !isTerminal(w) {
		fmt.Fprintln(w, prefixed(text)+advice(err, "; "))
		return
	}
	short := *failed
	short.Votes = nil
	fmt.Fprintln(w, prefixed(strings.Replace(text, failed.Error(), short.Error(), 1))+tally(failed.Votes))
	longest := 0
	for _, v := range failed.Votes {
		longest = max(longest, len(v.Node))
	}
	for _, v := range failed.Votes {
		said := spoken(strings.TrimPrefix(v.String(), v.Node+" "))
		fmt.Fprintf(w, "  %-*s  %s\n", longest, plain(v.Node), wrap(said, longest+4, width(w)))
	}
	if hint := advice(err, ""); hint != "" {
		fmt.Fprintln(w, wrap(hint, 0, width(w)))
	}
}

// advice says what to do about masters that do not vote yet.
func advice(err error, before string) string {
	if !errors.Is(err, redlock.ErrNoQuorum) || !errors.Is(err, node.ErrQuarantined) {
		return ""
	}
	return before + "masters that may have forgotten locks do not vote for a while: wait, or, if they are new, run redlock init once"
}

func prefixed(text string) string {
	return "redlock: " + spoken(strings.TrimPrefix(text, "redlock: "))
}

// spoken puts Go's words for the end of a context into everybody's, and makes
// the text safe to print.
func spoken(text string) string {
	return plain(strings.NewReplacer(
		context.DeadlineExceeded.Error(), "timed out",
		context.Canceled.Error(), "interrupted",
	).Replace(text))
}

// tally says how many masters granted, and how many had to.
func tally(votes []redlock.Vote) string {
	granted := 0
	for _, v := range votes {
		if v.Vote == quorum.Granted && !v.Late {
			granted++
		}
	}
	return fmt.Sprintf(" (%d of %d masters, %d needed)", granted, len(votes), quorum.Size(len(votes)))
}

// misconfigured reports whether so many masters refuse who we say we are that
// the others are no quorum: trying again will not help.
func misconfigured(err error) bool {
	if errors.Is(err, node.ErrSameNode) || errors.Is(err, node.ErrOtherGroup) {
		return true
	}
	failed := new(redlock.Error)
	if !errors.As(err, &failed) {
		return false
	}
	refused := 0
	for _, v := range failed.Votes {
		if refusesUs(v.Err) {
			refused++
		}
	}
	return refused > 0 && refused > len(failed.Votes)-quorum.Size(len(failed.Votes))
}

func refusesUs(err error) bool {
	refusal := new(node.ServerError)
	if !errors.As(err, &refusal) {
		return false
	}
	switch refusal.Code {
	case "WRONGPASS", "NOAUTH", "NOPERM":
		return true
	}
	// Redis before 6 has no code for a wrong password.
	return strings.Contains(refusal.Message, "invalid password") || strings.Contains(refusal.Message, "AUTH")
}
