// Package redlockhealth serves the health of a redlock client to probes. It needs only the
// standard library, so it is part of the library's module.
package redlockhealth

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quorumlock/quorumlock/redlock"
)

// Client is a redlock.Client, or several that are checked together.
type Client interface {
	// Healthy is described at redlock.Client.
	Healthy() error
}

// Handler answers 200 or 503, in plain text. Where the path ends in /healthz, it answers 503
// only once the client is closed: to restart a process does not bring masters back. On every
// other path, such as /readyz, it answers 503 with a line for all that is wrong as long as
// the client is not healthy.
func Handler(c Client) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		err := c.Healthy()
		if strings.HasSuffix(r.URL.Path, "/healthz") && !errors.Is(err, redlock.ErrClosed) {
			err = nil
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "ok")
	})
}
