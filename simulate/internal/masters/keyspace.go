// Package masters models the data of a Redis master and the scripts of this library
// in Go: a keyspace is one master's data, and each kind of lock has a file with the
// models of its scripts. Tests compare the models with real servers, command by
// command.
package masters

import (
	"maps"
	"strconv"
	"strings"

	"github.com/quorumlock/quorumlock/node/wire"
)

// Keyspace models a Redis master's data and the commands on it. Replies are those
// that redigo would return: int64, string for a status, []byte, nil, []any. Tests
// compare it with real servers, command by command.
type Keyspace struct {
	Keys    map[string]*Entry
	Now     func() int64 // the master's wall clock in microseconds
	Changes uint64       // how often a sorted set or a hash has changed, except by expiry
	Publish func(channel, message string) int64
	Replica bool                      // it is a replica's
	Origin  string                    // the server's replication ID since it was last promoted; empty: it never was a replica
	Listens func(channel string) bool // whether the channel has a subscriber

	Caller  int    // who sent the command, for the checks
	Variant string // the wrong rule that it follows; empty: none
	// Removed is called when a command deletes a key that another caller stored.
	Removed func(key string, e *Entry)
}

// Entry is one key's value: a string, a hash of counters or of strings, or a
// sorted set.
type Entry struct {
	Value string
	Hash  map[string]int64
	Queue []Queued          // a sorted set, in its order
	Texts map[string]string // a hash of strings
	Until int64             // wall clock in milliseconds; 0: no expiry
	By    int               // who stored it
	At    int64             // when, on the wall clock in milliseconds
}

// Queued is one member of a sorted set.
type Queued struct {
	Member string
	Score  int64
}

func NewKeyspace(now func() int64) *Keyspace {
	return &Keyspace{
		Keys:    map[string]*Entry{},
		Now:     now,
		Publish: func(string, string) int64 { return 0 },
		Listens: func(string) bool { return false },
		Removed: func(string, *Entry) {},
	}
}

func (ks *Keyspace) Millis() int64 { return ks.Now() / 1000 }

// Find returns a live key, or nil.
func (ks *Keyspace) Find(key string) *Entry {
	e := ks.Keys[key]
	if e != nil && e.Until != 0 && ks.Millis() > e.Until {
		delete(ks.Keys, key)
		return nil
	}
	return e
}

func (ks *Keyspace) Store(key string, e *Entry) {
	e.By, e.At = ks.Caller, ks.Millis()
	ks.Keys[key] = e
}

func (ks *Keyspace) remove(key string) {
	if e := ks.Keys[key]; e.By != ks.Caller {
		ks.Removed(key, e)
	}
	delete(ks.Keys, key)
}

// Copy returns a copy that shares nothing that is changed in place.
func (e *Entry) copy() *Entry {
	dup := *e
	dup.Hash, dup.Texts = maps.Clone(e.Hash), maps.Clone(e.Texts)
	return &dup
}

// Flush forgets everything, as FLUSHALL or a restart without data do.
func (ks *Keyspace) Flush() { clear(ks.Keys) }

// IsString reports whether the entry is a plain string.
func (e *Entry) IsString() bool { return e.Hash == nil && e.Queue == nil && e.Texts == nil }

// Copy returns a snapshot of the live keys.
func (ks *Keyspace) Copy() map[string]*Entry {
	keys := make(map[string]*Entry, len(ks.Keys))
	for k := range ks.Keys {
		if e := ks.Find(k); e != nil {
			keys[k] = e.copy()
		}
	}
	return keys
}

var (
	errWrongType  = wire.Server("WRONGTYPE Operation against a key holding the wrong kind of value")
	errSyntax     = wire.Server("ERR syntax error")
	errNotInteger = wire.Server("ERR value is not an integer or out of range")
)

// Exec runs a command. It panics if the model does not know the command.
func (ks *Keyspace) Exec(cmd *wire.Command) (any, *wire.ServerError) {
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
		return ks.Publish(cmd.Args[0], cmd.Args[1]), nil
	case "TIME":
		us := ks.Now()
		return []any{decimal(us / 1e6), decimal(us % 1e6)}, nil
	case "FLUSHALL":
		ks.Flush()
		return "OK", nil
	case "PING":
		return "PONG", nil
	}
	panic("simulate: the model does not know the command " + cmd.Name)
}

