package chaos

import (
	"errors"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// storage is what the locks protect: a Redis of its own, which nothing happens
// to. A register there is the list of all that was ever written to it; its
// value is the last element.
type storage struct {
	pool *redis.Pool
}

const storageTimeout = 10 * time.Second

func openStorage(addr string) *storage {
	return &storage{&redis.Pool{
		MaxIdle: 32,
		Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", addr, redis.DialConnectTimeout(storageTimeout),
				redis.DialReadTimeout(storageTimeout), redis.DialWriteTimeout(storageTimeout))
		},
	}}
}

// errStale: the storage has seen a higher fencing token.
var errStale = errors.New("overtaken")

// fence begins every script that a holder runs at the storage. The storage remembers
// the highest token that it has seen, and refuses lower ones. Without tokens it
// refuses no write.
const fence = `
local highest = tonumber(redis.call('get', KEYS[2]) or '0')
if tonumber(ARGV[1]) < highest then return redis.error_reply("STALE a higher token was seen") end
redis.call('set', KEYS[2], ARGV[1])
`

var (
	fencedRead  = redis.NewScript(2, fence+`return redis.call('lindex', KEYS[1], -1) or ''`)
	fencedWrite = redis.NewScript(2, fence+`return redis.call('rpush', KEYS[1], ARGV[2])`)
)

// read returns the last written value, for the holder of a token. The token 0 means
// no token.
func (s *storage) read(register string, token uint64) (id string, err error) {
	conn := s.pool.Get()
	defer conn.Close()
	entry, err := redis.String(fencedRead.Do(conn, register, register+":token", token))
	id, _, _ = strings.Cut(entry, " ")
	return id, orStale(err)
}

// write appends a value, and the value that its writer had read before.
func (s *storage) write(register, id, saw string, token uint64) error {
	conn := s.pool.Get()
	defer conn.Close()
	_, err := fencedWrite.Do(conn, register, register+":token", token, id+" "+saw)
	return orStale(err)
}

func orStale(err error) error {
	if err != nil && strings.HasPrefix(err.Error(), "STALE") {
		return errStale
	}
	return err
}

// written is one write to a register.
type written struct {
	id, saw string
}

// all returns every write to a register, in the order in which they were done.
func (s *storage) all(register string) ([]written, error) {
	conn := s.pool.Get()
	defer conn.Close()
	entries, err := redis.Strings(conn.Do("LRANGE", register, 0, -1))
	writes := make([]written, len(entries))
	for i, entry := range entries {
		writes[i].id, writes[i].saw, _ = strings.Cut(entry, " ")
	}
	return writes, err
}
