package main

import (
	"testing"
)

func TestPermits_are_named_or_counted(t *testing.T) {
	for want, permits := range map[string][]int{
		"permit 3":           {3},
		"permits 1 and 2":    {1, 2},
		"permits 0, 1 and 2": {0, 1, 2},
		"permits 99 and 98":  {99, 98},
		"5 permits":          {1, 2, 3, 4, 5},
	} {
		if got := slots(permits); got != want {
			t.Errorf("%v: %q, want %q", permits, got, want)
		}
	}
}
