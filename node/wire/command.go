package wire

import (
	"strconv"
	"strings"
	"time"
)

// Op says what a command is for. The guards admit commands by Op, and errors
// and reports name it.
type Op uint8

const (
	OpAcquire Op = iota + 1 // takes the key if it is free
	OpExtend                // lengthens the TTL of a key that we hold
	OpRepair                // puts back a key that a node lost under a valid lease
	OpRelease               // deletes the key if we hold it
	OpRead                  // changes nothing
	OpAsk                   // registers a waiter, and takes the key if it is its turn
	OpCommit                // makes a grant agree with the grants of other masters
	OpRequest               // asks a holder or those who wait for something, which changes nothing of the lock
)

// Votes reports whether the answer to op is a vote, which counts only if the
// master remembers.
func (op Op) Votes() bool { return op.Grants() || op == OpAsk || op == OpExtend }

// Grants reports whether op is refused by a master that may have forgotten.
func (op Op) Grants() bool { return op == OpAcquire || op == OpCommit }

func (op Op) String() string {
	switch op {
	case OpAcquire:
		return "acquire"
	case OpExtend:
		return "extend"
	case OpRepair:
		return "repair"
	case OpRelease:
		return "release"
	case OpRead:
		return "read"
	case OpAsk:
		return "ask"
	case OpCommit:
		return "commit"
	case OpRequest:
		return "request"
	}
	return "op(" + strconv.Itoa(int(op)) + ")"
}

// Command is one request to a master. It is immutable once made and the same
// Command is given to every node of a round.
type Command struct {
	Op     Op
	Again  bool     // the same has been asked before; see Repeated
	Name   string   // the Redis command; empty when Script is set
	Script *Script  // run by EVALSHA, by EVAL where the node does not know it
	Keys   []string // the keys, and only they: also what Redis Cluster and ACLs see
	Args   []string // what follows the keys

	// Recalls: it repeats what was known before it was sent, and is for a master that
	// has not lost its memory since. See Guard.Allow.
	Recalls bool

	// Keep is how long a release that could not be delivered is kept for a
	// later delivery: the TTL of the key, after which the key has ended.
	Keep time.Duration
}

// Acquire is SET key value NX PX ttl, the command that every Redlock client sends. The
// reply is OK, or nil when another client holds the key.
func Acquire(key, value string, ttl time.Duration) *Command {
	return set(OpAcquire, key, value, ttl)
}

// Repair is Acquire for a node that lost the key of a lease that is held.
func Repair(key, value string, ttl time.Duration) *Command {
	return set(OpRepair, key, value, ttl)
}

func set(op Op, key, value string, ttl time.Duration) *Command {
	return compose(Command{Op: op, Name: "SET"}, []string{key}, []string{value, "NX", "PX", millis(ttl)})
}

// Queue names the keys beside a lock that hold its waiters. A release hands the lock
// to the first of them, at every master separately.
type Queue struct {
	Order   string // the waiters by ticket
	Entries string // an entry for each
	Marker  string // of the master, which goes with every message

	counter string // see Counter; may be empty
}

// QueueOf returns the queue of the lock of that name, among the keys with the
// given prefix.
func QueueOf(prefix, name string) Queue {
	return Queue{
		Order:   prefix + "redlock:queue:" + name,
		Entries: prefix + "redlock:wait:" + name,
		Marker:  MarkerKey(prefix),
	}
}

// WaitChannel is the channel on which a master notifies the waiters of one client, whose
// names begin with client and a slash, of their grants and turns. See ParseNotice.
func WaitChannel(prefix, client string) string {
	return prefix + "redlock:wait:" + client
}

// Notice is a message to a client on its WaitChannel.
type Notice struct {
	Kind  NoticeKind
	Key   string // of the lock
	Value string // of the waiter's last ask, or of the holder
	Reply Reply  // the answer to the ask, if the lock was given
}

// NoticeKind is what a master tells a client.
type NoticeKind uint8

const (
	Given  NoticeKind = iota // the lock was given to the waiter
	Turn                     // it is the waiter's turn to ask
	Wanted                   // others wait for the cached lock that the client holds
)

