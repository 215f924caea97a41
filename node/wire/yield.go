package wire

import "time"

// Yield leaves a lock to those who do not queue, for so long from its release on, which must come
// right behind it: 1, or 0 where nobody waits.
func Yield(key string, q Queue, d time.Duration) *Command {
	return &Command{
		Op: OpRequest, Script: ScriptYield,
		Keys: []string{key, q.Order, q.Entries, q.Marker}, Args: []string{millis(d)},
	}
}
