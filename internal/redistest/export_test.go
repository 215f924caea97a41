package redistest

import "github.com/quorumlock/quorumlock/internal/loopback"

// OnReserve calls f with the address of every port that was reserved, before a
// server listens there.
func OnReserve(f func(addr string)) Option {
	return func(c *config) {
		c.reserve = func() (*loopback.Port, error) {
			port, err := loopback.Reserve()
			if err == nil {
				f(port.Addr())
			}
			return port, err
		}
	}
}
