package simulate

import (
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node"
)

// This file models queue.lua, ask.lua and release.lua.

// ask registers a waiter, and takes the lock if it is free and the waiter's turn.
func (ks *keyspace) ask(keys, args []string) (any, *node.ServerError) {
	lock, q := keys[0], queueKeys{keys[1], keys[2], keys[3]}
	value, how, hold := args[0], args[3], len(args) > 4
	waiter, n := splitValue(value)
	holder, err := ks.text(lock)
	if err != nil {
		return nil, err
	}
	theirs, held := splitValue(holder)
	isOurs := theirs == waiter
	if ks.overtaken(q, waiter, n) || isOurs && held > n {
		return ks.answer(lock, q, value, how, hold), nil
	}
	ticket := args[1]
	if isOurs && holder != value {
		ks.remove(lock)
		if ks.variant == yieldsToAny {
			ks.unqueue(q, waiter)
			ticket = strconv.FormatInt(ks.arrival(q, waiter), 10)
		}
	}
	ks.register(q, waiter, ticket, args[2], how, value)
	if ks.find(lock) == nil && !hold && ks.variant != releasesGive {
		ks.give(lock, q, waiter)
	}
	return ks.answer(lock, q, value, how, hold), nil
}

// overtaken reports whether a later ask of the waiter has arrived before.
func (ks *keyspace) overtaken(q queueKeys, waiter string, n int) bool {
	_, _, known, ok := ks.registered(q, waiter)
	_, latest := splitValue(known)
	return ok && latest > n
}

// register queues a waiter for stay ms, or refreshes its entry.
func (ks *keyspace) register(q queueKeys, waiter, ticket, stay, how, value string) {
	rank, _ := strconv.ParseInt(ticket, 10, 64)
	ms, _ := strconv.ParseInt(stay, 10, 64)
	if ks.variant == arrivalOrder {
		rank = ks.arrival(q, waiter)
	}
	ks.zadd(q.order, waiter, rank)
	entry := strconv.AppendInt(make([]byte, 0, 96), ks.millis()+ms, 10)
	entry = append(append(append(append(entry, ' '), how...), ' '), value...)
	ks.hset(q.entries, waiter, string(entry))
	ks.atLeast(ms, q.order, q.entries)
}

// arrival returns the ticket of a waiter if tickets were given in the order of arrival.
func (ks *keyspace) arrival(q queueKeys, waiter string) int64 {
	if at, queued := ks.score(q.order, waiter); queued {
		return at
	}
	if all := ks.members(q.order); len(all) > 0 {
		return all[len(all)-1].score + 1
	}
	return 1
}

// release deletes the lock if it is the waiter's, and hands it on.
func (ks *keyspace) release(keys, args []string) (any, *node.ServerError) {
	lock, q := keys[0], queueKeys{keys[1], keys[2], keys[3]}
	holder, err := ks.text(lock)
	waiter, _ := splitValue(args[0])
	theirs, _ := splitValue(holder)
	answer := int64(0)
	switch {
	case err != nil, ks.find(lock) == nil:
	case theirs == waiter:
		if len(args) > 1 && args[1] != "hold" {
			ks.raise(q.counter(), args[1])
		}
		ks.remove(lock)
		answer = 1
	default:
		answer = -1
	}
	if ks.find(q.order) != nil {
		ks.unqueue(q, waiter)
		if args[len(args)-1] != "hold" && ks.find(lock) == nil {
			ks.give(lock, q, "")
		}
	}
	return answer, nil
}

// queueKeys are the keys beside a lock.
type queueKeys struct{ order, entries, marker string }

// counter returns the key of the lock's fencing counter.
func (q queueKeys) counter() string {
	return node.Queue{Order: q.order, Entries: q.entries, Marker: q.marker}.Counter()
}

// isOwn reports whether a value looks like one of this library:
// [^ /]*/[a-z2-7]*/[0-9a-z]*:[0-9] and more.
func isOwn(value string) bool {
	_, rest, ok := strings.Cut(value, "/")
	if !ok || strings.ContainsRune(value[:len(value)-len(rest)-1], ' ') {
		return false
	}
	nonce, rest, ok := strings.Cut(rest, "/")
	if !ok || !isAlphanumeric(nonce, '2', '7') {
		return false
	}
	number, ask, ok := strings.Cut(rest, ":")
	return ok && isAlphanumeric(number, '0', '9') && ask != "" && ask[0] >= '0' && ask[0] <= '9'
}

// isAlphanumeric reports whether s has only small letters and the digits from lowest to
// highest.
func isAlphanumeric(s string, lowest, highest byte) bool {
	for i := range len(s) {
		if (s[i] < 'a' || s[i] > 'z') && (s[i] < lowest || s[i] > highest) {
			return false
		}
	}
	return true
}

// splitValue returns the waiter of a value and the number of its ask. The value of
// another library stands for itself.
func splitValue(value string) (waiter string, n int) {
	word, _, _ := strings.Cut(value, " ")
	colon := strings.LastIndexByte(word, ':')
	if colon < 0 || !isCertain(word[:colon]) {
		return value, 0
	}
	ask, _, _ := strings.Cut(word[colon+1:], "@") // the date may follow
	n, err := strconv.Atoi(ask)
	if err != nil {
		return value, 0
	}
	return word[:colon], n
}

