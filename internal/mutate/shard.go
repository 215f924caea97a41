package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// shard is the i-th of n parts of the list, from 1. Its breaks are n apart, so
// that every part has some of every class.
type shard struct{ i, n int }

func (s *shard) String() string { return fmt.Sprintf("%d/%d", s.i, s.n) }

// Set implements flag.Value.
func (s *shard) Set(text string) error {
	first, second, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(second)
	if err != nil || n < 1 {
		return fmt.Errorf("%q: must be i/n with n from 1, or today/n", text)
	}
	i := time.Now().YearDay()%n + 1
	if first != "today" {
		i, err = strconv.Atoi(first)
	}
	if err != nil || i < 1 || i > n {
		return fmt.Errorf("%q: must be i/n with i from 1 to n, or today/n", text)
	}
	*s = shard{i, n}
	return nil
}

func (s shard) of(all []*Break) []*Break {
	var part []*Break
	for i := s.i - 1; i < len(all); i += s.n {
		part = append(part, all[i])
	}
	return part
}
