// Package fencetest checks a resource that refuses the writes of old lock holders by their
// fencing tokens: in every order of two holders' writes, and with one write stopped at every
// point of the other.
package fencetest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Resource is what a test writes to: a row, a file, a service. It begins unused.
type Resource struct {
	// Write writes value for the holder with that token. An error says that nothing was
	// written. Write calls between wherever the write of another holder could come in
	// between, for example after the check of the token and before the commit; never, if it
	// is one step. Run calls Write from several goroutines, so it must not end the test.
	Write func(token uint64, value string, between func()) error
	// Read returns the last value written. Before the first write it may return anything.
	Read func() (string, error)
}

// holders are tokens of an old holder and a new one. A resource that compares tokens as text
// fails with the second pair; a resource that compares them as floating point, with the third.
var holders = [][2]uint64{{1, 2}, {9, 10}, {1 << 53, 1<<53 + 1}}

const writes = 3 // of each holder, in turn

// Run fails the test unless
//
//   - a holder's writes are accepted until a newer holder has written, and refused from then on;
//   - a refused write changes nothing;
//   - the new holder's writes are accepted, and stay;
//   - token 0, which stands for a lock that is not fenced, is refused.
//
// It tries every order of three writes of each of two holders, and every order of the
// stretches between the points of one write of each. The older holder never overtakes the
// newer, on a new resource and on a resource that has been used before. open is
// called for every order and returns a new resource, for example one of another name.
//
// A write that waits for the other is left waiting for a moment, and the other goes on. No
// verdict depends on how long that is.
func Run(t testing.TB, open func() Resource) {
	t.Helper()
	run(t, open, patience)
}

func run(t testing.TB, open func() Resource, patience time.Duration) {
	t.Helper()
	for _, err := range []error{inTurn(open), sideBySide(open, patience), unfenced(open)} {
		if err != nil {
			t.Error(err)
		}
	}
}

// inTurn has two holders write one after the other, in every order.
func inTurn(open func() Resource) error {
	for _, tokens := range holders {
		for _, order := range orders(writes, writes) {
			if err := writeIn(order, tokens, open()); err != nil {
				return fmt.Errorf("writes with tokens %s: %w", named(order, tokens), err)
			}
		}
	}
	return nil
}

func writeIn(order []int, tokens [2]uint64, r Resource) error {
	newest, last := 0, "" // the newest holder that wrote; the last accepted value
	for i, holder := range order {
		value := fmt.Sprintf("write %d", i+1)
		err := r.Write(tokens[holder], value, func() {})
		newest = max(newest, holder)
		switch refuse := holder < newest; {
		case refuse && err == nil:
			return fmt.Errorf("%s is accepted, and a newer holder wrote before it", value)
		case !refuse && err != nil:
			return fmt.Errorf("%s is refused, and no newer holder wrote before it: %w", value, err)
		case !refuse:
			last = value
		}
		if err := reads(r, last); err != nil {
			return fmt.Errorf("after %s: %w", value, err)
		}
	}
	return nil
}

// unfenced writes without a token.
func unfenced(open func() Resource) error {
	r := open()
	for _, when := range []string{"first of all", "after token 1"} {
		if r.Write(0, "unfenced", func() {}) == nil {
			return fmt.Errorf("a write with token 0, %s, is accepted", when)
		}
		if err := r.Write(1, when, func() {}); err != nil {
			return fmt.Errorf("a write with token 1 is refused after token 0 was: %w", err)
		}
	}
	return nil
}

func reads(r Resource, want string) error {
	switch got, err := r.Read(); {
	case err != nil:
		return fmt.Errorf("read: %w", err)
	case got != want:
		return fmt.Errorf("%q is read, want %q", got, want)
	}
	return nil
}

// named is the order as tokens.
func named(order []int, tokens [2]uint64) string {
	words := make([]string, len(order))
	for i, holder := range order {
		words[i] = fmt.Sprint(tokens[holder])
	}
	return strings.Join(words, ", ")
}

// orders returns every order of a zeros and b ones.
func orders(a, b int) [][]int {
	if a == 0 && b == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for first, left := range [2]int{a, b} {
		if left == 0 {
			continue
		}
		for _, rest := range orders(a-1+first, b-first) {
			all = append(all, append([]int{first}, rest...))
		}
	}
	return all
}
