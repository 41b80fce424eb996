package transcript_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

func TestRepair(t *testing.T) {
	redacted := func(data string) transcript.Block {
		return transcript.Block{Type: transcript.RedactedBlock, Data: data}
	}
	image := transcript.Block{Type: "image"}
	nameless := call("a")
	nameless.Name = ""
	for name, tc := range map[string]struct {
		given []transcript.Message
		want  string // "" is as given
	}{
		"nothing":                {nil, ""},
		"whole":                  {[]transcript.Message{user("q"), agent("a", call("x")), user(result("x", "")), agent("b")}, ""},
		"thoughts":               {[]transcript.Message{user("q"), agent(thought("t", "s"), redacted("d"), "a"), user("r")}, ""},
		"one role in a row":      {[]transcript.Message{user("q"), user("r"), agent("a"), agent("b")}, "user: q r|assistant: a b"},
		"blanks":                 {[]transcript.Message{user("q", " \n"), agent(""), user(), agent("a")}, "user: q|assistant: a"},
		"unsigned":               {[]transcript.Message{user("q"), agent(thought("t", ""), redacted(""), "a")}, "user: q|assistant: a"},
		"unsigned at a call":     {[]transcript.Message{user("q"), agent(thought("t", ""), "a", call("x")), user(result("x", ""))}, ""},
		"unsigned, then a call":  {[]transcript.Message{user("q"), agent(thought("t", "")), agent(call("x"), thought("u", "")), user(result("x", ""))}, "user: q|assistant: thinking call x|user: result x"},
		"blank thought":          {[]transcript.Message{user("q"), agent(thought(" ", ""), call("x")), user(result("x", ""))}, "user: q|assistant: call x|user: result x"},
		"unsigned, use nameless": {[]transcript.Message{user("q"), agent(thought("t", ""), "a", nameless)}, "user: q|assistant: a"},
		"unsigned by the user":   {[]transcript.Message{user("q", thought("t", ""))}, "user: q"},
		"thought alone":          {[]transcript.Message{user("q"), agent(thought("t", "s")), user("r"), agent("a", thought("t", "s"))}, "user: q r|assistant: a"},
		"thought, then text":     {[]transcript.Message{user("q"), agent(thought("t", "s")), agent("a")}, "user: q|assistant: thinking a"},
		"answer first":           {[]transcript.Message{agent("a", call("x")), user(result("x", "r"))}, "user: [system] The beginning of this conversation is lost.|assistant: a call x|user: result x"},
		"killed at a call":       {[]transcript.Message{user("q"), agent(call("x"), call("y"))}, "user: q|assistant: call x call y|user: result x lost result y lost"},
		"killed, then said":      {[]transcript.Message{user("q"), agent(call("x")), user("r")}, "user: q|assistant: call x|user: result x lost r"},
		"one of two":             {[]transcript.Message{user("q"), agent(call("x"), call("y")), user(result("y", "r"), "s")}, "user: q|assistant: call x call y|user: result x lost result y s"},
		"results apart":          {[]transcript.Message{user("q"), agent(call("x")), agent(call("y")), user(result("y", "")), user("s", result("x", ""))}, "user: q|assistant: call x call y|user: result x result y s"},
		"answered too late":      {[]transcript.Message{user("q"), agent(call("x")), user("r"), agent("a"), user(result("x", ""))}, "user: q|assistant: call x|user: result x lost r|assistant: a"},
		"orphan":                 {[]transcript.Message{user("q", result("x", ""))}, "user: q"},
		"orphan alone":           {[]transcript.Message{user("q"), agent("a"), user(result("x", "")), agent("b")}, "user: q|assistant: a b"},
		"twice":                  {[]transcript.Message{user("q"), agent(call("x")), user(result("x", "1"), result("x", "2"))}, "user: q|assistant: call x|user: result x"},
		"the same id, answered":  {[]transcript.Message{user("q"), agent(call("x"), call("x")), user(result("x", "1"), result("x", "2"))}, "user: q|assistant: call x call x_2|user: result x result x_2"},
		"the same id, later":     {[]transcript.Message{user("q"), agent(call("x")), user(result("x", "1")), agent(call("x")), user(result("x", "2"))}, "user: q|assistant: call x|user: result x|assistant: call x_2|user: result x_2"},
		"ids of other services":  {[]transcript.Message{user("q"), agent(call("f.x:0"), call("")), user(result("f.x:0", ""), result("", ""))}, "user: q|assistant: call f_x_0 call _|user: result f_x_0 result _"},
		"no name":                {[]transcript.Message{user("q"), agent(nameless), user(result("a", ""))}, "user: q"},
		"wrong places":           {[]transcript.Message{user("q", call("x"), thought("t", "s"), image), agent("a", result("x", ""), image)}, "user: q|assistant: a"},
		"a role of others":       {[]transcript.Message{{Role: "system", Content: user("s").Content}, user("q")}, "user: q"},
	} {
		got, changed := repaired(tc.given)
		want := tc.want
		if want == "" {
			want = strings.Join(reported(tc.given), "|")
		}
		if short := strings.Join(reported(got), "|"); short != want || changed != (tc.want != "") {
			t.Errorf("%s: %s, want %s; changed: %t", name, short, want, changed)
		}
	}
	got := transcript.Repair([]transcript.Message{user("q"), agent(call("x"))})
	if b := got[2].Content[0]; !reflect.DeepEqual(b, lost("x")) {
		t.Errorf("%+v", b)
	}
	bad := call("x")
	bad.Name, bad.Input = "a.b"+strings.Repeat("c", 200), json.RawMessage(`"{"`)
	got, changed := repaired([]transcript.Message{user("q"), agent(bad)})
	if b := got[1].Content[0]; !changed || !strings.HasPrefix(b.Name, "a_bc") || len(b.Name) != 128 || string(b.Input) != `{}` {
		t.Errorf("%+v", b)
	}
}

