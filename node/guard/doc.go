// Package guard decides whether a master may vote: what a client knows of a master's
// memory and clock, of the group that it belongs to, and for how long its votes must not
// count. Evidence goes in and verdicts come out; nothing here talks to a master.
//
// It is for package node. Users meet its errors (ErrQuarantined, ErrOtherGroup,
// ErrSameNode) in the errors of redlock. The rest may change at any time.
package guard
