// Package wrap makes texts fit the lines of a terminal.
package wrap

import (
	"strings"
	"unicode/utf8"
)

// Text breaks a text between words so that it fits the columns. Lines but the
// first begin with an indent, which the first has already.
func Text(s string, indent, columns int) string {
	var b strings.Builder
	at := indent
	for i, word := range strings.Fields(s) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > columns:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}