// ParseNotice reads a message: the length of the key, a colon and 't' for a turn, 'c' for a
// cached lock that is wanted, or a fencing counter if there is one, a space, the key and the
// value.
func ParseNotice(message string) (said Notice, ok bool) {
	head, rest, _ := strings.Cut(message, " ")
	length, extra, more := strings.Cut(head, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(rest) {
		return Notice{}, false
	}
	said = Notice{Key: rest[:n], Value: rest[n:], Reply: Reply{Value: "OK"}}
	switch {
	case extra == "t":
		said.Kind = Turn
	case extra == "c":
		said.Kind = Wanted
	case more:
		counter, err := strconv.ParseInt(extra, 10, 64)
		if err != nil {
			return Notice{}, false
		}
		said.Reply.Value = counter
	}
	return said, true
}

// TellWanted tells the holder of a cached lock, without a proof, that others want it.
func TellWanted(prefix, key, value string) *Command {
	client := value[:strings.LastIndexByte(WaiterOf(value), '/')]
	said := "\n" + strconv.Itoa(len(key)) + ":c " + key + value
	return &Command{Op: OpRequest, Name: "PUBLISH", Args: []string{WaitChannel(prefix, client), said}}
}

// Ask registers a waiter for stay, with a ticket that decides whose turn is first, and
// takes the lock if it is free and the waiter's turn. The value is WAITER:N, with N
// higher in every ask of one waiter; what an earlier ask was given is given back. The
// reply is OK, or the remaining TTL in milliseconds (-1: none) and how the holder queues: see
// RefusalOf.
func Ask(key string, q Queue, value string, ticket int64, stay time.Duration) *Command {
	return newAsk(key, q, value, ticket, stay, none)
}

// FairAsk is the first ask of a fair waiter. It takes the lock if there are no
// waiters, and otherwise queues behind all of them, with a ticket of at least the one
// given. A ticket of zero does not queue. The reply is OK, or what FencedAsk answers
// and the ticket.
func FairAsk(key string, q Queue, value string, ticket int64, ttl time.Duration) *Command {
	return newFairAsk(key, q, value, ticket, ttl, none)
}

func newFairAsk(key string, q Queue, value string, ticket int64, ttl time.Duration, how string) *Command {
	least := "-"
	if ticket > 0 {
		least = strconv.FormatInt(ticket, 10)
	}
	return &Command{
		Op: OpAcquire, Script: ScriptFair,
		Keys: []string{key, q.Order, q.Entries, q.Marker},
		Args: []string{value, least, millis(ttl), how},
	}
}

func newAsk(key string, q Queue, value string, ticket int64, stay time.Duration, how string) *Command {
	return &Command{
		Op: OpAsk, Script: ScriptAsk,
		Keys: []string{key, q.Order, q.Entries, q.Marker},
		Args: []string{value, strconv.FormatInt(ticket, 10), millis(stay), how},
	}
}

// Extend sets the TTL anew if value is still stored: 1 extended, 0 the key is absent, or only kept,
// -1 another value is there.
func Extend(key, value string, ttl time.Duration) *Command {
	return compose(Command{Op: OpExtend, Script: ScriptExtend}, []string{key}, []string{value, millis(ttl)})
}

// ExtendCached is Extend for a lock that is cached: WANTED instead of 1 if others wait for it.
func ExtendCached(key string, q Queue, value string, ttl time.Duration) *Command {
	return &Command{Op: OpExtend, Script: ScriptExtendCached, Keys: []string{key, q.Order}, Args: []string{value, millis(ttl)}}
}

// Release deletes the key if value is stored, or the value of another ask of the same
// waiter. The waiter leaves the queue, and the lock goes to the next one: 1 deleted, 0
// absent, -1 another value is there, which stays.
func Release(key string, q Queue, value string, ttl time.Duration) *Command {
	whole := &struct {
		Command
		keys [4]string
		args [2]string // one more for a fencing token
	}{Command: Command{Op: OpRelease, Script: ScriptRelease, Keep: ttl}}
	whole.keys = [4]string{key, q.Order, q.Entries, q.Marker}
	whole.args[0] = value
	whole.Keys, whole.Args = whole.keys[:], whole.args[:1]
	return &whole.Command
}

// Withdraw returns the release of what a notice is about, for a client that does not
// know the lock any more: nor whether the lock is to be kept, which the master does.
func Withdraw(prefix string, said Notice, ttl time.Duration) *Command {
	if name, ok := strings.CutPrefix(said.Key, prefix+"redlock:slots:"); ok {
		return PermitsOf(prefix, name).Release(said.Value, ttl)
	}
	return Release(said.Key, QueueOf(prefix, strings.TrimPrefix(said.Key, prefix)), said.Value, ttl).Keeping()
}

// WaiterOf returns the part of a value that is the same in all asks of one
// waiter: what stands before the last colon of its first word.
func WaiterOf(value string) string {
	word, _, _ := strings.Cut(value, " ")
	if colon := strings.LastIndexByte(word, ':'); colon >= 0 {
		return word[:colon]
	}
	return value
}

// HandsOn reports whether the master hands a lock on when it runs the command.
func (c *Command) HandsOn() bool {
	return c.Script != nil && (c.Op == OpAsk || c.Op == OpRelease)
}

// Hold returns the command for a master that its client does not trust: it registers and releases,
// but grants nothing. A release has the first waiter ask (L92).
func (c *Command) Hold() *Command {
	held := *c
	held.Args = append(c.Args[:len(c.Args):len(c.Args)], HoldArg)
	return &held
}

const HoldArg = "hold"

// Repeated returns an ask that the same master was asked before. The first may have
// reached it, so its release is owed even where the second is not sent.
func (c *Command) Repeated() *Command {
	repeated := *c
	repeated.Again = true
	return &repeated
}

// Unheld returns the release as it was before Hold: each time it is sent it is
// decided anew whether to believe the master.
func (c *Command) Unheld() *Command {
	last := len(c.Args) - 1
	if c.Op != OpRelease || last < 1 || c.Args[last] != HoldArg {
		return c
	}
	free := *c
	free.Args = c.Args[:last]
	return &free
}

// compose puts a command into one piece of memory with its keys and arguments: at most
// two keys and four arguments.
func compose(cmd Command, keys, args []string) *Command {
	whole := &struct {
		Command
		keys [2]string
		args [4]string
	}{Command: cmd}
	whole.Keys = append(whole.keys[:0], keys...)
	whole.Args = append(whole.args[:0], args...)
	return &whole.Command
}

// argue is compose for keys that many commands share, and for up to six arguments.
func argue(cmd Command, args ...string) *Command {
	whole := &struct {
		Command
		args [6]string
	}{Command: cmd}
	whole.Args = append(whole.args[:0], args...)
	return &whole.Command
}

// millis renders a TTL as Redis takes it. A TTL is relative, never a point in
// time: an expiry that the client computed would be read by the node's clock
// (S32).
func millis(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}
