package anthropicapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func user(content any) obj      { return obj{"role": "user", "content": content} }
func assistant(content any) obj { return obj{"role": "assistant", "content": content} }
func system(content any) obj    { return obj{"role": "system", "content": content} }
func says(s string) obj         { return obj{"type": "text", "text": s} }
func use(id string) obj         { return obj{"type": "tool_use", "id": id, "name": "T", "input": obj{}} }
func result(id string) obj      { return obj{"type": "tool_result", "tool_use_id": id, "content": "r"} }
func talk(messages ...any) obj  { return with(ask(""), "messages", append([]any{}, messages...)) }

func tools(t ...any) obj { return with(ask("hi"), "tools", t) }

func cached(o obj) obj { return with(o, "cache_control", obj{"type": "ephemeral"}) }

func object() obj { return obj{"type": "object"} }

func TestRefused(t *testing.T) {
	many := []any{}
	for range 5 {
		many = append(many, cached(says("x")))
	}
	for name, tc := range map[string]struct {
		body any
		want string
	}{
		"no json":              {"{", "not valid JSON"},
		"wrong type":           {with(ask("hi"), "max_tokens", "many"), "max_tokens: Input should be a valid int"},
		"no model":             {with(ask("hi"), "model", nil), "model: Field required"},
		"no messages":          {with(ask("hi"), "messages", nil), "messages: Field required"},
		"empty messages":       {talk(), "messages: at least one message is required"},
		"no max_tokens":        {with(ask("hi"), "max_tokens", nil), "max_tokens: Field required"},
		"zero max_tokens":      {with(ask("hi"), "max_tokens", 0), "max_tokens: Input should be greater"},
		"system a number":      {with(ask("hi"), "system", 7), "system: Input should be a valid string"},
		"not a PNG":            {talk(user([]any{with(picture(), "source", obj{"type": "base64", "media_type": "image/jpeg", "data": "iVBORw0KGgo="})})), "does not appear to be one"},
		"an image of text":     {talk(user([]any{with(picture(), "source", obj{"type": "base64", "media_type": "text/plain", "data": "eA=="})})), "Input should be 'image/png'"},
		"system an image":      {with(ask("hi"), "system", []any{obj{"type": "image"}}), "system: Input should be"},
		"content a number":     {talk(user(7)), "messages.0.content: Input should be"},
		"no content":           {talk(obj{"role": "user"}), "messages.0.content: Input should be"},
		"result a number":      {talk(user("a"), assistant([]any{use("a")}), user([]any{with(result("a"), "content", 7)})), "messages.2.content"},
		"empty content":        {talk(user([]any{})), "messages.0: all messages must have non-empty content"},
		"unknown role":         {talk(obj{"role": "tool", "content": "x"}), "messages.0.role: Input should be"},
		"assistant first":      {talk(assistant("a"), user("b")), `first message must use the "user" role`},
		"system first":         {talk(system("a"), user("b")), "messages.0: a `system` message must follow"},
		"system after answer":  {talk(user("a"), assistant("b"), system("c"), user("d")), "messages.2: a `system` message"},
		"empty system":         {talk(user("a"), system([]any{})), "messages.1: all messages must have non-empty content"},
		"effort of a user":     {talk(with(user("a"), "output_config", obj{"effort": "low"})), "messages.0.output_config.effort"},
		"effort unknown":       {talk(user("a"), with(system([]any{}), "output_config", obj{"effort": "some"})), "messages.1.output_config.effort"},
		"empty text":           {talk(user([]any{says("")})), "text content blocks must be non-empty"},
		"blank text":           {talk(user([]any{says(" \n")})), "must contain non-whitespace text"},
		"no type":              {talk(user([]any{obj{"text": "x"}})), "messages.0.content.0.type: Field required"},
		"use by user":          {talk(user([]any{use("a")})), "messages.0: `tool_use` blocks cannot be in `user` messages"},
		"result by assistant":  {talk(user("a"), assistant([]any{result("a")})), "messages.1: `tool_result` blocks cannot"},
		"bad id":               {talk(user("a"), assistant([]any{use("a b")}), user([]any{result("a b")})), "messages.1.content.0.tool_use.id: String should match"},
		"no name":              {talk(user("a"), assistant([]any{with(use("a"), "name", nil)}), user([]any{result("a")})), "tool_use.name: Field required"},
		"input a string":       {talk(user("a"), assistant([]any{with(use("a"), "input", "{}")}), user([]any{result("a")})), "tool_use.input: Input should be a valid dictionary"},
		"thought changed":      {talk(user("a"), assistant([]any{obj{"type": "thinking", "thinking": "other", "signature": signature("one")}, says("x")}), user("b")), "messages.1.content.0: Invalid `signature`"},
		"thought unsigned":     {talk(user("a"), assistant([]any{obj{"type": "thinking", "thinking": "one"}, says("x")}), user("b")), "Invalid `signature`"},
		"use unanswered":       {talk(user("a"), assistant([]any{use("a"), use("b")}), user([]any{result("b")})), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a."},
		"use unanswered last":  {talk(user("a"), assistant([]any{use("a"), use("b")})), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a, b."},
		"answered too late":    {talk(user("a"), assistant([]any{use("a")}), user("b"), assistant("c"), user([]any{result("a")})), "messages.1: `tool_use` ids were found without"},
		"result of nothing":    {talk(user([]any{result("a")})), "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a."},
		"result of other":      {talk(user("a"), assistant([]any{use("a")}), user([]any{result("a"), result("b")})), "messages.2.content.1: unexpected `tool_use_id`"},
		"result twice":         {talk(user("a"), assistant([]any{use("a")}), user([]any{result("a"), result("a")})), "must have a single result"},
		"result after text":    {talk(user("a"), assistant([]any{use("a")}), user([]any{says("x"), result("a")})), "messages.2.content.1: `tool_result` blocks must come before"},
		"id twice":             {talk(user("a"), assistant([]any{use("a")}), user([]any{result("a")}), assistant([]any{use("a")}), user([]any{result("a")})), "messages.3.content.0: `tool_use` ids must be unique"},
		"prefill":              {talk(user("a"), assistant("b")), "does not support assistant message prefill"},
		"prefill with a space": {with(talk(user("a"), assistant("b ")), "model", "claude-haiku-4-5-20251001"), "cannot end with trailing whitespace"},
		"tool twice":           {tools(obj{"name": "a", "input_schema": object()}, obj{"name": "a", "input_schema": object()}), "Tool names must be unique"},
		"tool name":            {tools(obj{"name": "a.b", "input_schema": object()}), "tools.0.custom.name: String should match"},
		"tool without schema":  {tools(obj{"name": "a"}), "tools.0.custom.input_schema.type"},
		"cache everywhere":     {talk(user(many)), "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		"cache in all places":  {with(with(talk(user(many[:3])), "system", []any{cached(says("x"))}), "tools", []any{cached(obj{"name": "a", "input_schema": object()})}), "Found 5."},
		"budget too small":     {thinks("claude-opus-4-6", "enabled", 1000), "greater than or equal to 1024"},
		"budget too big":       {thinks("claude-opus-4-6", "enabled", 2000), "`max_tokens` must be greater than"},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t)
			resp := post(t, s, "/v1/messages", tc.body)
			body := resp.text(t)
			v := s.Violations()
			if resp.StatusCode != 400 || !strings.Contains(body, `"type":"invalid_request_error"`) || len(v) != 1 || !strings.Contains(v[0], tc.want) {
				t.Errorf("%d %s\nviolations %q", resp.StatusCode, body, v)
			}
			if len(s.Requests()) != 1 || len(s.Requests()[0].Raw) == 0 {
				t.Error("the request is not on record")
			}
		})
	}
}

