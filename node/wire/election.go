package wire

import "time"

// Leadership names the keys of an election: a fenced lock, and what its holder says.
type Leadership struct {
	lock, says, counter string
	Channel             string // where changes are published
}

// LeadershipOf returns the keys of the election of that name, among the keys with
// the given prefix.
func LeadershipOf(prefix, name string) Leadership {
	says := prefix + "redlock:leader:" + name
	return Leadership{prefix + name, says, QueueOf(prefix, name).Counter(), says}
}

// Proclaim has the leader say a text, with a number above that of its text before.
// It answers 1, or 0 or -1 where the lock is not the leader's, or the higher number of a
// text before.
func (l Leadership) Proclaim(value, number, text string, keep time.Duration) *Command {
	return &Command{
		Op: OpCommit, Script: ScriptProclaim,
		Keys: []string{l.lock, l.says}, Args: []string{value, number, text, millis(keep), l.Channel},
	}
}

// Leader answers the leader's value, its remaining TTL in milliseconds, the fencing
// counter, and the number and the text of its last proclamation, or nothing.
func (l Leadership) Leader() *Command {
	return &Command{Op: OpRead, Script: ScriptLeader, Keys: []string{l.lock, l.says, l.counter}}
}

// Announce notifies observers that the leader may have changed.
func (l Leadership) Announce() *Command {
	return &Command{Op: OpRead, Name: "PUBLISH", Args: []string{l.Channel, "leader"}}
}
