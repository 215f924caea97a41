// Package wire turns what a lock needs into commands of Redis, and the replies into
// answers with a type: the commands and their scripts, how they are written to a
// connection, how replies are read from it, and what each reply says. It knows of no
// connection, no clock and no other master.
//
// It is for package redlock and may change at any time.
package wire
