package simulate

import (
	"cmp"
	"slices"
	"strings"
)

// Sorted sets and hashes of a master, as far as the scripts use them. A sorted set
// is never changed in place: scripts change it while they go through its members,
// and snapshots share it.

// score returns the score of a member of a sorted set.
func (ks *keyspace) score(key, member string) (score int64, ok bool) {
	for _, m := range ks.members(key) {
		if m.member == member {
			return m.score, true
		}
	}
	return 0, false
}

// members returns a sorted set, the lowest score first.
func (ks *keyspace) members(key string) []queued {
	if e := ks.find(key); e != nil {
		return e.queue
	}
	return nil
}

func (ks *keyspace) zadd(key, member string, score int64) {
	e := ks.find(key)
	if e == nil {
		e = &entry{queue: []queued{}}
		ks.store(key, e)
	}
	m := queued{member, score}
	if slices.Contains(e.queue, m) {
		return
	}
	queue := others(e.queue, member, 1)
	at, _ := slices.BinarySearchFunc(queue, m, queued.compare)
	e.queue = slices.Insert(queue, at, m)
	ks.changes++
}

func (a queued) compare(b queued) int {
	return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.member, b.member))
}

func (ks *keyspace) zrem(key, member string) {
	e := ks.find(key)
	if e == nil || !slices.ContainsFunc(e.queue, func(m queued) bool { return m.member == member }) {
		return
	}
	if e.queue = others(e.queue, member, 0); len(e.queue) == 0 {
		delete(ks.keys, key)
	}
	ks.changes++
}

// others returns a sorted set without a member, and room for so many more.
func others(queue []queued, member string, more int) []queued {
	rest := make([]queued, 0, len(queue)+more)
	for _, m := range queue {
		if m.member != member {
			rest = append(rest, m)
		}
	}
	return rest
}

func (ks *keyspace) hget(key, field string) (text string, ok bool) {
	if e := ks.find(key); e != nil {
		text, ok = e.texts[field]
	}
	return text, ok
}

func (ks *keyspace) hset(key, field, text string) {
	e := ks.find(key)
	if e == nil {
		e = &entry{texts: map[string]string{}}
		ks.store(key, e)
	}
	e.texts[field] = text
	ks.changes++
}

func (ks *keyspace) hdel(key, field string) {
	e := ks.find(key)
	if e == nil {
		return
	}
	if _, ok := e.texts[field]; ok {
		delete(e.texts, field)
		ks.changes++
	}
	if len(e.texts) == 0 {
		delete(ks.keys, key)
	}
}

// atLeast has keys live for another d ms.
func (ks *keyspace) atLeast(d int64, keys ...string) {
	for _, key := range keys {
		if e := ks.find(key); e != nil && ks.pttl(key) < d {
			e.until = ks.millis() + d
		}
	}
}
