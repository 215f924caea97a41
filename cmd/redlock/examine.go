package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node"
	"github.com/quorumlock/quorumlock/node/guard"
	"github.com/quorumlock/quorumlock/node/wire"
)

// facts are what can be learned of one master. A text is empty, and a number negative,
// if the master would not tell.
type facts struct {
	Node    string `json:"node"`
	Of      string `json:"of,omitempty"`    // the group of masters that --nodes gives it to
	Error   string `json:"error,omitempty"` // why nothing else is known
	Version string `json:"version,omitempty"`
	RunID   string `json:"run_id,omitempty"`
	Uptime  span   `json:"uptime_ms"`

	Replicas    int    `json:"replicas"`
	MinReplicas string `json:"min_replicas_to_write,omitempty"`
	InSync      int64  `json:"replicas_in_sync"` // of which it needs so many; -1: it needs none
	AppendOnly  string `json:"appendonly,omitempty"`
	AppendFsync string `json:"appendfsync,omitempty"`
	Save        string `json:"save,omitempty"`
	Trouble     string `json:"persistence_trouble,omitempty"` // the last write to disk failed
	StopWrites  string `json:"stop_writes_on_bgsave_error,omitempty"`

	Policy     string `json:"maxmemory_policy,omitempty"`
	MaxMemory  int64  `json:"maxmemory"`
	UsedMemory int64  `json:"used_memory"`

	ClockOffset span `json:"clock_offset_ms"` // its clock minus ours
	ClockError  span `json:"clock_error_ms"`  // by how much that may be wrong
	P50         span `json:"p50_ms"`
	P99         span `json:"p99_ms"`

	Quarantine span   `json:"quarantine_ms"` // for how long it does not vote
	Forgot     string `json:"forgot,omitempty"`
	NoMarker   bool   `json:"no_marker,omitempty"` // its key has something else
	Group      string `json:"group,omitempty"`     // of masters, as its marker has it
	group      guard.GroupID
	trace      trace // what clients have left there, if it does not vote
	inUse      bool  // so that no master beside it is new

	Denied  []string `json:"denied,omitempty"`  // commands, keys and channels that we may not use
	Limited []string `json:"limited,omitempty"` // the same, of what locks can do without
	Unseen  []string `json:"unseen,omitempty"`  // what the master would not tell
}

func (f *facts) clock() string {
	if f.ClockError <= 0 {
		return "?"
	}
	off := time.Duration(f.ClockOffset).Round(100 * time.Microsecond)
	if off == 0 {
		return "0ms"
	}
	return fmt.Sprintf("%+.1fms", float64(off)/float64(time.Millisecond))
}

func (f *facts) memory() string {
	switch {
	case f.UsedMemory < 0:
		return "?"
	case f.MaxMemory > 0:
		return fmt.Sprintf("%d%% of %dM", 100*f.UsedMemory/f.MaxMemory, f.MaxMemory>>20)
	}
	return fmt.Sprintf("%dM", max(1, f.UsedMemory>>20))
}

// span is a duration that JSON has in milliseconds.
type span time.Duration

func (s *span) UnmarshalJSON(b []byte) error {
	var ms float64
	err := json.Unmarshal(b, &ms)
	*s = span(ms * float64(time.Millisecond))
	return err
}

func (s span) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(s) / float64(time.Millisecond))
}

// roundTrips is how many round trips are measured.
const roundTrips = 100

