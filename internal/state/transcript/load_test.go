package transcript_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit"
)

const head = `{"type":"session","id":"a","cwd":"/p"}` + "\n"

// loaded is what Load makes of a file.
func loaded(t testing.TB, text string) ([]transcript.Entry, int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.jsonl")
	write(t, path, text)
	return load(t, transcript.Transcript{Path: path})
}

func TestLines(t *testing.T) {
	const hi = `{"type":"message","message":{"role":"user","content":"hi"}}` + "\n"
	for name, tc := range map[string]struct {
		text string
		want string // the conversation in short
		bad  int
	}{
		"nothing":          {"", "", 0},
		"header alone":     {head, "", 0},
		"as in the seed":   {head + `{"type": "message", "message": {"role": "assistant", "content": "x"}}` + "\n", "assistant: x", 0},
		"blocks":           {head + `{"type":"message","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}` + "\n", "user: a b", 0},
		"null":             {head + `{"type":"message","message":{"role":"user","content":null}}` + "\n", "user:", 0},
		"no content":       {head + `{"type":"message","message":{"role":"user"}}` + "\n", "user:", 0},
		"more fields":      {head + `{"type":"message","uuid":"1","message":{"role":"user","id":7,"content":[{"type":"text","text":"a","cache_control":{}}]}}` + "\n", "user: a", 0},
		"not an error":     {head + `{"type":"message","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":false}]}}` + "\n", "user: result a", 0},
		"characters":       {head + `{"type":"message","message":{"role":"user","content":"\u00e9\ud83d\ude00\u001b\/\ud800"}}` + "\n", "user: é😀\x1b/\ufffd", 0},
		"of another type":  {head + `{"type":"model_change","message":{"role":"user","content":"x"}}` + "\n" + hi, "user: hi", 0},
		"of another role":  {head + `{"type":"message","message":{"role":"tool","content":"x"}}` + "\n" + hi, "user: hi", 1},
		"no message":       {head + `{"type":"message"}` + "\n" + hi, "user: hi", 1},
		"content a number": {head + `{"type":"message","message":{"role":"user","content":7}}` + "\n" + hi, "user: hi", 1},
		"text a number":    {head + `{"type":"message","message":{"role":"user","content":[{"type":"text","text":7}]}}` + "\n" + hi, "user: hi", 1},
		"input cut":        {head + `{"type":"message","message":{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{"x":}}]}}` + "\n" + hi, "user: hi", 1},
		"zeros":            {head + hi + "\x00\x00\x00\n" + hi, "user: hi|user: hi", 1},
		"zeros within":     {head + strings.Replace(hi, "hi", "h\x00\x00i", 1) + hi, "user: hi", 1},
		"two on a line":    {head + strings.TrimSuffix(hi, "\n") + hi + hi, "user: hi", 1},
		"blank, crlf":      {head + "\n \r\n" + strings.Replace(hi, "\n", "\r\n", 1), "user: hi", 0},
		"torn":             {head + hi + hi[:20], "user: hi", 0},
		"not ended":        {head + hi + hi[:len(hi)-1], "user: hi|user: hi", 0},
		"not UTF-8":        {head + strings.Replace(hi, "hi", "h\xffi", 1), "user: h\ufffdi", 0},
		"deep":             {head + strings.Repeat("[", 100_000) + "\n" + hi, "user: hi", 1},
		"array":            {head + "[1]\n" + hi, "user: hi", 1},
	} {
		list, bad := loaded(t, tc.text)
		if got := strings.Join(reported(messages(list)), "|"); got != tc.want || bad != tc.bad {
			t.Errorf("%s: %q and %d bad, want %q and %d", name, got, bad, tc.want, tc.bad)
		}
	}
	if _, err := (transcript.Transcript{Path: filepath.Join(t.TempDir(), "none")}).Load(nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestWrittenLines(t *testing.T) {
	f := begin(t, t.TempDir(), "n-1",
		user("a\nb <&> ☃ \xff"),
		user("a", "b"),
		agent(thought("t", "s"), transcript.Block{Type: transcript.ToolUse, ID: "x", Name: "Read", Input: json.RawMessage("{\n \"a\": \"<\"}")}),
		user(result("x", "")),
		agent(transcript.Block{Type: transcript.ToolUse, ID: "y", Name: "Read", Input: json.RawMessage(`{"a`)}),
		user(),
	)
	if err := f.Append(store.Buffered, transcript.Entry{Message: agent("no time"), Tokens: 12}); err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"message","timestamp":"2026-02-24T14:30:00.123456789-05:00","message":{"role":"user","content":"a\nb <&> ☃ \ufffd"}}
{"type":"message","timestamp":"2026-02-24T14:30:01.123456789-05:00","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}
{"type":"message","timestamp":"2026-02-24T14:30:02.123456789-05:00","message":{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"x","name":"Read","input":{"a":"<"}}]}}
{"type":"message","timestamp":"2026-02-24T14:30:03.123456789-05:00","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}}
{"type":"message","timestamp":"2026-02-24T14:30:04.123456789-05:00","message":{"role":"assistant","content":[{"type":"tool_use","id":"y","name":"Read","input":"{\"a"}]}}
{"type":"message","timestamp":"2026-02-24T14:30:05.123456789-05:00","message":{"role":"user","content":[]}}
{"type":"message","message":{"role":"assistant","content":"no time"},"tokens":12}
`
	if _, got, _ := strings.Cut(read(t, f.Path), "\n"); got != want {
		t.Errorf("%s", got)
	}
	if list, bad := load(t, f); len(list) != 7 || bad != 0 || list[6].Tokens != 12 || !list[6].At.IsZero() || !list[0].At.Equal(noon) {
		t.Errorf("%+v, %d bad", list, bad)
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("0123456789abcde\n", testkit.Full(4<<20-1<<10, 200_000)) // 64 MB, or 3
	f := begin(t, t.TempDir(), "n-1", user("a"), agent(long), user("b"))
	list, bad := load(t, f)
	if len(list) != 3 || bad != 0 || list[1].Message.Text() != long || list[2].Message.Text() != "b" {
		t.Errorf("%d messages, %d bad", len(list), bad)
	}
}

// TestHole: a file that an engine's agent has given a hole of a terabyte is not read to its end.
func TestHole(t *testing.T) {
	sessions := t.TempDir()
	f := begin(t, sessions, "n-1", user("train"))
	if err := os.Truncate(f.Path, 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load(nil); err == nil || !strings.Contains(err.Error(), "a line of more than 128 MiB") {
		t.Error(err)
	}
	if found := search(t, sessions, "train"); len(found) != 1 {
		t.Errorf("found %q", found)
	}
}

// drawBlock is any block that can be read back as it was.
func drawBlock(t *rapid.T) transcript.Block {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a\nb\t\"c\" \\d", "\x1b[0m\u2028é😀", "<&>/"}))
	id := rapid.SampledFrom([]string{"a", "b", "c", "toolu_01", "bad id", ""})
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return transcript.Block{Type: transcript.TextBlock, Text: text.Draw(t, "text")}
	case 1:
		return thought(text.Draw(t, "thought"), rapid.SampledFrom([]string{"", "sig"}).Draw(t, "signature"))
	case 2:
		return transcript.Block{Type: transcript.RedactedBlock, Data: text.Draw(t, "data")}
	case 3:
		input := rapid.SampledFrom([]string{`{}`, `{"a":[1,{"b":"}\"]"}],"c":null}`, `{"é":-1.5e3}`, `"x"`, `[]`, `null`}).Draw(t, "input")
		return transcript.Block{Type: transcript.ToolUse, ID: id.Draw(t, "id"), Name: rapid.SampledFrom([]string{"Read", "a.b", ""}).Draw(t, "name"), Input: json.RawMessage(input)}
	}
	r := result(id.Draw(t, "id"), text.Draw(t, "content"))
	r.IsError = rapid.Bool().Draw(t, "error")
	return r
}

func drawMessages(t *rapid.T) []transcript.Message {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) transcript.Message {
		return transcript.Message{
			Role:    rapid.SampledFrom([]string{transcript.User, transcript.Assistant}).Draw(t, "role"),
			Content: rapid.SliceOfN(rapid.Custom(drawBlock), 0, 4).Draw(t, "content"),
		}
	}), 0, 12).Draw(t, "messages")
}

func TestRoundTrip(t *testing.T) {
	sessions := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		f, err := transcript.Dir(sessions).Create(header("n-" + strings.Repeat("x", n%100) + string(rune('a'+n/100))))
		if err != nil {
			t.Fatal(err)
		}
		var want []transcript.Entry
		for _, m := range drawMessages(t) {
			want = append(want, transcript.Entry{Message: m, At: noon.Add(time.Duration(n)), Tokens: rapid.IntRange(0, 1<<40).Draw(t, "tokens")})
		}
		if err := f.Append(store.Buffered, want...); err != nil {
			t.Fatal(err)
		}
		got, err := f.Load(nil)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d of %d, %v", len(got), len(want), err)
		}
		for i := range want {
			w, g := want[i], got[i]
			if !g.At.Equal(w.At) || g.Tokens != w.Tokens || g.Message.Role != w.Message.Role || len(g.Message.Content) != len(w.Message.Content) {
				t.Fatalf("%+v, want %+v", g, w)
			}
			for j := range w.Message.Content {
				if !reflect.DeepEqual(g.Message.Content[j], w.Message.Content[j]) {
					t.Fatalf("%+v, want %+v", g.Message.Content[j], w.Message.Content[j])
				}
			}
		}
	})
}

// Whatever happened to a line, it is read as encoding/json reads it, or not at all.
func TestDamagedLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.jsonl")
	rapid.Check(t, func(t *rapid.T) {
		var file bytes.Buffer
		var want []transcript.Entry
		for _, m := range drawMessages(t) {
			line, err := json.Marshal(transcript.Entry{Message: m, At: noon, Tokens: rapid.IntRange(0, 1000).Draw(t, "tokens")})
			if err != nil {
				t.Fatal(err)
			}
			for range 8 {
				at := rapid.IntRange(0, len(line)-1).Draw(t, "at")
				damage := rapid.SampledFrom([]string{"", `"`, `\`, `{`, `}`, `[`, `]`, `,`, `:`, `0`, `-`, `\u00e9`, `\ud800`, "\x00", "\xff", " ", "e", `null`, `"text":"x",`, `,"type":"text"`}).Draw(t, "damage")
				damaged := slices.Concat(line[:at], []byte(damage), line[at+rapid.IntRange(0, 1).Draw(t, "gone"):])
				var e transcript.Entry
				if json.Unmarshal(damaged, &e) == nil {
					want = append(want, e)
				}
				file.Write(append(damaged, '\n'))
			}
		}
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := transcript.Transcript{Path: path}.Load(nil)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d of %d, %v", len(got), len(want), err)
		}
		for i := range want {
			if g, w := normal(got[i]), normal(want[i]); !reflect.DeepEqual(g, w) {
				t.Fatalf("%+v, encoding/json has %+v", g, w)
			}
		}
	})
}

