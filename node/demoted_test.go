package node

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// The answer to an acquire ends the connection. What was written behind it may
// not have been transmitted yet: it must not arrive when the releases have gone
// over the next connection.
func TestL3_a_connection_that_is_given_up_sends_nothing_more(t *testing.T) {
	for name, answer := range map[string]string{
		"READONLY": "-READONLY You can't write against a read only replica.\r\n",
		"garbage":  "?\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, but("SET", func([]string) string { return answer }))
			m := connect(t, s.addr(), Config{Backoff: Redial{Min: time.Minute, Max: time.Minute}})

			m.Do(wire.Acquire("k", "v", time.Minute), func(wire.Reply) {})

			var end error
			eventually(t, "the connection ends", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.ends) > 0 {
					end = s.ends[0]
				}
				return end != nil
			})
			if errors.Is(end, io.EOF) {
				t.Error("closed in good order: what was not transmitted yet still arrives")
			}
		})
	}
}
