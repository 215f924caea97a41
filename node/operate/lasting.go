package operate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/node/wire"
)

// lasting is the data that masters keep for longer than a lock, and on which a promise
// rests: fencing counters, the sizes of semaphores, and the arrivals at latches. A majority
// of the masters knows every confirmed part of it. So when a group moves to other masters,
// these must learn it from the old ones before they vote, or tokens go back, and a Resize
// and arrivals are undone (S51).
//
// What several masters know is joined: the highest counter, the last Resize, and all
// arrivals. To learn it twice changes nothing.
type lasting struct {
	counters map[string]uint64 // by key
	sizes    map[string]size   // by key
	arrivals map[string]map[string]bool
}

// size is how many permits there are, by the Resize of that order.
type size struct{ permits, order int64 }

// less is the order in which permits.lua has one Resize replace another.
func (s size) less(other size) bool {
	return s.order < other.order || s.order == other.order && s.permits < other.permits
}

// lastingLife is how long this is kept after its last use.
const lastingLife = 7 * 24 * time.Hour

func newLasting() *lasting {
	return &lasting{map[string]uint64{}, map[string]size{}, map[string]map[string]bool{}}
}

// lastingWords are what stands in the keys of it.
var lastingWords = []string{"token", "permits", "latch"}

// learn reads what a master knows.
func (l *lasting) learn(s *site) error {
	return s.scan(reservedKeys+"*", func(keys []string) error {
		for _, word := range lastingWords {
			if err := l.learnPage(s, word, slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
				return s.word(key) != word
			})); err != nil {
				return err
			}
		}
		return nil
	})
}

// word returns the word in a key of this library that says what the key is.
func (s *site) word(key string) string {
	name, ours := strings.CutPrefix(key, s.config.KeyPrefix+reservedKeys)
	word, _, more := strings.Cut(name, ":")
	if !ours || !more {
		return ""
	}
	return word
}

func (l *lasting) learnPage(s *site, word string, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	if word == "latch" {
		for _, key := range keys {
			if err := l.learnArrivals(s, key); err != nil {
				return fmt.Errorf("%q cannot be read: %w", key, err)
			}
		}
		return nil
	}
	questions := make([]*wire.Command, len(keys))
	for i, key := range keys {
		questions[i] = &wire.Command{Op: wire.OpRead, Name: "GET", Keys: []string{key}}
	}
	answers, err := s.dialogue.Ask(questions...)
	if err != nil {
		return err
	}
	for i, a := range answers {
		if err := errors.Join(refused(a), l.put(word, keys[i], wire.Text(a.Value))); err != nil {
			return fmt.Errorf("%q cannot be read: %w", keys[i], err)
		}
	}
	return nil
}

// put joins the stored form of a key; empty: the key has expired since it was found.
func (l *lasting) put(word, key, stored string) error {
	if stored == "" {
		return nil
	}
	if word == "token" {
		n, err := strconv.ParseUint(stored, 10, 64)
		l.counters[key] = max(l.counters[key], n)
		return err
	}
	permits, order, _ := strings.Cut(stored, " ")
	var known size
	var err error
	if known.permits, err = strconv.ParseInt(permits, 10, 64); err == nil && order != "" {
		known.order, err = strconv.ParseInt(order, 10, 64)
	}
	if l.sizes[key].less(known) {
		l.sizes[key] = known
	}
	return err
}

func (l *lasting) learnArrivals(s *site, key string) error {
	for cursor := "0"; ; {
		a, err := s.ask(&wire.Command{Op: wire.OpRead, Name: "SSCAN", Keys: []string{key}, Args: []string{cursor, "COUNT", "1000"}})
		if err != nil {
			return err
		}
		var ids []string
		if cursor, ids, err = wire.PageOf(a); err != nil {
			return err
		}
		if l.arrivals[key] == nil {
			l.arrivals[key] = map[string]bool{}
		}
		for _, id := range ids {
			l.arrivals[key][id] = true
		}
		if cursor == "0" {
			return nil
		}
	}
}

// teach has a master learn all of it.
func (l *lasting) teach(s *site) error {
	lessons := append(l.raises(), l.resizes(s)...)
	lessons = append(lessons, l.arrive(s)...)
	for batch := range slices.Chunk(lessons, 32) {
		answers, err := s.dialogue.Ask(batch...)
		if err != nil {
			return err
		}
		for i, a := range answers {
			// A master that knows of a later Resize says so.
			if refusal := a.Refused(); refusal != nil && refusal.Code != "PERMITS" {
				return fmt.Errorf("does not take over %q: %w", batch[i].Keys[0], refusal)
			}
		}
	}
	return nil
}

// raises are the commands by which a master learns the counters.
func (l *lasting) raises() (cmds []*wire.Command) {
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(l.counters)), 500) {
		cmd := &wire.Command{Op: wire.OpRepair, Script: wire.ScriptInherit, Keys: keys}
		for _, key := range keys {
			cmd.Args = append(cmd.Args, strconv.FormatUint(l.counters[key], 10))
		}
		cmds = append(cmds, cmd)
	}
	return cmds
}

// resizes are the commands by which a master learns the sizes of semaphores.
func (l *lasting) resizes(s *site) (cmds []*wire.Command) {
	for _, key := range slices.Sorted(maps.Keys(l.sizes)) {
		name := strings.TrimPrefix(key, s.config.KeyPrefix+reservedKeys+"permits:")
		cmds = append(cmds, wire.PermitsOf(s.config.KeyPrefix, name).Resize(int(l.sizes[key].permits), l.sizes[key].order))
	}
	return cmds
}

// arrive returns the commands by which a master learns the arrivals.
func (l *lasting) arrive(s *site) (cmds []*wire.Command) {
	for _, key := range slices.Sorted(maps.Keys(l.arrivals)) {
		generation, name, _ := strings.Cut(strings.TrimPrefix(key, s.config.KeyPrefix+reservedKeys+"latch:"), ":")
		latch := wire.LatchOf(s.config.KeyPrefix, name, generation)
		for ids := range slices.Chunk(slices.Sorted(maps.Keys(l.arrivals[key])), 1000) {
			cmds = append(cmds, latch.Write(ids, lastingLife))
		}
	}
	return cmds
}
