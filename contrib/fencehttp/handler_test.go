package fencehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/quorumlock/quorumlock/contrib/fencehttp"
	"github.com/quorumlock/quorumlock/contrib/fencetest"
	"github.com/quorumlock/quorumlock/redlock"
)

func path(r *http.Request) string { return r.URL.Path }

// put sends a request with these tokens and returns the status and the answer.
func put(h http.Handler, path, body string, tokens ...string) (int, string) {
	r := httptest.NewRequest(http.MethodPut, path, strings.NewReader(body))
	for _, token := range tokens {
		r.Header.Add(fencehttp.Header, token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestGuard_refuses_old_holders_in_every_order(t *testing.T) {
	t.Parallel()
	var between sync.Map // by value: what the test does in the middle of the handler
	fencetest.Run(t, func() fencetest.Resource {
		var file sync.Map
		h := fencehttp.Guard(path, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			value, _ := io.ReadAll(r.Body)
			pause, _ := between.Load(string(value))
			pause.(func())()
			file.Store("content", string(value))
			pause.(func())()
		}))
		return fencetest.Resource{
			Write: func(token uint64, value string, pause func()) error {
				between.Store(value, pause)
				if code, answer := put(h, "/file", value, strconv.FormatUint(token, 10)); code != http.StatusOK {
					return fmt.Errorf("%d %s", code, answer)
				}
				return nil
			},
			Read: func() (string, error) {
				value, _ := file.Load("content")
				return value.(string), nil
			},
		}
	})
}

func TestGuard_answers_412_to_an_old_holder_of_the_same_resource(t *testing.T) {
	h := fencehttp.Guard(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, fencehttp.Token(r.Context()))
	}))
	for _, c := range []struct {
		path, token string
		code        int
		answer      string
	}{
		{"/a", "33", 200, "33"},
		{"/a", "33", 200, "33"},
		{"/a", "34", 200, "34"},
		{"/a", "33", 412, `"/a": stale fencing token: token 33, and 34 was seen`},
		{"/b", "5", 200, "5"},
		{"/a", "18446744073709551615", 200, "18446744073709551615"},
	} {
		if code, answer := put(h, c.path, "", c.token); code != c.code || !strings.Contains(answer, c.answer) {
			t.Errorf("%s with token %s: %d %q, want %d %q", c.path, c.token, code, answer, c.code, c.answer)
		}
	}
}

func TestRequire_answers_400_without_one_token(t *testing.T) {
	h := fencehttp.Require(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, tokens := range [][]string{{}, {""}, {"0"}, {"-1"}, {"+1"}, {"1.0"}, {"0x1"}, {" 1"}, {"one"}, {"18446744073709551616"}, {"1", "1"}} {
		if code, answer := put(h, "/", "", tokens...); code != http.StatusBadRequest || !strings.Contains(answer, fencehttp.Header) {
			t.Errorf("tokens %q: %d %q, want 400 and the header's name", tokens, code, answer)
		}
	}
	if code, answer := put(h, "/", "", "7"); code != http.StatusOK {
		t.Errorf("token 7: %d %q, want 200", code, answer)
	}
}

func TestRefuse_answers_only_what_is_stale(t *testing.T) {
	w := httptest.NewRecorder()
	if fencehttp.Refuse(w, nil) || fencehttp.Refuse(w, errors.New("disk full")) || w.Body.Len() > 0 {
		t.Errorf("Refuse answered %q", w.Body)
	}
	if !fencehttp.Refuse(w, fmt.Errorf("write: %w", redlock.ErrStale)) || w.Code != http.StatusPreconditionFailed {
		t.Errorf("Refuse answered %d to ErrStale", w.Code)
	}
}

func TestGuard_does_not_run_a_request_whose_client_left_while_it_waited(t *testing.T) {
	begun, end, ran := make(chan struct{}), make(chan struct{}), 0
	h := fencehttp.Guard(path, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		ran++
		close(begun)
		<-end
	}))
	over := make(chan struct{})
	go func() { put(h, "/", "", "1"); close(over) }()
	<-begun

	gone, cancel := context.WithCancel(context.Background())
	cancel()
	r := httptest.NewRequestWithContext(gone, http.MethodPut, "/", nil)
	r.Header.Set(fencehttp.Header, "2")
	h.ServeHTTP(httptest.NewRecorder(), r)

	close(end)
	<-over
	if ran != 1 {
		t.Errorf("%d requests ran, want 1", ran)
	}
}

func TestGuard_goes_on_after_a_handler_that_panicked(t *testing.T) {
	h := fencehttp.Guard(path, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if fencehttp.Token(r.Context()) == 1 {
			panic("on purpose")
		}
	}))
	func() {
		defer func() { _ = recover() }()
		put(h, "/", "", "1")
	}()
	if code, answer := put(h, "/", "", "2"); code != http.StatusOK {
		t.Errorf("the next request: %d %q", code, answer)
	}
}

func Example() {
	http.Handle("PUT /files/{name}", fencehttp.Guard(func(r *http.Request) string { return r.PathValue("name") },
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { /* write */ })))
}
