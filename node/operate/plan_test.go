package operate

import (
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/internal/spread"
)

func TestToward_is_the_next_map_by_which_names_move(t *testing.T) {
	for _, test := range []struct{ now, over, want string }{
		{"", "b,a", "1:>a,b"},
		{"2:a", "b,a", "3:a>a,b"},
		{"2:a,b", "b,a", "2:a,b"},                     // nothing is to do
		{"3:a>a,b", "b,a", "3:a>a,b"},                 // was not ended
		{"3:a>a,b", "a", "moving to the groups a, b"}, // by another operator
	} {
		now, err := spread.Parse(test.now)
		if err != nil {
			t.Fatal(err)
		}
		got, err := toward(now, strings.Split(test.over, ","))
		switch {
		case err != nil && !strings.Contains(err.Error(), test.want):
			t.Errorf("from %q to %s: %v, want %s", test.now, test.over, err, test.want)
		case err == nil && got.String() != test.want:
			t.Errorf("from %q to %s: %q, want %q", test.now, test.over, got, test.want)
		}
	}
}
