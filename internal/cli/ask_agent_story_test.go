package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

const personSchema = `{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}`

// TestAnswerFitsSchema: an answer that does not fit is asked for once more, with the reason, in the same conversation, also if that is
// not kept.
func TestAnswerFitsSchema(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"kept": nil, "not kept": {"--no-session"}, "branched": {"--no-session", "-r"}} {
		t.Run(name, func(t *testing.T) {
			w, api := newNativeWorld(t)
			if name == "branched" {
				api.Reply(anthropicapi.Reply{Text: "Before."})
				w.must("-p", "the first question")
				id, _, _ := strings.Cut(w.must("session", "list", "--all"), "\t")
				flags = append(slices.Clone(flags), id)
			}
			looked := anthropicapi.Use("Glob", map[string]string{"pattern": "*.none"})
			api.Reply(looked, anthropicapi.Reply{Text: `{"age": "five"}`}, anthropicapi.Reply{Text: "```json\n{\"age\": 5}\n```"})
			args := append([]string{"-p", "-n", "--json-schema", personSchema, "--output-format", "json", "How old?"}, flags...)
			r := w.run(args...)
			var a struct {
				Result     string
				Structured json.RawMessage `json:"structured_output"`
			}
			if err := json.Unmarshal([]byte(r.out), &a); err != nil || r.status != 0 || string(a.Structured) != `{"age":5}` || a.Result != `{"age":5}` {
				t.Errorf("%+v, %v", r, err)
			}
			last := lastRequest(t, api)
			for text, want := range map[string]int{
				"How old?": 1, "five": 1, "*.none": 1, "does not fit the JSON Schema: /age: is string, want integer": 1,
				"the first question": map[bool]int{true: 1}[name == "branched"],
			} {
				if n := occurrences(last, text); n < want || n > 0 && want == 0 {
					t.Errorf("the second question has %q %d times", text, n)
				}
			}
			if !strings.Contains(last.System, `"required":["age"]`) {
				t.Error("the model does not see the schema")
			}
		})
	}
}

// TestAnswerNeverFits: after the second answer the run fails, and nothing is written into a pipe.
func TestAnswerNeverFits(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	const line = "the answer does not fit the JSON Schema: not JSON: invalid character 'N' looking for beginning of value"
	for _, format := range []string{"text", "json", "stream-json"} {
		api.Reply(anthropicapi.Reply{Text: "Not so."}, anthropicapi.Reply{Text: "Not so."})
		r := w.run("-p", "-n", "--json-schema", personSchema, "--output-format", format, "hi")
		if r.status != 65 || !strings.Contains(r.errOut, "ollim: ask: failed: "+line) || strings.Contains(r.out, `"structured_output":`) {
			t.Errorf("%s: %+v", format, r)
		}
		if n := strings.Count(r.out, `"subtype":"init"`); n > 1 {
			t.Errorf("%d lines begin the session", n)
		}
		if wants := format != "text"; strings.Contains(r.out, `"subtype":"error_max_structured_output_retries"`) != wants || !wants && r.out != "" {
			t.Errorf("%s: %s", format, r.out)
		}
	}
	if n := len(api.Requests()); n != 6 {
		t.Errorf("%d requests, want 6", n)
	}
}

// TestSystemPrompt: --system-prompt takes the place of the system prompt, --append-system-prompt and the schema follow it.
func TestSystemPrompt(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	for _, c := range []struct {
		args     []string
		own      bool
		contains []string
	}{
		{nil, true, nil},
		{[]string{"--append-system-prompt", "Be brief."}, true, []string{"Be brief."}},
		{[]string{"--system-prompt", "You are a bird."}, false, []string{"You are a bird."}},
		{[]string{"--system-prompt", "You are a bird.", "--append-system-prompt", "Be brief.", "--json-schema", "{}"}, false, []string{"You are a bird.\n\nBe brief.\n\nYour last message"}},
	} {
		api.Reply(anthropicapi.Reply{Text: "1"})
		w.must(append([]string{"-p", "-n", "hi"}, c.args...)...)
		last := lastRequest(t, api)
		if strings.Contains(last.System, "You are a command in your owner's shell") != c.own {
			t.Errorf("%q: the usual prompt: %v", c.args, !c.own)
		}
		for _, text := range c.contains {
			if !strings.Contains(last.System, text) {
				t.Errorf("%q: no %q in %q", c.args, text, last.System)
			}
		}
	}
}

