package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

type object = map[string]any

// formats runs one question in the real claude command and in ollim with each of its engines, against servers that answer alike.
type formats struct {
	t      *testing.T
	claude string
}

// lines is what a command wrote, an object a line.
func (f formats) lines(cmd *exec.Cmd, dir string) (list []object) {
	f.t.Helper()
	cmd.Dir = dir
	out, _ := cmd.Output() // a failure is in the result
	for line := range strings.Lines(string(out)) {
		var o object
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			f.t.Fatalf("%v: %q", err, line)
		}
		list = append(list, o)
	}
	if len(list) == 0 {
		f.t.Fatalf("%q wrote nothing", cmd.Args)
	}
	return list
}

// ask runs the question in all of them.
func (f formats) ask(replies []anthropicapi.Reply, dir string, args ...string) (claude []object, ours map[string][]object) {
	f.t.Helper()
	api := anthropicapi.New(f.t)
	api.Reply(replies...)
	cmd := exec.Command(f.claude, append([]string{"-p", "hi", "--model", "sonnet", "--permission-mode", "dontAsk"}, args...)...)
	cmd.Env = anthropicapi.ClaudeEnv(f.t, api)
	return f.lines(cmd, dir), f.askOurs(replies, dir, args...)
}

// askOurs runs the question in ollim alone.
func (f formats) askOurs(replies []anthropicapi.Reply, dir string, args ...string) map[string][]object {
	f.t.Helper()
	ours := map[string][]object{}
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--verbose" })
	for name, with := range map[string]func(testing.TB) (*command, *anthropicapi.Server){"native": withNative, "claude-code": withClaude} {
		c, api := with(f.t)
		api.Reply(replies...)
		ours[name] = f.lines(c.cmd(append([]string{"-p", "-n", "--model", "sonnet", "hi"}, args...)...), dir)
	}
	return ours
}

// compareKeys compares the keys of two objects. promised lists those of claude's that ours must have too, own those of ours that claude's
// need not have. Versions of claude add keys, which nobody promised.
func compareKeys(t *testing.T, what string, claude, ours object, promised, own string) {
	t.Helper()
	for _, key := range strings.Fields(promised) {
		_, has := ours[key]
		if _, there := claude[key]; there && !has {
			t.Errorf("%s lacks %s", what, key)
		}
	}
	for key := range ours {
		if _, has := claude[key]; !has && !slices.Contains(strings.Fields(own), key) {
			t.Errorf("%s has %s, which claude has not", what, key)
		}
	}
}

const (
	keysOfResult = "type subtype is_error duration_ms duration_api_ms num_turns result stop_reason session_id total_cost_usd usage modelUsage " +
		"permission_denials errors structured_output"
	keysOfUsage   = "input_tokens cache_creation_input_tokens cache_read_input_tokens output_tokens"
	keysOfModel   = "inputTokens outputTokens cacheReadInputTokens cacheCreationInputTokens costUSD contextWindow maxOutputTokens"
	keysOfInit    = "type subtype cwd session_id tools model permissionMode"
	keysOfLine    = "type message parent_tool_use_id session_id"
	keysOfMessage = "type role model content"
	keysOfBlock   = "type text id name input tool_use_id content is_error"
)

func only(t *testing.T, list []object, kind string) object {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(list), func(o object) bool { return o["type"] != kind })
	if len(found) != 1 || list[len(list)-1]["type"] != "result" {
		t.Fatalf("%d lines of type %s, the last line is %v", len(found), kind, list[len(list)-1]["type"])
	}
	return found[0]
}

func deep(o object, path ...string) object {
	for _, key := range path {
		o, _ = o[key].(object)
	}
	return o
}

// sameValues compares values of two objects.
func sameValues(t *testing.T, what string, claude, ours object, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if a, b := fmt.Sprint(claude[key]), fmt.Sprint(ours[key]); a != b {
			t.Errorf("%s: %s is %s, claude says %s", what, key, b, a)
		}
	}
}

