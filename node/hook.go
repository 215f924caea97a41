package node

import "github.com/quorumlock/quorumlock/internal/seam"

func init() {
	seam.OpenMaster = func(addr string, config any, on seam.Threads) (any, error) {
		return openOn(addr, config.(Config), on)
	}
}