// examine asks one master everything. It writes nothing there.
func examine(ctx context.Context, m *node.Master, prefix string, hold time.Duration, err error) facts {
	f := facts{Node: m.Addr(), Uptime: -1, Replicas: -1, MaxMemory: -1, UsedMemory: -1}
	if err != nil {
		f.fail(err)
		return f
	}
	s := m.Status()
	f.Version, f.RunID, f.Uptime = s.Version, s.RunID, span(s.Uptime)
	f.readInfo(ctx, m)
	f.readConfig(ctx, m)
	f.measure(ctx, m)
	if mem, err := recall(ctx, m, prefix, hold); err == nil {
		f.Quarantine, f.Forgot, f.group, f.trace, f.inUse = span(mem.rest), mem.why, mem.group, mem.trace, mem.inUse
		if f.group != (guard.GroupID{}) {
			f.Group = f.group.String()
		}
	} else if f.NoMarker = errors.Is(err, errNoMarker); !f.NoMarker {
		f.unseen("its marker")
	}
	f.askRights(ctx, m, prefix)
	f.tryRights(ctx, m, prefix)
	return f
}

func (f *facts) fail(err error) {
	if ne := new(wire.Error); errors.As(err, &ne) {
		err = ne.Err
	}
	f.Error = err.Error()
}

func (f *facts) unseen(what string) { f.Unseen = append(f.Unseen, what) }

