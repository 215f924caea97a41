package faultproxy

import (
	"container/heap"
	"fmt"
	"net"
	"sync"
	"time"
)

// Carrier carries the bytes of several lines. There is one for all of
// them, with one goroutine, so that bytes due at about the same time, as the
// requests to all masters are, costs one wake-up. An end that does not read holds
// it up, once the system's buffers are full.
type Carrier struct {
	alarm *alarm
	done  chan struct{} // closed when the goroutine has ended

	mu   sync.Mutex
	load parcels
	seq  uint64
	away bool // delivering: it looks at the load again before it waits
}

// NewCarrier starts a carrier that lives until Close.
func NewCarrier() (*Carrier, error) {
	alarm, err := newAlarm()
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	c := &Carrier{alarm: alarm, done: make(chan struct{})}
	go c.carry()
	return c, nil
}

// Close ends the carrier, after the lines.
func (c *Carrier) Close() {
	c.alarm.close()
	<-c.done
}

// take accepts a parcel.
func (c *Carrier) take(p *parcel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	p.seq = c.seq
	heap.Push(&c.load, p)
	if c.load[0] == p && !c.away {
		c.alarm.set(p.due)
	}
}

func (c *Carrier) carry() {
	defer close(c.done)
	var batch []*parcel
	for c.alarm.wait() {
		for batch = c.due(batch[:0]); len(batch) > 0; batch = c.due(batch[:0]) {
			for _, p := range batch {
				p.deliver()
			}
		}
	}
}

// due takes the due parcels off the load. If none is due, it sets the alarm for the next
// parcel.
func (c *Carrier) due(batch []*parcel) []*parcel {
	c.mu.Lock()
	defer c.mu.Unlock()
	for now := time.Now(); len(c.load) > 0 && !c.load[0].due.After(now); {
		batch = append(batch, heap.Pop(&c.load).(*parcel))
	}
	c.away = len(batch) > 0
	if !c.away && len(c.load) > 0 {
		c.alarm.set(c.load[0].due)
	}
	return batch
}

// parcel has the bytes of one read.
type parcel struct {
	due   time.Time
	seq   uint64
	to    *net.TCPConn
	data  []byte
	ended chan<- struct{} // set: the sender has closed its side
}

func (p *parcel) deliver() {
	if p.ended == nil {
		p.to.Write(p.data) // a departed receiver has closed its own side
		return
	}
	p.to.CloseWrite()
	p.ended <- struct{}{} // there is room
}

// parcels is a heap, the first due at the top.
type parcels []*parcel

func (p parcels) Len() int      { return len(p) }
func (p parcels) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *parcels) Push(x any)   { *p = append(*p, x.(*parcel)) }

func (p parcels) Less(i, j int) bool {
	if p[i].due.Equal(p[j].due) {
		return p[i].seq < p[j].seq
	}
	return p[i].due.Before(p[j].due)
}

func (p *parcels) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	(*p)[last] = nil
	*p = (*p)[:last]
	return x
}
