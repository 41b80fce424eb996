package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/gateway"
	"github.com/ollim/ollim/internal/platform/plaintext"
)

// refusal is what a service says instead of an answer, or in the middle of one.
type refusal struct {
	host, model string
	keyless     bool   // no key was sent
	keyName     string // as in Options
	status      int    // of HTTP
	kind, code  string // as the service calls it
	param       string // the field of the request that it is about, with OpenAI
	message     string // on one line
	after       time.Duration
}

const maxRefusal = 1 << 20 // bytes that are read of one

// refused reads a response that is no stream.
func (x *exchange) refused(resp *http.Response, kind string) error {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what of it came must do
	if to, err := resp.Location(); err == nil && resp.StatusCode < 400 {
		return fmt.Errorf("%w: %s redirects requests to %s: a different base URL, a proxy or a network's login page", ErrGarbled, x.host, to.Host)
	}
	f := x.refusal(raw)
	if f.after = gateway.RetryAfter(resp.Header); resp.StatusCode >= 400 {
		f.status = resp.StatusCode
		return f.err()
	}
	if kind == "application/json" && f.message != "" { // some local servers say 200 to everything
		return f.err()
	}
	return fmt.Errorf("%w: %s sent %s with status %d, as a proxy or a network's login page does", ErrGarbled, x.host,
		cmp.Or(short(kind), "no content type"), resp.StatusCode)
}

// refusal reads what a service sent; without a status of HTTP it follows from the kind of error.
func (x *exchange) refusal(raw []byte) refusal {
	f := refusal{host: x.host, model: x.model, keyless: x.o.Key == "", keyName: x.o.KeyName}
	f.read(raw)
	f.message = short(plaintext.NewSecrets(x.o.Key).Hide(f.message))
	f.status = statusOf(f.kind, f.code)
	return f
}

// read finds the error in its many forms: {"error":{…}}, {"error":"…"}, {"message":"…"}, {"detail":"…"}, a list of one, a text.
func (f *refusal) read(raw []byte) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		raw = list[0]
	}
	var v struct {
		Error, Message, Detail, Type, Code, Param, Metadata json.RawMessage
	}
	if json.Unmarshal(raw, &v) != nil {
		if text := bytes.TrimSpace(raw); !bytes.HasPrefix(text, []byte("<")) && !bytes.HasPrefix(text, []byte("{")) {
			f.message = string(text)
		}
		return
	}
	if inner := v.Error; len(inner) > 0 && inner[0] == '{' {
		f.read(inner)
		return
	}
	f.kind, f.code, f.param = plain(v.Type), plain(v.Code), plain(v.Param)
	f.message = cmp.Or(plain(v.Error), plain(v.Message), plain(v.Detail))
	var behind struct{ Raw json.RawMessage } // what the service behind OpenRouter said
	if json.Unmarshal(v.Metadata, &behind) == nil && len(behind.Raw) > 0 {
		f.message += ": " + plain(behind.Raw)
	}
}

// plain is a JSON value as text: a string without its quotes, nothing for null.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// statusOf is the status of HTTP that a kind of error has when it comes before the answer. What is not known counts as a
// failure of the service, which may pass.
func statusOf(kind, code string) int {
	if n, err := strconv.Atoi(code); err == nil && n >= 400 && n < 600 {
		return n
	}
	known := map[string]int{
		"invalid_request_error":     http.StatusBadRequest,
		"BadRequestError":           http.StatusBadRequest,
		"context_length_exceeded":   http.StatusBadRequest,
		"exceed_context_size_error": http.StatusBadRequest,
		"authentication_error":      http.StatusUnauthorized,
		"invalid_api_key":           http.StatusUnauthorized,
		"billing_error":             http.StatusPaymentRequired,
		"permission_error":          http.StatusForbidden,
		"not_found_error":           http.StatusNotFound,
		"model_not_found":           http.StatusNotFound,
		"NotFoundError":             http.StatusNotFound,
		"request_too_large":         http.StatusRequestEntityTooLarge,
		"rate_limit_error":          http.StatusTooManyRequests,
		"rate_limit_exceeded":       http.StatusTooManyRequests,
	}
	return cmp.Or(known[code], known[kind], http.StatusInternalServerError)
}

