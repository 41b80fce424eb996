package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Bounds of the check "cache".
const (
	cacheAge  = 24 * time.Hour
	cacheRuns = 300
)

// repaid is what the requests of one job paid again although the service had it in its cache.
type repaid struct {
	name     string
	path     string // of the job's file
	requests int
	tokens   int
	cost     float64 // USD more than the cache would have cost; 0 if the price is not known
	last     string  // id of the newest of the runs
	thinking bool    // a request asked the model to think otherwise than the one that filled the cache
}

// repeated looks for jobs whose requests of the last day paid again for what the service had in its cache.
func (e *examination) repeated(context.Context) string {
	all, records := e.sent()
	jobs := map[string]*repaid{}
	for i, s := range all {
		r := records[s.Run]
		if !r.OfJob() {
			continue
		}
		lost, other := 0, false
		for _, earlier := range slices.Backward(all[:i]) {
			if s.At.Sub(earlier.At) > longestAnswer+engine.CacheLife {
				break
			}
			if n := s.PaidAgain(earlier.Sent, engine.CacheLife, engine.BytesPerToken); n > lost {
				lost, other = n, s.Thinking != earlier.Thinking && r.Shared && records[earlier.Run].Shared
			}
		}
		if lost == 0 {
			continue
		}
		j := cmp.Or(jobs[r.Job], &repaid{name: r.Name, path: r.Path})
		j.requests, j.tokens, j.last, j.thinking = j.requests+1, j.tokens+lost, r.ID, j.thinking || other
		if r.Price != nil {
			j.cost += float64(lost) * (r.Price.In - r.Price.CacheRead) / 1e6
		}
		jobs[r.Job] = j
	}
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		j := jobs[id]
		remedy := "ollim run show --requests " + j.last + " shows what each request read from the cache"
		if j.thinking {
			remedy = "set thinking: " + model.LikeMain + " in " + j.path
		}
		more := ""
		if j.cost > 0 {
			more = fmt.Sprintf(": about $%.2f too much", j.cost)
		}
		e.warn(remedy, "%s paid again for %d tokens that the service had in its cache, in %s of the last day%s",
			j.name, j.tokens, plaintext.Count(j.requests, "request"), more)
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%s of the last day: none paid again for what the service had in its cache", plaintext.Count(len(all), "request"))
}

// longestAnswer is the longest time that the first byte of an answer takes.
const longestAnswer = 5 * time.Minute

// sentBy is a request with the id of its run.
type sentBy struct {
	request.Sent

	Run string
}

// sent returns the requests of the last day in the order in which they were sent, and the records of their runs. Of very many it returns
// those of the newest runs.
func (e *examination) sent() (all []sentBy, records map[string]runlog.Record) {
	records = map[string]runlog.Record{}
	for r, err := range e.home.Runs.Since(e.App.Now().Add(-cacheAge)) {
		if err != nil || len(records) == cacheRuns {
			break // the check "runs" reports the error
		}
		if r.Requests == 0 {
			continue
		}
		records[r.ID] = r
		list, _ := e.home.Requests.Sent(r.ID) // a run whose requests cannot be read has none
		for _, s := range list {
			all = append(all, sentBy{s, r.ID})
		}
	}
	slices.SortStableFunc(all, func(a, b sentBy) int { return a.At.Compare(b.At) })
	return all, records
}
