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
	var asked atomic.Int32
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if n := asked.Add(1); n == 2 {
			streamed(rw, started, text, counted, stopped)
			return
		}
		<-r.Context().Done()
	})
	w.g.Idle = 2 * time.Second // the answer comes in time, also where the machine is busy
	w.listen()
	for i, want := range []int{502, 200, 502, 502, 400, 400} {
		status, body := w.answer()
		if status != want || want != 200 && !strings.Contains(body, "no data for 2 seconds") {
			t.Errorf("request %d: %d %q, want %d", i+1, status, body, want)
		}
	}
	if n := asked.Load(); n != 4 || !strings.Contains(w.g.Fault(), "no data for 2 seconds") {
		t.Errorf("the service was asked %d times, fault %q", n, w.g.Fault())
	}
}
