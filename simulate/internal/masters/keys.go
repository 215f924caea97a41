package masters

import "strings"

// IsLock reports whether a key is a lock, and not a key that the library keeps beside the lock,
// such as the queue of its waiters.
func IsLock(key string) bool { return !strings.HasPrefix(key, "redlock:") }

// Holds reports whether a client may hold a lock by this key.
func Holds(key string) bool {
	return IsLock(key) || strings.HasPrefix(key, "redlock:readers:") || strings.HasPrefix(key, "redlock:slots:")
}
