package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// page is what redlab demo writes: on every line the time since the start, one symbol
// for each node, and a sentence.
type page struct {
	w     io.Writer
	color bool
	start time.Time

	indent int // of the sentences
}

func newPage(w io.Writer) *page {
	return &page{w: w, color: wantsColor(w), start: time.Now()}
}

// wantsColor: only at a terminal that can, and not against no-color.org.
func wantsColor(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// symbol paints a mark.
func (p *page) symbol(m mark) string { return p.paint(marks[m].color, marks[m].symbol) }

// paint sets an ANSI graphic rendition.
func (p *page) paint(rendition, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + rendition + "m" + text + "\x1b[0m"
}

// row paints a picture.
func (p *page) row(pic picture) string {
	symbols := make([]string, len(pic))
	for i, m := range pic {
		symbols[i] = p.symbol(m)
	}
	return strings.Join(symbols, " ")
}

// header is the line above the columns.
func (p *page) header(nodes int) {
	p.indent = 7 + 2 + 2*nodes - 1 + 3
	numbers := make([]string, nodes)
	for i := range numbers {
		numbers[i] = fmt.Sprint((i + 1) % 10)
	}
	fmt.Fprintf(p.w, "\n%7s  %s   %s %s  %s %s  %s %s  %s %s\n", "time", strings.Join(numbers, " "),
		p.symbol(markAlice), "alice has it", p.symbol(markBob), "bob has it",
		p.symbol(markFree), "free", p.symbol(markDown), "down")
}

// say writes a line with the time, which it returns, and the picture.
func (p *page) say(pic picture, format string, args ...any) time.Time {
	now := time.Now()
	p.sayOf(now, pic, format, args...)
	return now
}

// sayOf writes a line about an event that has a time of its own: before the picture.
func (p *page) sayOf(at time.Time, pic picture, format string, args ...any) {
	stamp := fmt.Sprintf("%6.2fs", at.Sub(p.start).Seconds())
	fmt.Fprintf(p.w, "%s  %s   %s\n", p.paint("2", stamp), p.row(pic), p.paint("1", fmt.Sprintf(format, args...)))
}

// add writes one more line below the last sentence.
func (p *page) add(format string, args ...any) {
	fmt.Fprintf(p.w, "%*s%s\n", p.indent, "", fmt.Sprintf(format, args...))
}

// round writes a duration with three digits.
func round(d time.Duration) string {
	for unit := time.Second; unit > time.Nanosecond; unit /= 10 {
		if d >= unit || -d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}