// TestFormatsLikeClaude compares json and stream-json with those of the real command, key by key.
func TestFormatsLikeClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	f := formats{t, anthropicapi.Claude(t)}
	dir := t.TempDir()
	usage := anthropicapi.Usage{In: 1000, Out: 333, CacheRead: 77, CacheWrite: 11}
	outside := filepath.Join(t.TempDir(), "x")
	denied := anthropicapi.Reply{Text: "Let me write.", ToolUses: []anthropicapi.ToolUse{{Name: "Write", Input: map[string]string{"file_path": outside, "content": "x"}}}, Usage: usage}
	done := anthropicapi.Reply{Text: "Done.", Usage: usage}

	t.Run("success", func(t *testing.T) {
		t.Parallel()
		anthropicapi.InCI(t) // the last line of the stream is the same
		f := formats{t, f.claude}
		claude, ours := f.ask([]anthropicapi.Reply{denied, done}, dir, "--output-format", "json", "--allowed-tools", "Write(./**.md)")
		for name, list := range ours {
			compareResults(t, name, only(t, claude, "result"), only(t, list, "result"))
		}
	})
	t.Run("stream", func(t *testing.T) {
		t.Parallel()
		f := formats{t, f.claude}
		claude, ours := f.ask([]anthropicapi.Reply{denied, done}, dir, "--verbose", "--output-format", "stream-json", "--allowed-tools", "Write(./**.md)")
		for name, list := range ours {
			if a, b := outline(spoken(claude)), outline(list); a != b {
				t.Errorf("%s: %s\nclaude: %s", name, b, a)
			}
			claude := spoken(claude)
			want, got := claude[0], list[0]
			compareKeys(t, name+" init", want, got, keysOfInit, "")
			sameValues(t, name+" init", want, got, "cwd", "permissionMode")
			for i := range min(len(claude), len(list)) {
				want, got := claude[i], list[i]
				if got["type"] != "assistant" && got["type"] != "user" {
					continue
				}
				compareKeys(t, name+" "+got["type"].(string), want, got, keysOfLine, "")
				compareKeys(t, name+" message", deep(want, "message"), deep(got, "message"), keysOfMessage, "")
				a, b := deep(want, "message")["content"].([]any)[0].(object), deep(got, "message")["content"].([]any)[0].(object)
				compareKeys(t, name+" block", a, b, keysOfBlock, "")
				sameValues(t, name+" block", a, b, "type", "text", "name", "id", "input", "is_error", "tool_use_id")
				if got["session_id"] == "" || got["session_id"] != list[0]["session_id"] {
					t.Errorf("%s: session %v, then %v", name, list[0]["session_id"], got["session_id"])
				}
			}
			compareResults(t, name, only(t, claude, "result"), only(t, list, "result"))
		}
	})
	t.Run("schema", func(t *testing.T) { // the real command lets the model use a tool for the answer
		t.Parallel()
		anthropicapi.InCI(t)
		f := formats{t, f.claude}
		args := []string{"--output-format", "json", "--json-schema", `{"type": "object", "properties": {"age": {"type": "integer"}}}`, "--system-prompt", "You count."}
		api := anthropicapi.New(t)
		api.Reply(anthropicapi.Use("StructuredOutput", map[string]int{"age": 5}), anthropicapi.Reply{Text: "Done."})
		cmd := exec.Command(f.claude, append([]string{"-p", "hi", "--model", "sonnet"}, args...)...)
		cmd.Env = anthropicapi.ClaudeEnv(t, api)
		claude := f.lines(cmd, dir)
		for _, kept := range [][]string{nil, {"--no-session"}} {
			ours := f.askOurs([]anthropicapi.Reply{{Text: `{"age": "five"}`}, {Text: "```json\n{\"age\": 5}\n```"}}, dir, append(kept, args...)...)
			for name, list := range ours {
				sameValues(t, name, only(t, claude, "result"), only(t, list, "result"), "subtype", "is_error", "structured_output", "num_turns")
			}
		}
	})
	t.Run("partial", func(t *testing.T) {
		t.Parallel()
		anthropicapi.InCI(t)
		f := formats{t, f.claude}
		claude, ours := f.ask([]anthropicapi.Reply{{Text: "Hello there.", Usage: usage}}, dir, "--verbose", "--output-format", "stream-json", "--include-partial-messages")
		for name, list := range ours {
			if a, b := deltas(claude), deltas(list); a != b {
				t.Errorf("%s: %s\nclaude: %s", name, b, a)
			}
		}
	})
	for _, tc := range []struct {
		subtype string
		replies []anthropicapi.Reply
		args    []string
	}{
		{"error_max_turns", []anthropicapi.Reply{denied, done}, []string{"--max-turns", "1"}},
		{"error_max_budget_usd", []anthropicapi.Reply{{Text: denied.Text, ToolUses: denied.ToolUses, Usage: anthropicapi.Usage{In: 10, Out: 100_000}}, done}, []string{"--max-budget-usd", "0.10"}},
	} {
		t.Run(tc.subtype, func(t *testing.T) {
			t.Parallel()
			anthropicapi.InCI(t)
			f := formats{t, f.claude}
			claude, ours := f.ask(tc.replies, dir, append([]string{"--output-format", "json"}, tc.args...)...)
			want := only(t, claude, "result")
			for name, list := range ours {
				got := only(t, list, "result")
				compareKeys(t, name, want, got, strings.Replace(keysOfResult, " result ", " ", 1), "run engine result")
				sameValues(t, name, want, got, "subtype", "is_error", "stop_reason")
				if got["subtype"] != tc.subtype || got["result"] != denied.Text {
					t.Errorf("%s: %v", name, got)
				}
			}
		})
	}
	t.Run("error", func(t *testing.T) {
		t.Parallel()
		anthropicapi.InCI(t)
		f := formats{t, f.claude}
		ours := f.askOurs([]anthropicapi.Reply{denied, {Status: 400, Message: "bad"}}, dir, "--output-format", "json")
		for name, list := range ours {
			got := only(t, list, "result")
			if errors, _ := got["errors"].([]any); got["subtype"] != "error_during_execution" || got["is_error"] != true || got["result"] != denied.Text || len(errors) != 1 {
				t.Errorf("%s: %v", name, got)
			}
		}
	})
}

