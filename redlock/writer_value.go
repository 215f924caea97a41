package redlock

import "strings"

// writesMark stands before the number of an acquisition in the values of writers: a
// writer has the same key as a Mutex, and Inspect tells them apart by it. Numbers are
// in small letters and digits.
const writesMark = "W"

// isWriter reports whether a value is that of who writes, or did.
func isWriter(value string) bool {
	id, _, _ := strings.Cut(value, " ")
	parts := strings.Split(id, "/")
	return len(parts) == 3 && strings.HasPrefix(parts[2], writesMark)
}
