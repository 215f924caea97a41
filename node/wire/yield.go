package wire

import "time"

// Yield leaves a lock, which value holds, to those who do not queue, for so long from its release
// on, which must come right behind it: 1, or 0 where nobody waits.
func Yield(key string, q Queue, value string, d time.Duration) *Command {
	return &Command{
		Op: OpRequest, Script: ScriptYield,
		Keys: []string{key, q.Order, q.Entries, q.Marker}, Args: []string{value, millis(d)},
	}
}
