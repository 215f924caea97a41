package operate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// maxKeys bounds how many keys are looked at.
const maxKeys = 100_000

// mustBeEmpty looks for keys that may be locks: all that begin with the prefix,
// or, without one, strings and keys of this library that expire. Keys that last are
// no locks, and neither are those of waiters.
func (s *site) mustBeEmpty() error {
	seen := 0
	return s.scan("*", func(keys []string) error {
		locks, err := s.locks(keys)
		if err != nil {
			return err
		}
		if len(locks) > 0 {
			return fmt.Errorf("%w: it has keys that may be locks: %.200s", ErrNotNew, strings.Join(locks, ", "))
		}
		if seen += len(keys); seen > maxKeys {
			return fmt.Errorf("%w: it has more than %d keys, which are too many to look at", ErrNotNew, maxKeys)
		}
		return nil
	})
}

// scan goes through the keys behind our prefix that match, page by page. A key may come
// twice.
func (s *site) scan(match string, page func(keys []string) error) error {
	for cursor := "0"; ; {
		a, err := s.ask(&wire.Command{Op: wire.OpRead, Name: "SCAN",
			Args: []string{cursor, "MATCH", globQuote(s.config.KeyPrefix) + match, "COUNT", "1000"}})
		if err != nil {
			return fmt.Errorf("cannot be searched for keys: %w", err)
		}
		var keys []string
		if cursor, keys, err = wire.PageOf(a); err != nil {
			return fmt.Errorf("cannot be searched for keys: %w", err)
		}
		if err := page(keys); err != nil || cursor == "0" {
			return err
		}
	}
}

// ask asks one question. A refusal is an error.
func (s *site) ask(cmd *wire.Command) (wire.Reply, error) {
	answers, err := s.dialogue.Ask(cmd)
	if err != nil {
		return wire.Reply{}, err
	}
	return answers[0], refused(answers[0])
}

// refused returns the error with which a master answered, if it did.
func refused(r wire.Reply) error {
	if refusal := r.Refused(); refusal != nil {
		return refusal
	}
	return nil
}

// reservedKeys begins the keys that this library stores beside the locks.
const reservedKeys = "redlock:"

// notLocks are the words in the keys of this library that block no client, so that such a
// key alone says nothing of a lock:
//
//   - Keys that stay for a week after their last use: fencing counters, the sizes of
//     semaphores, latches, the proclamations of leaders, and the offsets of the clock.
//   - The queues of waiters. A waiter registers also at a master that must not vote yet, for a
//     moment with each ask, and may do so in another window beside init. The lock that it
//     waits for is another key.
var notLocks = []string{
	"token", "permits", "latch", "arrivals", "digest", "leader", "clock",
	"queue", "wait", "permitqueue", "permitwait", "intent",
}

// isNoLock reports whether a key is one of notLocks.
func (s *site) isNoLock(key string) bool {
	name, ours := strings.CutPrefix(key, s.config.KeyPrefix+reservedKeys)
	what, _, _ := strings.Cut(name, ":")
	return ours && slices.Contains(notLocks, what)
}

// locks returns which of the keys may be locks, at most a few.
func (s *site) locks(keys []string) (found []string, err error) {
	for _, key := range keys {
		if len(found) == 5 {
			return append(found, "..."), nil
		}
		if s.isNoLock(key) || key == wire.MarkerKey(s.config.KeyPrefix) {
			continue
		}
		if s.config.KeyPrefix != "" {
			found = append(found, strconv.Quote(key))
			continue
		}
		answers, err := s.dialogue.Ask(
			&wire.Command{Op: wire.OpRead, Name: "TYPE", Keys: []string{key}},
			&wire.Command{Op: wire.OpRead, Name: "PTTL", Keys: []string{key}},
		)
		if err == nil {
			err = errors.Join(refused(answers[0]), refused(answers[1]))
		}
		if err != nil {
			return nil, fmt.Errorf("%q cannot be looked at: %w", key, err)
		}
		// What this library stores beside its locks may be a lock itself: readers, and
		// the permits of a semaphore.
		mayBe := wire.Text(answers[0].Value) == "string" || strings.HasPrefix(key, reservedKeys)
		if ttl, _ := answers[1].Value.(int64); mayBe && ttl > 0 {
			found = append(found, fmt.Sprintf("%q (%v left)", key, time.Duration(ttl)*time.Millisecond))
		}
	}
	return found, nil
}

// globQuote makes MATCH take a prefix literally.
func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}
