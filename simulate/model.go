package simulate

import (
	"maps"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node"
)

// keyspace models a Redis master's data and the commands on it. Replies are those
// that redigo would return: int64, string for a status, []byte, nil, []any. Tests
// compare it with real servers, command by command.
type keyspace struct {
	keys    map[string]*entry
	now     func() int64 // the master's wall clock in microseconds
	changes uint64       // how often a sorted set or a hash has changed, except by expiry
	publish func(channel, message string) int64
	replica bool                      // it is a replica's
	origin  string                    // the server's replication ID since it was last promoted; empty: it never was a replica
	listens func(channel string) bool // somebody is subscribed

	caller  int    // who sent the command, for the checks
	variant string // the wrong rule that it follows; empty: none
	// removed is called when a command deletes a key that another caller stored.
	removed func(key string, e *entry)
}

// entry is one key's value: a string, a hash of counters or of strings, or a
// sorted set.
type entry struct {
	value string
	hash  map[string]int64
	queue []queued          // a sorted set, in its order
	texts map[string]string // a hash of strings
	until int64             // wall clock in milliseconds; 0: no expiry
	by    int               // who stored it
	at    int64             // when, on the wall clock in milliseconds
}

// queued is one member of a sorted set.
type queued struct {
	member string
	score  int64
}

func newKeyspace(now func() int64) *keyspace {
	return &keyspace{
		keys:    map[string]*entry{},
		now:     now,
		publish: func(string, string) int64 { return 0 },
		listens: func(string) bool { return false },
		removed: func(string, *entry) {},
	}
}

func (ks *keyspace) millis() int64 { return ks.now() / 1000 }

// find returns a live key, or nil.
func (ks *keyspace) find(key string) *entry {
	e := ks.keys[key]
	if e != nil && e.until != 0 && ks.millis() > e.until {
		delete(ks.keys, key)
		return nil
	}
	return e
}

func (ks *keyspace) store(key string, e *entry) {
	e.by, e.at = ks.caller, ks.millis()
	ks.keys[key] = e
}

func (ks *keyspace) remove(key string) {
	if e := ks.keys[key]; e.by != ks.caller {
		ks.removed(key, e)
	}
	delete(ks.keys, key)
}

// copy returns a copy that shares nothing that is changed in place.
func (e *entry) copy() *entry {
	dup := *e
	dup.hash, dup.texts = maps.Clone(e.hash), maps.Clone(e.texts)
	return &dup
}

// flush forgets everything, as FLUSHALL or a restart without data do.
func (ks *keyspace) flush() { clear(ks.keys) }

// isString reports whether the entry is a plain string.
func (e *entry) isString() bool { return e.hash == nil && e.queue == nil && e.texts == nil }

// copy returns a snapshot of the live keys.
func (ks *keyspace) copy() map[string]*entry {
	keys := make(map[string]*entry, len(ks.keys))
	for k := range ks.keys {
		if e := ks.find(k); e != nil {
			keys[k] = e.copy()
		}
	}
	return keys
}

var (
	errWrongType  = node.Server("WRONGTYPE Operation against a key holding the wrong kind of value")
	errSyntax     = node.Server("ERR syntax error")
	errNotInteger = node.Server("ERR value is not an integer or out of range")
)

