package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

func TestAnswer(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		v.reply(reply{thinking: "let me <see> &", text: "Grüße, <wörld>!", in: 11, out: 7, cached: 5})
		var h heard
		a, err := v.open().Ask(t.Context(), ask("hi"), h.take)
		if err != nil {
			t.Fatal(err)
		}
		if h.text.String() != "Grüße, <wörld>!" {
			t.Errorf("heard %q", h.text.String())
		}
		want := runlog.Usage{In: 11, Out: 7, CacheRead: 5}
		if a.Stop != EndTurn || a.Usage != want || types(a.Message) != "thinking text" || a.Message.Text() != "Grüße, <wörld>!" ||
			a.Message.Role != transcript.Assistant || a.Message.Content[0].Thinking != "let me <see> &" {
			t.Errorf("%+v", a)
		}
		if signed := a.Message.Content[0].Signature != ""; signed != (v.name == "anthropic") {
			t.Errorf("signature %q", a.Message.Content[0].Signature)
		}
		if v.lastKey() != "sekret-sekret" {
			t.Errorf("key %q", v.lastKey())
		}
	})
}

func TestParallelToolUse(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		v.reply(reply{text: "I look.", uses: []use{{"Read", `{"path":"a \"b\"","n":[1,2]}`}, {"Bash", "{}"}, {"Read", `{"path":"ü"}`}}},
			reply{text: "done"})
		r := ask("hi")
		r.Tools = []engine.Tool{{Name: "Read", Description: "reads", Schema: []byte(`{"type":"object"}`)}, {Name: "Bash"}}
		a, err := v.open().Ask(t.Context(), r, nil)
		if err != nil || a.Stop != toolUse || types(a.Message) != "text tool_use tool_use tool_use" {
			t.Fatalf("%+v %v", a, err)
		}
		c := a.Message.Content
		if string(c[1].Input) != `{"path":"a \"b\"","n":[1,2]}` || string(c[2].Input) != "{}" || string(c[3].Input) != `{"path":"ü"}` ||
			c[1].Name != "Read" || c[2].Name != "Bash" || c[1].ID == "" || c[1].ID == c[3].ID || c[1].ID == c[2].ID {
			t.Errorf("%+v", c)
		}
		results := transcript.Message{Role: transcript.User}
		for _, b := range c[1:] {
			results.Content = append(results.Content, transcript.Block{Type: transcript.ToolResult, ToolUseID: b.ID, IsError: true})
		}
		results.Content = append(results.Content, transcript.Block{Type: transcript.TextBlock, Text: "and go on"})
		r.Messages = append(r.Messages, a.Message, results)
		if a, err = v.open().Ask(t.Context(), r, nil); err != nil || a.Message.Text() != "done" {
			t.Errorf("%+v %v", a, err)
		}
	})
}

func TestStops(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		for said, want := range map[string]map[string]string{
			"anthropic": {"end_turn": EndTurn, "stop_sequence": EndTurn, "max_tokens": MaxTokens, "refusal": Refusal, "pause_turn": Pause,
				"tool_use": EndTurn, "new": EndTurn},
			"openai": {"stop": EndTurn, "length": MaxTokens, "content_filter": Refusal, "tool_calls": EndTurn, "new": EndTurn},
		}[v.name] {
			v.reply(reply{text: "x", stop: said})
			if a, err := v.open().Ask(t.Context(), ask("hi"), nil); err != nil || a.Stop != want {
				t.Errorf("%s: %s %v", said, a.Stop, err)
			}
		}
		// Uses of tools count more than the reason that is given.
		said := map[string]string{"anthropic": "end_turn", "openai": "stop"}[v.name]
		v.reply(reply{uses: []use{{"Read", "{}"}}, stop: said})
		if a, err := v.open().Ask(t.Context(), ask("hi"), nil); err != nil || a.Stop != toolUse {
			t.Errorf("%s %v", a.Stop, err)
		}
	})
}

// An answer for which the window has no room is no answer. What came of it is told.
func TestFullWindow(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		v.reply(reply{text: "half", out: 7, stop: "model_context_window_exceeded"})
		a, err := v.open().Ask(t.Context(), ask("hi"), nil)
		if !errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(), "127.0.0.1") || a.Message.Text() != "half" || a.Usage.Out != 7 || a.Stop != "" {
			t.Errorf("%+v %v", a, err)
		}
	})
}