func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

func (ks *Keyspace) set(key string, args []string) (any, *wire.ServerError) {
	e := Entry{Value: args[0]}
	var ifAbsent, ifPresent bool
	for opts := args[1:]; len(opts) > 0; {
		switch strings.ToUpper(opts[0]) {
		case "NX":
			ifAbsent, opts = true, opts[1:]
		case "XX":
			ifPresent, opts = true, opts[1:]
		case "PX", "EX":
			if len(opts) < 2 || e.Until != 0 {
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
				return nil, wire.Server("ERR invalid expire time in 'set' command")
			}
			e.Until, opts = ks.Millis()+n*unit, opts[2:]
		default:
			return nil, errSyntax
		}
	}
	if ifAbsent && ifPresent {
		return nil, errSyntax
	}
	old := ks.Find(key)
	if ifAbsent && old != nil || ifPresent && old == nil {
		return nil, nil
	}
	stored := e // allocated only here, since most are refused
	ks.Store(key, &stored)
	return "OK", nil
}

func (ks *Keyspace) setnx(key, value string) (any, *wire.ServerError) {
	if ks.Find(key) != nil {
		return int64(0), nil
	}
	ks.Store(key, &Entry{Value: value})
	return int64(1), nil
}

func (ks *Keyspace) get(key string) (any, *wire.ServerError) {
	switch e := ks.Find(key); {
	case e == nil:
		return nil, nil
	case !e.IsString():
		return nil, errWrongType
	default:
		return []byte(e.Value), nil
	}
}

func (ks *Keyspace) del(keys []string) int64 {
	n := int64(0)
	for _, k := range keys {
		if ks.Find(k) != nil {
			ks.remove(k)
			n++
		}
	}
	return n
}

func (ks *Keyspace) exists(keys []string) int64 {
	n := int64(0)
	for _, k := range keys {
		if ks.Find(k) != nil {
			n++
		}
	}
	return n
}

func (ks *Keyspace) pttl(key string) int64 {
	switch e := ks.Find(key); {
	case e == nil:
		return -2
	case e.Until == 0:
		return -1
	default:
		return e.Until - ks.Millis()
	}
}

func (ks *Keyspace) expire(key, arg string, unit int64) (any, *wire.ServerError) {
	n, err := strconv.ParseInt(arg, 10, 64)
	if err != nil {
		return nil, errNotInteger
	}
	e := ks.Find(key)
	switch {
	case e == nil:
		return int64(0), nil
	case n <= 0:
		delete(ks.Keys, key)
	default:
		e.Until = ks.Millis() + n*unit
	}
	return int64(1), nil
}

