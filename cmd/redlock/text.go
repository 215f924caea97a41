package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// plain escapes everything that could move a terminal's cursor, change its colours or
// turn the direction of writing: servers and other clients choose many of the texts
// that are shown.
func plain(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unprintable(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// printable is plain in quotes if anything had to be escaped.
func printable(s string) string {
	if p := plain(s); p != s {
		return `"` + p + `"`
	}
	return s
}

// writeJSON prints v. Characters that could command a terminal are escaped, which
// means the same in JSON.
func writeJSON(w io.Writer, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, escapeJSON(b.String()))
	return err
}

func escapeJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || !unprintable(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := (r-0x10000)>>10+0xD800, (r-0x10000)&0x3FF+0xDC00
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// eraseLine goes back to the beginning of a terminal's line and empties it.
const eraseLine = "\r\x1b[K"

// isTerminal reports whether w is one.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is how many columns a terminal has, and 80 for anything else.
func width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return 80
}

// cut shortens a line to the width of the terminal.
func cut(line string, columns int) string {
	runes := []rune(line)
	if len(runes) <= columns {
		return line
	}
	return string(runes[:max(0, columns-1)]) + "…"
}

// style is how a word stands out on a terminal: by colour, unless NO_COLOR is set.
// Anywhere else it does not.
type style string

const (
	good    style = "\x1b[32m"
	bad     style = "\x1b[31m"
	caution style = "\x1b[33m"
	faint   style = "\x1b[2m"
	bold    style = "\x1b[1m"
)

func (s style) on(w io.Writer, text string) string {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !isTerminal(w) {
		return text
	}
	return string(s) + text + "\x1b[0m"
}
