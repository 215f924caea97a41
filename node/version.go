package node

import (
	"fmt"

	"github.com/quorumlock/quorumlock/node/wire"
)

// oldest are the oldest servers that the tests run on. A server that tells both versions,
// as Valkey does for the sake of Redis clients, is judged by the first.
var oldest = []struct {
	server, field string
	major, minor  int
}{
	{"Valkey", "valkey_version", 7, 2},
	{"Redis", "redis_version", 6, 2},
}

// tooOld returns ErrTooOld, with the name and the version of the server, if INFO shows a
// version that is too old. A server that hides its version is accepted.
func tooOld(info string) error {
	for _, o := range oldest {
		version := wire.InfoField(info, o.field)
		var major, minor int
		if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
			continue
		}
		if major < o.major || major == o.major && minor < o.minor {
			return fmt.Errorf("%w: it runs %s %s, and %s %d.%d or later is needed", ErrTooOld, o.server, wire.Printable(version), o.server, o.major, o.minor)
		}
		return nil
	}
	return nil
}
