package wire

import "strings"

// ReadReplication reads INFO replication. An empty text says nothing.
func ReadReplication(info string) (replica bool, promotion string) {
	role := InfoField(info, "role")
	if before := InfoField(info, "master_replid2"); strings.Trim(before, "0") != "" {
		promotion = InfoField(info, "master_replid")
	}
	return role != "" && role != "master", promotion
}

// InfoField returns a field of an INFO reply, or the empty string.
func InfoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Text returns a reply that is text.
func Text(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	}
	return ""
}
