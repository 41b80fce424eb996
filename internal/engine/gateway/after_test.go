package gateway

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	const date = "Sat, 07 Mar 2026 10:00:00 GMT"
	for _, tc := range []struct {
		header http.Header
		want   time.Duration
	}{
		{http.Header{}, 0},
		{http.Header{"Retry-After": {"7"}}, 7 * time.Second},
		{http.Header{"Retry-After": {" 0.25 "}}, 250 * time.Millisecond},
		{http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"1500"}}, 1500 * time.Millisecond},
		{http.Header{"Retry-After": {"Sat, 07 Mar 2026 10:01:30 GMT"}, "Date": {date}}, 90 * time.Second},
		{http.Header{"Retry-After": {"Sat, 07 Mar 2026 09:00:00 GMT"}, "Date": {date}}, 0},
		{http.Header{"Retry-After": {"Sat, 07 Mar 2126 09:00:00 GMT"}, "Date": {date}}, maxWait},
		{http.Header{"Retry-After": {"Sat, 07 Mar 2026 10:01:30 GMT"}}, 0},
		{http.Header{"Retry-After": {"NaN"}}, 0},
		{http.Header{"Retry-After": {"+Inf"}}, maxWait},
	} {
		if got := RetryAfter(tc.header); got != tc.want {
			t.Errorf("%v: %s", tc.header, got)
		}
	}
}

// TestAfter: the wait that the service asked for is that of its last answer.
func TestAfter(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			rw.Header().Set("Retry-After", "3600")
			rw.WriteHeader(http.StatusTooManyRequests)
			return
		}
		streamed(rw, started, text, counted, stopped)
	})
	w.listen()
	for _, want := range []time.Duration{time.Hour, 0} {
		if status, _ := w.answer(); w.g.After() != want {
			t.Errorf("status %d: wait %s, want %s", status, w.g.After(), want)
		}
	}
}
