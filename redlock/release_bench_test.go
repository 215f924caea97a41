package redlock_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/quorumlock/quorumlock/internal/redistest"
	"github.com/quorumlock/quorumlock/redlock"
)

// BenchmarkPairRelease is BenchmarkPair for a caller who does not wait for the
// release to be confirmed.
func BenchmarkPairRelease(b *testing.B) {
	servers := redistest.StartN(b, 5)
	for _, callers := range []int{1, 64} {
		b.Run("redlock-5/callers="+strconv.Itoa(callers), func(b *testing.B) {
			c, err := redlock.Dial(context.Background(), redistest.URLs(servers), redlock.WithRestartGuard(0))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { c.Close() })
			mutexes := make([]*redlock.Mutex, callers)
			for i := range mutexes {
				mutexes[i] = c.Mutex("bench-" + strconv.Itoa(i))
			}
			benchPairs(b, callers, func(caller int) error {
				lease, err := mutexes[caller].Lock(context.Background())
				if err != nil {
					return err
				}
				lease.Release()
				return nil
			})
		})
	}
}
