package transcript_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m, map[string]func([]string) error{"branch": branchAll}) }

// branchAll makes branches of the transcript at args[1] in the directory args[0] until it is killed.
func branchAll(args []string) error {
	source, err := transcript.Open(args[1])
	for i := 0; err == nil; i++ {
		_, err = branch(args[0], source, -1, header(fmt.Sprintf("n-%d-%d", os.Getpid(), i)))
		if i == 0 {
			fmt.Println("ready")
		}
	}
	return err
}

var noon = time.Date(2026, 2, 24, 14, 30, 0, 123456789, time.FixedZone("", -5*3600))

func header(id string) transcript.Header {
	return transcript.Header{ID: id, Cwd: "/home/ada/project", Provider: "anthropic", Model: "m-1", Timestamp: noon}
}

// begin makes a transcript about /home/ada/project of these messages.
func begin(t testing.TB, sessions, id string, messages ...transcript.Message) transcript.Transcript {
	t.Helper()
	made, err := transcript.Dir(sessions).Create(header(id))
	if err == nil {
		err = made.Append(store.Buffered, entries(messages...)...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func entries(messages ...transcript.Message) (list []transcript.Entry) {
	for i, m := range messages {
		list = append(list, transcript.Entry{Message: m, At: noon.Add(time.Duration(i) * time.Second)})
	}
	return list
}

func user(content ...any) transcript.Message { return message(transcript.User, content) }
func agent(content ...any) transcript.Message {
	return message(transcript.Assistant, content)
}

// message takes texts and blocks.
func message(role string, content []any) transcript.Message {
	m := transcript.Message{Role: role}
	for _, c := range content {
		switch c := c.(type) {
		case string:
			m.Content = append(m.Content, transcript.Block{Type: transcript.TextBlock, Text: c})
		case transcript.Block:
			m.Content = append(m.Content, c)
		}
	}
	return m
}

func call(id string) transcript.Block {
	return transcript.Block{Type: transcript.ToolUse, ID: id, Name: "Read", Input: json.RawMessage(`{"path":"a"}`)}
}

func result(id, text string) transcript.Block {
	return transcript.Block{Type: transcript.ToolResult, ToolUseID: id, Content: text}
}

func lost(id string) transcript.Block {
	r := result(id, "interrupted: it is not known whether this took effect")
	r.IsError = true
	return r
}

func thought(text, signature string) transcript.Block {
	return transcript.Block{Type: transcript.ThinkingBlock, Thinking: text, Signature: signature}
}

func load(t testing.TB, f transcript.Transcript) (list []transcript.Entry, bad int) {
	t.Helper()
	list, err := f.Load(&bad)
	if err != nil {
		t.Fatal(err)
	}
	return list, bad
}

// reported is a conversation in short, for comparing.
func reported(messages []transcript.Message) (lines []string) {
	for _, m := range messages {
		line := m.Role + ":"
		for _, b := range m.Content {
			switch b.Type {
			case transcript.TextBlock:
				line += " " + b.Text
			case transcript.ToolUse:
				line += " call " + b.ID
			case transcript.ToolResult:
				line += " result " + b.ToolUseID
				if b.IsError {
					line += " lost"
				}
			default:
				line += " " + b.Type
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func messages(list []transcript.Entry) (out []transcript.Message) {
	for _, e := range list {
		out = append(out, e.Message)
	}
	return out
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t testing.TB, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func names(t testing.TB, dir string) (list []string) {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		list = append(list, e.Name())
	}
	return list
}

// compact begins a transcript with a summary of another and its last messages, as the native engine does.
func compact(sessions string, source transcript.Transcript, summary string, keep int, h transcript.Header) (transcript.Transcript, error) {
	entries, err := source.Load(nil)
	if err != nil {
		return transcript.Transcript{}, err
	}
	h.ParentID = source.ID
	return summed(sessions, summary, entries[transcript.Cut(entries, keep):], h)
}

// folder returns the directory of the transcripts about cwd.
func folder(sessions, cwd string) string {
	return filepath.Dir(transcript.Dir(sessions).Place(transcript.Header{Cwd: cwd}))
}

func summed(sessions, summary string, kept []transcript.Entry, h transcript.Header) (transcript.Transcript, error) {
	entries, err := transcript.Summarized(summary, kept, h.Timestamp)
	if err != nil {
		return transcript.Transcript{}, err
	}
	h.Compacted = true
	return transcript.Dir(sessions).Create(h, entries...)
}

// branch begins a transcript with the first messages of another, or with its complete turns for a negative number.
func branch(sessions string, source transcript.Transcript, after int, h transcript.Header) (transcript.Transcript, error) {
	from, entries, err := transcript.Dir(sessions).Complete(source)
	if after >= 0 && err == nil {
		from = source
		entries, err = source.Load(nil)
		entries = entries[:min(after, len(entries))]
	}
	if err != nil {
		return transcript.Transcript{}, err
	}
	h.ParentID, h.Compacted, h.MidTurn = from.ID, false, false
	return transcript.Dir(sessions).Create(h, entries...)
}
