package main

import (
	"fmt"
	"strings"

	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

// picture is what every node shows, in the order of configuration.
type picture []mark

// mark is what one node shows of the lock.
type mark int

const (
	markFree  mark = iota
	markDown       // no answer
	markAlice      // held by the first client
	markBob        // held by the second
	markOther      // held by another client
)

var marks = [...]struct{ symbol, color string }{
	markFree:  {"○", "2"},
	markDown:  {"×", "31"},
	markAlice: {"●", "32"},
	markBob:   {"■", "36"},
	markOther: {"?", "33"},
}

func pictureOf(h redlock.Holder) picture {
	pic := make(picture, len(h.Nodes))
	for i, v := range h.Nodes {
		switch who, _, _ := strings.Cut(v.Value, "/"); {
		case v.Err != nil:
			pic[i] = markDown
		case v.Value == "":
			pic[i] = markFree
		case who == "alice":
			pic[i] = markAlice
		case who == "bob":
			pic[i] = markBob
		default:
			pic[i] = markOther
		}
	}
	return pic
}

// aliceEverywhere: she has a quorum, and every node that is up.
func (p picture) aliceEverywhere() bool {
	n := p.count(markAlice)
	return n >= quorum.Size(len(p)) && n+p.count(markDown) == len(p)
}

// freeEverywhere: nothing is on any node that is up.
func (p picture) freeEverywhere() bool { return p.count(markFree)+p.count(markDown) == len(p) }

func (p picture) count(m mark) (n int) {
	for _, have := range p {
		if have == m {
			n++
		}
	}
	return n
}

// numbers lists the nodes that show m, counted from 1.
func (p picture) numbers(m mark) string {
	var all []string
	for i, have := range p {
		if have == m {
			all = append(all, fmt.Sprint(i+1))
		}
	}
	return strings.Join(all, " ")
}
