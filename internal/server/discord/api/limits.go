package api

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// maxRoutes is how many routes are remembered before those without a limit in force are forgotten.
const maxRoutes = 256

// limits are the rate limits as far as answers have announced them.
type limits struct {
	mu     sync.Mutex
	all    time.Time // no request before, after a global 429
	routes map[string]*route
}

// route is the rate limit of one route.
type route struct {
	left   int       // requests until reset
	reset  time.Time // before it, left counts
	flying int       // requests without an answer yet
}

// reserve counts a request that is about to be made. Otherwise it returns how long to wait before asking again.
func (l *limits) reserve(method, name string, now time.Time) time.Duration {
	if name == "" {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := l.all.Sub(now); wait > 0 {
		return wait
	}
	r := l.route(method, name, now)
	if wait := r.reset.Sub(now); wait > 0 && r.left <= 0 {
		return wait
	}
	r.left--
	r.flying++
	return 0
}

// route returns the route of a name. The caller holds mu.
func (l *limits) route(method, name string, now time.Time) *route {
	key := method + " " + name
	r := l.routes[key]
	if r != nil {
		return r
	}
	if len(l.routes) >= maxRoutes {
		for old, r := range l.routes {
			if r.flying == 0 && !r.reset.After(now) {
				delete(l.routes, old)
			}
		}
	}
	r = &route{}
	l.routes[key] = r
	return r
}

// note ends a request that was reserved, with the headers of its answer.
func (l *limits) note(method, name string, h http.Header, now time.Time) {
	if name == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.route(method, name, now)
	r.flying--
	left, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	after, failed := strconv.ParseFloat(h.Get("X-RateLimit-Reset-After"), 64)
	if err == nil && failed == nil {
		r.left, r.reset = left-r.flying, now.Add(seconds(after)+time.Millisecond)
	}
}

// refused keeps requests back after a 429.
func (l *limits) refused(method, name string, failed refusal, now time.Time) {
	if name == "" || failed.After == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if failed.global {
		l.all = now.Add(failed.After)
		return
	}
	r := l.route(method, name, now)
	r.left, r.reset = 0, now.Add(failed.After)
}
