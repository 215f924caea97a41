package wire

import "strconv"

// Append appends cmd as Redis reads it: an array of bulk strings. A
// script goes by its hash, or by its source if by is BySource.
func Append(b []byte, cmd *Command, by Form) []byte {
	if cmd.Script == nil {
		b = appendLength(b, '*', 1+len(cmd.Keys)+len(cmd.Args))
		b = appendBulk(b, cmd.Name)
	} else {
		b = appendLength(b, '*', 3+len(cmd.Keys)+len(cmd.Args))
		if by == BySource {
			b = appendBulk(b, "EVAL")
			b = appendBulk(b, cmd.Script.Source)
		} else {
			b = appendBulk(b, "EVALSHA")
			b = appendBulk(b, cmd.Script.SHA)
		}
		b = appendInt(b, len(cmd.Keys))
	}
	for _, key := range cmd.Keys {
		b = appendBulk(b, key)
	}
	for _, arg := range cmd.Args {
		b = appendBulk(b, arg)
	}
	return b
}

// Size returns for how many bytes Append needs room, or a few more.
func Size(cmd *Command, by Form) int {
	const frame = 24 // of a bulk string
	n := 4*frame + len(cmd.Name)
	if cmd.Script != nil && by == BySource {
		n += len(cmd.Script.Source)
	}
	for _, key := range cmd.Keys {
		n += frame + len(key)
	}
	for _, arg := range cmd.Args {
		n += frame + len(arg)
	}
	return n
}

// Form is how a script is named in a request.
type Form uint8

const (
	ByHash Form = iota
	BySource
)

func appendBulk(b []byte, s string) []byte {
	b = appendLength(b, '$', len(s))
	b = append(b, s...)
	return append(b, '\r', '\n')
}

func appendInt(b []byte, n int) []byte {
	var digits [20]byte
	return appendBulk(b, string(strconv.AppendInt(digits[:0], int64(n), 10)))
}

func appendLength(b []byte, kind byte, n int) []byte {
	switch { // as good as always one of these
	case n < 10:
		return append(b, kind, '0'+byte(n), '\r', '\n')
	case n < 100:
		return append(b, kind, '0'+byte(n/10), '0'+byte(n%10), '\r', '\n')
	}
	b = append(b, kind)
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, '\r', '\n')
}