// At its limit an answer breaks off in the middle of the last input, and no service says so.
func TestLimitInToolUse(t *testing.T) {
	openaiVendor(t, func(t *testing.T, v vendor) { // for the other see TestAnthropicEvents
		for input, want := range map[string]string{`{"path":"a`: "text tool_use", "": "text tool_use", `{"path":"a"}`: "text tool_use tool_use"} {
			v.reply(reply{text: "x", uses: []use{{"Read", "{}"}, {"Read", input}}, stop: "length"})
			if a, err := v.open().Ask(t.Context(), ask("hi"), nil); err != nil || a.Stop != MaxTokens || types(a.Message) != want {
				t.Errorf("%q: %s %s %v", input, a.Stop, types(a.Message), err)
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	key := func(err error) bool { return errors.Is(err, engine.ErrKey) && errors.Is(err, engine.ErrUnavailable) }
	setup := func(err error) bool { return errors.Is(err, engine.ErrSetup) && errors.Is(err, engine.ErrUnavailable) }
	other := func(err error) bool {
		_, busy := errors.AsType[*engine.Overloaded](err)
		return !busy && !errors.Is(err, engine.ErrUnavailable) && !errors.Is(err, ErrTooLong) && !errors.Is(err, ErrCut) && !errors.Is(err, ErrGarbled)
	}
	for status, tc := range map[int]struct {
		is   func(error) bool
		says string
	}{
		400: {other, "the reason"}, 422: {other, "the reason"},
		401: {key, "key was refused"}, 403: {key, "key was refused"}, 402: {key, "no credit"},
		404: {setup, model}, 413: {func(err error) bool { return errors.Is(err, ErrTooLong) }, "the reason"},
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			vendors(t, func(t *testing.T, v vendor) {
				v.reply(reply{status: status, message: "the\nreason \x1b[31m sekret-sekret"})
				a, err := v.open().Ask(t.Context(), ask("hi"), nil)
				if !tc.is(err) || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "127.0.0.1") ||
					strings.ContainsAny(err.Error(), "\n\x1b") || strings.Contains(err.Error(), "sekret-sekret") {
					t.Errorf("%v", err)
				}
				if len(a.Message.Content) > 0 || v.requests() != 1 {
					t.Errorf("%+v after %d requests", a, v.requests())
				}
			})
		})
	}
}

func TestOverloaded(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		for status, after := range map[int]struct {
			header string
			want   time.Duration
		}{
			429: {"12", 12 * time.Second}, 500: {"", 0}, 502: {"1.5", 1500 * time.Millisecond}, 503: {"-3", 0}, 529: {"1e300", 7 * 24 * time.Hour}, 408: {"soon", 0},
		} {
			v.reply(reply{status: status, message: "busy", after: after.header})
			_, err := v.open().Ask(t.Context(), ask("hi"), nil)
			if o := overloaded(t, err); o.After != after.want || !strings.Contains(o.Reason, "busy") {
				t.Errorf("%d: %v, %q", status, o.After, o.Reason)
			}
		}
	})
}

func TestTooLong(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		for message, status := range map[string]int{
			"prompt is too long: 211000 tokens > 200000 maximum":                                                 400,
			"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000":                        400,
			"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens": 400,
			"the request exceeds the available context size. try increasing the context size":                    500,
			"the input length exceeds the context length":                                                        400,
			"The decoder prompt (length 900) is longer than the maximum model length of 800":                     400,
		} {
			v.reply(reply{status: status, message: message})
			if _, err := v.open().Ask(t.Context(), ask("hi"), nil); !errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(), message[:20]) {
				t.Errorf("%s: %v", message, err)
			}
		}
		v.reply(reply{status: 429, message: "Rate limit reached: reduce the length of the messages"})
		_, err := v.open().Ask(t.Context(), ask("hi"), nil)
		overloaded(t, err)
	})
}

func TestBroken(t *testing.T) {
	for name, tc := range map[string]struct {
		reply reply
		is    error
		says  string
		text  string
	}{
		"closed the connection": {reply{fault: "hangUp"}, ErrCut, "closed the connection", ""},
		"cut at once":           {reply{text: "one two", fault: "cut"}, ErrCut, "", ""},
		"cut":                   {reply{text: "one two", fault: "cut", events: 4}, ErrCut, "127.0.0.1", "o"},
		"short":                 {reply{text: "one two", fault: "short", events: 4}, ErrCut, "", "o"},
		"malformed":             {reply{text: "one two", fault: "malformed", events: 4}, ErrGarbled, "", "o"},
		"page":                  {reply{fault: "page"}, ErrGarbled, "text/html", ""},
		"cut in tool":           {reply{text: "one", uses: []use{{"Read", `{"path":"a"}`}}, fault: "cut", events: 9}, ErrCut, "", "one"},
		"short in tool":         {reply{text: "one", uses: []use{{"Read", `{"path":"a"}`}}, fault: "short", events: 9}, ErrCut, "", "one"},
	} {
		t.Run(name, func(t *testing.T) {
			vendors(t, func(t *testing.T, v vendor) {
				v.reply(tc.reply)
				a, err := v.open().Ask(t.Context(), ask("hi"), nil)
				if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v", err)
				}
				if got := a.Message.Text(); !strings.HasPrefix(got, tc.text) || tc.text == "" && got != "" || hasUse(a.Message) || a.Stop != "" {
					t.Errorf("%+v", a)
				}
			})
		})
	}
}