// isCertain reports whether only this library makes such waiters:
// [^ /]*/[a-z2-7]{16}/W?[0-9a-z]+.
func isCertain(waiter string) bool {
	_, rest, _ := strings.Cut(waiter, "/")
	nonce, number, _ := strings.Cut(rest, "/")
	number = strings.TrimPrefix(number, "W")
	return len(nonce) == 16 && isAlphanumeric(nonce, '2', '7') && number != "" && isAlphanumeric(number, '0', '9')
}

// text returns a string key, or the empty string.
func (ks *keyspace) text(key string) (string, *node.ServerError) {
	switch e := ks.find(key); {
	case e == nil:
		return "", nil
	case !e.isString():
		return "", errWrongType
	default:
		return e.value, nil
	}
}

// answer returns the answer to an ask.
func (ks *keyspace) answer(lock string, q queueKeys, value, how string, hold bool) any {
	holder, _ := ks.text(lock)
	if holder == value && !hold {
		if how == "-" {
			return "OK"
		}
		return ks.counter(q.counter())
	}
	foreign := int64(0)
	if ks.find(lock) != nil && !isOwn(holder) {
		foreign = 1
	}
	standing := []any{ks.pttl(lock), foreign}
	if how != "-" {
		standing = append(standing, ks.counter(q.counter()))
	}
	return standing
}

// registered returns what is known of a waiter.
func (ks *keyspace) registered(q queueKeys, waiter string) (deadline int64, proposal, value string, ok bool) {
	text, ok := ks.hget(q.entries, waiter)
	if !ok {
		return 0, "", "", false
	}
	until, rest, _ := strings.Cut(text, " ")
	deadline, _ = strconv.ParseInt(until, 10, 64)
	proposal, value, _ = strings.Cut(rest, " ")
	return deadline, proposal, value, true
}

func (ks *keyspace) unqueue(q queueKeys, waiter string) {
	ks.zrem(q.order, waiter)
	ks.hdel(q.entries, waiter)
}

// give hands a free lock to the first waiter that is still there, or tells it that it is
// its turn, together with the readers right behind a reader. asker, who gets the answer
// anyway, is not told.
func (ks *keyspace) give(lock string, q queueKeys, asker string) {
	readers := 0
	for {
		first, rest, how, value := ks.firstBehind(q, readers)
		switch {
		case first == "", readers > 0 && how != "r":
			return
		case how[0] == 'w' || how[0] == 'r':
			if first == asker || ks.tell(lock, q.marker, first, value, ":t") {
				if how[0] == 'w' {
					return
				}
				readers++
				continue
			}
		default:
			what := ""
			if how != "-" {
				what = ":" + strconv.FormatInt(ks.count(q.counter(), how, 1), 10)
			}
			if first == asker || ks.tell(lock, q.marker, first, value, what) {
				ks.store(lock, &entry{value: value, until: ks.millis() + rest})
				ks.keys[lock].by = ownerOf(value).client
				return
			}
		}
		ks.unqueue(q, first)
	}
}

// first returns the first waiter that is still registered, or nothing.
func (ks *keyspace) first(q queueKeys) (waiter string, rest int64, how, value string) {
	return ks.firstBehind(q, 0)
}

// firstBehind is first for those who are queued behind so many.
func (ks *keyspace) firstBehind(q queueKeys, many int) (waiter string, rest int64, how, value string) {
	for {
		e := ks.find(q.order)
		if e == nil || many >= len(e.queue) {
			return "", 0, "", ""
		}
		waiter = e.queue[many].member
		deadline, how, value, ok := ks.registered(q, waiter)
		if rest := deadline - ks.millis(); ok && rest > 0 {
			return waiter, rest, how, value
		}
		ks.unqueue(q, waiter)
	}
}

// firstPresent is first for those whose client listens; asker may not listen yet.
func (ks *keyspace) firstPresent(q queueKeys, asker string) (waiter string) {
	for {
		waiter, _, _, _ = ks.first(q)
		if waiter == "" || waiter == asker || ks.present(q.marker, waiter) {
			return waiter
		}
		ks.unqueue(q, waiter)
	}
}

// present reports whether the client of a waiter listens.
func (ks *keyspace) present(marker, waiter string) bool { return ks.listens(channelOf(marker, waiter)) }

// channelOf names the channel of a waiter's client.
func channelOf(marker, waiter string) string {
	return strings.TrimSuffix(marker, "marker") + "wait:" + waiter[:strings.LastIndexByte(waiter, '/')]
}

// proof returns what every message begins with.
func (ks *keyspace) proof(marker string) string {
	mark, _ := ks.text(marker)
	if ks.origin != "" && !strings.Contains(mark, "."+ks.origin) {
		mark = ""
	}
	return node.Proof(mark, time.UnixMicro(ks.now()))
}

// tell publishes to a waiter, and reports whether its client is still subscribed.
func (ks *keyspace) tell(lock, marker, waiter, value, what string) bool {
	return ks.publish(channelOf(marker, waiter), ks.proof(marker)+"\n"+strconv.Itoa(len(lock))+what+" "+lock+value) != 0
}
