package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// call is one request of the program. It is the body of the response.
type call struct {
	*flight
	g      *Gateway
	counts bool            // it asks for a number of tokens, which is free
	model  string          // that was asked
	left   context.Context // ends when the program does not wait for the answer any more
	ctx    context.Context // of the request; its cause says why it was cancelled
	idle   *time.Timer     // cancels it, after wait
	wait   time.Duration
	read   int64     // bytes of the answer
	over   io.Reader // what the program reads in place of the rest of the answer; nil: the rest
}

// Read implements io.Reader. When the run's limit is reached, the answer ends with an error event.
func (c *call) Read(p []byte) (int, error) {
	if c.over != nil {
		return c.over.Read(p)
	}
	c.idle.Reset(c.wait)
	n, err := c.flight.Read(p)
	c.idle.Stop()
	if c.read += int64(n); c.read > MaxAnswer && err == nil {
		err = fmt.Errorf("the answer has more than %d bytes", MaxAnswer)
	}
	switch {
	case errors.Is(err, io.EOF):
	case err != nil:
		c.g.end(c, c.reason(err))
	case !c.counted().ending && c.g.exhausted(): // an answer whose usage is known is paid for, and complete in a moment
		c.over = strings.NewReader("\n\nevent: error\ndata: " + string(failure("invalid_request_error", c.g.limit())) + "\n\n")
	}
	return n, err
}

// reason returns why there is no more of an answer.
func (c *call) reason(err error) string {
	return "no answer from " + c.g.Service.Host + ": " + reason(cmp.Or(context.Cause(c.ctx), err))
}

// Close implements io.Closer. It is called once for each response.
func (c *call) Close() error {
	var why error
	switch {
	case c.over != nil:
		why = errors.New(c.g.limit())
	case c.left.Err() != nil:
		why = errors.New("the program did not wait for the end")
	}
	err := c.stop(why)
	c.g.end(c, "")
	return err
}

// cost returns what a request has cost so far, in USD; without a known price, only searches by the service count. The service has reported usage.
func (c *call) cost() float64 {
	t := c.counted()
	m := c.g.Models.Resolve(cmp.Or(t.model, c.model))
	if !m.Priced {
		m = c.g.Models.Resolve(c.model)
	}
	u := model.Tokens(c.usage())
	usd, _ := m.Cost(u)
	if hourly, known := m.Hourly(); known && u.CacheWrite > 0 {
		all, _ := hourly.Cost(u)
		usd += (all - usd) * float64(min(t.hour, u.CacheWrite)) / float64(u.CacheWrite)
	}
	return usd + float64(t.searches)*engine.SearchPrice
}

// reported reports whether the service has reported usage.
func (c *call) reported() bool { return c.flight != nil && c.counted().counted }

// usage returns what the service has reported so far. An answer that is not complete has the text that has arrived.
func (c *call) usage() runlog.Usage {
	t := c.counted()
	if u := t.usage; t.complete || t.ending {
		return u
	}
	t.usage.Out = max(t.usage.Out, t.said/engine.BytesPerToken)
	return t.usage
}
