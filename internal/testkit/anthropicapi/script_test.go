package anthropicapi

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// said is the text of a whole answer.
func said(t *testing.T, s *Server, body obj) string {
	t.Helper()
	list, err := reader(post(t, s, "/v1/messages", streamed(body)).Body).all()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, p := range join(t, list).Content {
		texts = append(texts, p.Text+p.ID)
	}
	return strings.Join(texts, "|")
}

const compaction = "CRITICAL: Respond with TEXT ONLY. Do not.\n\nAdditional Instructions:\nkeep the colour\nand the day\n\nREMINDER: no tools"

func TestWhoAnswers(t *testing.T) {
	s := New(t)
	s.Reply(Reply{Text: "first"}, Reply{Text: "second"})
	s.On(func(q Request) bool { return q.Has("title") }, func(Request) Reply { return Reply{Text: "a title"} })
	for _, step := range []struct{ ask, want string }{
		{"title please", "a title"},
		{"hi", "first"},
		{compaction, "<analysis>\nNone, this is a test.\n</analysis>\n\n<summary>\nSummary of 1 messages. Instructions: keep the colour\nand the day\n</summary>"},
		{"hi", "second"},
		{"hi", "ok"},
	} {
		if got := said(t, s, ask(step.ask)); got != step.want {
			t.Errorf("%.20s: %q, not %q", step.ask, got, step.want)
		}
	}
	s.Handle(func(q Request) Reply { return Reply{Text: "you said " + q.LastUserText()} })
	s.CompactReply(Reply{Text: "<summary>mine</summary>"})
	s.Reply(Reply{})
	if s.Left() != 1 {
		t.Errorf("%d left", s.Left())
	}
	for _, step := range []struct{ ask, want string }{{compaction, "<summary>mine</summary>"}, {"x", ""}, {"y", "you said y"}} {
		if got := said(t, s, ask(step.ask)); got != step.want {
			t.Errorf("%.20s: %q, not %q", step.ask, got, step.want)
		}
	}
}

// A compaction is recognized by the last message: a summary request further up in the conversation is history.
func TestCompactionIsTheLastWord(t *testing.T) {
	s := New(t)
	if got := said(t, s, talk(user(compaction), assistant("x"), user("hi"))); got != "ok" {
		t.Error(got)
	}
}

func TestToolIDsAreNew(t *testing.T) {
	s := New(t)
	s.Reply(Use("T", nil), Use("T", nil))
	old := []any{user("a"), assistant([]any{use("toolu_1"), use("toolu_3")}), user([]any{result("toolu_1"), result("toolu_3")})}
	if got := said(t, s, talk(old...)); got != "toolu_2" {
		t.Error(got)
	}
	if got := said(t, s, talk(old...)); got != "toolu_4" {
		t.Error(got)
	}
}

func TestRequest(t *testing.T) {
	s := New(t)
	body := talk(user([]any{says("reminder"), says("do it")}), assistant([]any{says("I call"), with(use("a"), "input", obj{"k": "v<>"})}),
		user([]any{with(with(result("a"), "content", []any{says("one"), picture(), says("two")}), "is_error", true), cached(says("and"))}), system("be quick"), user("more"))
	body["system"], body["tools"] = []any{says("s1"), cached(says("s2"))}, []any{obj{"name": "T", "description": "d", "input_schema": object()}}
	body["thinking"] = obj{"type": "adaptive"}
	post(t, s, "/v1/messages?beta=true", body)
	q := s.Requests()[0]
	want := []Message{
		{Role: "user", Content: []Block{{Type: "text", Text: "reminder"}, {Type: "text", Text: "do it"}}},
		{Role: "assistant", Content: []Block{{Type: "text", Text: "I call"}, {Type: "tool_use", ID: "a", Name: "T", Input: []byte(`{"k":"v\u003c\u003e"}`)}}},
		{Role: "user", Content: []Block{{Type: "tool_result", ToolUseID: "a", ResultText: "one\n[image]\ntwo", IsError: true, Files: []Block{{Type: "image", MediaType: "image/png", File: []byte("\x89PNG\r\n\x1a\n")}}}, {Type: "text", Text: "and", Cached: true}}},
		{Role: "system", Content: []Block{{Type: "text", Text: "be quick"}}},
		{Role: "user", Content: []Block{{Type: "text", Text: "more"}}},
	}
	if !reflect.DeepEqual(q.Messages, want) {
		t.Errorf("%+v", q.Messages)
	}
	if q.Model != "claude-opus-4-8" || q.System != "s1\n\ns2" || q.MaxTokens != 100 || q.Stream || string(q.Thinking) != `{"type":"adaptive"}` || q.Key() != "test" || q.Session() != "" || q.Breakpoints() != 2 {
		t.Errorf("%+v", q)
	}
	if q.LastUserText() != "and\nmore" || len(q.ToolResults()) != 1 || !slices.Equal(q.ToolNames(), []string{"T"}) || q.Tools[0].Description != "d" {
		t.Errorf("%q %v %v", q.LastUserText(), q.ToolResults(), q.ToolNames())
	}
	for text, want := range map[string]bool{"do it": true, "two": true, `"k"`: true, "be quick": true, "s1": false, "absent": false} {
		if q.Has(text) != want {
			t.Errorf("has %s: %t", text, !want)
		}
	}
	if time.Since(q.At) > soon || q.ID == "" || q.Header.Get("Anthropic-Version") != "2023-06-01" || len(q.Raw) == 0 {
		t.Errorf("%+v", q)
	}
}

