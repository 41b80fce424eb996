package anthropicapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// obj is JSON by hand.
type obj = map[string]any

// ask is a valid request with one user message.
func ask(text string) obj {
	return obj{"model": "claude-opus-4-8", "max_tokens": 100, "messages": []any{obj{"role": "user", "content": text}}}
}

func with(o obj, key string, value any) obj {
	c := obj{}
	for k, v := range o {
		c[k] = v
	}
	if c[key] = value; value == nil {
		delete(c, key)
	}
	return c
}

func streamed(o obj) obj { return with(o, "stream", true) }

// response is one of HTTP; its body is closed when the test ends.
type response struct {
	StatusCode int
	Header     http.Header
	Body       io.ReadCloser
}

// text reads the body to its end.
func (r response) text(t *testing.T) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// post sends a body as a client would; a string is sent as it is.
func post(t *testing.T, s *Server, path string, body any) response {
	t.Helper()
	r, err := try(t, s, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func try(t *testing.T, s *Server, path string, body any) (response, error) {
	t.Helper()
	raw, isText := body.(string)
	if !isText {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(b)
	}
	return send(t, http.MethodPost, s.URL()+path, raw, http.Header{"X-Api-Key": {"test"}, "Anthropic-Version": {"2023-06-01"}})
}

func send(t *testing.T, method, url, body string, header http.Header) (response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return response{}, err
	}
	t.Cleanup(func() { resp.Body.Close() })
	return response{resp.StatusCode, resp.Header, resp.Body}, nil
}

// sse is one event as it came, its data not parsed.
type sse struct{ name, data string }

// sseReader reads events one by one.
type sseReader struct{ lines *bufio.Reader }

func reader(r io.Reader) *sseReader { return &sseReader{bufio.NewReader(r)} }

func (r *sseReader) next() (e sse, err error) {
	for {
		line, err := r.lines.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		switch {
		case err != nil:
			return e, err
		case line == "":
			return e, nil
		case strings.HasPrefix(line, "event: "):
			e.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			e.data = line[6:]
		default:
			return e, fmt.Errorf("not a line of a stream of events: %q", line)
		}
	}
}

// all reads to the end and gives its error, nil for an end between two events.
func (r *sseReader) all() (list []sse, err error) {
	for {
		e, err := r.next()
		if errors.Is(err, io.EOF) && e == (sse{}) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, e)
	}
}

func names(list []sse) string {
	var b []string
	for _, e := range list {
		b = append(b, e.name)
	}
	return strings.Join(b, " ")
}

type part struct {
	Type, Text, Thinking, Signature, ID, Name string
	Input                                     json.RawMessage
}

type reply struct {
	ID, Type, Role, Model string
	Content               []part
	Stop                  *string `json:"stop_reason"`
	Usage                 struct {
		In         int `json:"input_tokens"`
		Out        int `json:"output_tokens"`
		CacheRead  int `json:"cache_read_input_tokens"`
		CacheWrite int `json:"cache_creation_input_tokens"`
	}
}

// join puts a stream together again, as strictly as the official clients do.
func join(t *testing.T, list []sse) (m reply) {
	t.Helper()
	var input bytes.Buffer
	open := -1
	for _, e := range list {
		var v struct {
			Type    string
			Message reply
			Index   int
			Block   part `json:"content_block"`
			Delta   struct {
				Type, Text, Thinking, Signature string
				Partial                         string  `json:"partial_json"`
				Stop                            *string `json:"stop_reason"`
			}
			Usage struct {
				Out int `json:"output_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(e.data), &v); err != nil || v.Type != e.name {
			t.Fatalf("event %q, data %s: %v", e.name, e.data, err)
		}
		switch v.Type {
		case "message_start":
			if m = v.Message; m.Content == nil || m.Stop != nil {
				t.Errorf("a message starts with no content and no stop reason: %s", e.data)
			}
		case "content_block_start":
			if open != -1 || v.Index != len(m.Content) {
				t.Errorf("block %d starts at the wrong time", v.Index)
			}
			open = v.Index
			m.Content = append(m.Content, v.Block)
			input.Reset()
		case "content_block_delta":
			b := &m.Content[v.Index]
			b.Text += v.Delta.Text
			b.Thinking += v.Delta.Thinking
			b.Signature += v.Delta.Signature
			input.WriteString(v.Delta.Partial)
			if want := map[string]string{"text": "text_delta", "tool_use": "input_json_delta"}[b.Type]; want != "" && want != v.Delta.Type {
				t.Errorf("%s in a block of %s", v.Delta.Type, b.Type)
			}
		case "content_block_stop":
			if open != v.Index {
				t.Errorf("block %d stops while %d is open", v.Index, open)
			}
			if open = -1; m.Content[v.Index].Type == "tool_use" {
				m.Content[v.Index].Input = json.RawMessage(input.String())
			}
		case "message_delta":
			m.Stop, m.Usage.Out = v.Delta.Stop, v.Usage.Out
		}
	}
	return m
}

// fake is a test that a test can let fail.
type fake struct {
	testing.TB
	failed, skipped []string
	cleanup         []func()
}

func (f *fake) Helper()          {}
func (f *fake) Cleanup(c func()) { f.cleanup = append(f.cleanup, c) }
func (f *fake) Errorf(format string, args ...any) {
	f.failed = append(f.failed, fmt.Sprintf(format, args...))
}
func (f *fake) Fatalf(format string, args ...any) { f.Errorf(format, args...); panic(f) }
func (f *fake) Skipf(format string, args ...any) {
	f.skipped = append(f.skipped, fmt.Sprintf(format, args...))
	panic(f)
}

// run gives the fake test to fn, and ends it as testing does.
func (f *fake) run(fn func(testing.TB)) {
	defer func() {
		if r := recover(); r != nil && r != any(f) {
			panic(r)
		}
		for _, c := range f.cleanup {
			c()
		}
	}()
	fn(f)
}

const soon = 5 * time.Minute
