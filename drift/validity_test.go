package drift

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestBudget_is_TTL_less_drift_and_never_negative(t *testing.T) {
	for _, c := range []struct {
		name   string
		ttl    time.Duration
		factor float64
		want   time.Duration
	}{
		{"the specification's example", 10 * time.Second, 0.01, 9898 * ms},
		{"no drift still leaves the expiry precision", time.Second, 0, 998 * ms},
		{"the shortest TTL", 10 * ms, 0.01, 7900 * time.Microsecond},
		{"a clock at twice the rate", 10 * time.Second, 0.5, 4998 * ms},
		{"nothing but expiry precision", 2 * ms, 0, 0},
		{"no TTL", 0, 0.01, 0},
		{"a TTL below zero", -time.Hour, 0.01, 0},
	} {
		if got := Budget(c.ttl, c.factor); got != c.want {
			t.Errorf("%s: Budget(%v, %v) = %v, want %v", c.name, c.ttl, c.factor, got, c.want)
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

// S62: what stays unnoticed between two looks grows with the drift factor.
func TestS62_unnoticed_by_the_drift_factor(t *testing.T) {
	for factor, want := range map[float64]time.Duration{0: 20 * ms, 0.01: 20 * ms, 0.02: 35 * ms, 0.1: 155 * ms} {
		if got := UnnoticedBy(factor); got != want {
			t.Errorf("by a factor of %v: %v, want %v", factor, got, want)
		}
	}
}

// Beyond the longest TTL clocks come apart by a twentieth of the factor.
func TestDrift_of_two_clocks(t *testing.T) {
	for passed, want := range map[time.Duration]time.Duration{0: 0, 10 * time.Second: 100 * ms, 30 * time.Second: 300 * ms, 230 * time.Second: 400 * ms} {
		if got := Drift(passed, 30*time.Second, 0.01); got != want {
			t.Errorf("over %v: %v, want %v", passed, got, want)
		}
	}
}
