package bench

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Limit asks the masters for pairs in deep pipelines over one bare connection
// each: what the servers can do at most on this
// machine, whoever asks.
func Limit() Workload {
	return Workload{
		Name: "limit", Title: "pairs in bare pipelines",
		Run: func(ctx context.Context, t *Trial) error { return t.limit() },
	}
}

// Bare is the subject of Limit.
func Bare(nodes int) Subject { return Subject{Name: on("bare pipeline", nodes), Nodes: nodes} }

// depth is how many pairs are sent before the answers are read.
const depth = 500

func (t *Trial) limit() error {
	from := t.read()
	var all sync.WaitGroup
	pairs, errs := make([]int64, len(t.Masters)), make([]error, len(t.Masters))
	for i, m := range t.Masters {
		all.Go(func() { pairs[i], errs[i] = t.pump(m.URL()) })
	}
	all.Wait()
	to := t.read()
	// A quorum lock is as fast as the slowest master.
	least := pairs[0]
	for i, n := range pairs {
		if errs[i] != nil {
			return errs[i]
		}
		least = min(least, n)
	}
	t.cost(from, to, least)
	return nil
}

// pump sends batches of pairs for the trial's length and returns how many were
// answered.
func (t *Trial) pump(url string) (pairs int64, err error) {
	addr := strings.TrimPrefix(url, "redis://")
	if strings.ContainsAny(addr, "/@") {
		return 0, fmt.Errorf("not measured: only with plain TCP addresses, not %s", url)
	}
	conn, err := dial(url)
	if err != nil {
		return 0, err
	}
	err = releaseScript.Load(conn)
	conn.Close()
	if err != nil {
		return 0, err
	}
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer raw.Close()
	batch := []byte(strings.Repeat(t.onePair(), depth))
	answers := bufio.NewReaderSize(raw, 1<<16)
	for end := time.Now().Add(t.Length); time.Now().Before(end); pairs += depth {
		if _, err := raw.Write(batch); err != nil {
			return pairs, err
		}
		for range 2 * depth {
			line, err := answers.ReadSlice('\n')
			if err != nil {
				return pairs, err
			}
			if line[0] == '-' {
				return pairs, fmt.Errorf("%s answered %q", url, line)
			}
		}
	}
	return pairs, nil
}

// onePair is the text of SET NX PX and the release script.
func (t *Trial) onePair() string {
	encode := func(args ...string) string {
		text := fmt.Sprintf("*%d\r\n", len(args))
		for _, a := range args {
			text += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
		}
		return text
	}
	key := t.Prefix + "one"
	return encode("SET", key, redigoValue, "NX", "PX", "30000") +
		encode("EVALSHA", releaseScript.Hash(), "1", key, redigoValue)
}
