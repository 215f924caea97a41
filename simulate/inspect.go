package simulate

import (
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node"
)

// inspect is inspect.lua.
func (ks *keyspace) inspect(keys, _ []string) (any, *node.ServerError) {
	value, err := ks.get(keys[0])
	if err != nil {
		return nil, err
	}
	queue, readers, slots := ks.members(keys[2]), ks.living(keys[5]), ks.living(keys[7])
	shared := int64(0)
	if ks.find(keys[4]) != nil {
		shared = 1
	}
	if len(queue) > 0 {
		if _, how, _, _ := ks.registered(queueKeys{order: keys[2], entries: keys[3]}, queue[0].member); how == "r" {
			shared = 1
		}
	}
	waiting := int64(len(queue) + len(ks.members(keys[8])))
	size, _ := ks.text(keys[10])
	waiters := queueKeys{order: keys[2], entries: keys[3]}
	if len(queue) == 0 {
		waiters = queueKeys{order: keys[8], entries: keys[11]}
	}
	answer := []any{value, ks.pttl(keys[0]), ks.number(keys[1]), waiting, shared, []byte(size), []byte(namesOf(slots)), ks.waiting(waiters)}
	for _, m := range readers {
		reads, _ := ks.hget(keys[6], m.member)
		answer = append(answer, []byte(reads), []byte{}, m.score-ks.millis())
	}
	if e := ks.find(keys[9]); e != nil {
		for _, waiter := range sortedKeys(e.texts) {
			list, has, _ := strings.Cut(e.texts[waiter], " ")
			first, _, _ := strings.Cut(list, ",")
			for _, m := range slots {
				if m.member == first {
					answer = append(answer, []byte(has), []byte(list), m.score-ks.millis())
				}
			}
		}
	}
	return answer, nil
}

// waiting returns the tickets and entries of those who wait, the next one first.
func (ks *keyspace) waiting(q queueKeys) []any {
	all := []any{}
	for _, m := range ks.members(q.order) {
		if deadline, how, value, ok := ks.registered(q, m.member); ok && deadline > ks.millis() {
			all = append(all, []byte(strconv.FormatInt(m.score, 10)), []byte(how+" "+value))
		}
	}
	return all[:min(len(all), 2*mostInspected)]
}

// mostInspected is how many of those who wait are told of.
const mostInspected = 1000

// living returns the members of a sorted set whose time is not over.
func (ks *keyspace) living(key string) []queued {
	all := ks.members(key)
	for len(all) > 0 && all[0].score <= ks.millis() {
		all = all[1:]
	}
	return all
}

// number reads a key as a number; zero if it is none.
func (ks *keyspace) number(key string) int64 {
	text, _ := ks.text(key)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func namesOf(all []queued) string {
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.member
	}
	return strings.Join(names, ",")
}
