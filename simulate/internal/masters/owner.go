package masters

import (
	"strconv"
	"strings"
)

// Owner is one life of a client, as the values that it stores tell.
type Owner struct {
	Client int // negative: not one of this library
	Life   uint32
}

// ID is how a client calls itself in the values that it stores.
func (o Owner) ID() string {
	return strconv.Itoa(o.Client+1) + "." + strconv.Itoa(int(o.Life))
}

// OwnerOf reads who stored a value.
func OwnerOf(value string) Owner {
	id, _, ok := strings.Cut(value, "/")
	client, life, ok2 := strings.Cut(id, ".")
	c, err := strconv.Atoi(client)
	l, err2 := strconv.Atoi(life)
	if !ok || !ok2 || err != nil || err2 != nil {
		return Owner{Client: -1}
	}
	return Owner{c - 1, uint32(l)}
}
