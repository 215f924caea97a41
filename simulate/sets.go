package simulate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Sorted sets and hashes of a master, as far as the scripts use them. They are
// never changed in place: snapshots share them.

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
	if ks.find(key) == nil {
		ks.store(key, &entry{queue: []queued{}})
	}
	e := ks.keys[key]
	e.queue = append(others(e.queue, member), queued{member, score})
	slices.SortFunc(e.queue, func(a, b queued) int {
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.member, b.member))
	})
}

func (ks *keyspace) zrem(key, member string) {
	if e := ks.find(key); e != nil {
		if e.queue = others(e.queue, member); len(e.queue) == 0 {
			delete(ks.keys, key)
		}
	}
}

// others returns a sorted set without a member.
func others(queue []queued, member string) []queued {
	return slices.DeleteFunc(slices.Clone(queue), func(m queued) bool { return m.member == member })
}

func (ks *keyspace) hget(key, field string) (text string, ok bool) {
	if e := ks.find(key); e != nil {
		text, ok = e.texts[field]
	}
	return text, ok
}

func (ks *keyspace) hset(key, field, text string) {
	if ks.find(key) == nil {
		ks.store(key, &entry{texts: map[string]string{}})
	}
	e := ks.keys[key]
	e.texts = maps.Clone(e.texts)
	e.texts[field] = text
}

func (ks *keyspace) hdel(key, field string) {
	e := ks.find(key)
	if e == nil {
		return
	}
	if e.texts = maps.Clone(e.texts); e.texts != nil {
		delete(e.texts, field)
	}
	if len(e.texts) == 0 {
		delete(ks.keys, key)
	}
}

// atLeast has keys live for another d ms, if the first of them ends before.
func (ks *keyspace) atLeast(d int64, keys ...string) {
	if ks.pttl(keys[0]) >= d {
		return
	}
	for _, key := range keys {
		if e := ks.find(key); e != nil {
			e.until = ks.millis() + d
		}
	}
}