func hasUse(m transcript.Message) bool { return strings.Contains(types(m), transcript.ToolUse) }

// What is whole before the break is kept.
func TestBrokenBehindATool(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		v.reply(reply{thinking: "hm", uses: []use{{"Read", `{"path":"abcdefgh"}`}, {"Read", `{"path":"b"}`}}, fault: "cut",
			events: map[string]int{"anthropic": 16, "openai": 11}[v.name]})
		a, err := v.open().Ask(t.Context(), ask("hi"), nil)
		if !errors.Is(err, ErrCut) || types(a.Message) != "thinking tool_use" || string(a.Message.Content[1].Input) != `{"path":"abcdefgh"}` {
			t.Errorf("%+v %v", a, err)
		}
	})
}

func TestErrorEvent(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		v.reply(reply{text: "one two", fault: "errorEvent", events: 4, message: "Overloaded", status: 529})
		a, err := v.open().Ask(t.Context(), ask("hi"), nil)
		if o := overloaded(t, err); !strings.Contains(o.Reason, "Overloaded") || a.Message.Text() == "" {
			t.Errorf("%v %+v", o, a)
		}
	})
}

func TestSilence(t *testing.T) {
	for name, r := range map[string]reply{"mute": {fault: "mute"}, "silent": {text: "one", fault: "silent", events: 4}, "slow": {delay: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			vendors(t, func(t *testing.T, v vendor) {
				v.reply(r, r)
				p := v.provider(Options{BaseURL: v.url, Key: "k", Idle: 30 * time.Millisecond})
				if _, err := p.Ask(t.Context(), ask("hi"), nil); !errors.Is(err, ErrCut) || !strings.Contains(err.Error(), "30ms") {
					t.Errorf("idle: %v", err)
				}
				why := errors.New("the owner said so")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
				_, err := v.open().Ask(ctx, ask("hi"), nil)
				if !errors.Is(err, why) {
					t.Error(err)
				}
			})
		})
	}
}

// A reader that takes its time is not a silent service.
func TestSlowReader(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		t.Parallel()
		for idle := 100 * time.Millisecond; ; idle *= 2 { // on a busy machine the service itself may be silent for so long
			v.reply(reply{text: "one two three"})
			p := v.provider(Options{BaseURL: v.url, Key: "k", Idle: idle})
			var slow sync.Once
			a, err := p.Ask(t.Context(), ask("hi"), func(string) error { slow.Do(func() { time.Sleep(idle * 6 / 5) }); return nil })
			if errors.Is(err, ErrCut) && idle < 10*time.Second {
				continue
			}
			if err != nil || a.Message.Text() != "one two three" {
				t.Errorf("%v %+v", err, a)
			}
			return
		}
	})
}

func TestEndless(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		v.reply(reply{text: strings.Repeat("la ", 3000), fault: "endless"})
		a, err := v.provider(Options{BaseURL: v.url, Key: "k", limit: 50_000}).Ask(t.Context(), ask("hi"), nil)
		if !errors.Is(err, ErrGarbled) || !strings.Contains(err.Error(), "50000 bytes") || len(a.Message.Text()) < 1000 {
			t.Errorf("%v", err)
		}
	})
}

func TestDeltaEndsIt(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		v.reply(reply{text: "one two three", fault: "endless"})
		enough := errors.New("enough")
		a, err := v.open().Ask(t.Context(), ask("hi"), func(string) error { return enough })
		if !errors.Is(err, enough) || a.Message.Text() == "" {
			t.Errorf("%v %+v", err, a)
		}
	})
}

func TestNoKey(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		v.reply(reply{status: 401}, reply{text: "ok"})
		_, err := v.provider(Options{BaseURL: v.url, Key: " \n", KeyName: "KEY in FILE"}).Ask(t.Context(), ask("hi"), nil)
		if !errors.Is(err, engine.ErrUnavailable) || !errors.Is(err, engine.ErrNoKey) || !strings.Contains(err.Error(), "needs a key") || v.lastKey() != "" {
			t.Errorf("%v", err)
		}
	})
}

func TestUnreachable(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		for _, base := range []string{"http://127.0.0.1:1/v1", "http://user:sekret@no-such-host.invalid/v1", strings.Replace(v.url, "http:", "https:", 1),
			"localhost:80", "http://[::1"} {
			_, err := v.provider(Options{BaseURL: base, Key: "sekret-sekret"}).Ask(t.Context(), ask("hi"), nil)
			if !errors.Is(err, engine.ErrUnavailable) || errors.Is(err, ErrUnreached) != (strings.HasPrefix(base, "http") && base != "http://[::1") || strings.Contains(err.Error(), "sekret-sekret") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", base, err)
			}
		}
	})
}
