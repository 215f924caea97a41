package redlockhealth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quorumlock/quorumlock/contrib/redlockhealth"
	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/redlocktest"
)

func TestHandler_says_whether_the_client_is_ready_and_alive(t *testing.T) {
	client, masters := redlocktest.New(t)
	probe := redlockhealth.Handler(client)
	want := func(when, path string, code int, words ...string) {
		t.Helper()
		w := httptest.NewRecorder()
		probe.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != code {
			t.Errorf("%s: %s answers %d, want %d: %s", when, path, w.Code, code, w.Body)
		}
		for _, word := range words {
			if !strings.Contains(w.Body.String(), word) {
				t.Errorf("%s: %s says %q, want %q in it", when, path, w.Body, word)
			}
		}
	}

	want("all is well", "/readyz", 200, "ok")
	want("all is well", "/healthz", 200, "ok")

	masters.Kill(0, 1)
	want("two of five are away", "/readyz", 200)

	masters.Hang(2)
	want("three of five are away", "/readyz", 503, "no quorum", "2 of 5 answered", "not connected", "silent")
	want("three of five are away", "/internal/healthz", 200)

	masters.Heal()
	want("they are back", "/readyz", 200)

	for i := range 3 {
		masters.Restart(i, redlocktest.Lost)
	}
	want("three of five have forgotten", "/readyz", 503, "quarantined for another")
	masters.Heal()

	client.Close()
	want("closed", "/readyz", 503, "closed")
	want("closed", "/healthz", 503, "closed")
}

func TestHandler_only_reads(t *testing.T) {
	client, _ := redlocktest.New(t)
	w := httptest.NewRecorder()
	redlockhealth.Handler(client).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/readyz", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
		t.Errorf("POST answers %d, %v", w.Code, w.Header())
	}
}

func ExampleHandler() {
	client, err := redlock.Dial(context.Background(), []string{"redis-a:6379", "redis-b:6379", "redis-c:6379"})
	if err != nil {
		return
	}
	http.Handle("/healthz", redlockhealth.Handler(client)) // livenessProbe
	http.Handle("/readyz", redlockhealth.Handler(client))  // readinessProbe
}
