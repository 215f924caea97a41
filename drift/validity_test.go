package drift

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestValidity_is_TTL_less_elapsed_less_drift(t *testing.T) {
	for _, c := range []struct {
		name         string
		ttl, elapsed time.Duration
		factor       float64
		want         time.Duration
	}{
		{"the specification's example", 10 * time.Second, 0, 0.01, 9898 * ms},
		{"elapsed time counts in full", 10 * time.Second, 3 * time.Second, 0.01, 6898 * ms},
		{"no drift still leaves the expiry precision", time.Second, 0, 0, 998 * ms},
		{"the shortest TTL", 10 * ms, 0, 0.01, 7900 * time.Microsecond},
		{"all of it is gone", time.Second, 988 * ms, 0.01, 0},
		{"more than all of it is gone", time.Second, 2 * time.Second, 0.01, -1012 * ms},
		{"S11: a clock that stepped back gives nothing away", time.Second, -time.Hour, 0.01, 988 * ms},
		{"a zero TTL is worth less than nothing", 0, 0, 0.01, -2 * ms},
		{"a clock at twice the rate", 10 * time.Second, 0, 0.5, 4998 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Validity(c.ttl, c.elapsed, c.factor); got != c.want {
				t.Errorf("Validity(%v, %v, %v) = %v, want %v", c.ttl, c.elapsed, c.factor, got, c.want)
			}
		})
	}
}

func TestBudget_is_never_negative(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		0:           0,
		-time.Hour:  0,
		ms:          0,
		2 * ms:      0,
		time.Second: 988 * ms,
	} {
		if got := Budget(ttl, DefaultFactor); got != want {
			t.Errorf("Budget(%v) = %v, want %v", ttl, got, want)
		}
	}
}

// A node whose clock runs fast by the whole factor, and that rounds to
// milliseconds, keeps the key at least as long as the client relies on it.
func TestS10_no_validity_outlives_the_key_of_a_fast_node(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ttl := time.Duration(rapid.Int64Range(int64(10*ms), int64(24*time.Hour)).Draw(t, "ttl"))
		factor := rapid.Float64Range(0, 0.5).Draw(t, "factor")

		keyLives := time.Duration(float64(ttl.Truncate(ms)) / (1 + factor))

		if relied := Budget(ttl, factor); relied > keyLives {
			t.Fatalf("ttl %v, factor %v: relied on for %v, key lives %v", ttl, factor, relied, keyLives)
		}
	})
}

func TestCheck_factor_refuses_what_is_no_share(t *testing.T) {
	for _, f := range []float64{-0.01, 1, 2, math.NaN(), math.Inf(1)} {
		if CheckFactor(f) == nil {
			t.Errorf("CheckFactor(%v) = nil, want an error", f)
		}
	}
	for _, f := range []float64{0, 0.01, 0.99} {
		if err := CheckFactor(f); err != nil {
			t.Errorf("CheckFactor(%v) = %v, want nil", f, err)
		}
	}
}