// exec runs a command. It panics at one that the model does not know.
func (ks *keyspace) exec(cmd *node.Command) (any, *node.ServerError) {
	if cmd.Script != nil {
		f := scripts[cmd.Script]
		if f == nil {
			panic("simulate: the model does not know the script " + cmd.Script.Name)
		}
		return f(ks, cmd.Keys, cmd.Args)
	}
	switch cmd.Name {
	case "SET":
		return ks.set(cmd.Keys[0], cmd.Args)
	case "SETNX":
		return ks.setnx(cmd.Keys[0], cmd.Args[0])
	case "GET":
		return ks.get(cmd.Keys[0])
	case "DEL":
		return ks.del(cmd.Keys), nil
	case "EXISTS":
		return ks.exists(cmd.Keys), nil
	case "PTTL":
		return ks.pttl(cmd.Keys[0]), nil
	case "PEXPIRE":
		return ks.expire(cmd.Keys[0], cmd.Args[0], 1)
	case "EXPIRE":
		return ks.expire(cmd.Keys[0], cmd.Args[0], 1000)
	case "PUBLISH":
		return ks.publish(cmd.Args[0], cmd.Args[1]), nil
	case "TIME":
		us := ks.now()
		return []any{decimal(us / 1e6), decimal(us % 1e6)}, nil
	case "FLUSHALL":
		ks.flush()
		return "OK", nil
	case "PING":
		return "PONG", nil
	}
	panic("simulate: the model does not know the command " + cmd.Name)
}

func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

func (ks *keyspace) set(key string, args []string) (any, *node.ServerError) {
	e := entry{value: args[0]}
	var ifAbsent, ifPresent bool
	for opts := args[1:]; len(opts) > 0; {
		switch strings.ToUpper(opts[0]) {
		case "NX":
			ifAbsent, opts = true, opts[1:]
		case "XX":
			ifPresent, opts = true, opts[1:]
		case "PX", "EX":
			if len(opts) < 2 || e.until != 0 {
				return nil, errSyntax
			}
			unit := int64(1)
			if strings.EqualFold(opts[0], "EX") {
				unit = 1000
			}
			n, err := strconv.ParseInt(opts[1], 10, 64)
			if err != nil {
				return nil, errNotInteger
			}
			if n <= 0 || n > 1<<60/unit {
				return nil, node.Server("ERR invalid expire time in 'set' command")
			}
			e.until, opts = ks.millis()+n*unit, opts[2:]
		default:
			return nil, errSyntax
		}
	}
	if ifAbsent && ifPresent {
		return nil, errSyntax
	}
	old := ks.find(key)
	if ifAbsent && old != nil || ifPresent && old == nil {
		return nil, nil
	}
	stored := e // allocated only here, since most are refused
	ks.store(key, &stored)
	return "OK", nil
}

func (ks *keyspace) setnx(key, value string) (any, *node.ServerError) {
	if ks.find(key) != nil {
		return int64(0), nil
	}
	ks.store(key, &entry{value: value})
	return int64(1), nil
}

func (ks *keyspace) get(key string) (any, *node.ServerError) {
	switch e := ks.find(key); {
	case e == nil:
		return nil, nil
	case !e.isString():
		return nil, errWrongType
	default:
		return []byte(e.value), nil
	}
}

func (ks *keyspace) del(keys []string) int64 {
	n := int64(0)
	for _, k := range keys {
		if ks.find(k) != nil {
			ks.remove(k)
			n++
		}
	}
	return n
}

func (ks *keyspace) exists(keys []string) int64 {
	n := int64(0)
	for _, k := range keys {
		if ks.find(k) != nil {
			n++
		}
	}
	return n
}

func (ks *keyspace) pttl(key string) int64 {
	switch e := ks.find(key); {
	case e == nil:
		return -2
	case e.until == 0:
		return -1
	default:
		return e.until - ks.millis()
	}
}

func (ks *keyspace) expire(key, arg string, unit int64) (any, *node.ServerError) {
	n, err := strconv.ParseInt(arg, 10, 64)
	if err != nil {
		return nil, errNotInteger
	}
	e := ks.find(key)
	switch {
	case e == nil:
		return int64(0), nil
	case n <= 0:
		delete(ks.keys, key)
	default:
		e.until = ks.millis() + n*unit
	}
	return int64(1), nil
}

