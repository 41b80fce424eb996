package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxWait is the longest wait that is believed.
const maxWait = 7 * 24 * time.Hour

// RetryAfter returns how long the service wants to be left alone, by the headers of its answer: seconds, or a date, which counts from the
// answer's own. It is 0 if they do not say it.
func RetryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(min(ms, float64(maxWait.Milliseconds())) * float64(time.Millisecond))
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		if s > 0 {
			return time.Duration(min(s, maxWait.Seconds()) * float64(time.Second))
		}
		return 0
	}
	until, err := http.ParseTime(value)
	from, err2 := http.ParseTime(h.Get("Date"))
	if err != nil || err2 != nil {
		return 0
	}
	return min(max(until.Sub(from), 0), maxWait)
}
