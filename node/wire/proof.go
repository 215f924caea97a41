package wire

import (
	"strconv"
	"strings"
	"time"
)

// Proof is what a master shows with a message: its marker, and what its clock reads.
func Proof(marker string, at time.Time) string {
	return marker + "\t" + strconv.FormatInt(at.Unix(), 10) + " " + strconv.Itoa(at.Nanosecond()/1000)
}

// ParseProof reads a Proof. If the time is missing or cannot be read, at is zero.
func ParseProof(proof string) (marker string, at time.Time) {
	marker, clock, _ := strings.Cut(proof, "\t")
	seconds, micros, _ := strings.Cut(clock, " ")
	return marker, timeOf(seconds, micros)
}

// timeOf reads the answer to TIME; zero: that is none.
func timeOf(seconds, micros string) time.Time {
	s, err1 := strconv.ParseInt(seconds, 10, 64)
	us, err2 := strconv.ParseInt(micros, 10, 64)
	if err1 != nil || err2 != nil {
		return time.Time{}
	}
	return time.Unix(s, us*1000).UTC()
}

// MarkerKey is the key of the marker among the keys with the given prefix. No
// lock may have that name.
func MarkerKey(prefix string) string {
	return prefix + MarkerName
}

const MarkerName = "redlock:marker"
