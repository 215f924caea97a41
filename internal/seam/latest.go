package seam

// Latest puts v into a channel with room for one value, in place of a value that was not
// received. Only one goroutine at a time may send.
func Latest[T any](to chan T, v T) {
	select {
	case <-to:
	default:
	}
	to <- v
}
