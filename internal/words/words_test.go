package words

import "testing"

func TestNumbers_have_commas(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestOne_has_no_plural(t *testing.T) {
	for n, want := range map[int]string{0: "0 calls", 1: "1 call", 2: "2 calls", 4096: "4,096 calls"} {
		if got := Counted(n, "call"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
