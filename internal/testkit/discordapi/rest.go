package discordapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rest is the state of the REST API.
type rest struct {
	calls        []Call
	faults       []Fault
	buckets      map[string][]time.Time  // when the requests of each rate limit came
	interactions map[string]*Interaction // by id, and by token
	nonces       map[string]string       // message ids
	violations   []string
}

// Call is one request of the bot.
type Call struct {
	Method string
	Path   string // below /api/vN, such as /channels/1/messages
	Query  url.Values
	Body   json.RawMessage // the payload_json of a multipart request
	At     time.Time
	Status int
	Files  []File
}

// Fault answers requests in the API's place.
type Fault struct {
	Method  string // "" is any
	Path    string // a part of the path; "" is any
	Times   int    // how many requests; 0 is one
	Status  int    // 0 cuts the connection
	Code    int    // of the error object
	After   time.Duration
	Global  bool
	Applied bool // the request is carried out before it fails, as when an answer is lost
}

// Fail makes requests fail, from now on, in the order of the faults.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		f.Times = max(1, f.Times)
		s.rest.faults = append(s.rest.faults, f)
	}
}

// Calls returns the requests whose method and path contain these words.
func (s *Server) Calls(method, path string) (list []Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.rest.calls {
		if strings.Contains(c.Method, method) && strings.Contains(c.Path, path) {
			list = append(list, c)
		}
	}
	return list
}

// exchange is one request with what is known of it.
type exchange struct {
	*Server
	w    http.ResponseWriter
	call Call
	in   map[string]json.RawMessage // the object of the body
}

// call serves a REST request.
func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	x := &exchange{Server: s, w: w, call: Call{Method: r.Method, Query: r.URL.Query(), At: time.Now()}}
	version, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v"), "/")
	x.call.Path = "/" + rest
	if !strings.HasPrefix(r.URL.Path, "/api/v") || version != "9" && version != "10" {
		http.NotFound(w, r)
		return
	}
	if err := x.read(r); err != nil {
		x.fail(http.StatusBadRequest, 50109, err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.rest.calls = append(s.rest.calls, x.call); s.note() }()
	if x.public() || r.Header.Get("Authorization") == "Bot "+Token {
		x.route()
		return
	}
	x.fail(http.StatusUnauthorized, 0, "401: Unauthorized")
}

// public reports whether the request needs no token: the gateway's address, and what an interaction's token stands for.
func (x *exchange) public() bool {
	return x.call.Path == "/gateway" || strings.HasPrefix(x.call.Path, "/interactions/") || strings.HasPrefix(x.call.Path, "/webhooks/")
}

// read reads the body: JSON, or a form with payload_json and files.
func (x *exchange) read(r *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, 25<<20+1))
	if err != nil || len(body) > 25<<20 {
		return fmt.Errorf("the body is too large or was cut: %w", err)
	}
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "multipart/form-data" {
		if body, err = x.readForm(multipart.NewReader(strings.NewReader(string(body)), params["boundary"])); err != nil {
			return err
		}
	}
	if len(body) == 0 {
		return nil
	}
	if x.call.Body = body; body[0] == '{' {
		return json.Unmarshal(body, &x.in)
	}
	return nil
}

func (x *exchange) readForm(form *multipart.Reader) (payload []byte, err error) {
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return payload, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		if part.FormName() == "payload_json" {
			payload = data
			continue
		}
		x.call.Files = append(x.call.Files, File{Name: part.FileName(), Type: part.Header.Get("Content-Type"), Data: data})
	}
}

// fault returns the fault that the request meets. The caller holds mu.
func (x *exchange) fault() *Fault {
	for i := range x.rest.faults {
		f := &x.rest.faults[i]
		if f.Times > 0 && (f.Method == "" || f.Method == x.call.Method) && strings.Contains(x.call.Path, f.Path) {
			f.Times--
			return f
		}
	}
	return nil
}

// play answers with a fault.
func (x *exchange) play(f Fault) {
	if f.Status == 0 {
		x.call.Status = 0
		panic(http.ErrAbortHandler)
	}
	if f.Status == http.StatusTooManyRequests {
		x.w.Header().Set("Retry-After", fmt.Sprintf("%.3f", f.After.Seconds()))
		if f.Global {
			x.w.Header().Set("X-RateLimit-Global", "true")
		}
		x.answer(f.Status, map[string]any{"message": "You are being rate limited.", "retry_after": f.After.Seconds(), "global": f.Global})
		return
	}
	x.fail(f.Status, f.Code, "a fault of the test")
}

// answer sends a status and a body; nil is no body.
func (x *exchange) answer(status int, v any) {
	x.call.Status = status
	if v == nil {
		x.w.WriteHeader(status)
		return
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(status)
	_, _ = x.w.Write(encode(x.odd(v)))
}

// odd returns an answer with keys of types that Discord does not use today, if the options ask for it.
func (x *exchange) odd(v any) any {
	if !x.options.Odd || strings.Contains(x.call.Path, "/messages") {
		return v
	}
	var object map[string]any
	if json.Unmarshal(encode(v), &object) != nil {
		return v
	}
	for _, key := range []string{"flags", "public_flags", "position", "recipients", "permission_overwrites", "bot_public", "install_params", "shards"} {
		object[key] = "odd"
	}
	return object
}

// fail sends an error object of the API's.
func (x *exchange) fail(status, code int, message string) {
	x.answer(status, map[string]any{"message": message, "code": code})
}

// Limits that are known of Discord: creating and editing messages of a channel, 5 in 5 seconds each; reactions, 1 in a quarter of one.
func limitOf(method, path string) (key string, most int, window time.Duration) {
	parts := strings.Split(path, "/")
	if len(parts) < 4 || parts[1] != "channels" {
		return method + path, 50, time.Second
	}
	switch {
	case strings.Contains(path, "/reactions/"):
		return "react " + parts[2], 1, time.Second / 4
	case parts[3] == "messages" && (method == http.MethodPost || method == http.MethodPatch):
		return method + " " + parts[2], 5, 5 * time.Second
	}
	return method + " " + parts[3] + parts[2], 50, time.Second
}

// limited counts the request, sets the headers and reports whether it is over the limit, which answers it.
func (x *exchange) limited() bool {
	key, most, window := limitOf(x.call.Method, x.call.Path)
	if x.options.Unlimited {
		most, window = 1000, time.Second
	}
	came := slices.DeleteFunc(x.rest.buckets[key], func(at time.Time) bool { return x.call.At.Sub(at) >= window })
	over := x.options.Limits && len(came) >= most
	if !over {
		came = append(came, x.call.At)
	}
	x.rest.buckets[key] = came
	reset := window
	if len(came) > 0 {
		reset = window - x.call.At.Sub(came[0])
	}
	h := x.w.Header()
	h.Set("X-RateLimit-Bucket", strconv.Quote(key))
	h.Set("X-RateLimit-Limit", strconv.Itoa(most))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, most-len(came))))
	h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", reset.Seconds()))
	if over {
		x.play(Fault{Status: http.StatusTooManyRequests, After: reset})
	}
	return over
}
