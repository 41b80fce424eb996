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

// route is a rate limit. Routes for which Discord announces the same one share it.
type route struct {
	most   int       // requests in one window; 0 is not known
	left   int       // requests until reset
	reset  time.Time // before it, left counts
	flying int       // requests without an answer yet
}

// unlimited is the most of a route for which no limit is announced.
const unlimited = 1 << 30

// crowded is how long to wait for the answers to others' requests, which say how many more may follow.
const crowded = 20 * time.Millisecond

// reserve counts a request that is about to be made; it ends with note. Otherwise it returns how long to wait before asking again.
// After a reset, and before anything is known of a limit, there are no more requests at a time than the limit has.
func (l *limits) reserve(method, name string, now time.Time) (*route, time.Duration) {
	if name == "" {
		return nil, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := l.all.Sub(now); wait > 0 {
		return nil, wait
	}
	r := l.route(method, name, now)
	wait := r.reset.Sub(now)
	switch {
	case wait > 0 && r.left <= 0:
		return nil, wait
	case wait <= 0 && r.flying >= max(1, r.most):
		return nil, crowded
	}
	r.left--
	r.flying++
	return r, 0
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

// note ends a request that was reserved, with the headers of its answer; nil are those of none.
func (l *limits) note(r *route, method, name string, h http.Header, now time.Time) {
	if r == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.flying--
	most, unknown := strconv.Atoi(h.Get("X-RateLimit-Limit"))
	left, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	after, failed := strconv.ParseFloat(h.Get("X-RateLimit-Reset-After"), 64)
	if unknown != nil || err != nil || failed != nil {
		if h != nil && r.most == 0 {
			r.most = unlimited
		}
		return
	}
	if bucket := h.Get("X-RateLimit-Bucket"); bucket != "" {
		r = l.route(bucket, name, now)
		l.routes[method+" "+name] = r
	}
	r.most, r.left, r.reset = most, left-r.flying, now.Add(seconds(after)+time.Millisecond)
}

// refused keeps requests back after a 429.
func (l *limits) refused(method, name string, failed *Error, now time.Time) {
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
