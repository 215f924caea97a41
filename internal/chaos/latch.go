package chaos

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/quorumlock/quorumlock/node/wire"
	"github.com/quorumlock/quorumlock/redlock"
)

// latch is opened by arrivals, and every few seconds there is another generation of
// it. It has no holder, so it has no locks.
var latch = &Workload{
	Name:    "latch",
	Callers: 2,
	Turn: func(ctx context.Context, c *Caller) error {
		l := c.latch(int64(now() / generation))
		limited, cancel := context.WithTimeout(ctx, c.patience())
		defer cancel()
		switch c.rand.IntN(10) {
		case 0, 1, 2, 3:
			l.arrive(limited)
		case 4, 5, 6:
			l.count(limited)
		case 7, 8:
			l.look()
		case 9:
			l.wait(limited)
		}
		sleep(ctx, c.upTo(60*time.Millisecond))
		return nil
	},
	Audit: (*Report).misarrived,
	Tell:  (*Report).latches,
}

const (
	generation = 8 * time.Second // by the machine's clock, so all clients have the same
	latchOpens = 10
	// latchNames is how many each caller has, so that most arrivals are repeated.
	latchNames = 8
	// lookPatience is how long a master may take to say whether its set is whole.
	lookPatience = 200 * time.Millisecond
)

// generationOf is one generation of the latch, for one caller.
type generationOf struct {
	caller *Caller
	latch  *redlock.Latch
	name   string
	read   *wire.Command
}

func (c *Caller) latch(number int64) generationOf {
	name, text := c.workload.Name, strconv.FormatInt(number, 10)
	return generationOf{
		caller: c, latch: c.client.Latch(name, latchOpens).Generation(text),
		name: name + " " + text, read: wire.LatchOf("", name, text).Read(),
	}
}

func (l generationOf) note(e Event) {
	e.At, e.Lock = now(), l.name
	l.caller.note(e)
}

// arrive reports an arrival. That is written down first: it may be counted whether
// or not anybody learns of it.
func (l generationOf) arrive(ctx context.Context) {
	id := fmt.Sprintf("%s.%d", l.caller.id, l.caller.rand.IntN(latchNames))
	l.note(Event{Kind: Arriving, Text: id})
	since := now()
	if l.latch.Arrive(ctx, id) == nil {
		l.note(Event{Kind: Arrived, Since: since, Text: id})
	}
}

func (l generationOf) count(ctx context.Context) {
	since := now()
	if n, err := l.latch.Count(ctx); err == nil {
		l.note(Event{Kind: Tallied, Since: since, Count: n})
	}
}

func (l generationOf) wait(ctx context.Context) {
	since := now()
	if err := l.latch.Wait(ctx); err != nil {
		l.note(Event{Kind: Waited, Since: since, Text: reason(err)})
		return
	}
	l.note(Event{Kind: Opened, Since: since})
}

// look asks every master whether its set is whole: as long as too few forget it from
// then on, no arrival is lost.
func (l generationOf) look() {
	since := now()
	for _, addr := range l.caller.masters {
		if !l.whole(addr) {
			return
		}
	}
	l.note(Event{Kind: Whole, Since: since})
}

func (l generationOf) whole(addr string) bool {
	conn, err := redis.Dial("tcp", addr, redis.DialConnectTimeout(lookPatience),
		redis.DialReadTimeout(lookPatience), redis.DialWriteTimeout(lookPatience))
	if err != nil {
		return false
	}
	defer conn.Close()
	members, err := redis.Strings(conn.Do("EVAL", redis.Args{l.read.Script.Source, len(l.read.Keys)}.AddFlat(l.read.Keys)...))
	return err == nil && slices.Contains(members, wire.Whole)
}
