package masters

import (
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// This file models queue.lua, ask.lua and release.lua.

// ask registers a waiter, and takes the lock if it is free and the waiter's turn.
func (ks *Keyspace) ask(keys, args []string) (any, *wire.ServerError) {
	lock, q := keys[0], QueueKeys{keys[1], keys[2], keys[3]}
	value, how, hold := args[0], args[3], len(args) > 4
	waiter, n := SplitValue(value)
	holder, err := ks.text(lock)
	if err != nil {
		return nil, err
	}
	theirs, held := SplitValue(holder)
	isOurs := theirs == waiter
	if ks.overtaken(q, waiter, n) || isOurs && held >= n {
		return ks.answer(lock, q, value, how, hold), nil
	}
	ticket := args[1]
	if isOurs {
		stay, _ := strconv.ParseInt(args[2], 10, 64)
		if place, queued := ks.Score(q.Order, waiter); queued && place > ks.Millis() && place <= ks.Millis()+stay {
			ticket = strconv.FormatInt(place, 10) // the lock was transferred to it
		}
		ks.remove(lock)
		if ks.Variant == YieldsToAny {
			ks.unqueue(q, waiter)
			ticket = strconv.FormatInt(ks.arrival(q, waiter), 10)
		}
	}
	ks.register(q, waiter, ticket, args[2], how, value)
	if ks.Find(lock) == nil && !hold && ks.Variant != ReleasesGive {
		ks.give(lock, q, waiter)
	}
	return ks.answer(lock, q, value, how, hold), nil
}

// overtaken reports whether a later ask of the waiter has arrived before.
func (ks *Keyspace) overtaken(q QueueKeys, waiter string, n int) bool {
	_, _, known, ok := ks.registered(q, waiter)
	_, latest := SplitValue(known)
	return ok && latest > n
}

// register queues a waiter for stay ms, or refreshes its entry.
func (ks *Keyspace) register(q QueueKeys, waiter, ticket, stay, how, value string) {
	rank, _ := strconv.ParseInt(ticket, 10, 64)
	ms, _ := strconv.ParseInt(stay, 10, 64)
	if ks.Variant == ArrivalOrder {
		rank = ks.arrival(q, waiter)
	}
	ks.zadd(q.Order, waiter, rank)
	entry := strconv.AppendInt(make([]byte, 0, 96), ks.Millis()+ms, 10)
	entry = append(append(append(append(entry, ' '), how...), ' '), value...)
	ks.hset(q.entries, waiter, string(entry))
	ks.together(ms, q.Order, q.entries)
}

// arrival returns the ticket of a waiter if tickets were given in the order of arrival.
func (ks *Keyspace) arrival(q QueueKeys, waiter string) int64 {
	if at, queued := ks.Score(q.Order, waiter); queued {
		return at
	}
	if all := ks.Members(q.Order); len(all) > 0 {
		return all[len(all)-1].Score + 1
	}
	return 1
}

// release deletes the lock if it is the waiter's, and hands it on; or it has the lock end
// when it is not kept any longer.
func (ks *Keyspace) release(keys, args []string) (any, *wire.ServerError) {
	lock, q, held := keys[0], QueueKeys{keys[1], keys[2], keys[3]}, args[len(args)-1] == wire.HoldArg
	holder, err := ks.text(lock)
	waiter, _ := SplitValue(args[0])
	was, released := strings.CutPrefix(holder, Kept)
	theirs, _ := SplitValue(was)
	answer, earlier := int64(0), false
	may := ""
	if len(args) > 2 && args[2] != wire.HoldArg {
		may = args[2]
	}
	switch {
	case err != nil, ks.Find(lock) == nil:
	case theirs == waiter:
		if len(args) > 1 && args[1] != wire.HoldArg && args[1] != "-" {
			ks.raise(q.counter(), args[1])
		}
		rest := int64(0)
		if stays := released && may == wire.KeepArg; may != "" && !stays {
			rest = ks.rest(lock, q, holder, may)
		} else if stays {
			rest = ks.pttl(lock)
		}
		if rest > 0 {
			earlier = ks.pttl(lock) > rest
			ks.Keys[lock].Value, ks.Keys[lock].Until = Kept+was, ks.Millis()+rest
		} else {
			ks.remove(lock)
		}
		answer = 1
	default:
		answer = -1
	}
	if ks.Find(q.Order) != nil {
		led := released && ks.leads(q, waiter) && ks.Variant != CallsOne
		ks.unqueue(q, waiter)
		switch {
		case ks.Find(lock) == nil:
			ks.pass(lock, q, held)
		case earlier:
			ks.call(lock, q, 8)
		case led:
			ks.call(lock, q, 1)
		}
	}
	return answer, nil
}

// QueueKeys are the keys beside a lock.
type QueueKeys struct{ Order, entries, Marker string }

// Counter returns the key of the lock's fencing counter.
func (q QueueKeys) counter() string {
	return wire.Queue{Order: q.Order, Entries: q.entries, Marker: q.Marker}.Counter()
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

// SplitValue returns the waiter of a value and the number of its ask. The value of
// another library stands for itself.
func SplitValue(value string) (waiter string, n int) {
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
// [^ /]*/[a-z2-7]{16}/W?0?[PC]?[0-9a-z]+.
func isCertain(waiter string) bool {
	_, rest, _ := strings.Cut(waiter, "/")
	nonce, number, _ := strings.Cut(rest, "/")
	number = strings.TrimPrefix(number, "W")
	if passing := strings.TrimPrefix(number, "0"); passing != "" && strings.Contains("PC", passing[:1]) {
		number = passing[1:]
	}
	return len(nonce) == 16 && isAlphanumeric(nonce, '2', '7') && number != "" && isAlphanumeric(number, '0', '9')
}

// text returns a string key, or the empty string.
func (ks *Keyspace) text(key string) (string, *wire.ServerError) {
	switch e := ks.Find(key); {
	case e == nil:
		return "", nil
	case !e.IsString():
		return "", errWrongType
	default:
		return e.Value, nil
	}
}

// answer returns the answer to an ask.
func (ks *Keyspace) answer(lock string, q QueueKeys, value, how string, hold bool) any {
	holder, _ := ks.text(lock)
	if holder == value && !hold {
		if how == "-" {
			return "OK"
		}
		return ks.Counter(q.counter())
	}
	ks.want(lock, q, holder)
	passes := int64(0)
	if ks.Find(lock) != nil {
		passes = queues(holder)
	}
	standing := []any{ks.left(lock, q), passes}
	if how != "-" {
		standing = append(standing, ks.Counter(q.counter()))
	}
	return standing
}

// registered returns the registration of a waiter.
func (ks *Keyspace) registered(q QueueKeys, waiter string) (deadline int64, proposal, value string, ok bool) {
	text, ok := ks.hget(q.entries, waiter)
	if !ok {
		return 0, "", "", false
	}
	until, rest, _ := strings.Cut(text, " ")
	deadline, _ = strconv.ParseInt(until, 10, 64)
	proposal, value, _ = strings.Cut(rest, " ")
	return deadline, proposal, value, true
}

func (ks *Keyspace) unqueue(q QueueKeys, waiter string) {
	ks.zrem(q.Order, waiter)
	ks.hdel(q.entries, waiter)
}

// give hands a free lock to the first waiter that is still there, or notifies that waiter that
// it is its turn, together with the readers right behind a reader. asker gets the reply anyway
// and is not notified.
func (ks *Keyspace) give(lock string, q QueueKeys, asker string) {
	readers := 0
	for {
		first, rest, how, value := ks.firstBehind(q, readers)
		switch {
		case first == pause:
			if asker == "" && ks.call(lock, q, 1) == 0 {
				ks.unqueue(q, pause)
			}
			return
		case first == "", readers > 0 && how != "r":
			return
		case how[0] == 'w' || how[0] == 'r':
			if first == asker || ks.tell(lock, q.Marker, first, value, ":t") {
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
			if first == asker || ks.tell(lock, q.Marker, first, value, what) {
				ks.Store(lock, &Entry{Value: value, Until: ks.Millis() + rest})
				ks.Keys[lock].By = OwnerOf(value).Client
				return
			}
		}
		ks.unqueue(q, first)
	}
}

// pass hands a free lock on. A client that does not trust the master has the first waiter ask instead.
func (ks *Keyspace) pass(lock string, q QueueKeys, hold bool) {
	if hold {
		ks.call(lock, q, 1)
	} else {
		ks.give(lock, q, "")
	}
}

// first returns the first waiter that is still registered, or nothing.
func (ks *Keyspace) first(q QueueKeys) (waiter string, rest int64, how, value string) {
	return ks.firstBehind(q, 0)
}

// firstBehind returns the first waiter behind the given number of entries that is still
// registered, or nothing. It removes the entries that are not.
func (ks *Keyspace) firstBehind(q QueueKeys, many int) (waiter string, rest int64, how, value string) {
	for {
		e := ks.Find(q.Order)
		if e == nil || many >= len(e.Queue) {
			return "", 0, "", ""
		}
		waiter = e.Queue[many].Member
		deadline, how, value, ok := ks.registered(q, waiter)
		if rest := deadline - ks.Millis(); ok && rest > 0 && (waiter != pause || rest <= lengthOf(how)) {
			return waiter, rest, how, value
		}
		ks.unqueue(q, waiter)
	}
}

// firstPresent returns the first registered waiter whose client listens, or asker, whose client
// may not listen yet. It removes the waiters before that one.
func (ks *Keyspace) firstPresent(q QueueKeys, asker string) (waiter string) {
	for {
		waiter, _, _, _ = ks.first(q)
		if waiter == "" || waiter == asker || waiter == pause || ks.present(q.Marker, waiter) {
			return waiter
		}
		ks.unqueue(q, waiter)
	}
}

// leads reports whether nobody who is there stands before a waiter.
func (ks *Keyspace) leads(q QueueKeys, waiter string) bool {
	first := ks.firstPresent(q, waiter)
	return first == waiter || first == pause
}

// present reports whether the client of a waiter listens.
func (ks *Keyspace) present(marker, waiter string) bool {
	return ks.Variant == WaitsForTheDead || ks.Listens(channelOf(marker, waiter))
}

// channelOf names the channel of a waiter's client.
func channelOf(marker, waiter string) string {
	return strings.TrimSuffix(marker, "marker") + "wait:" + waiter[:strings.LastIndexByte(waiter, '/')]
}

// Proof returns what every message begins with.
func (ks *Keyspace) Proof(marker string) string {
	mark, _ := ks.text(marker)
	if ks.Origin != "" && !strings.Contains(mark, "."+ks.Origin) {
		mark = ""
	}
	return wire.Proof(mark, time.UnixMicro(ks.Now()))
}

// tell publishes to a waiter, and reports whether its client is still subscribed.
func (ks *Keyspace) tell(lock, marker, waiter, value, what string) bool {
	return ks.Publish(channelOf(marker, waiter), ks.Proof(marker)+"\n"+strconv.Itoa(len(lock))+what+" "+lock+value) != 0
}
