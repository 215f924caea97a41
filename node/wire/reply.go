package wire

import "errors"

// Reply is the answer of a master, or the reason why it is missing. A value is int64,
// string for a status, []byte for a bulk string, nil, or []any of these and of
// *ServerError.
type Reply struct {
	Value any
	Err   *Error // nil when the master answered
	// Young: the master lost its memory a short while ago, and an extension by it does
	// not count yet, neither for nor against the lease (S35).
	Young bool
}

// Refused returns the error with which the master answered, or nil.
func (r Reply) Refused() *ServerError {
	var refusal *ServerError
	if errors.As(r.Err, &refusal) {
		return refusal
	}
	return nil
}