// copied shares no memory with messages.
func copied(messages []transcript.Message) []transcript.Message {
	list := slices.Clone(messages)
	for i := range list {
		list[i].Content = slices.Clone(list[i].Content)
	}
	return list
}

// said is the texts of one role that are not blank, in order.
func said(messages []transcript.Message, role string) (texts []string) {
	for _, m := range messages {
		for _, b := range m.Content {
			if m.Role == role && b.Type == transcript.TextBlock && strings.TrimSpace(b.Text) != "" {
				texts = append(texts, b.Text)
			}
		}
	}
	return texts
}

// The server judges as the real one does.
func TestRepairedIsTaken(t *testing.T) {
	s := anthropicapi.New(t)
	rapid.Check(t, func(r *rapid.T) {
		given := drawMessages(r)
		for _, m := range given {
			for i, b := range m.Content {
				if b.Signature != "" { // the server knows its own
					sum := sha256.Sum256([]byte("apitest " + b.Thinking))
					m.Content[i].Signature = base64.StdEncoding.EncodeToString(sum[:])
				}
			}
		}
		before := copied(given)
		got, changed := repaired(given)
		if !reflect.DeepEqual(given, before) {
			r.Fatal("what was given was changed")
		}
		if changed == reflect.DeepEqual(normals(given), normals(got)) {
			r.Fatalf("changed: %t", changed)
		}
		if again, changed := repaired(got); changed {
			r.Fatalf("%q, and once more %q", reported(got), reported(again))
		}
		if want, texts := said(given, transcript.User), said(got, transcript.User); !slices.Equal(slices.DeleteFunc(texts, isNotice), want) {
			r.Fatalf("said %q, kept %q", want, texts)
		}
		if want, texts := said(given, transcript.Assistant), said(got, transcript.Assistant); !slices.Equal(texts, want) {
			r.Fatalf("answered %q, kept %q", want, texts)
		}
		if n := len(got); n == 0 || got[n-1].Role == transcript.Assistant {
			got = append(got, user("next"))
		}
		if status, answer := ask(t, s, signed(got)); status != http.StatusOK {
			r.Fatalf("%q: %s", reported(got), answer)
		}
	})
	if broken := s.Violations(); len(broken) > 0 {
		t.Error(broken)
	}
}

// signed is what is sent to a service that signs thoughts.
func signed(messages []transcript.Message) []transcript.Message {
	list := copied(messages)
	for i, m := range list {
		list[i].Content = slices.DeleteFunc(m.Content, func(b transcript.Block) bool {
			return b.Type == transcript.ThinkingBlock && b.Signature == ""
		})
	}
	return list
}

// An answer without a tool use keeps only signed thoughts.
func TestUnsignedThoughts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		got := transcript.Repair(drawMessages(r))
		for _, m := range got {
			uses := slices.ContainsFunc(m.Content, func(b transcript.Block) bool { return b.Type == transcript.ToolUse })
			if !uses && len(signed([]transcript.Message{m})[0].Content) < len(m.Content) {
				r.Fatalf("%q", reported(got))
			}
		}
	})
}

func isNotice(text string) bool {
	return text == "[system] The beginning of this conversation is lost."
}

func normals(messages []transcript.Message) (list []transcript.Message) {
	for _, m := range messages {
		list = append(list, normal(transcript.Entry{Message: m}).Message)
	}
	return list
}

func ask(t *testing.T, s *anthropicapi.Server, messages []transcript.Message) (int, string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "claude-sonnet-4-5", "max_tokens": 10, "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, s.URL()+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "k")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer)
}

// repaired repairs messages, and reports whether that changes them.
func repaired(list []transcript.Message) (got []transcript.Message, changed bool) {
	got = transcript.Repair(list)
	return got, !slices.EqualFunc(list, got, same)
}

func same(a, b transcript.Message) bool {
	return a.Role == b.Role && slices.EqualFunc(a.Content, b.Content, func(a, b transcript.Block) bool {
		return a.Type == b.Type && a.Text == b.Text && a.Thinking == b.Thinking && a.Signature == b.Signature && a.Data == b.Data &&
			a.ID == b.ID && a.Name == b.Name && bytes.Equal(a.Input, b.Input) && a.ToolUseID == b.ToolUseID &&
			a.Content == b.Content && a.IsError == b.IsError && a.Source == b.Source
	})
}
