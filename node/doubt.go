package node

import "sync/atomic"

// doubt is set while a master's right to vote is in question. Resolving it names the
// state that was seen before the answer was found: a doubt that another master has
// raised meanwhile stays.
type doubt struct {
	raised atomic.Uint64 // how often since it was resolved; zero: nothing is in question
}

func (d *doubt) any() bool { return d.raised.Load() != 0 }

func (d *doubt) raise() { d.raised.Add(1) }

func (d *doubt) seen() uint64 { return d.raised.Load() }

func (d *doubt) resolve(seen uint64) { d.raised.CompareAndSwap(seen, 0) }
