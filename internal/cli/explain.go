package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/seam"
	"github.com/quorumlock/quorumlock/internal/wrap"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// Complain prints an error: as one line, and on a terminal wrapped, with a line
// for each master. The library's errors name it already.
func Complain(w io.Writer, err error) {
	if err.Error() == "" {
		return
	}
	if IsTerminal(w) {
		explain(w, err, Width(w))
		return
	}
	fmt.Fprintln(w, prefixed(inOneLine(err))+advice(err, "; "))
}

// inOneLine is the text of an error. It has an answer of several masters only once, also
// where its durations differ.
func inOneLine(err error) string {
	failed, text := new(redlock.Error), err.Error()
	if !errors.As(err, &failed) || len(failed.Votes) == 0 {
		return text
	}
	short := *failed
	short.Votes = nil
	kinds, answers, by := []string{}, map[string][]string{}, map[string][]string{}
	for _, v := range failed.Votes {
		what := answered(failed, v)
		kind := alike(what)
		if by[kind] == nil {
			kinds = append(kinds, kind)
		}
		answers[kind] = append(answers[kind], what)
		by[kind] = append(by[kind], v.Node)
	}
	said := make([]string, len(kinds))
	for i, kind := range kinds {
		who := strings.Join(by[kind], ", ")
		if n := len(by[kind]); n > 1 && n == len(failed.Votes) {
			who = "all masters"
		}
		said[i] = who + " " + together(answers[kind])
	}
	granted, needed := count(failed.Votes)
	return strings.Replace(text, failed.Error(), fmt.Sprintf("%s (%d of %d %s, %d needed: %s)",
		short.Error(), granted, len(failed.Votes), wordFor(failed), needed, strings.Join(said, "; ")), 1)
}

// wordFor is what a master did that granted, or only answered a question.
func wordFor(failed *redlock.Error) string {
	if seam.AnswersOnly(failed) {
		return "answered"
	}
	return "granted"
}

// answered is a master's answer to what failed, without its name.
func answered(failed *redlock.Error, v redlock.Vote) string {
	if v.Err == nil && v.Vote == quorum.Granted {
		return strings.Replace(saying(v), "granted", wordFor(failed), 1)
	}
	return saying(v)
}

// saying is a master's answer, without its name.
func saying(v redlock.Vote) string {
	return InWords(strings.TrimPrefix(v.String(), v.Node+" "))
}

func InWords(reply string) string {
	return inSeconds(permitsRefused.ReplaceAllString(reply, "set to $1 permits"))
}

// permitsRefused is how a script says that a semaphore has another number of
// permits.
var permitsRefused = regexp.MustCompile(`^PERMITS ([0-9]+)`)

// explain prints an error for people, in so many columns.
func explain(w io.Writer, err error, columns int) {
	text := err.Error()
	failed := new(redlock.Error)
	if !errors.As(err, &failed) || len(failed.Votes) == 0 {
		for i, line := range strings.Split(masterByMaster(err), "\n") {
			if i == 0 {
				line = prefixed(line)
			} else {
				line = "  " + Spoken(line)
			}
			fmt.Fprintln(w, indented(line, columns))
		}
		return
	}
	short := *failed
	short.Votes = nil
	fmt.Fprintln(w, wrap.Text(prefixed(strings.Replace(text, failed.Error(), short.Error(), 1))+tally(failed), 2, columns))
	tell(w, failed, columns)
	if hint := advice(err, ""); hint != "" {
		fmt.Fprintln(w, wrap.Text(hint, 0, columns))
	}
}

// tell prints the answer of each master, and an answer of all of them once.
func tell(w io.Writer, failed *redlock.Error, columns int) {
	votes := failed.Votes
	said := make([]string, len(votes))
	longest := 0
	for i, v := range votes {
		said[i] = Spoken(answered(failed, v))
		longest = max(longest, len(v.Node))
	}
	differs := func(one string) bool { return alike(one) != alike(said[0]) }
	if len(said) > 1 && !slices.ContainsFunc(said, differs) {
		fmt.Fprintf(w, "  all masters  %s\n", wrap.Text(together(said), len("  all masters  "), columns))
		return
	}
	for i, v := range votes {
		fmt.Fprintf(w, "  %-*s  %s\n", longest, Plain(v.Node), wrap.Text(said[i], longest+4, columns))
	}
}

