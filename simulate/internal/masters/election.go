package masters

import (
	"strconv"

	"github.com/quorumlock/quorumlock/node/wire"
)

// This file is the scripts of an election as Go code.

// proclaim is proclaim.lua.
func (ks *Keyspace) proclaim(keys, args []string) (any, *wire.ServerError) {
	if n, err := ks.ours(keys[0], args[0]); n != 1 || err != nil {
		return reply(n, err)
	}
	leader, _ := ks.hget(keys[1], "leader")
	said, _ := ks.hget(keys[1], "number")
	last, _ := strconv.ParseInt(said, 10, 64)
	number, _ := strconv.ParseInt(args[1], 10, 64)
	if leader == args[0] && last > number {
		return []byte(said), nil
	}
	ks.hset(keys[1], "leader", args[0])
	ks.hset(keys[1], "number", args[1])
	ks.hset(keys[1], "text", args[2])
	ks.expire(keys[1], args[3], 1)
	ks.Publish(args[4], args[1])
	return int64(1), nil
}

// leader is leader.lua.
func (ks *Keyspace) leader(keys, _ []string) (any, *wire.ServerError) {
	value, err := ks.get(keys[0])
	if err != nil {
		return nil, err
	}
	counter, _ := ks.text(keys[2])
	count, _ := strconv.ParseInt(counter, 10, 64)
	answer := []any{value, ks.pttl(keys[0]), count, []byte{}, []byte{}}
	if leader, ok := ks.hget(keys[1], "leader"); ok && value != nil && leader == string(value.([]byte)) {
		number, _ := ks.hget(keys[1], "number")
		text, _ := ks.hget(keys[1], "text")
		answer[3], answer[4] = []byte(number), []byte(text)
	}
	return answer, nil
}

// transfer is transfer.lua.
func (ks *Keyspace) transfer(keys, args []string) (any, *wire.ServerError) {
	lock, q, held := keys[0], QueueKeys{keys[1], keys[2], keys[3]}, args[len(args)-1] == wire.HoldArg
	holder, err := ks.text(lock)
	waiter, _ := SplitValue(args[0])
	theirs, _ := SplitValue(holder)
	answer := int64(0)
	switch {
	case err != nil, ks.Find(lock) == nil:
	case theirs == waiter:
		ks.raise(q.counter(), args[1])
		ks.remove(lock)
		answer = 1
	default:
		answer = -1
	}
	if ks.Find(q.Order) == nil {
		return answer, nil
	}
	ks.unqueue(q, waiter)
	ks.unqueue(q, pause)
	if answer == 1 && !held {
		ks.hand(lock, q, args[2])
	}
	if ks.Find(lock) == nil {
		ks.pass(lock, q, held)
	}
	return answer, nil
}

// hand hands a free lock to a waiter if it is there, whatever its ticket.
func (ks *Keyspace) hand(lock string, q QueueKeys, chosen string) {
	deadline, how, value, ok := ks.registered(q, chosen)
	rest := deadline - ks.Millis()
	if !ok || rest <= 0 || how[0] == 'w' || how[0] == 'r' {
		return
	}
	what := ""
	if how != "-" {
		what = ":" + strconv.FormatInt(ks.count(q.counter(), how, 1), 10)
	}
	if !ks.tell(lock, q.Marker, chosen, value, what) {
		ks.unqueue(q, chosen)
		return
	}
	ks.Store(lock, &Entry{Value: value, Until: ks.Millis() + rest})
	ks.Keys[lock].By = OwnerOf(value).Client
	if _, queued := ks.Score(q.Order, chosen); queued {
		ks.zadd(q.Order, chosen, ks.Millis()+rest/3)
	}
}
