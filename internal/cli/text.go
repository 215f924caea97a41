package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Enumerated lists names as a sentence does.
func Enumerated(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func Seconds(d time.Duration) string {
	if d > 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}

// Plain escapes everything that could move a terminal's cursor, change its colours or
// turn the direction of writing: servers and other clients choose many of the texts
// that are shown.
func Plain(s string) string {
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

// Printable is plain in quotes if anything had to be escaped.
func Printable(s string) string {
	if p := Plain(s); p != s {
		return `"` + p + `"`
	}
	return s
}

// WriteJSON prints v. Characters that could command a terminal are escaped, which
// means the same in JSON.
func WriteJSON(w io.Writer, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, EscapeJSON(b.String()))
	return err
}

func EscapeJSON(s string) string {
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

// EraseLine goes back to the beginning of a terminal's line and empties it.
const EraseLine = "\r\x1b[K"

// IsTerminal reports whether w is one.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width is how many columns a terminal has, and 80 for anything else.
func Width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return 80
}

// Cut shortens a line to the width of the terminal.
func Cut(line string, columns int) string {
	runes := []rune(line)
	if len(runes) <= columns {
		return line
	}
	return string(runes[:max(0, columns-1)]) + "…"
}

// Style is how a word stands out on a terminal: by colour, unless NO_COLOR is set.
// Anywhere else it does not.
type Style string

const (
	Good    Style = "\x1b[32m"
	Bad     Style = "\x1b[31m"
	Caution Style = "\x1b[33m"
	Faint   Style = "\x1b[2m"
	bold    Style = "\x1b[1m"
)

func (s Style) On(w io.Writer, text string) string {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !IsTerminal(w) {
		return text
	}
	return string(s) + text + "\x1b[0m"
}
