package main

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
)

// Break is one line of production code, or a few that belong together, made
// wrong.
type Break struct {
	Class string // what kind of rule is broken
	About string // what the code does when it is broken
	File  string // from the root of the module

	// Equivalent is the reason why the break has no symptom; empty: it has one.
	Equivalent string

	line   int      // of the list, for messages
	before []string // the lines of the file that it is about, with what stays around them
	after  []string // the replacement
}

// breaks.txt is the list. Its head says how a break is written.
//
//go:embed breaks.txt
var list string

// parse reads a list of breaks.
func parse(list string) ([]*Break, error) {
	var all []*Break
	var b *Break
	for i, line := range strings.Split(list, "\n") {
		about, isHead := strings.CutPrefix(line, "== ")
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case isHead:
			class, about, ok := strings.Cut(about, ": ")
			if !ok {
				return nil, fmt.Errorf("line %d: %q: must be == CLASS: what is broken", i+1, line)
			}
			b = &Break{Class: class, About: about, line: i + 1}
			all = append(all, b)
		case b == nil:
			return nil, fmt.Errorf("line %d: %q: no break has begun", i+1, line)
		default:
			if err := b.add(line); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		}
	}
	for _, b := range all {
		if b.File == "" || equal(b.before, b.after) {
			return nil, fmt.Errorf("line %d: %s: must name a file and change something", b.line, b.About)
		}
	}
	return all, nil
}

// add takes one line of the description of a break.
func (b *Break) add(line string) error {
	text := strings.TrimSpace(line[1:])
	why, isEquivalent := strings.CutPrefix(line, "equivalent: ")
	switch {
	case line[0] == '-':
		b.before = append(b.before, text)
	case line[0] == '+':
		b.after = append(b.after, text)
	case line[0] == ' ':
		b.before, b.after = append(b.before, text), append(b.after, text)
	case isEquivalent:
		b.Equivalent = why
	case b.File == "":
		b.File = line
	default:
		return fmt.Errorf("%q: must begin with -, +, a space, or \"equivalent:\"", line)
	}
	return nil
}

var (
	errGone      = errors.New("does not apply any more: no such lines")
	errAmbiguous = errors.New("applies at several places: add a line before or after")
)

// apply returns source with the break in it. Indentation does not count, so
// that moving code in or out leaves the list true.
func (b *Break) apply(source string) (string, error) {
	lines := strings.Split(source, "\n")
	at := -1
	for i := range lines {
		if !b.matches(lines[i:]) {
			continue
		}
		if at >= 0 {
			return "", b.wrong(errAmbiguous)
		}
		at = i
	}
	if at < 0 {
		return "", b.wrong(errGone)
	}
	broken := append([]string{}, lines[:at]...)
	broken = append(broken, b.after...)
	broken = append(broken, lines[at+len(b.before):]...)
	return strings.Join(broken, "\n"), nil
}

func (b *Break) matches(lines []string) bool {
	if len(lines) < len(b.before) {
		return false
	}
	for i, want := range b.before {
		if strings.TrimSpace(lines[i]) != want {
			return false
		}
	}
	return true
}

func (b *Break) wrong(err error) error {
	return fmt.Errorf("breaks.txt:%d: %s: %s: %w", b.line, b.File, b.About, err)
}

func equal(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }
