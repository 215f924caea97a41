package masters

import (
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
)

// request is request.lua.
func (ks *Keyspace) request(keys, args []string) (any, *wire.ServerError) {
	answer := int64(1)
	number, _ := strconv.ParseInt(args[0], 10, 64)
	for i, key := range keys {
		stored, _ := ks.text(key)
		digits, _, _ := strings.Cut(stored, " ")
		if said, err := strconv.ParseInt(digits, 10, 64); err == nil && said > number {
			answer = -1
			continue
		}
		ks.Store(key, &Entry{Value: args[0] + " " + args[1], Until: ks.Millis() + millis(args[2])})
		ks.Publish(args[3+i], "request")
	}
	return answer, nil
}