// TestAddDir: file tools reach the directories of --add-dir, and write there if they may write in the working directory.
func TestAddDir(t *testing.T) {
	w, api := newNativeWorld(t)
	t.Chdir(t.TempDir())
	other, third := t.TempDir(), t.TempDir()
	note := filepath.Join(other, "note.txt")
	if err := os.WriteFile(note, []byte("okapi"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tools         string
		reads, writes bool
		dirs          []string
	}{
		{"", false, false, nil},
		{"", true, false, []string{"--add-dir", other}},
		{"Read,Edit", true, false, []string{"--add-dir", other}},
		{"Glob, Write", true, true, []string{"--add-dir", third, other}},
		{"Write", false, false, []string{"--add-dir", third}},
	} {
		api.Reply(anthropicapi.Use("Read", map[string]string{"file_path": note}), anthropicapi.Use("Write", map[string]string{"file_path": filepath.Join(other, "new"), "content": "x"}),
			anthropicapi.Reply{Text: "Done."})
		args := []string{"-p", "-n", "hi"}
		if c.tools != "" {
			args = append(args, "--allowedTools", c.tools)
		}
		w.must(append(args, c.dirs...)...)
		all := api.Requests()
		read, wrote := all[len(all)-2].ToolResults()[0], all[len(all)-1].ToolResults()[0]
		if read.IsError == c.reads || wrote.IsError == c.writes || c.reads && !strings.Contains(read.ResultText, "okapi") {
			t.Errorf("%q %q: %q, %q", c.tools, c.dirs, read.ResultText, wrote.ResultText)
		}
		_ = os.Remove(filepath.Join(other, "new"))
	}
	for dir, want := range map[string]string{note: "not a directory", filepath.Join(other, "none"): "no such file or directory", "": "no such file or directory"} {
		if r := w.run("-p", "-n", "--add-dir="+dir, "hi"); r.status != 64 || !strings.Contains(r.errOut, "ask: --add-dir \""+dir+"\": "+want) {
			t.Errorf("%q: %+v", dir, r)
		}
	}
}

// TestPipedInputFitsTheWindow: a question and a message take a fifth of the window of the model that answers.
func TestPipedInputFitsTheWindow(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("config", "set", "models", "tiny window=1000 in=0 out=0", "--", "vast window=1000000 in=0 out=0")
	w.must("config", "set", "chat.model", "vast")
	for _, c := range []struct {
		line  string
		bytes int
		limit string // "": it is taken
	}{
		{"-p --model tiny hi", 800, ""},
		{"-p --model tiny hi", 801, "800 bytes, about 200 tokens, a fifth of the window of tiny (1000 tokens)"},
		{"-p --model tiny", 801, "800 bytes, about 200 tokens, a fifth of the window of tiny (1000 tokens)"},
		{"-p --model nobody-knows hi", 256 << 10, ""},
		{"-p --model nobody-knows hi", 256<<10 + 1, "256 KiB, the limit while the window of the model is not known"},
		{"chat --model tiny hi", 801, "800 bytes, about 200 tokens, a fifth of the window of tiny (1000 tokens)"},
		{"chat hi", 800_000, ""},
		{"chat hi", 800_001, "800000 bytes, about 200000 tokens, a fifth of the window of vast (1000000 tokens)"},
		{"chat --channel c --chat-id 1 --model tiny hi", 801, "800 bytes, about 200 tokens, a fifth of the window of tiny (1000 tokens)"},
	} {
		before := len(api.Requests())
		if c.limit == "" {
			api.Reply(anthropicapi.Reply{Text: "Fine."})
		}
		verb, _, _ := strings.Cut(strings.Replace(c.line, "-p", "ask", 1), " ")
		r := w.pipe(strings.Repeat("x", c.bytes), strings.Fields(c.line)...)
		switch asked := len(api.Requests()) > before; {
		case c.limit == "" && (r.status != 0 || !asked || occurrences(lastRequest(t, api), "xxxxxxxxxx") < c.bytes/10):
			t.Errorf("%s, %d bytes: %.300s", c.line, c.bytes, r.errOut)
		case c.limit != "" && (r.status != 65 || asked || !strings.HasPrefix(r.errOut, "ollim: "+verb+": standard input: too long: more than "+c.limit+"\nollim: hint: shorten it with head -c ")):
			t.Errorf("%s, %d bytes: %+v", c.line, c.bytes, r)
		}
	}
	w.useClaude()
	for model, limit := range map[string]string{
		"claude-opus-4-8": "160000 bytes, about 40000 tokens, a fifth of the window of claude-opus-4-8 (200000 tokens)",
		"opus[1m]":        "800000 bytes, about 200000 tokens, a fifth of the window of claude-opus-5-5[1m] (1000000 tokens)",
		"tiny":            "800 bytes, about 200 tokens, a fifth of the window of tiny (1000 tokens)",
	} {
		if r := w.pipe(strings.Repeat("x", 800_001), "-p", "--model", model, "hi"); r.status != 65 || !strings.Contains(r.errOut, "more than "+limit) {
			t.Errorf("%s: %+v", model, r)
		}
	}
}

// TestFlagsOfAskRefused: each mistake is one line that a person can read.
func TestFlagsOfAskRefused(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	deep := strings.Repeat(`{"properties":{"a":`, 500) + `{"type":"nope"}` + strings.Repeat("}}", 500)
	for want, args := range map[string][]string{
		"ollim: ask: --max-budget-usd and --max-cost are the same: want one of them\n": {"--max-budget-usd", "1", "--max-cost", "1"},
		"ollim: ask: --json-schema.properties.a.properties.a.":                         {"--json-schema", deep},
	} {
		r := w.run(append([]string{"-p", "-n", "hi"}, args...)...)
		if r.status != 64 && r.status != 65 || !strings.HasPrefix(r.errOut, want) || strings.Count(r.errOut, "\n") != 1 || len(r.errOut) > 400 {
			t.Errorf("%.2000s", r.errOut)
		}
	}
	if n := len(api.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestFlagsOfAskElsewhere: another command refuses them in one line, and names the command that has them.
func TestFlagsOfAskElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, flag := range []string{"system-prompt", "append-system-prompt", "json-schema", "add-dir", "allowedTools", "max-budget-usd"} {
		want := "ollim: chat: unknown flag: --" + flag + "\nollim: hint: --" + flag + " is a flag of ollim ask\n"
		if r := w.run("chat", "--"+flag, "x", "hi"); r.status != 64 || r.errOut != want {
			t.Errorf("%+v", r)
		}
		if got := w.complete("ask", "--"+flag); !slices.Contains(got, "--"+flag) {
			t.Errorf("--%s is completed to %q", flag, got)
		}
	}
}
