package gateway

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestMissed: after two requests in a row without an answer in time, the service is not asked again, and the program is told why. An answer
// between them counts.
func TestMissed(t *testing.T) {
	t.Parallel()
	var answers atomic.Bool
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if answers.Load() {
			streamed(rw, started, text, counted, stopped)
			return
		}
		<-r.Context().Done()
	})
	asked, reach := 0, w.g.Transport
	w.g.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		asked++
		return reach.RoundTrip(r)
	})
	w.listen()
	const short = 50 * time.Millisecond
	for i, want := range []int{502, 200, 502, 502, 400, 400} {
		w.g.Idle = short
		answers.Store(want == http.StatusOK)
		if answers.Load() {
			w.g.Idle = time.Minute
		}
		status, body := w.answer()
		if status != want || want != 200 && !strings.Contains(body, "no data for 0.05 seconds") {
			t.Errorf("request %d: %d %q, want %d", i+1, status, body, want)
		}
	}
	if asked != 4 || !strings.Contains(w.g.Fault(), "no data for 0.05 seconds") {
		t.Errorf("the service was asked %d times, fault %q", asked, w.g.Fault())
	}
}