// picture is an image block with the first bytes of a PNG file.
func picture() obj {
	return obj{"type": "image", "source": obj{"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
}

func TestAccepted(t *testing.T) {
	thought := obj{"type": "thinking", "thinking": "one", "signature": signature("one")}
	for name, body := range map[string]obj{
		"text":               ask("hi"),
		"system text":        with(ask("hi"), "system", "be brief"),
		"system blocks":      with(ask("hi"), "system", []any{says("be"), cached(says("brief"))}),
		"users in a row":     talk(user("a"), user("b"), assistant("c"), assistant("d"), user("e")),
		"effort alone":       talk(user("a"), with(system([]any{}), "output_config", obj{"effort": "medium"}), assistant("b"), user("c")),
		"system in between":  talk(user("a"), system("b"), user("c"), assistant("d"), user("e"), system([]any{says("f")})),
		"tools":              talk(user("a"), assistant([]any{thought, says("x"), use("a"), use("b")}), user([]any{result("b"), result("a"), says("y")})),
		"results split":      talk(user("a"), assistant([]any{use("a"), use("b")}), user([]any{result("a")}), user([]any{result("b")}), user("c")),
		"uses split":         talk(user("a"), assistant([]any{use("a")}), assistant([]any{use("b")}), user([]any{result("a"), result("b")})),
		"system after tool":  talk(user("a"), assistant([]any{use("a")}), user([]any{result("a")}), system("b"), assistant("c"), user("d")),
		"result of nothing":  talk(user("a"), assistant([]any{use("a")}), user([]any{with(result("a"), "content", nil)})),
		"result with images": talk(user("a"), assistant([]any{use("a")}), user([]any{with(result("a"), "content", []any{says("x"), picture()})})),
		"thought left out":   talk(user("a"), assistant([]any{with(thought, "thinking", ""), says("x")}), user("b")),
		"prefill":            with(talk(user("a"), assistant("b")), "model", "claude-sonnet-4-20250514"),
		"tool list":          tools(obj{"name": "a", "input_schema": object(), "cache_control": nil}, obj{"name": "web_search", "type": "web_search_20250305"}),
		"budget":             with(thinks("claude-opus-4-6", "enabled", 1999), "max_tokens", 2000),
		"adaptive":           with(ask("hi"), "thinking", obj{"type": "adaptive"}),
		"unknown field":      with(ask("hi"), "context_management", obj{}),
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t)
			if resp := post(t, s, "/v1/messages", body); resp.StatusCode != 200 || s.Violations() != nil {
				t.Errorf("%d %q", resp.StatusCode, s.Violations())
			}
		})
	}
}

