package masters

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
)

// Sorted sets and hashes of a master, as far as the scripts use them. A sorted set
// is never changed in place: scripts change it while they go through its members,
// and snapshots share it.

// Score returns the score of a member of a sorted set.
func (ks *Keyspace) Score(key, member string) (score int64, ok bool) {
	for _, m := range ks.Members(key) {
		if m.Member == member {
			return m.Score, true
		}
	}
	return 0, false
}

// Members returns a sorted set, the lowest score first.
func (ks *Keyspace) Members(key string) []Queued {
	if e := ks.Find(key); e != nil {
		return e.Queue
	}
	return nil
}

func (ks *Keyspace) zadd(key, member string, score int64) {
	e := ks.Find(key)
	if e == nil {
		e = &Entry{Queue: []Queued{}}
		ks.Store(key, e)
	}
	m := Queued{member, score}
	if slices.Contains(e.Queue, m) {
		return
	}
	queue := others(e.Queue, member, 1)
	at, _ := slices.BinarySearchFunc(queue, m, Queued.compare)
	e.Queue = slices.Insert(queue, at, m)
	ks.Changes++
}

func (a Queued) compare(b Queued) int {
	return cmp.Or(cmp.Compare(a.Score, b.Score), strings.Compare(a.Member, b.Member))
}

func (ks *Keyspace) zrem(key, member string) {
	e := ks.Find(key)
	if e == nil || !slices.ContainsFunc(e.Queue, func(m Queued) bool { return m.Member == member }) {
		return
	}
	if e.Queue = others(e.Queue, member, 0); len(e.Queue) == 0 {
		delete(ks.Keys, key)
	}
	ks.Changes++
}

// others returns a sorted set without a member, and room for so many more.
func others(queue []Queued, member string, more int) []Queued {
	rest := make([]Queued, 0, len(queue)+more)
	for _, m := range queue {
		if m.Member != member {
			rest = append(rest, m)
		}
	}
	return rest
}

func (ks *Keyspace) hget(key, field string) (text string, ok bool) {
	if e := ks.Find(key); e != nil {
		text, ok = e.Texts[field]
	}
	return text, ok
}

func (ks *Keyspace) hset(key, field, text string) {
	e := ks.Find(key)
	if e == nil {
		e = &Entry{Texts: map[string]string{}}
		ks.Store(key, e)
	}
	e.Texts[field] = text
	ks.Changes++
}

func (ks *Keyspace) hdel(key, field string) {
	e := ks.Find(key)
	if e == nil {
		return
	}
	if _, ok := e.Texts[field]; ok {
		delete(e.Texts, field)
		ks.Changes++
	}
	if len(e.Texts) == 0 {
		delete(ks.Keys, key)
	}
}

// lengthen is that of the scripts: the end of a key never comes earlier.
func (ks *Keyspace) lengthen(key, ttl string) (any, *wire.ServerError) {
	ks.atLeast(millis(ttl), key)
	return int64(1), nil
}

func millis(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// atLeast has a key live for another d ms.
func (ks *Keyspace) atLeast(d int64, key string) {
	if e := ks.Find(key); e != nil && ks.pttl(key) < d {
		e.Until = ks.Millis() + d
	}
}

// together has a sorted set live for another d ms, and what is stored of its members beside it.
func (ks *Keyspace) together(d int64, set string, beside ...string) {
	left := ks.pttl(set)
	ks.atLeast(d, set)
	for _, key := range beside {
		if e := ks.Find(key); e != nil && left < 0 {
			e.Until = ks.Millis() + d
		}
		ks.atLeast(d, key)
	}
}
