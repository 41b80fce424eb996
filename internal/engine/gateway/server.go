package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Gateway passes the requests of one program on to a service. Its fields are set before Listen.
type Gateway struct {
	Service *url.URL // address of the service, as in ANTHROPIC_BASE_URL
	Paths   []string // what is passed on, as patterns of path.Match below the path of Service; nil: the requests of the Anthropic Messages API

	Transport http.RoundTripper // reaches the service

	// Secrets maps placeholders to the keys that replace them in the headers of requests.
	Secrets map[string]string

	Keep   engine.Keep   // nil: requests are not kept
	Models model.Table   // prices
	Most   float64       // USD that the requests may cost; 0: no limit
	Strict bool          // a request to a model whose price is not known is refused
	Idle   time.Duration // longest wait for the next byte of an answer; 0 is the constant Idle

	server  *http.Server
	keyed   bool           // a request needs a placeholder
	serving sync.WaitGroup // requests
	places  chan struct{}  // one for each request that is passed on

	mu       sync.Mutex
	closed   bool
	spent    float64        // USD, of the answers that have ended
	silent   int            // requests that have ended without a report, see Spent
	used     runlog.Usage   // of the same
	inFlight map[*call]bool // requests whose answers have not ended
	limited  bool           // a request was refused or cut because of Most
	unpriced string         // a model to which a request was refused because of Strict
	fault    string         // why there was no answer to the last request; "": there was one, or the service has refused it
	missed   int            // requests in a row that the service did not answer in time
	after    time.Duration  // see After
}

// mostMissed is how many requests in a row may wait in vain for an answer. A program such as claude would send a request ten times.
const mostMissed = 2

// maxBody is more than the service accepts, in bytes.
const maxBody = 64 << 20

// Close ends the requests that are still open, and waits until their answers are kept. It may be called twice, and before Listen.
func (g *Gateway) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	if g.server != nil {
		_ = g.server.Close()
	}
	g.serving.Wait()
}

// Spent returns what the requests have cost so far in USD, as far as the service has reported it and a price is known. An answer that is
// not complete counts with the text that has arrived. unreported is the number of requests for which the service may charge and has reported
// nothing: those that are open, that the program did not wait for, or that the service did not answer in time.
func (g *Gateway) Spent() (usd float64, unreported int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	usd, unreported = g.spent, g.silent
	for c := range g.inFlight {
		if c.reported() {
			usd += c.cost()
		} else if !c.counts {
			unreported++
		}
	}
	return usd, unreported
}

// Limited reports whether the gateway has ended or refused a request because of Most.
func (g *Gateway) Limited() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limited
}

// Unpriced returns the error of a run of which a request was refused because of Strict; nil if none was.
func (g *Gateway) Unpriced() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unpriced == "" {
		return nil
	}
	return engine.Unpriced(g.unpriced)
}

// Fault returns why there was no answer to the last request; "" if there was one.
func (g *Gateway) Fault() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault
}

// After returns the wait that the service asked for when it refused the last request; 0 if it asked for none.
func (g *Gateway) After() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.after
}

// given reports whether the service is not asked any more, because it does not answer, and why.
func (g *Gateway) given() (why string, up bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault, g.missed >= mostMissed
}

// enter reports whether a request may begin.
func (g *Gateway) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.serving.Add(1)
	}
	return !g.closed
}

