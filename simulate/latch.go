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
	ks.keepArrivals(keys, args[1])
	if !known {
		ks.publish(args[2], ks.proof(keys[1])+"\n"+args[0])
	}
	if ks.whole(keys) {
		return int64(1), nil
	}
	return int64(0), nil
}

// tellArrivals is latch_read.lua, sorted.
func (ks *keyspace) tellArrivals(keys, _ []string) (any, *node.ServerError) {
	all := []any{}
	if e := ks.find(keys[0]); e != nil {
		for _, member := range slices.Sorted(maps.Keys(e.texts)) {
			all = append(all, []byte(member))
		}
	}
	if ks.whole(keys) {
		all = append(all, []byte(node.Whole))
	}
	return all, nil
}

// learnArrivals is latch_write.lua.
func (ks *keyspace) learnArrivals(keys, args []string) (any, *node.ServerError) {
	if args[2] != "" && ks.memory(keys[1]) != args[2] {
		return nil, &node.ServerError{Code: "FORGOT", Message: "FORGOT this master has lost its memory since"}
	}
	if ks.variant == noWriteBack {
		args = args[:3]
	}
	learned := !ks.whole(keys)
	for _, id := range args[3:] {
		_, known := ks.hget(keys[0], id)
		ks.hset(keys[0], id, "")
		learned = learned || !known
	}
	ks.store(keys[2], &entry{value: ks.memory(keys[1])})
	ks.keepArrivals(keys, args[0])
	if learned {
		ks.publish(args[1], ks.proof(keys[1])+"\n")
	}
	return int64(1), nil
}

func (ks *keyspace) keepArrivals(keys []string, ms string) {
	ks.expire(keys[0], ms, 1)
	ks.expire(keys[2], ms, 1)
}

// whole reports whether the set has all who arrived, as far as this memory goes.
func (ks *keyspace) whole(keys []string) bool {
	memory, _ := ks.text(keys[2])
	return memory == ks.memory(keys[1])
}

// memory is what a marker says of it.
func (ks *keyspace) memory(marker string) string {
	mark, _ := ks.text(marker)
	field := append(strings.Fields(mark), make([]string, 7)...)
	return strings.TrimPrefix(field[1], "+") + " " + field[6]
}