// FuzzLoad also compares with encoding/json, which reads each line by Entry's own method.
func FuzzLoad(f *testing.F) {
	var line bytes.Buffer
	for _, m := range []transcript.Message{user("a\u001b\"é"), agent(thought("t", "s"), "x", call("a")), user(result("a", "x"), lost("b"))} {
		data, err := json.Marshal(transcript.Entry{Message: m, At: noon, Tokens: 7})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(data, '\n'))
		line.Write(append(data, '\n'))
	}
	f.Add(append([]byte(head), line.Bytes()...))
	f.Add([]byte(`{"type":"message","timestamp":"x","message":{"role":"user","content":[{"is_error":true,"input":{"a":[{}]}}]},"tokens":12}` + "\n"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "f.jsonl")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		bad := 0
		got, err := transcript.Transcript{Path: path}.Load(&bad)
		if n := bytes.Count(data, []byte("\n")) + 1; err != nil || len(got)+bad > n {
			t.Fatalf("%d messages and %d bad of %d lines, %v", len(got), bad, n, err)
		}
		var want []transcript.Entry
		for l := range bytes.Lines(data) {
			var e transcript.Entry
			if json.Unmarshal(l, &e) == nil {
				want = append(want, e)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d messages, encoding/json has %d", len(got), len(want))
		}
		for i := range got {
			if g, w := normal(got[i]), normal(want[i]); !reflect.DeepEqual(g, w) {
				t.Fatalf("%+v, encoding/json has %+v", g, w)
			}
		}
	})
}

// normal has no empty slice where another has none.
func normal(e transcript.Entry) transcript.Entry {
	if len(e.Message.Content) == 0 {
		e.Message.Content = nil
	}
	return e
}
