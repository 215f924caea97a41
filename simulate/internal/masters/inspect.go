package masters

import (
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
)

// inspect is inspect.lua.
func (ks *Keyspace) inspect(keys, args []string) (any, *wire.ServerError) {
	value, err := ks.get(keys[0])
	if err != nil {
		return nil, err
	}
	queue, readers, slots := ks.Members(keys[2]), ks.living(keys[5]), ks.living(keys[7])
	shared := int64(0)
	if ks.Find(keys[4]) != nil {
		shared = 1
	}
	if len(queue) > 0 {
		if _, how, _, _ := ks.registered(QueueKeys{Order: keys[2], entries: keys[3]}, queue[0].Member); how == "r" {
			shared = 1
		}
	}
	waiting := int64(len(queue) + len(ks.Members(keys[8])))
	if _, yields := ks.Score(keys[2], pause); yields {
		waiting--
	}
	size, _ := ks.text(keys[10])
	waiters := QueueKeys{Order: keys[2], entries: keys[3]}
	if len(queue) == 0 {
		waiters = QueueKeys{Order: keys[8], entries: keys[11]}
	}
	told, line := namesOf(slots), ks.waiting(waiters)
	in, from, skip := pageOf(args)
	if in != "" {
		told, line = "", []any{}
	}
	answer := []any{value, ks.pttl(keys[0]), ks.number(keys[1]), waiting, shared, []byte(size), []byte(told), line, []byte{}}
	tell := func(which string, all []Queued, each func(m Queued)) (full bool) {
		last, passed := int64(0), int64(0)
		if in == which {
			all = all[min(len(all), indexOf(all, from)+int(skip)):]
			last, passed = from, skip
		}
		for _, m := range all[:min(len(all), mostInspected)] {
			if m.Score != last {
				passed = 0
			}
			last, passed = m.Score, passed+1
			each(m)
		}
		if len(all) < mostInspected {
			return false
		}
		answer[8] = []byte(which + " " + strconv.FormatInt(last, 10) + " " + strconv.FormatInt(passed, 10))
		return true
	}
	full := in != "s" && tell("r", readers, func(m Queued) {
		reads, _ := ks.hget(keys[6], m.Member)
		answer = append(answer, []byte(reads), []byte{}, m.Score-ks.Millis())
	})
	if !full {
		tell("s", slots, func(m Queued) {
			waiter, _ := ks.hget(keys[12], m.Member)
			has, _ := ks.hget(keys[9], waiter)
			list, value, _ := strings.Cut(has, " ")
			if first, _, _ := strings.Cut(list, ","); first == m.Member {
				answer = append(answer, []byte(value), []byte(list), m.Score-ks.Millis())
			}
		})
	}
	return answer, nil
}

// pageOf reads where the page before ended; nothing for the first page.
func pageOf(args []string) (in string, from, skip int64) {
	if len(args) == 0 {
		return "", 0, 0
	}
	f := strings.Fields(args[0])
	from, _ = strconv.ParseInt(f[1], 10, 64)
	skip, _ = strconv.ParseInt(f[2], 10, 64)
	return f[0], from, skip
}

// indexOf returns the first place in a sorted set with at least that score.
func indexOf(all []Queued, score int64) int {
	for i, m := range all {
		if m.Score >= score {
			return i
		}
	}
	return len(all)
}

// waiting returns the tickets and entries of the waiters, the next waiter first.
func (ks *Keyspace) waiting(q QueueKeys) []any {
	all := []any{}
	for _, m := range ks.Members(q.Order) {
		if deadline, how, value, ok := ks.registered(q, m.Member); ok && deadline > ks.Millis() && m.Member != pause {
			all = append(all, []byte(strconv.FormatInt(m.Score, 10)), []byte(how+" "+value))
		}
	}
	return all[:min(len(all), 2*mostInspected)]
}

// Over reports whether the registration of a waiter in that queue has ended: the next command to the queue
// removes the waiter.
func (ks *Keyspace) Over(queue, waiter string) bool {
	entries := "redlock:wait:" + strings.TrimPrefix(queue, "redlock:queue:")
	deadline, _, _, ok := ks.registered(QueueKeys{entries: entries}, waiter)
	return ok && deadline <= ks.Millis()
}

// mostInspected is the highest number of waiters in a reply.
const mostInspected = 1000

// living returns the members of a sorted set whose time is not over.
func (ks *Keyspace) living(key string) []Queued {
	all := ks.Members(key)
	for len(all) > 0 && all[0].Score <= ks.Millis() {
		all = all[1:]
	}
	return all
}

// number reads a key as a number; zero if it is none.
func (ks *Keyspace) number(key string) int64 {
	text, _ := ks.text(key)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func namesOf(all []Queued) string {
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.Member
	}
	return strings.Join(names, ",")
}
