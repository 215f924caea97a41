package cli

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
)

// duration is one as Go writes it, in a text of the library.
var duration = regexp.MustCompile(`\b(?:[0-9]+(?:\.[0-9]+)?(?:h|ms|m|s|µs|ns))+\b`)

// alike returns a text without its durations: masters that give equal ones say the same.
func alike(said string) string { return duration.ReplaceAllString(said, "\x00") }

// together makes one text of the texts of several masters, which are alike. A duration
// that differs between the texts becomes a range.
func together(said []string) string {
	text := strings.Split(alike(said[0]), "\x00")
	var b strings.Builder
	for i, part := range text[:len(text)-1] {
		b.WriteString(part)
		var all []string
		for _, one := range said {
			all = append(all, duration.FindAllString(one, -1)[i])
		}
		least, most := slices.MinFunc(all, byLength), slices.MaxFunc(all, byLength)
		b.WriteString(least)
		if most != least {
			b.WriteString(" to " + most)
		}
	}
	b.WriteString(text[len(text)-1])
	return b.String()
}

// byLength compares durations that duration has found.
func byLength(a, b string) int {
	x, _ := time.ParseDuration(a)
	y, _ := time.ParseDuration(b)
	return cmp.Compare(x, y)
}