// scripts models the Lua scripts. The source of each script describes its arguments and its
// reply.
var scripts = map[*wire.Script]func(ks *Keyspace, keys, args []string) (any, *wire.ServerError){
	wire.ScriptAsk: (*Keyspace).ask,
	wire.ScriptExtend: func(ks *Keyspace, keys, args []string) (any, *wire.ServerError) {
		if n, err := ks.ours(keys[0], args[0]); n != 1 || err != nil {
			return reply(n, err)
		}
		return ks.lengthen(keys[0], args[1])
	},
	wire.ScriptExtendCached:  (*Keyspace).extendCached,
	wire.ScriptRelease:       (*Keyspace).release,
	wire.ScriptKeep:          (*Keyspace).keep,
	wire.ScriptFencedAcquire: (*Keyspace).fencedAcquire,
	wire.ScriptFencedRaise:   (*Keyspace).fencedRaise,
	wire.ScriptFencedExtend:  (*Keyspace).fencedExtend,
	wire.ScriptFencedRepair:  (*Keyspace).fencedRepair,
	wire.ScriptInherit:       (*Keyspace).inherit,
	wire.ScriptFair:          (*Keyspace).fair,
	wire.ScriptWrite:         rw((*Keyspace).write),
	wire.ScriptRead:          rw((*Keyspace).read),
	wire.ScriptWriteExtend:   rw((*Keyspace).writeExtend),
	wire.ScriptReadExtend:    rw((*Keyspace).readExtend),
	wire.ScriptWriteRepair:   rw((*Keyspace).writeRepair),
	wire.ScriptReadRepair:    rw((*Keyspace).readRepair),
	wire.ScriptRWRelease:     rw((*Keyspace).rwRelease),
	wire.ScriptMultiAsk:      multi((*Keyspace).multiAsk),
	wire.ScriptMultiExtend:   multi((*Keyspace).multiExtend),
	wire.ScriptMultiRaise:    multi((*Keyspace).multiRaise),
	wire.ScriptMultiRepair:   multi((*Keyspace).multiRepair),
	wire.ScriptMultiRelease:  multi((*Keyspace).multiRelease),
	wire.ScriptPermit:        permits((*Keyspace).permit),
	wire.ScriptPermitMove:    permits((*Keyspace).permitMove),
	wire.ScriptPermitExtend:  permits((*Keyspace).permitExtend),
	wire.ScriptPermitRelease: permits((*Keyspace).permitRelease),
	wire.ScriptPermitResize:  permits((*Keyspace).permitResize),
	wire.ScriptPermitRaise:   permits((*Keyspace).permitRaise),
	wire.ScriptLatchArrive:   (*Keyspace).noteArrival,
	wire.ScriptLatchCount:    (*Keyspace).countArrivals,
	wire.ScriptLatchRead:     (*Keyspace).tellArrivals,
	wire.ScriptLatchWrite:    (*Keyspace).learnArrivals,
	wire.ScriptProclaim:      (*Keyspace).proclaim,
	wire.ScriptLeader:        (*Keyspace).leader,
	wire.ScriptYield:         (*Keyspace).yield,
	wire.ScriptRequest:       (*Keyspace).request,
	wire.ScriptTransfer:      (*Keyspace).transfer,
	wire.ScriptMarker: func(ks *Keyspace, keys, args []string) (any, *wire.ServerError) {
		stored, err := ks.get(keys[0])
		if err != nil {
			return nil, err
		}
		marker := ""
		if stored != nil {
			marker = string(stored.([]byte))
		}
		us := ks.Now()
		if args[1] != "" && marker == args[0] {
			marker = args[1]
			if run, rest, _ := strings.Cut(marker, " "); strings.HasPrefix(rest, "0 ") {
				marker = run + " " + strconv.FormatInt(us, 10) + rest[1:]
			}
			ks.Store(keys[0], &Entry{Value: marker})
		}
		return []any{[]byte(marker), decimal(us / 1e6), decimal(us % 1e6), ks.Replication(), ks.offsets(keys[0], args)}, nil
	},
	wire.ScriptInspect: (*Keyspace).inspect,

	ScriptEnter: enter,
	ScriptLeave: leave,
	ScriptStay:  stay,
}

// Replication is what INFO replication says.
func (ks *Keyspace) Replication() []byte {
	switch {
	case ks.Replica:
		return []byte("role:slave\r\n")
	case ks.Origin == "":
		return []byte("role:master\r\n")
	}
	return []byte("role:master\r\nmaster_replid:" + ks.Origin + "\r\nmaster_replid2:1\r\n")
}

// ours returns 1 if the key has the value, 0 if it is absent, -1 if it has another.
func (ks *Keyspace) ours(key, value string) (int64, *wire.ServerError) {
	switch e := ks.Find(key); {
	case e == nil:
		return 0, nil
	case !e.IsString():
		return 0, errWrongType
	case e.Value == Kept+value:
		return 0, nil
	case e.Value != value:
		return -1, nil
	}
	return 1, nil
}

func reply(n int64, err *wire.ServerError) (any, *wire.ServerError) {
	if err != nil {
		return nil, err
	}
	return n, nil
}

// offsets reads what clients have written of the clock, and replaces it, as marker.lua does.
func (ks *Keyspace) offsets(marker string, args []string) any {
	if len(args) < 3 {
		return nil
	}
	key, seen := marker[:max(0, len(marker)-len("marker"))]+"clock", ""
	if stored, err := ks.get(key); err == nil && stored != nil {
		seen = string(stored.([]byte))
	}
	if seen == args[2] && args[3] != "" {
		ks.Store(key, &Entry{Value: args[3], Until: ks.Millis() + 604_800_000})
		seen = args[3]
	}
	return []byte(seen)
}
