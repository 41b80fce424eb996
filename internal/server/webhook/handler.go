package webhook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/payload"
)

// Access is what is logged of a request.
type Access struct {
	Time         time.Time `json:"time"`
	Status       int       `json:"status"`
	Method       string    `json:"method"`
	Path         string    `json:"path"`
	Remote       string    `json:"remote"`
	Bytes        int       `json:"bytes"` // of the body that arrived
	Milliseconds int64     `json:"ms"`
	Run          string    `json:"run,omitempty"`
	Delivery     string    `json:"delivery,omitempty"` // of a request with a valid signature
	Reason       string    `json:"reason,omitempty"`
}

// maxLogged is how many characters of a path are logged.
const maxLogged = 200

// ServeHTTP answers one request, and logs it.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := s.Now()
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	c.begin()
	line := Access{
		Time: began, Method: plaintext.Short(r.Method, maxLogged), Path: plaintext.Short(r.URL.Path, maxLogged), Remote: r.RemoteAddr,
	}
	a := s.route(r, c, &line)
	if s.stopping.Load() {
		w.Header().Set("Connection", "close")
	}
	if a.code == http.StatusRequestEntityTooLarge || r.Close && r.ContentLength != 0 && !c.whole { // net/http reads the rest of other bodies
		a.writeEarly(w, r)
	} else {
		a.write(w)
	}
	line.Status, line.Run, line.Milliseconds, line.Reason = a.code, a.run, s.Now().Sub(began).Milliseconds(), a.text
	if a.why != "" {
		line.Reason = a.why
	}
	s.Log(line)
}

func (s *server) route(r *http.Request, c *connection, line *Access) answer {
	id, isHook := strings.CutPrefix(r.URL.Path, "/hook/")
	switch {
	case r.URL.Path == "/healthz" && s.stopping.Load(), isHook && s.closing.Load():
		return later(http.StatusServiceUnavailable, "the server is closing", retryClosing)
	case r.URL.Path == "/healthz" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return answer{code: http.StatusOK}
	case r.URL.Path == "/healthz":
		return answer{code: http.StatusMethodNotAllowed, text: "want GET", allow: "GET, HEAD"}
	case !isHook || id == "" || strings.Contains(id, "/"):
		return refuse(http.StatusNotFound, "no such path: want /hook/ID")
	case r.Method != http.MethodPost:
		return answer{code: http.StatusMethodNotAllowed, text: "want POST", allow: "POST"}
	}
	if wrong := badType(r.Header); wrong != "" {
		return refuse(http.StatusUnsupportedMediaType, wrong)
	}
	body, err := c.read(r, s.MaxBody)
	line.Bytes = len(body)
	if err != nil {
		return unread(err)
	}
	to, p, err := s.authenticate(r.Header, id, body)
	if err != nil {
		return unproven(err)
	}
	line.Delivery = p.Delivery
	if a, isTest := tested(to.Keys.Scheme.Setup, r.Header, body); isTest {
		return a
	}
	return s.accept(r.Context(), to, p, body)
}

// badType returns why a body cannot be JSON as it is, "" if it can.
func badType(h http.Header) string {
	if encoding := strings.Join(h.Values("Content-Encoding"), ", "); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return "Content-Encoding is not supported: send the body as it is"
	}
	kind, parameters, err := mime.ParseMediaType(strings.Join(h.Values("Content-Type"), ", "))
	isJSON := kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
	if kind == "application/x-www-form-urlencoded" {
		return "the body is a form, not JSON: choose the content type application/json at the sender; at GitHub, edit the webhook and set " +
			"Content type to application/json"
	}
	if err != nil || !isJSON {
		return "Content-Type is not application/json: choose that at the sender"
	}
	if charset := parameters["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return "the charset of JSON is utf-8"
	}
	return ""
}

// unread is the answer to a request whose body could not be read.
func unread(err error) answer {
	switch {
	case errors.Is(err, errTooLarge):
		return refuse(http.StatusRequestEntityTooLarge, "the body is larger than this server accepts")
	case errors.Is(err, errNoMemory):
		return later(http.StatusServiceUnavailable, err.Error(), retryClosing)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the body did not arrive in time")
	}
	return answer{code: http.StatusBadRequest, text: "the body did not arrive completely", why: "body: " + err.Error()}
}

// authenticate returns the webhook that a request is for, if its signature is valid. The time that a refusal takes does not tell which
// webhooks there are.
func (s *server) authenticate(h http.Header, id string, body []byte) (hook, proof, error) {
	to, unknown := s.Files.find(id)
	if unknown != nil {
		to.Keys = s.unknown
	}
	to.Keys.long = s.Files.long()
	p, err := to.Keys.verify(h, body, s.Now())
	if err = cmp.Or(unknown, err); err != nil {
		return hook{}, proof{}, err
	}
	return to, p, nil
}

// tested returns the answer to a signed request with which the sender tests the address. It reports false for an event.
func tested(s job.Setup, h http.Header, body []byte) (answer, bool) {
	if s.PingHeader != "" && h.Get(s.PingHeader) == s.PingValue {
		return answer{code: http.StatusOK}, true
	}
	if s.Challenge == "" {
		return answer{}, false
	}
	kind, _, err := payload.At(body, "/type")
	if err != nil || kind != s.Challenge {
		return answer{}, false
	}
	challenge, _, _ := payload.At(body, "/challenge")
	text, _ := challenge.(string)
	return answer{code: http.StatusOK, challenge: text}, true
}

// accept puts an event into the inbox.
func (s *server) accept(ctx context.Context, to hook, p proof, body []byte) answer {
	data, err := s.selected(to, body)
	if err != nil {
		return refuse(http.StatusBadRequest, err.Error())
	}
	hash := sha256.Sum256(body)
	e := inbox.Entry{Hook: to.Job.ID, Delivery: p.Delivery, Signed: p.Signed, Hash: hex.EncodeToString(hash[:]), Data: data}
	code := cmp.Or(to.Keys.Scheme.Accepted, http.StatusAccepted)
	run, isNew, err := s.Inbox.Add(context.WithoutCancel(ctx), e)
	switch {
	case err == nil && !isNew && e.Brief():
		return answer{code: code, status: duplicate, run: run, why: duplicate}
	case err == nil:
		s.Added()
		return answer{code: code, status: accepted, run: run}
	case errors.Is(err, inbox.ErrConflict):
		return refuse(http.StatusConflict, err.Error())
	case errors.Is(err, inbox.ErrHookFull):
		return later(http.StatusTooManyRequests, err.Error(), retryFull)
	case errors.Is(err, inbox.ErrFull):
		return later(http.StatusServiceUnavailable, err.Error(), retryFull)
	}
	a := later(http.StatusServiceUnavailable, "the event could not be stored", retryFull)
	a.why = err.Error()
	return a
}

// selected returns the data that the agent gets of a body. Few bodies are decoded at once, because that takes more memory.
func (s *server) selected(to hook, body []byte) ([]payload.Datum, error) {
	s.selecting <- struct{}{}
	defer func() { <-s.selecting }()
	return to.Job.Hook.Fields.Select(body)
}
