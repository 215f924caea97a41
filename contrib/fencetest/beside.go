package fencetest

import (
	"errors"
	"fmt"
	"time"
)

const (
	patience = 20 * time.Millisecond // a writer that gets no further waits for the other
	hang     = 30 * time.Second      // a writer that is not held up does not return
	most     = 5                     // points in one write: 924 orders
)

// sideBySide has two holders write at the same time, in every order of the stretches
// between the points of their writes.
func sideBySide(open func() Resource, patience time.Duration) error {
	stretches := 1
	open().Write(1, "to count", func() { stretches++ })
	if stretches > most+1 {
		return fmt.Errorf("a write has %d points, want at most %d", stretches-1, most)
	}
	for _, used := range []bool{false, true} {
		for _, order := range orders(stretches, stretches) {
			r, when := open(), "a new resource"
			if used {
				when = "a used resource"
				if err := r.Write(1, "used", func() {}); err != nil {
					return fmt.Errorf("the first write is refused: %w", err)
				}
			}
			if err := beside(order, r, patience); err != nil {
				return fmt.Errorf("two writes at the same time on %s, with tokens %s: %w",
					when, named(order, [2]uint64{2, 3}), err)
			}
		}
	}
	return nil
}

func beside(order []int, r Resource, patience time.Duration) error {
	pair := [2]*writer{write(r, 2, "old"), write(r, 3, "new")}
	older, newer := pair[0], pair[1]
	late, early := false, false // the older began when the newer had ended, and the reverse
	for _, holder := range order {
		late = late || !older.begun && newer.over()
		early = early || !newer.begun && older.over()
		pair[holder].step(patience)
	}
	for _, w := range pair {
		close(w.turn)
	}
	for _, w := range pair {
		select {
		case <-w.ended:
		case <-time.After(hang):
			return errors.New("a write hangs")
		}
	}
	switch {
	case newer.err != nil:
		return fmt.Errorf("the newer holder's write is refused: %w", newer.err)
	case late && older.err == nil:
		return errors.New("the older holder's write is accepted after the newer's")
	case early && older.err != nil:
		return fmt.Errorf("the older holder's write is refused before the newer wrote: %w", older.err)
	}
	if err := reads(r, "new"); err != nil {
		return err
	}
	if r.Write(2, "older", func() {}) == nil {
		return errors.New("the older holder's next write is accepted")
	}
	return reads(r, "new")
}

// writer is one write that stops at every point where the other could come in between. All
// but its goroutine is used by one goroutine.
type writer struct {
	turn    chan struct{} // a value: run to the next point; closed: to the end
	paused  chan struct{} // holds a value when it has come to a point
	ended   chan struct{} // closed with the outcome in err
	err     error
	begun   bool
	running bool // was given a turn, and has not been seen at a point since
}

func write(r Resource, token uint64, value string) *writer {
	w := &writer{turn: make(chan struct{}), paused: make(chan struct{}, 1), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		<-w.turn
		w.err = r.Write(token, value, func() {
			select {
			case w.paused <- struct{}{}:
			default: // the test has ended
			}
			<-w.turn
		})
	}()
	return w
}

// step lets the writer run to its next point, or to its end. It returns before if the writer
// seems to wait for the other.
func (w *writer) step(patience time.Duration) {
	w.begun = true
	if !w.running && !w.over() {
		w.turn <- struct{}{}
		w.running = true
	}
	select {
	case <-w.paused:
		w.running = false
	case <-w.ended:
	case <-time.After(patience):
	}
}

func (w *writer) over() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}
