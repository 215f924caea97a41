package node

import "hash/maphash"

// sieve distinguishes most keys that were not added to it from added keys, without
// looking at each: every command is compared with all that it must not pass. The
// zero sieve is empty.
type sieve [8]uint64

var sieveSeed = maphash.MakeSeed()

func (s *sieve) add(key string) {
	word, bit := place(key)
	s[word] |= bit
}

// mayHave is true of every key that was added, and of few others.
func (s *sieve) mayHave(key string) bool {
	word, bit := place(key)
	return s[word]&bit != 0
}

func place(key string) (word, bit uint64) {
	h := maphash.String(sieveSeed, key)
	return h >> 6 % 8, 1 << (h % 64)
}
