package provider

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

// forms are ways in which the standard allows a stream to be written.
var forms = map[string]func(string) string{
	"plain":     func(s string) string { return s },
	"CRLF":      strings.NewReplacer("\n", "\r\n").Replace,
	"CR":        strings.NewReplacer("\n", "\r").Replace,
	"mark":      func(s string) string { return "\ufeff" + s },
	"two lines": strings.NewReplacer(`"delta":`, "\"delta\":\ndata: ").Replace,
	"all": func(s string) string {
		return "\ufeff" + strings.NewReplacer(`"delta":`, "\"delta\":\rdata:", "\n", "\r").Replace(s)
	},
}

func TestStreamForms(t *testing.T) {
	anthropic := event(`{"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}`) +
		event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
		event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x y"}}`) +
		event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}`) + event(`{"type":"message_stop"}`)
	openai := "data: " + delta(`"content":"x "`) + "\n\n: wait\n\nid: 1\nevent: message\ndata:" + delta(`"content":"y"`) + "\n\ndata: " + stopped +
		"\n\ndata: " + `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7}}` + "\n\ndata: [DONE]\n\n"
	for name, form := range forms {
		for body, open := range map[string]func(Options) Provider{anthropic: NewAnthropic, openai: NewOpenAI} {
			a, err := open(Options{BaseURL: raw(t, 200, "text/event-stream", form(body))}).Ask(t.Context(), ask("hi"), nil)
			if err != nil || outline(a) != "text(x y) end_turn" || a.Usage != (runlog.Usage{In: 9, Out: 7}) {
				t.Errorf("%s of %.9q: %s %+v %v", name, body, outline(a), a.Usage, err)
			}
		}
	}
	s := openaiapi.New(t)
	s.Reply(openaiapi.Reply{Raw: []string{strings.Replace(delta(`"content":"x"`), ":", ":\ndata: ", 3), stopped, "[DONE]"}})
	if a, err := NewOpenAI(Options{BaseURL: s.URL()}).Ask(t.Context(), ask("hi"), nil); err != nil || outline(a) != "text(x) end_turn" {
		t.Errorf("%s %v", outline(a), err)
	}
}

// read is all events of a stream, which comes as reader cuts it.
func read(body string, reader func(io.Reader) io.Reader) (list []string, err error) {
	f := feed{bufio.NewReader(&lines{ReadCloser: io.NopCloser(reader(strings.NewReader(body))), mark: "\ufeff"})}
	for {
		data, failed, err := f.next()
		if err != nil {
			return list, err
		}
		if failed {
			data = append([]byte("failed "), data...)
		}
		list = append(list, string(data))
	}
}

func TestFeed(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want []string
	}{
		"no empty lines":    {"data: {\"a\":1}\ndata: {}\ndata: [DONE]\ndata: {\"no\":1}\n", []string{`{"a":1}`, `{}`}},
		"three lines":       {"data: {\ndata: \"a\":1\ndata: }\n\ndata: {}\n\n", []string{"{\n\"a\":1\n}", "{}"}},
		"a comment between": {"data: {\n: wait\ndata: }\n\n", []string{"{\n}"}},
		"nothing":           {"data:\n\ndata\n\n:\n\nx: {}\n\n\n", nil},
		"cut off":           {"data: {}\n\ndata: {\ndata: }", []string{"{}"}},
		"errors":            {"event: error\ndata: {\ndata: }\n\ndata: {}\n\nerror: x\n\nerror:\n\n", []string{"failed {\n}", "{}", "failed x"}},
		"a name without":    {"event: error\n\ndata: {}\n\n", []string{"{}"}},
		"no event":          {"{\"error\":\"x\"}\n", []string{`{"error":"x"}`}},
		"marks":             {"\ufeff\ufeffdata: 1\n\ndata: \"\ufeff\"\n\n", []string{"\"\ufeff\""}},
	} {
		if got, err := read(tc.body, iotest.OneByteReader); !slices.Equal(got, tc.want) || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	// what is whole is not kept waiting
	broken := errors.New("broken")
	got, err := read("data: {}\n", func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(broken)) })
	if !slices.Equal(got, []string{"{}"}) || !errors.Is(err, broken) {
		t.Errorf("%q %v", got, err)
	}
}

// However a stream is cut and its lines end, its events are the same.
func FuzzFeed(f *testing.F) {
	for _, seed := range []string{"data: {}\n\n", "data: {\ndata: }\n\ndata: [DONE]\n", "error: x\n\nevent: error\n{}\n", "\ufeff: a\nid\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		body = strings.ReplaceAll(body, "\r", "")
		want, _ := read(body, func(r io.Reader) io.Reader { return r })
		for _, end := range []string{"\n", "\r\n", "\r"} {
			if got, err := read(strings.ReplaceAll(body, "\n", end), iotest.OneByteReader); !slices.Equal(got, want) || !errors.Is(err, io.EOF) {
				t.Errorf("%q: %q, want %q, %v", end, got, want, err)
			}
		}
	})
}