// compareResults compares the results of a question that was answered.
func compareResults(t *testing.T, name string, want, got object) {
	t.Helper()
	compareKeys(t, name, want, got, keysOfResult, "run engine")
	sameValues(t, name, want, got, "type", "subtype", "is_error", "num_turns", "result", "stop_reason", "permission_denials")
	compareKeys(t, name+" usage", deep(want, "usage"), deep(got, "usage"), keysOfUsage, "")
	model := slices.Collect(maps.Keys(deep(got, "modelUsage")))
	if len(model) != 1 {
		t.Fatalf("%s: modelUsage of %q", name, model)
	}
	wanted := deep(want, "modelUsage", slices.Collect(maps.Keys(deep(want, "modelUsage")))[0])
	compareKeys(t, name+" modelUsage", wanted, deep(got, "modelUsage", model[0]), keysOfModel, "")
	sameValues(t, name+" modelUsage", wanted, deep(got, "modelUsage", model[0]), "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
	sameValues(t, name+" usage", deep(want, "usage"), deep(got, "usage"), "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
	cost, _ := got["total_cost_usd"].(float64)
	wantCost, _ := want["total_cost_usd"].(float64)
	if wantCost = math.Round(wantCost*1e6) / 1e6; cost == 0 || name == "claude-code" && cost != wantCost || len(fmt.Sprint(cost)) > len("0.123456") {
		t.Errorf("%s: cost %v, claude says %v", name, cost, wantCost)
	}
}

// spoken is the lines without notices of the system other than the first: versions of claude add some.
func spoken(list []object) []object {
	return slices.DeleteFunc(slices.Clone(list), func(o object) bool { return o["type"] == "system" && o["subtype"] != "init" })
}

// outline is the types of the lines.
func outline(list []object) string {
	var kinds []string
	for _, o := range list {
		kind := fmt.Sprint(o["type"])
		if kind == "system" {
			kind += "/" + fmt.Sprint(o["subtype"])
		}
		if kind == "assistant" || kind == "user" {
			kind += ":" + fmt.Sprint(deep(o, "message")["content"].([]any)[0].(object)["type"])
		}
		kinds = append(kinds, kind)
	}
	return strings.Join(kinds, " ")
}

// deltas is the parts of messages as they came. How a text is cut, and the end of a message with its usage, are not compared.
func deltas(list []object) string {
	var parts []string
	text := ""
	for _, o := range list {
		e := deep(o, "event")
		switch {
		case o["type"] == "assistant":
			parts = append(parts, "message")
		case o["type"] != "stream_event" || e["type"] == "message_delta":
		case e["type"] == "content_block_delta":
			text += fmt.Sprint(deep(e, "delta")["text"])
		default:
			parts = append(parts, text, fmt.Sprint(e["type"], e["index"], o["parent_tool_use_id"]))
			text = ""
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}
