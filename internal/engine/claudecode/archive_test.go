package claudecode

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/transcript"
)

// TestArchiveRead: a search reads the same conversation as Load, and the content of each message that has the words.
func TestArchiveRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a-b.jsonl")
	archive := &Engine{}
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.Custom(claudeLine), 1, 25).Draw(t, "lines")
		for i, l := range lines {
			lines[i] = strings.NewReplacer("uID", fmt.Sprint("u", i), "uBEFORE", fmt.Sprint("u", i-1)).Replace(l)
		}
		text := strings.Join(lines, "\n")
		if rapid.Bool().Draw(t, "torn") {
			text = text[:rapid.IntRange(0, len(text)).Draw(t, "cut")]
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want, wantErr := archive.Open(path)
		entries, loadErr := archive.Load(want, false, nil)
		query := plaintext.NewQuery(rapid.SliceOfN(rapid.SampledFrom([]string{"漢", "É", `"É`, `\`, "read {", "x", "\n<"}), 1, 2).Draw(t, "words"))
		got, found, err := archive.Read(path, query.Maybe)
		if !reflect.DeepEqual(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%s:\n%+v, %v\n%+v, %v", text, got, err, want, wantErr)
		}
		if err != nil || loadErr != nil {
			return
		}
		if len(found) != len(entries) {
			t.Fatalf("%s: %d messages, want %d", text, len(found), len(entries))
		}
		for i, e := range entries {
			f := found[i]
			if _, matches := query.Excerpt(visible(e)); !matches {
				e.Message.Content, f.Message.Content = nil, nil
			}
			if !reflect.DeepEqual(f, e) {
				t.Fatalf("%s, %d:\n%+v\n%+v", text, i, f, e)
			}
		}
	})
}

// TestArchiveReadMerges: an answer in several lines has its content if one of them has the words, or all of them together.
func TestArchiveReadMerges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a-b.jsonl")
	const line = `{"type":"assistant","uuid":"%s","parentUuid":"%s","sessionId":"s","message":{"id":"m","role":"assistant","content":"%s"}}` + "\n"
	if err := os.WriteFile(path, fmt.Appendf(nil, line+line, "1", "", "one", "2", "1", "two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for words, blocks := range map[string]int{"one": 2, "two": 2, "two one": 2, "three": 0} {
		_, found, err := (&Engine{}).Read(path, plaintext.NewQuery(strings.Fields(words)).Maybe)
		if err != nil || len(found) != 1 || len(found[0].Message.Content) != blocks {
			t.Errorf("%s: %+v, %v", words, found, err)
		}
	}
}

func visible(e transcript.Entry) string {
	var seen []string
	for _, b := range e.Message.Content {
		switch b.Type {
		case transcript.ToolUse:
			seen = append(seen, b.Name+" "+string(b.Input))
		default:
			seen = append(seen, b.Text+b.Content)
		}
	}
	return strings.Join(seen, "\n")
}

// claudeLine makes a line of a session file, or of something else; uID stands for its own id, uBEFORE for that of the line before.
func claudeLine(t *rapid.T) string {
	pick := func(of ...any) any { return rapid.SampledFrom(of).Draw(t, "value") }
	text := rapid.StringOfN(rapid.SampledFrom([]rune("aAxÉé\"\\\n\t<{}[]:, 漢\u2028")), 0, 12, -1).Draw(t, "text")
	id := pick("uID", "uID", "uID", "uID", "uID", "uID", "uID", "uID", "uID", "u1", `u\1`, nil)
	role := pick("user", "assistant")
	content := []any{
		text, nil, 5, []any{}, []any{map[string]any{"type": "text", "text": text}},
		[]any{map[string]any{"type": "tool_use", "id": "t", "name": "Read", "input": map[string]any{"path": text}}},
		[]any{map[string]any{"type": "tool_result", "tool_use_id": "t", "content": text}, text, map[string]any{"type": "text", "text": "x"}},
	}
	line := map[string]any{
		"type": pick(role, role, role, role, role, "system", 5), "uuid": id, "parentUuid": pick("uBEFORE", "uBEFORE", "uBEFORE", "uBEFORE", "u0", "u3", nil),
		"sessionId": "s", "timestamp": pick("2026-02-24T09:00:01.5Z", "2026-02-24T10:00:01+01:00", "2026-02-24T10:00:02Z", "", nil, nil, nil, nil, nil, nil), "cwd": pick("/w", "/é\"", nil),
		"message":       map[string]any{"id": pick("m1", "m2", nil), "role": pick(role, role, "user"), "model": "o", "content": pick(content...), "usage": map[string]any{"a": []int{1}}},
		"toolUseResult": pick(nil, map[string]any{"uuid": "no", "b": []any{map[string]any{}, text}}, text),
	}
	if key, is := pick("", "", "", "isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage").(string); is && key != "" {
		line[key] = pick(true, true, false)
	}
	delete(line, rapid.SampledFrom(append(slices.Sorted(maps.Keys(line)), "", "", "", "", "", "", "", "", "")).Draw(t, "without"))
	if line["parentUuid"] == nil {
		line["logicalParentUuid"] = pick("uBEFORE", "u3", nil)
	}
	encoded, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	switch rapid.IntRange(0, 30).Draw(t, "form") {
	case 0:
		return ""
	case 1:
		return strings.ReplaceAll(string(encoded), `"type":`, "\"type\" :\t") + " \r"
	case 2:
		return `[{"type":"user"}]`
	case 3:
		return strings.Replace(string(encoded), `"typ`, `"t\u0079p`, 1)
	}
	return string(encoded)
}

// FuzzSkim: what can be decoded is skimmed to the same, or not at all.
func FuzzSkim(f *testing.F) {
	usual := []byte(`{"type":"user","uuid":"a","isMeta":true,"timestamp":"2026-02-24T09:00:01Z","message":{"id":"\u00e9","role":"user","content":[{"a":"}\\\"","b":"\\"}]}}`)
	if !new(record).skim(usual) {
		f.Errorf("%s is not understood", usual)
	}
	f.Add(usual)
	f.Add([]byte(`{ "message" : null, "x" : [ {} , 1e5 ], "uuid":null}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var want, got record
		if json.Unmarshal(line, &want) != nil || strings.ToLower(string(line)) != strings.ReplaceAll(string(line), "Uuid", "uuid") {
			return // keys in another case are not skimmed
		}
		if !got.skim(line) {
			return
		}
		want.Message.StopReason, want.Message.Usage = "", usage{}
		if !want.Timestamp.Equal(got.Timestamp) {
			t.Errorf("%s: %v, want %v", line, got.Timestamp, want.Timestamp)
		}
		got.Timestamp = want.Timestamp
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v\n%+v", line, got, want)
		}
	})
}

// TestHole: a transcript that an agent has given a size of a terabyte is not read into memory.
func TestHole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	if err := errors.Join(os.WriteFile(path, []byte("{}\n"), 0o600), os.Truncate(path, 1<<40)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := (&Engine{}).Read(path, nil); err == nil || !strings.Contains(err.Error(), "a line of more than 128 MiB") {
		t.Errorf("a search: %v", err)
	}
	if _, err := (&Engine{}).Load(transcript.Transcript{Path: path}, false, nil); err == nil || !strings.Contains(err.Error(), "a line of more than 128 MiB") {
		t.Errorf("Load: %v", err)
	}
}
