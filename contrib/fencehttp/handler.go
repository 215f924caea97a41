// Package fencehttp has a web service refuse the requests of old lock holders, by a fencing
// token in a header. It needs only the standard library, so it is part of the library's module.
//
// The holder sends Lease.Token:
//
//	req.Header.Set(fencehttp.Header, strconv.FormatUint(lease.Token(), 10))
//
// A service that keeps its data in its own process wraps its handler with Guard. A service that
// writes to a database wraps it with Require, and checks Token in the transaction that
// writes, for example with contrib/fencesql; Refuse answers what that refuses.
//
// Authenticate clients before: the sender of the highest number shuts out all others.
package fencehttp

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/quorumlock/quorumlock/redlock"
)

// Header has the token as a decimal number.
const Header = "X-Fencing-Token"

// tokenKey is the context key of a request's token.
type tokenKey struct{}

// Require answers 400 (Bad Request) to a request that does not have exactly one token, or has
// zero, which stands for a lock that is not fenced. To all others next answers, which finds
// the token with Token. Require compares no tokens.
func Require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := r.Header.Values(Header)
		if len(all) != 1 {
			http.Error(w, "want one header "+Header+", not "+strconv.Itoa(len(all)), http.StatusBadRequest)
			return
		}
		token, err := strconv.ParseUint(all[0], 10, 64)
		if err != nil || token == 0 {
			http.Error(w, Header+" is "+strconv.Quote(all[0])+", want a decimal number from 1 to 18446744073709551615",
				http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tokenKey{}, token)))
	})
}

// Token returns the fencing token of a request that came through Require or Guard, otherwise 0.
func Token(ctx context.Context) uint64 {
	token, _ := ctx.Value(tokenKey{}).(uint64)
	return token
}

// Refuse answers 412 (Precondition Failed) if err is redlock.ErrStale, and reports whether it
// did. The status is not 409, which invites clients to try again: an old holder must not.
func Refuse(w http.ResponseWriter, err error) bool {
	if !errors.Is(err, redlock.ErrStale) {
		return false
	}
	http.Error(w, err.Error(), http.StatusPreconditionFailed)
	return true
}

// Guard is Require, and answers 412 (Precondition Failed) to a request whose token is lower
// than another that was seen for the resource before. resource names what a request is about,
// for example its path.
//
// Requests for one resource run one after the other, so that none that was let in is
// overtaken by a newer holder: next must have written, and not only begun to, when it returns.
// A request that has to wait gives up, without an answer, when its context ends.
//
// Guard keeps a token of each resource in memory until the process ends. Use it for resources
// that end with the process, and to which no other process writes.
func Guard(resource func(*http.Request) string, next http.Handler) http.Handler {
	g := guard{resource: resource, next: next, turns: make(map[string]chan struct{})}
	return Require(&g)
}

type guard struct {
	resource func(*http.Request) string
	next     http.Handler
	fence    redlock.Fence

	mu    sync.Mutex
	turns map[string]chan struct{} // by resource: full while a request runs
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := g.resource(r)
	turn := g.turn(name)
	select {
	case turn <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	defer func() { <-turn }()
	// Invariant: a request that was let in has returned before another token is compared.
	if !Refuse(w, g.fence.Check(name, Token(r.Context()))) {
		g.next.ServeHTTP(w, r)
	}
}

func (g *guard) turn(name string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	turn, ok := g.turns[name]
	if !ok {
		turn = make(chan struct{}, 1)
		g.turns[name] = turn
	}
	return turn
}
