package simulate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quorumlock/quorumlock/simulate"
)

func TestThe_report_of_many_schedules_fits_eighty_columns(t *testing.T) {
	r, err := simulate.Run(simulate.Config{Seeds: 1, Swarm: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Stats
	s.Acquisitions, s.Calls, s.Renewals, s.Losses, s.Events = 16_068_000, 22_488_300, 19_614_000, 1_158_100, 900_000_000
	for kind := range s.Faults {
		s.Faults[kind] = 9_999_999
	}
	var table strings.Builder

	err = r.WriteText(&table)

	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
