package node

import "errors"

// Why a node gave no usable answer. Compare with errors.Is.
var (
	// ErrDown: the master is not connected, and the command was not sent.
	ErrDown = errors.New("not connected")
	// ErrUnknown: the connection broke while the command was under way; it may
	// or may not have run.
	ErrUnknown = errors.New("connection lost, outcome unknown")
	// ErrTimeout: no answer within the node timeout; it may still run.
	ErrTimeout = errors.New("no answer in time")
	// ErrSilent: the master has not answered anything for a while, though the
	// connection stands; the command was not sent.
	ErrSilent = errors.New("silent for a while, not asked")
	// ErrFull: too many unanswered commands; this one was not sent.
	ErrFull = errors.New("too many commands in flight")
	// ErrClosed: the node was closed by us.
	ErrClosed = errors.New("closed")
	// ErrYoung: the node has extended our lock, but lost its memory so short a while ago that
	// this proves nothing yet (S35).
	ErrYoung = errors.New("lost its memory lately, so that its answer does not count yet")
	// ErrNotMaster: the node is a replica.
	ErrNotMaster = errors.New("not a master")
	// ErrTooOld: the node runs a version of Redis or Valkey that is not supported.
	ErrTooOld = errors.New("too old")
)
