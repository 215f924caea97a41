package node

import "github.com/quorumlock/quorumlock/node/wire"

// EvidenceOf reads the answer to a look at a server.
func EvidenceOf(host wire.Host, r wire.Reply) Evidence {
	e := Evidence{RunID: host.RunID, Uptime: host.Uptime}
	seen, ok := wire.SeenOf(r)
	if !ok {
		e.Blind, e.Secret = true, true
		return e
	}
	marker, err := ParseMarker(seen.Marker)
	e.Marker, e.Blind = marker, err != nil // another program's key: to be left alone
	e.Replica, e.Promotion = seen.Replica, seen.Promotion
	e.Time, e.Offsets, e.Secret = seen.Time, seen.Offsets, seen.Secret
	return e
}
