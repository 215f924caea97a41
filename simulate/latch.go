package simulate

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/node"
)

// This file is the scripts of a latch as Go code. Sets are hashes without values.

// noteArrival is latch_arrive.lua.
func (ks *keyspace) noteArrival(keys, args []string) (any, *node.ServerError) {
	_, known := ks.hget(keys[0], args[0])
	ks.hset(keys[0], args[0], "")
	if known && ks.variant == countsResends {
		ks.hset(keys[0], args[0]+" again", "")
	}
	ks.expire(keys[0], args[1], 1)
	if !known {
		ks.publish(args[2], ks.proof(keys[1])+"\n"+args[0])
	}
	if _, whole := ks.hget(keys[0], node.Whole); whole {
		return int64(1), nil
	}
	return int64(0), nil
}

// learnArrivals is latch_write.lua.
func (ks *keyspace) learnArrivals(keys, args []string) (any, *node.ServerError) {
	if args[2] != "" && ks.memory(keys[1]) != args[2] {
		return nil, &node.ServerError{Code: "FORGOT", Message: "FORGOT this master has lost its memory since"}
	}
	learned := false
	if ks.variant == noWriteBack {
		args = args[:3]
	}
	for _, id := range append([]string{node.Whole}, args[3:]...) {
		_, known := ks.hget(keys[0], id)
		ks.hset(keys[0], id, "")
		learned = learned || !known
	}
	ks.expire(keys[0], args[0], 1)
	if learned {
		ks.publish(args[1], ks.proof(keys[1])+"\n")
	}
	return int64(1), nil
}

// memory is what a marker says of it.
func (ks *keyspace) memory(marker string) string {
	mark, _ := ks.text(marker)
	field := append(strings.Fields(mark), make([]string, 7)...)
	return field[0] + " " + strings.TrimPrefix(field[1], "+") + " " + field[6]
}

// smembers returns a set, sorted.
func (ks *keyspace) smembers(key string) (any, *node.ServerError) {
	all := []any{}
	if e := ks.find(key); e != nil {
		for _, member := range slices.Sorted(maps.Keys(e.texts)) {
			all = append(all, []byte(member))
		}
	}
	return all, nil
}