// scripts models the Lua scripts. Their sources say what they take and return.
var scripts = map[*node.Script]func(ks *keyspace, keys, args []string) (any, *node.ServerError){
	node.ScriptAsk: (*keyspace).ask,
	node.ScriptExtend: func(ks *keyspace, keys, args []string) (any, *node.ServerError) {
		if n, err := ks.ours(keys[0], args[0]); n != 1 || err != nil {
			return reply(n, err)
		}
		return ks.expire(keys[0], args[1], 1)
	},
	node.ScriptRelease:       (*keyspace).release,
	node.ScriptFencedAcquire: (*keyspace).fencedAcquire,
	node.ScriptFencedRaise:   (*keyspace).fencedRaise,
	node.ScriptFencedExtend:  (*keyspace).fencedExtend,
	node.ScriptFencedRepair:  (*keyspace).fencedRepair,
	node.ScriptFair:          (*keyspace).fair,
	node.ScriptWrite:         rw((*keyspace).write),
	node.ScriptRead:          rw((*keyspace).read),
	node.ScriptWriteExtend:   rw((*keyspace).writeExtend),
	node.ScriptReadExtend:    rw((*keyspace).readExtend),
	node.ScriptWriteRepair:   rw((*keyspace).writeRepair),
	node.ScriptReadRepair:    rw((*keyspace).readRepair),
	node.ScriptRWRelease:     rw((*keyspace).rwRelease),
	node.ScriptMultiAsk:      multi((*keyspace).multiAsk),
	node.ScriptMultiExtend:   multi((*keyspace).multiExtend),
	node.ScriptMultiRaise:    multi((*keyspace).multiRaise),
	node.ScriptMultiRepair:   multi((*keyspace).multiRepair),
	node.ScriptMultiRelease:  multi((*keyspace).multiRelease),
	node.ScriptPermit:        permits((*keyspace).permit),
	node.ScriptPermitMove:    permits((*keyspace).permitMove),
	node.ScriptPermitExtend:  permits((*keyspace).permitExtend),
	node.ScriptPermitRelease: permits((*keyspace).permitRelease),
	node.ScriptPermitResize:  permits((*keyspace).permitResize),
	node.ScriptPermitRaise:   permits((*keyspace).permitRaise),
	node.ScriptLatchArrive:   (*keyspace).noteArrival,
	node.ScriptLatchCount:    (*keyspace).countArrivals,
	node.ScriptLatchRead:     (*keyspace).tellArrivals,
	node.ScriptLatchWrite:    (*keyspace).learnArrivals,
	node.ScriptProclaim:      (*keyspace).proclaim,
	node.ScriptLeader:        (*keyspace).leader,
	node.ScriptMarker: func(ks *keyspace, keys, args []string) (any, *node.ServerError) {
		stored, err := ks.get(keys[0])
		if err != nil {
			return nil, err
		}
		marker := ""
		if stored != nil {
			marker = string(stored.([]byte))
		}
		us := ks.now()
		if args[1] != "" && marker == args[0] {
			marker = args[1]
			if run, rest, _ := strings.Cut(marker, " "); strings.HasPrefix(rest, "0 ") {
				marker = run + " " + strconv.FormatInt(us, 10) + rest[1:]
			}
			ks.store(keys[0], &entry{value: marker})
		}
		return []any{[]byte(marker), decimal(us / 1e6), decimal(us % 1e6), ks.replication()}, nil
	},
	node.ScriptInspect: (*keyspace).inspect,
}

// replication is what INFO replication says.
func (ks *keyspace) replication() []byte {
	switch {
	case ks.replica:
		return []byte("role:slave\r\n")
	case ks.origin == "":
		return []byte("role:master\r\n")
	}
	return []byte("role:master\r\nmaster_replid:" + ks.origin + "\r\nmaster_replid2:1\r\n")
}

// ours returns 1 if the key has the value, 0 if it is absent, -1 if it has another.
func (ks *keyspace) ours(key, value string) (int64, *node.ServerError) {
	switch e := ks.find(key); {
	case e == nil:
		return 0, nil
	case !e.isString():
		return 0, errWrongType
	case e.value != value:
		return -1, nil
	}
	return 1, nil
}

func reply(n int64, err *node.ServerError) (any, *node.ServerError) {
	if err != nil {
		return nil, err
	}
	return n, nil
}
