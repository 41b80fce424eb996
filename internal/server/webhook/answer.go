package webhook

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/ollim/ollim/internal/state/config"
)

// answer is the response to a request.
type answer struct {
	code   int
	status string        // of an event that was accepted
	run    string        // that handles it
	text   string        // what is wrong
	allow  string        // with 405: the methods
	retry  time.Duration // after which the sender should try again
	why    string        // for the log; "": text

	challenge string // of a sender that tests the address
}

// The status of an event that is in the inbox.
const (
	accepted  = "accepted"
	duplicate = "duplicate" // it looks like one that was accepted before, and is not run; the sender may have meant another
)

// How long a sender should wait before it tries again.
const (
	retryFull    = time.Minute
	retryClosing = 5 * time.Second
)

func refuse(code int, text string) answer { return answer{code: code, text: text} }

// later is a refusal that will end.
func later(code int, text string, retry time.Duration) answer {
	return answer{code: code, text: text, retry: retry}
}

// unproven is the answer to a request without a valid signature. It says no more, so that nobody learns which webhooks there are.
func unproven(why error) answer {
	return answer{code: http.StatusUnauthorized, text: "the signature is missing or not valid", why: why.Error()}
}

// write sends the answer, as one JSON object.
func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if a.allow != "" {
		h.Set("Allow", a.allow)
	}
	if a.code == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="ollim"`) // the same for every family
	}
	if a.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(a.retry.Seconds())))
	}
	body := struct {
		Status string `json:"status"`
		Run    string `json:"run,omitempty"`
		Error  string `json:"error,omitempty"`

		Challenge string `json:"challenge,omitempty"`
	}{cmp.Or(a.status, "ok"), a.run, a.text, a.challenge}
	if a.text != "" {
		body.Status = "error"
	}
	data, _ := json.Marshal(body) // texts: it cannot fail
	h.Set("Content-Length", strconv.Itoa(len(data)+1))
	w.WriteHeader(a.code)
	_, _ = w.Write(append(data, '\n'))
}

// writeEarly sends the answer to a request that may not have arrived completely, and ends the connection. The rest of the body is read
// first, up to a limit: closing the connection on a sender that is still sending would lose the answer.
func (a answer) writeEarly(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	_ = c.EnableFullDuplex() // HTTP/1 always can
	w.Header().Set("Connection", "close")
	a.write(w)
	_ = c.Flush()
	if r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, config.MaxBody)
	}
}