func TestManyAtOnce(t *testing.T) {
	s := New(t)
	const n = 40
	for i := range n {
		s.Reply(Reply{Text: fmt.Sprint(i), ToolUses: []ToolUse{{Name: "T"}}})
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for range n {
		group.Go(func() {
			got := said(t, s, ask("hi"))
			mu.Lock()
			defer mu.Unlock()
			for _, p := range strings.Split(got, "|") {
				if seen[p] {
					t.Errorf("%s twice", p)
				}
				seen[p] = true
			}
		})
	}
	if got := s.WaitRequests(n, soon); len(got) < n {
		t.Error(len(got))
	}
	group.Wait()
	if s.Left() != 0 || len(seen) != 2*n {
		t.Errorf("%d left, %d seen", s.Left(), len(seen))
	}
}

func TestWaitRequestsEndsTheTest(t *testing.T) {
	f := &fake{TB: t}
	f.run(func(tb testing.TB) { New(tb).WaitRequests(1, time.Millisecond) })
	if len(f.failed) != 1 || !strings.Contains(f.failed[0], "0 of 1 requests after 1ms") {
		t.Errorf("%q", f.failed)
	}
}

func TestReplyWithoutJSONFailsTheTest(t *testing.T) {
	f := &fake{TB: t}
	f.run(func(tb testing.TB) {
		s := New(tb)
		s.Reply(Use("T", make(chan int)))
		if _, err := try(t, s, "/v1/messages", ask("hi")); err == nil {
			t.Error("it was sent")
		}
	})
	if len(f.failed) != 1 || !strings.Contains(f.failed[0], "answering POST /v1/messages: a reply that is no JSON: json: unsupported type") {
		t.Errorf("%q", f.failed)
	}
}

func TestClaudeIsFound(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("CI", "")
	t.Setenv("OLLIM_TEST_CLAUDE", "")
	find := func() (path string, f *fake) {
		f = &fake{TB: t}
		f.run(func(tb testing.TB) { path = Claude(tb) })
		return path, f
	}
	place := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := testkit.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if _, f := find(); len(f.skipped) != 1 || !strings.Contains(f.skipped[0], "npm install -g @anthropic-ai/claude-code") {
		t.Errorf("none: %q %q", f.skipped, f.failed)
	}
	t.Setenv("CI", "true")
	if _, f := find(); len(f.failed) != 1 {
		t.Errorf("none, in CI: %q %q", f.skipped, f.failed)
	}
	for _, name := range []string{"cache/ollim-test/node_modules/.bin/claude", "claude"} {
		want := place(name)
		if got, f := find(); got != want {
			t.Errorf("%s, not %s: %q", got, want, f.failed)
		}
	}
	want := place("elsewhere/claude")
	t.Setenv("OLLIM_TEST_CLAUDE", want)
	if got, _ := find(); got != want {
		t.Errorf("%s, not %s", got, want)
	}
	t.Setenv("OLLIM_TEST_CLAUDE", filepath.Join(dir, "missing"))
	if _, f := find(); len(f.failed) != 1 || !strings.Contains(f.failed[0], "missing") {
		t.Errorf("%q %q", f.skipped, f.failed)
	}
}