// exhausted reports whether the limit is reached, and notes it.
func (g *Gateway) exhausted() bool {
	if g.Most == 0 {
		return false
	}
	if usd, _ := g.Spent(); usd < g.Most {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limited = true
	return true
}

func (g *Gateway) limit() string {
	return fmt.Sprintf("the run has spent the %s USD that its limit had left", engine.USD(g.Most))
}

// rewrite addresses a request to the service.
func (g *Gateway) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = g.Service.Scheme, g.Service.Host, g.Service.Host
	r.Out.Header.Del("Accept-Encoding") // a compressed answer could not be read
	for _, name := range keyHeaders() {
		for placeholder, secret := range g.Secrets {
			if value := r.Out.Header.Get(name); strings.Contains(value, placeholder) {
				r.Out.Header.Set(name, strings.Replace(value, placeholder, secret, 1))
			}
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// errLong is the error of a request that the service would not accept.
var errLong = fmt.Errorf("the request has more than %d bytes", maxBody)

// send sends a request to the service, and cancels it when the service is silent for too long.
func (g *Gateway) send(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	_ = r.Body.Close()
	if err == nil && len(body) > maxBody {
		err = errLong
	}
	if err != nil {
		return nil, err
	}
	c, err := g.begin(r, body)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	idle := cmp.Or(g.Idle, Idle)
	c.idle = time.AfterFunc(idle, func() { cancel(silence(idle)) })
	c.wait, c.ctx = idle, ctx
	out := r.WithContext(ctx)
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.RequestURI = "" // Client.Do accepts none
	resp, f, err := send(&http.Client{Transport: g.Transport, CheckRedirect: NeverFollow}, out, body, g.priced(c))
	c.idle.Stop()
	if err != nil {
		g.mu.Lock()
		g.after = 0
		g.mu.Unlock()
		why := c.reason(err)
		g.end(c, why)
		return nil, errors.New(why)
	}
	g.mu.Lock()
	c.flight, resp.Body = f, c
	if g.after = 0; resp.StatusCode >= http.StatusBadRequest {
		g.after = RetryAfter(resp.Header)
	}
	g.mu.Unlock()
	if resp.StatusCode/100 == 3 { // the program would follow it, past the gateway
		err := fmt.Errorf("%s redirects requests to %s", g.Service.Host, plaintext.Line(resp.Header.Get("Location")))
		_ = c.stop(err)
		g.end(c, err.Error())
		return nil, err
	}
	return resp, nil
}

// silence is the error of a request to which the service has sent nothing for so long.
type silence time.Duration

func (s silence) Error() string {
	return fmt.Sprintf("no data for %g seconds", time.Duration(s).Seconds())
}

// refused is the error of a request that the gateway does not pass on because of its content.
type refused string

func (r refused) Error() string { return string(r) }

// begin registers a request. The error is a refusal.
func (g *Gateway) begin(r *http.Request, body []byte) (*call, error) {
	var q map[string]json.RawMessage // a struct would take a key in other letters for the same one, and services do not
	_ = json.Unmarshal(body, &q)     // the service says what is wrong with it
	var model string
	var background bool
	_, _ = json.Unmarshal(q["model"], &model), json.Unmarshal(q["background"], &background)
	if background {
		return nil, refused("the gateway of ollim passes on no request in the background")
	}
	free := strings.HasSuffix(r.URL.Path, "/count_tokens") || strings.HasSuffix(r.URL.Path, ":countTokens")
	if _, last, named := strings.Cut(r.URL.Path, "/models/"); named { // of the Gemini API
		model, _, _ = strings.Cut(last, ":")
	}
	c := &call{g: g, model: model, counts: free, left: r.Context(), ctx: r.Context()}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Strict && !free && !g.Models.Resolve(c.model).Priced {
		g.unpriced = cmp.Or(c.model, "?")
		return nil, refused(engine.Unpriced(g.unpriced).Error())
	}
	g.inFlight[c] = true
	return c, nil
}

// priced keeps a request, and its answer with the price.
func (g *Gateway) priced(c *call) engine.Keep {
	if g.Keep == nil {
		return nil
	}
	return func(body []byte) engine.Kept {
		kept := g.Keep(body)
		return engine.Kept{Begun: kept.Begun, Answered: func(a request.Answer) {
			if a.Usage != nil {
				a.Cost = c.cost()
			}
			kept.Answered(a)
		}}
	}
}

// end books a request. why says why there was no answer; "" if there was one. The service charges nothing for a request that it refuses or
// does not answer.
func (g *Gateway) end(c *call, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.inFlight[c] {
		return
	}
	delete(g.inFlight, c)
	if c.left.Err() == nil { // otherwise the program has gone, which is no fault of the service
		switch g.fault = why; {
		case errors.As(context.Cause(c.ctx), new(silence)):
			g.missed++
		case why == "":
			g.missed = 0
		}
	}
	switch {
	case c.reported():
		g.spent += c.cost()
		g.used = g.used.Add(c.usage())
	case !c.counts && c.ctx.Err() != nil: // the program has gone, or the service was silent for too long
		g.silent++
	}
}

// Used returns the usage of the answers that have ended, or are complete.
func (g *Gateway) Used() runlog.Usage {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.used
	for c := range g.inFlight {
		if c.reported() && c.counted().complete {
			all = all.Add(c.usage())
		}
	}
	return all
}

// failed answers a request to which the service gave no answer.
func (g *Gateway) failed(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case r.Context().Err() != nil: // the program has gone
	case errors.Is(err, errLong):
		refuse(w, http.StatusRequestEntityTooLarge, "request_too_large", err.Error())
	case errors.As(err, new(refused)):
		refuse(w, http.StatusBadRequest, "invalid_request_error", err.Error())
	default:
		refuse(w, http.StatusBadGateway, "api_error", err.Error())
	}
}

func refuse(w http.ResponseWriter, status int, kind, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(failure(kind, why))
}

// failure returns an error as the service words it.
func failure(kind, why string) []byte {
	text, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": why}})
	return text
}

// reason returns an error without addresses, which may contain what is secret.
func reason(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		err = errno
	}
	return plaintext.Line(err.Error())
}
