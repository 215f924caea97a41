package masters

import (
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
)

// request is request.lua.
func (ks *Keyspace) request(keys, args []string) (any, *wire.ServerError) {
	number, _ := strconv.ParseInt(args[0], 10, 64)
	ours, highest := args[0]+" "+args[1], int64(0)
	for i, key := range keys {
		stored, _ := ks.text(key)
		digits, _, _ := strings.Cut(stored, " ")
		if said, err := strconv.ParseInt(digits, 10, 64); err == nil && said >= number && stored != ours {
			highest = max(highest, said)
			continue
		}
		ks.Store(key, &Entry{Value: ours, Until: ks.Millis() + millis(args[2])})
		ks.Publish(args[3+i], "request")
	}
	if highest > 0 {
		return []byte(strconv.FormatInt(highest, 10)), nil
	}
	return int64(1), nil
}