var quarantineRest = regexp.MustCompile(`for another [0-9.a-zµ]+`)

// inSeconds rounds how long a quarantine lasts: masters that are quarantined together
// should show the same.
func inSeconds(said string) string {
	return quarantineRest.ReplaceAllStringFunc(said, func(text string) string {
		rest, err := time.ParseDuration(strings.TrimPrefix(text, "for another "))
		if err != nil {
			return text
		}
		return "for another " + max(time.Second, rest.Round(time.Second)).String()
	})
}

// indented wraps a line. Its continuation stands two columns deeper.
func indented(line string, columns int) string {
	text := strings.TrimLeft(line, " ")
	margin := len(line) - len(text)
	return line[:margin] + wrap.Text(text, margin+2, columns)
}

// masterByMaster is the text of an error, and if it is made of one for each
// master, with a line for each of them.
func masterByMaster(err error) string {
	all := Parts(err)
	if len(all) < 2 {
		return err.Error()
	}
	var lines []string
	for _, one := range all {
		lines = append(lines, one.Error())
	}
	before, after, found := strings.Cut(err.Error(), strings.Join(lines, "; "))
	if !found {
		return err.Error()
	}
	return strings.TrimSuffix(before, " ") + "\n" + strings.Join(lines, "\n") + after
}

// Advised is an error with what to do about it.
type Advised struct {
	Err    error
	Advice string
}

func (a *Advised) Error() string { return a.Err.Error() }
func (a *Advised) Unwrap() error { return a.Err }

// advice says what to do about an error, such as masters that do not vote yet.
func advice(err error, before string) string {
	if known := new(Advised); errors.As(err, &known) {
		return before + known.Advice
	}
	if !errors.Is(err, redlock.ErrNoQuorum) || !errors.Is(err, guard.ErrQuarantined) {
		return ""
	}
	return before + "masters that may have forgotten locks do not vote for a while: redlock run sits it out, unless --wait says otherwise"
}

func prefixed(text string) string {
	return program + Spoken(strings.Replace(": "+text, ": redlock: ", ": ", 1)) // it may stand behind the name of a group
}

// Spoken puts Go's words for the end of a context, and for what a flag says, into plain
// ones, and makes the text safe to print.
func Spoken(text string) string {
	return Plain(strings.NewReplacer(
		context.DeadlineExceeded.Error(), "timed out",
		context.Canceled.Error(), "interrupted",
		", this handle ", ", --of says ",
		"call it again", "run it again",
		"(see WithGroup and redlock init)", "(see --group and redlock init)",
	).Replace(text))
}

// tally says how many masters granted, and how many were needed. Where masters have
// another number of permits, none was to grant.
func tally(failed *redlock.Error) string {
	if errors.Is(failed.Err, redlock.ErrPermits) {
		return ""
	}
	granted, needed := count(failed.Votes)
	return fmt.Sprintf(" (%d of %d masters, %d needed)", granted, len(failed.Votes), needed)
}

func count(votes []redlock.Vote) (granted, needed int) {
	for _, v := range votes {
		if v.Vote == quorum.Granted && !v.Late {
			granted++
		}
	}
	return granted, quorum.Size(len(votes))
}

// Misconfigured reports whether so many masters refuse our login that the others are
// no quorum: trying again will not help.
func Misconfigured(err error) bool {
	if errors.Is(err, guard.ErrSameNode) || errors.Is(err, guard.ErrOtherGroup) {
		return true
	}
	failed := new(redlock.Error)
	if !errors.As(err, &failed) {
		return false
	}
	refused := 0
	for _, v := range failed.Votes {
		if RefusesUs(v.Err) {
			refused++
		}
	}
	return refused > 0 && refused > len(failed.Votes)-quorum.Size(len(failed.Votes))
}

func RefusesUs(err error) bool {
	refusal := new(wire.ServerError)
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

// Parts are the errors of which an error of several masters is made, or the error
// alone.
func Parts(err error) []error {
	var several interface{ WrappedErrors() []error }
	if errors.As(err, &several) {
		return several.WrappedErrors()
	}
	return []error{err}
}
