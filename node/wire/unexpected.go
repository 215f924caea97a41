package wire

import "fmt"

// ReplyError is an answer that Redis never gives to the command that was sent: a
// proxy's, say, or that of a server which takes the key for something else. It says
// nothing about the lock.
type ReplyError struct {
	Value any // as redigo returns it
}

func (e *ReplyError) Error() string { return "unexpected answer: " + describe(e.Value) }

// describe names a reply by its type, and shows the beginning of it.
func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "nil"
	case int64:
		return fmt.Sprintf("integer %d", v)
	case string:
		return fmt.Sprintf("status %.40q", v)
	case []byte:
		return fmt.Sprintf("bulk %.40q", v)
	case []any:
		return fmt.Sprintf("array of %d", len(v))
	}
	return fmt.Sprintf("%T", value)
}
