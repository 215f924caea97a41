package masters

import (
	"crypto/sha1"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
)

// This file is the scripts of a latch as Go code. Sets are hashes without values.

// noteArrival is latch_arrive.lua.
func (ks *Keyspace) noteArrival(keys, args []string) (any, *wire.ServerError) {
	_, known := ks.hget(keys[0], args[0])
	if most, _ := strconv.Atoi(args[3]); !known && len(ks.arrived(keys)) >= most {
		return nil, wire.Server("ARRIVALS " + strconv.Itoa(len(ks.arrived(keys))))
	}
	defer ks.storeDigest(keys, args[1])
	ks.hset(keys[0], args[0], "")
	if known && ks.Variant == CountsResends {
		ks.hset(keys[0], args[0]+" again", "")
	}
	ks.keepArrivals(keys, args[1])
	if !known {
		ks.Publish(args[2], ks.Proof(keys[1])+"\n"+args[0])
	}
	if ks.Whole(keys) {
		return int64(1), nil
	}
	return int64(0), nil
}

// mostCounted is how many arrivals are counted one by one.
const mostCounted = 10_000

// countArrivals is latch_count.lua.
func (ks *Keyspace) countArrivals(keys, args []string) (any, *wire.ServerError) {
	n, whole := len(ks.arrived(keys)), int64(0)
	if ks.Whole(keys) {
		whole = 1
	}
	digest, stored := ks.digest(keys)
	if !stored {
		ks.storeDigest(keys, args[0])
	}
	return []any{int64(n), []byte(digest), whole}, nil
}

// arrived returns the IDs of the arrivals, sorted.
func (ks *Keyspace) arrived(keys []string) []string {
	if e := ks.Find(keys[0]); e != nil {
		return slices.Sorted(maps.Keys(e.Texts))
	}
	return nil
}

// digest returns the digest of the arrivals, and whether it is stored. Without a stored digest,
// it is empty for more than mostCounted arrivals.
func (ks *Keyspace) digest(keys []string) (text string, stored bool) {
	all := ks.arrived(keys)
	known, _ := ks.text(keys[3])
	if n, digest, _ := strings.Cut(known, " "); n == strconv.Itoa(len(all)) {
		return digest, true
	}
	if len(all) > mostCounted {
		return "", false
	}
	var sum [4]uint64
	for _, who := range all {
		hash := fmt.Sprintf("%x", sha1.Sum([]byte(who)))
		for i := range sum {
			part, _ := strconv.ParseUint(hash[10*i:10*i+10], 16, 64)
			sum[i] = (sum[i] + part) % (1 << 40)
		}
	}
	return fmt.Sprintf("%d %d %d %d", sum[0], sum[1], sum[2], sum[3]), len(all) == 0
}

// storeDigest keeps the digest of the arrivals, if there are any, for the given number of ms.
func (ks *Keyspace) storeDigest(keys []string, ms string) {
	digest, _ := ks.digest(keys)
	if d, _ := strconv.ParseInt(ms, 10, 64); digest != "" && len(ks.arrived(keys)) > 0 {
		ks.Store(keys[3], &Entry{Value: strconv.Itoa(len(ks.arrived(keys))) + " " + digest, Until: ks.Millis() + d})
	}
}

// tellArrivals is latch_read.lua, sorted.
func (ks *Keyspace) tellArrivals(keys, _ []string) (any, *wire.ServerError) {
	all := []any{}
	if n := len(ks.arrived(keys)); n > mostCounted {
		return nil, wire.Server("ARRIVALS " + strconv.Itoa(n))
	}
	for _, member := range ks.arrived(keys) {
		all = append(all, []byte(member))
	}
	if ks.Whole(keys) {
		all = append(all, []byte(wire.Whole))
	}
	return all, nil
}

// learnArrivals is latch_write.lua.
func (ks *Keyspace) learnArrivals(keys, args []string) (any, *wire.ServerError) {
	if args[2] != "" && ks.Memory(keys[1]) != args[2] {
		return nil, &wire.ServerError{Code: "FORGOT", Message: "FORGOT this master has lost its memory since"}
	}
	if ks.Variant == NoWriteBack {
		args = args[:3]
	}
	learned := !ks.Whole(keys)
	for _, id := range args[3:] {
		_, known := ks.hget(keys[0], id)
		ks.hset(keys[0], id, "")
		learned = learned || !known
	}
	ks.Store(keys[2], &Entry{Value: ks.Memory(keys[1])})
	ks.keepArrivals(keys, args[0])
	ks.storeDigest(keys, args[0])
	if learned {
		ks.Publish(args[1], ks.Proof(keys[1])+"\n")
	}
	return int64(1), nil
}

func (ks *Keyspace) keepArrivals(keys []string, ms string) {
	ks.expire(keys[0], ms, 1)
	ks.expire(keys[2], ms, 1)
}

// Whole reports whether the set has all who arrived, as far as this memory goes.
func (ks *Keyspace) Whole(keys []string) bool {
	memory, _ := ks.text(keys[2])
	return memory == ks.Memory(keys[1])
}

// Memory is what a marker says of it.
func (ks *Keyspace) Memory(marker string) string {
	mark, _ := ks.text(marker)
	field := append(strings.Fields(mark), make([]string, 7)...)
	return strings.TrimPrefix(field[1], "+") + " " + field[6]
}
