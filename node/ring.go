package node

// ring is a queue in a circular buffer that grows and never shrinks, so that a
// steady flow through it allocates nothing.
type ring[T any] struct {
	slots []T
	head  int
	n     int
}

func (r *ring[T]) push(v T) {
	if r.n == len(r.slots) {
		r.grow()
	}
	r.slots[(r.head+r.n)&(len(r.slots)-1)] = v
	r.n++
}

// pop removes and returns the oldest; there must be one.
func (r *ring[T]) pop() T {
	var zero T
	v := r.slots[r.head]
	r.slots[r.head] = zero
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.n--
	return v
}

// at returns the i-th oldest.
func (r *ring[T]) at(i int) *T {
	return &r.slots[(r.head+i)&(len(r.slots)-1)]
}

// grow doubles the buffer. Its length is a power of two, so that a mask does
// for a division.
func (r *ring[T]) grow() {
	slots := make([]T, max(16, 2*len(r.slots)))
	for i := range r.n {
		slots[i] = *r.at(i)
	}
	r.slots, r.head = slots, 0
}