// err is the error that a caller acts on.
func (f refusal) err() error {
	said := fmt.Sprintf("%s: %s", f.host, cmp.Or(f.message, strings.ReplaceAll(f.kind, "_", " "), http.StatusText(f.status), strconv.Itoa(f.status)))
	switch {
	case f.tooLong():
		return fmt.Errorf("%w: %s", ErrTooLong, said)
	case f.status == http.StatusPaymentRequired, f.code == "insufficient_quota", f.code == "billing_not_active",
		strings.Contains(strings.ToLower(f.message), "credit balance is too low"):
		return fmt.Errorf("%w: no credit: %s", engine.ErrKey, said)
	case f.noModel():
		return fmt.Errorf("%w: model %q: %s", engine.ErrModel, f.model, said)
	case f.status == http.StatusNotFound && f.message != "":
		return fmt.Errorf("%w: model %q: %s", engine.ErrSetup, f.model, said)
	case f.status == http.StatusNotFound:
		return fmt.Errorf("%w: model %q: %s (is the base URL right?)", engine.ErrSetup, f.model, said)
	case f.status == http.StatusUnauthorized && f.keyless:
		return fmt.Errorf("%w: the service needs a key: %s", engine.ErrNoKey, said)
	case f.status == http.StatusUnauthorized, f.status == http.StatusForbidden:
		return fmt.Errorf("%w: the key was refused: %s (it is %s)", engine.ErrKey, said, f.keyName)
	case f.status == http.StatusRequestTimeout, f.status == http.StatusConflict, f.status == http.StatusTooManyRequests, f.status >= 500:
		return &engine.Overloaded{Reason: said, After: f.after}
	case f.thinking():
		return fmt.Errorf("%w: %s", ErrThinking, said)
	}
	return fmt.Errorf("%w: %s", ErrRejected, said)
}

// tooLong knows how services say it: Anthropic, OpenAI, llama.cpp, vLLM, SGLang, Ollama, LM Studio, OpenRouter, xAI, Gemini.
// Some old ones say it with status 500. Ollama as a rule says nothing and forgets the beginning.
func (f refusal) tooLong() bool {
	switch {
	case f.code == "context_length_exceeded", f.kind == "exceed_context_size_error", f.status == http.StatusRequestEntityTooLarge:
		return true
	case f.status == http.StatusTooManyRequests:
		return false
	}
	said := strings.ToLower(f.message)
	return slices.ContainsFunc([]string{
		"prompt is too long", "exceed context limit", "maximum context length", "available context size", "context_length_exceeded",
		"longer than the maximum model length", "longer than the model's context length", "exceeds the context length",
		"exceed context window", "context the overflows", "greater than the context length", "exceeds the context window",
		"exceeds the maximum number of tokens", "maximum prompt length", "max_tokens must be at least 1, got -",
		"reduce the length of the messages",
	}, func(words string) bool { return strings.Contains(said, words) })
}

// noModel reports whether the service does not have the model, or refuses it to the account. Status 404 with another message is that of a
// wrong base URL.
func (f refusal) noModel() bool {
	switch f.status {
	case http.StatusNotFound:
		kinds := []string{"not_found_error", "NotFoundError"}
		return f.code == "model_not_found" || slices.Contains(kinds, f.kind) || strings.Contains(strings.ToLower(f.message), "model")
	case http.StatusBadRequest:
		return f.code == "model_not_found" || strings.Contains(f.message, "is not a valid model")
	case http.StatusForbidden:
		return f.code == "model_not_found" || engine.RefusesModel(f.model, f.message)
	}
	return f.code == "model_not_found"
}

// thinking reports whether the request was wrong in what it says of thoughts. OpenAI does not always name the field in its words.
func (f refusal) thinking() bool {
	if f.status != http.StatusBadRequest && f.status != http.StatusUnprocessableEntity {
		return false
	}
	about := strings.NewReplacer("_", "", ".", "", " ", "").Replace(strings.ToLower(f.message + " " + f.param))
	return strings.Contains(about, "thinking") || strings.Contains(about, "reasoningeffort")
}

const maxSaid = 400 // runes of what a service said in an error

// short is foreign text on one line.
func short(text string) string { return plaintext.Short(plaintext.Line(text), maxSaid) }