func TestVersionHeader(t *testing.T) {
	s := New(t)
	body := `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`
	resp, err := send(t, http.MethodPost, s.URL()+"/v1/messages", body, http.Header{"Authorization": {"Bearer tok"}})
	if err != nil {
		t.Fatal(err)
	}
	if body := resp.text(t); resp.StatusCode != 400 || !strings.Contains(body, "anthropic-version: header is required") || len(s.Violations()) != 1 {
		t.Error(resp.StatusCode, body)
	}
	if key := s.Requests()[0].Key(); key != "tok" {
		t.Errorf("key %q", key)
	}
}

// Prefilling is judged by the model's generation.
func TestPrefill(t *testing.T) {
	for model, want := range map[string]bool{
		"claude-3-5-haiku-20241022": true, "claude-opus-4-1": true, "claude-opus-4-5-20251101": true, "claude-sonnet-4-20250514": true,
		"claude-haiku-4-5-20251001": true, "claude-opus-4-6": false, "claude-opus-4-8": false, "claude-sonnet-5": false, "my-model": false,
	} {
		s := New(t)
		post(t, s, "/v1/messages", with(talk(user("a"), assistant("b")), "model", model))
		if got := len(s.Violations()) == 0; got != want {
			t.Errorf("%s: %t", model, got)
		}
	}
}

func thinks(model, how string, budget any) obj {
	return with(with(ask("hi"), "model", model), "thinking", with(obj{"type": how}, "budget_tokens", budget))
}

// How much to think is judged by the model.
func TestThinkingTypes(t *testing.T) {
	for model, refused := range map[string]string{
		"claude-sonnet-5-5": "disabled enabled", "claude-opus-5-5": "disabled enabled between_tools", "claude-haiku-5-5": "enabled between_tools",
		"claude-fable-5": "disabled enabled between_tools", "claude-fable-5-1": "disabled enabled between_tools",
		"claude-mythos-5-1": "disabled enabled between_tools", "claude-mythos-preview": "disabled between_tools",
		"claude-sonnet-5": "enabled between_tools", "claude-opus-4-8": "enabled between_tools", "claude-opus-4-7": "enabled between_tools",
		"claude-opus-4-6": "between_tools", "claude-sonnet-4-20250514": "between_tools", "claude-3-7-sonnet-20250219": "between_tools", "my-model": "",
	} {
		for how, budget := range map[string]any{"disabled": nil, "enabled": 1024, "between_tools": nil, "adaptive": nil} {
			s := New(t)
			resp := post(t, s, "/v1/messages", with(thinks(model, how, budget), "max_tokens", 2000))
			body, want := resp.text(t), slices.Contains(strings.Fields(refused), how)
			if v := s.Violations(); (len(v) == 1) != want || (resp.StatusCode == 400) != want || want && !strings.Contains(body, "hinking") {
				t.Errorf("%s %s: %d %q", model, how, resp.StatusCode, v)
			}
		}
	}
}

func TestUnseenViolationsFailTheTest(t *testing.T) {
	for _, look := range []bool{false, true} {
		f := &fake{TB: t}
		f.run(func(tb testing.TB) {
			s := New(tb)
			post(t, s, "/v1/messages", talk())
			if look {
				s.Violations()
			}
		})
		if failed := slices.ContainsFunc(f.failed, func(m string) bool { return strings.Contains(m, "at least one message") }); failed == look {
			t.Errorf("looked: %t, failed: %q", look, f.failed)
		}
	}
}