func (f *facts) readInfo(ctx context.Context, m *node.Master) {
	reply, err := ask(ctx, m, "INFO")
	if err != nil {
		f.unseen("INFO")
		return
	}
	info := map[string]string{}
	for line := range strings.Lines(text(reply)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	f.Replicas = int(number(info["connected_slaves"]))
	f.InSync = number(info["min_slaves_good_slaves"])
	f.UsedMemory = number(info["used_memory"])
	f.MaxMemory = number(info["maxmemory"])
	f.Policy = info["maxmemory_policy"]
	for _, field := range []string{"aof_last_write_status", "rdb_last_bgsave_status"} {
		if info[field] == "err" {
			f.Trouble = field
		}
	}
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func (f *facts) readConfig(ctx context.Context, m *node.Master) {
	// In this order, so that all masters which do not tell are one finding.
	for _, one := range []struct {
		name string
		into *string
	}{{"appendonly", &f.AppendOnly}, {"appendfsync", &f.AppendFsync}, {"save", &f.Save}, {"min-replicas-to-write", &f.MinReplicas}, {"stop-writes-on-bgsave-error", &f.StopWrites}} {
		reply, err := ask(ctx, m, "CONFIG", "GET", one.name)
		if pair := texts(reply); err == nil && len(pair) == 2 {
			*one.into = pair[1]
			continue
		}
		f.unseen("CONFIG GET " + one.name)
	}
}

// measure asks for the time, again and again. The quickest answer bounds the
// clock's offset best.
func (f *facts) measure(ctx context.Context, m *node.Master) {
	var took []time.Duration
	for range roundTrips {
		asked := time.Now()
		reply, err := ask(ctx, m, "TIME")
		rtt := time.Since(asked)
		if err != nil {
			f.unseen("TIME")
			return
		}
		if len(took) == 0 || rtt < slices.Min(took) {
			if now := texts(reply); len(now) == 2 {
				theirs := time.Unix(number(now[0]), number(now[1])*1000)
				f.ClockOffset, f.ClockError = span(theirs.Sub(asked.Add(rtt/2))), span(rtt/2)
			}
		}
		took = append(took, rtt)
	}
	slices.Sort(took)
	f.P50, f.P99 = span(took[len(took)/2]), span(took[len(took)*99/100])
}

// target returns the key, or the channel, that a command is about.
func target(command []string) string {
	switch {
	case strings.HasPrefix(command[0], "EVAL"):
		return command[3]
	case len(command) > 1:
		return command[1]
	}
	return ""
}

// needed are the commands that every lock needs. Without the others
// waiting is slower, or a guard sees less.
var needed = []string{"SET", "GET", "MGET", "DEL", "PEXPIRE", "PTTL", "EVALSHA"}

// tryRights runs every command that a lock runs, in a form that changes nothing: on
// keys that do not exist, and without making any.
func (f *facts) tryRights(ctx context.Context, m *node.Master, prefix string) {
	name := "doctor-" + rand.Text()
	lock, queue, entries := prefix+name, prefix+"redlock:queue:"+name, prefix+"redlock:wait:"+name
	for _, command := range [][]string{
		{"SET", lock, "x", "XX", "PX", "1"},
		{"GET", lock}, {"MGET", lock}, {"EXISTS", lock}, {"PTTL", lock}, {"PEXPIRE", lock, "1"}, {"DEL", lock},
		{"EVALSHA", strings.Repeat("0", 40), "1", lock}, {"EVAL", "return 1", "1", lock}, {"SCRIPT", "LOAD", "return 1"},
		{"GET", wire.MarkerKey(prefix)}, {"TIME"}, {"ROLE"}, {"INFO", "server"},
		{"ZADD", queue, "XX", "1", "x"}, {"ZRANGE", queue, "0", "0"}, {"ZREM", queue, "x"},
		{"HSET", entries, "a field without", "its", "value"}, {"HGET", entries, "x"}, {"HDEL", entries, "x"},
		{"PUBLISH", entries, ""}, {"PUBSUB", "NUMSUB", entries},
		{"ZSCORE", queue, "x"}, {"ZCARD", queue}, {"ZRANGEBYSCORE", queue, "0", "0"},
		{"HEXISTS", entries, "x"}, {"HVALS", entries}, {"HMGET", entries, "x"},
		{"SMEMBERS", queue}, {"PING"},
		// Behind all others: it leaves nothing at the master, but this connection is for
		// messages from then on. To unsubscribe from what one is not subscribed to is
		// answered all the same.
		{"UNSUBSCRIBE", entries}, {"SUBSCRIBE", entries},
	} {
		_, err := ask(ctx, m, command[0], command[1:]...)
		refusal := new(wire.ServerError)
		if !errors.As(err, &refusal) || refusal.Code != "NOPERM" {
			continue
		}
		f.refused(command, refusal.Message, strings.ReplaceAll(target(command), name, "*"))
	}
}

// askRights asks for a right that cannot be tried without making a key. Few users may
// ask, and only Redis 7 and later answers; before Redis 6 all users may do everything.
func (f *facts) askRights(ctx context.Context, m *node.Master, prefix string) {
	const needs = "whether SADD is allowed, which latches need"
	user, err := ask(ctx, m, "ACL", "WHOAMI")
	if refusal := new(wire.ServerError); errors.As(err, &refusal) && strings.Contains(refusal.Message, "unknown command") {
		return
	}
	if err != nil {
		f.unseen(needs)
		return
	}
	for _, one := range [][2]string{{"SADD", "latch:"}, {"SET", "arrivals:"}} {
		key := prefix + "redlock:" + one[1]
		said, err := ask(ctx, m, "ACL", "DRYRUN", text(user), one[0], key+":doctor", "x")
		switch why := text(said); {
		case err != nil:
			f.unseen(needs)
			return
		case strings.Contains(why, "command"):
			if one[0] != "SET" { // which was tried
				f.Limited = append(f.Limited, one[0])
			}
		case why != "OK":
			f.Limited = append(f.Limited, theKeys+key+"*")
		}
	}
}

// What a missing right is to, if it is not to a command.
const (
	theKeys     = "the keys "
	theChannels = "the channels "
)

// refused notes a missing right: to a command, or to its key or channel, which Redis
// does not name.
func (f *facts) refused(command []string, why, about string) {
	said, list := command[0], &f.Limited
	switch {
	case strings.Contains(why, "command"):
		if slices.Contains(needed, command[0]) {
			list = &f.Denied
		}
		if said == "SCRIPT" || said == "PUBSUB" {
			said += " " + command[1]
		}
	case strings.Contains(why, "channel"):
		said = theChannels + about
	default:
		said, list = theKeys+about, &f.Denied // a release needs all of them
	}
	if !slices.Contains(*list, said) {
		*list = append(*list, said)
	}
}
