package anthropicapi

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// answer is the response to one request, on its way.
type answer struct {
	exchange
	id    string
	again *refusals
}

// give sends a reply, faults included.
func (a answer) give(q Request, r Reply) {
	switch {
	case a.Begin(r.way()):
	case r.isError(q.Stream):
		a.fail(r)
	case q.Stream:
		a.stream(q, r)
	default:
		a.Whole(r.message(q), r.way())
	}
}

// fail sends an error of the API. The header x-should-retry decides what clients do: claude gives up at once on "false", and
// without it tries a 401 again as often as it may. The API has been seen to send "true" with 429 and "false" with 400 and 404;
// the rest follows from that.
func (a answer) fail(r Reply) {
	r = r.completed()
	retry := r.Status == http.StatusRequestTimeout || r.Status == http.StatusConflict ||
		r.Status == http.StatusTooManyRequests || r.Status >= 500
	a.Header("X-Should-Retry", strconv.FormatBool(retry))
	a.Header("Retry-After", r.RetryAfter)
	a.JSON(r.Status, errorBody{"error", errorDetail{r.ErrorType, r.Message}, a.id})
}

// stream sends the events of a reply, with its fault.
func (a answer) stream(q Request, r Reply) {
	said := r
	if r.Fault == apiserver.Endless {
		said = Reply{Text: cmp.Or(r.Text, "and so on ")}
	}
	failed := r
	failed.Status = 0
	failed = failed.completed()
	s := apiserver.Stream{
		Endless:   3, // the first piece of the text
		Malformed: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"ty\n\n",
		Error:     event{Type: "error", Error: &errorDetail{failed.ErrorType, failed.Message}, Request: a.id}.frame(),
	}
	for _, e := range events(said.message(q)) {
		s.Events = append(s.Events, e.frame())
	}
	a.Stream(s, r.way())
}
