// Package words puts numbers into the text of reports and commands.
package words

import "strconv"

// Thousands is n with a comma before each three digits: 12,345.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Counted is n of what, whose plural ends in s.
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Thousands(n) + " " + what + "s"
}
