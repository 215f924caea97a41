package masters

import (
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
)

// This file models extend_cached.lua, and how asks tell the holder of a cached lock.

func (ks *Keyspace) extendCached(keys, args []string) (any, *wire.ServerError) {
	if n, err := ks.ours(keys[0], args[0]); n != 1 || err != nil {
		return reply(n, err)
	}
	if _, err := ks.lengthen(keys[0], args[1]); err != nil {
		return nil, err
	}
	waiter, _ := SplitValue(args[0])
	queue := ks.Members(keys[1])
	if slices.ContainsFunc(queue[:min(2, len(queue))], func(q Queued) bool { return q.Member != waiter }) {
		return "WANTED", nil
	}
	return int64(1), nil
}

// want tells the client of a cached lock that another one waits for it.
func (ks *Keyspace) want(lock string, q QueueKeys, holder string) {
	if IsCached(holder) {
		waiter, _ := SplitValue(holder)
		ks.tell(lock, q.Marker, waiter, holder, ":c")
	}
}

// IsCached reports whether a value is that of a cached lock.
func IsCached(holder string) bool {
	parts := strings.SplitN(holder, "/", 3)
	if len(parts) != 3 {
		return false
	}
	number, cached := strings.CutPrefix(parts[2], "C")
	return cached && isOwn(parts[0]+"/"+parts[1]+"/"+number)
}
