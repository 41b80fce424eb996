package native_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/native"
	"github.com/ollim/ollim/internal/engine/native/builtin"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/object"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

const paper = "%PDF-1.4\n1 0 obj<</Type/Pages/Count 3>>endobj\n%%EOF\n"

// picture is a PNG image of so many pixels in each direction.
func picture(t *testing.T, side int) string {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, side, side))); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// attached is a request with files, given as name and content.
func attached(t *testing.T, prompt string, files ...string) engine.Request {
	t.Helper()
	dir := t.TempDir()
	r := engine.Request{Input: engine.Input{Prompt: prompt}}
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.WriteFile(path, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := engine.Attach(files[i], path)
		if err != nil {
			t.Fatal(err)
		}
		r.Input.Attachments = append(r.Input.Attachments, a)
	}
	return r
}

// seeing is a stage that keeps files. It returns their directory.
func seeing(t *testing.T) (s *stage, objects string) {
	t.Helper()
	s = newStage(t)
	home := paths.Dir(t.TempDir())
	s.Objects = object.Box{Home: home, Disk: store.Disk{Now: s.Now, Warn: func(text string) { t.Error(text) }}}
	s.Model = "claude-sonnet-4-5"
	return s, home.Objects()
}

// kept is how many files a directory has.
func kept(dir string) int {
	list, _ := os.ReadDir(dir)
	return len(list)
}

// sees is the files in a request, those of tool results too, by media type and content, in their order.
func sees(q anthropicapi.Request) (all []string) {
	for _, m := range q.Messages {
		for _, b := range m.Content {
			for _, part := range append(b.Files, b) {
				if part.File != nil {
					all = append(all, part.MediaType+":"+string(part.File))
				}
			}
		}
	}
	return all
}

func (s *stage) lastSeen() []string {
	requests := s.api.Requests()
	return sees(requests[len(requests)-1])
}

// TestFilesStayInTheConversation: a resumed session, a branch and a compaction in the middle of a turn show the model the same files,
// each once; their content is on disk once.
func TestFilesStayInTheConversation(t *testing.T) {
	s, objects := seeing(t)
	shown := picture(t, 40)
	want := []string{"image/png:" + shown, "application/pdf:" + paper}
	s.api.Reply(anthropicapi.Reply{Text: "a cat"})
	first := s.says(attached(t, "what is it?", "cat.jpeg", shown, "paper", paper), "a cat")
	same(t, s.lastSeen(), want)
	s.api.Reply(anthropicapi.Reply{Text: "still"})
	s.says(engine.Request{Input: engine.Input{Prompt: "and now?"}, Session: engine.Session{ID: first.Session}}, "still")
	same(t, s.lastSeen(), want)
	for _, discard := range []bool{false, true} {
		s.api.Reply(anthropicapi.Reply{Text: "branched"})
		s.says(engine.Request{Input: engine.Input{Prompt: "here?"}, Session: engine.Session{ID: first.Session, Fork: true, Discard: discard}}, "branched")
		same(t, s.lastSeen(), want)
	}
	if n := kept(objects); n != 2 {
		t.Errorf("%d files are kept", n)
	}
	if err := os.RemoveAll(objects); err != nil {
		t.Fatal(err)
	}
	s.api.Reply(anthropicapi.Reply{Text: "gone"})
	s.says(engine.Request{Input: engine.Input{Prompt: "where?"}, Session: engine.Session{ID: first.Session}}, "gone")
	if asked := strings.Join(s.asked(), "\n"); len(s.lastSeen()) != 0 || !strings.Contains(asked, "[image cat.jpeg, image/png, ") || !strings.Contains(asked, "(the file is no longer kept") {
		t.Errorf("%q", asked)
	}
}

// TestCompactionSendsTheWholeMessage: when the window is full in the middle of a turn, the message goes on with its files, once.
func TestCompactionSendsTheWholeMessage(t *testing.T) {
	s, _ := seeing(t)
	shown := picture(t, 40)
	for i := range 12 {
		usage := anthropicapi.Usage{In: 1000 * i, Out: 10}
		if i == 5 || i == 9 {
			usage.In = 190_000
		}
		if i == 6 || i == 10 {
			s.api.Reply(anthropicapi.Reply{Text: "the summary"})
			continue
		}
		s.api.Reply(anthropicapi.Reply{Text: "step", ToolUses: []anthropicapi.ToolUse{{Name: "ping_user"}}, Usage: usage})
	}
	s.api.Reply(anthropicapi.Reply{Text: "done"})
	r := s.says(attached(t, "look at it for long", "cat.png", shown), "done")
	asked := strings.Join(s.asked(), "\n")
	if !strings.Contains(asked, "the summary") || strings.Count(asked, "user text look at it for long") != 1 {
		t.Errorf("%s", asked)
	}
	same(t, s.lastSeen(), []string{"image/png:" + shown})
	said := strings.Join(s.conversation(r.Session), "\n")
	if strings.Count(said, "user image") != 1 || strings.Count(said, "look at it for long") != 1 {
		t.Errorf("%s", said)
	}
	s.api.Reply(anthropicapi.Reply{Text: "later"})
	s.says(engine.Request{Input: engine.Input{Prompt: "and?"}, Session: engine.Session{ID: r.Session}}, "later")
	same(t, s.lastSeen(), []string{"image/png:" + shown})
}

// TestNothingIsKeptOfAPrivateTurn: its files are not on disk, not even while it lasts.
func TestNothingIsKeptOfAPrivateTurn(t *testing.T) {
	s, objects := seeing(t)
	s.api.Reply(anthropicapi.Reply{Text: "a cat"})
	r := attached(t, "what is it?", "cat.png", picture(t, 40))
	r.Session.Discard = true
	s.says(r, "a cat")
	if n := kept(objects); n != 0 || len(s.files()) != 0 || len(s.lastSeen()) != 1 {
		t.Errorf("%d files kept, transcripts %q, %d shown", n, s.files(), len(s.lastSeen()))
	}
}

// TestTheOldestFilesAreLeftOut: a conversation never has more files than the service takes.
func TestTheOldestFilesAreLeftOut(t *testing.T) {
	s, _ := seeing(t)
	session := ""
	for range 12 {
		files := []string{}
		for i := range 10 {
			files = append(files, string(rune('a'+i))+".png", picture(t, 10))
		}
		s.api.Reply(anthropicapi.Reply{Text: "ok"})
		r := attached(t, "more", files...)
		r.Session.ID = session
		session = s.says(r, "ok").Session
	}
	if n := len(s.lastSeen()); n != 100 {
		t.Errorf("%d files", n)
	}
	if asked := strings.Join(s.asked(), "\n"); strings.Count(asked, "left out: the service takes no more files") != 20 || s.api.Violations() != nil {
		t.Errorf("%v %s", s.api.Violations(), asked)
	}
}

// TestUnfitFile: nothing is sent and no session begins.
func TestUnfitFile(t *testing.T) {
	s, objects := seeing(t)
	_, err := s.run(attached(t, "what?", "long.gif", "GIF89a\x41\x1f\x41\x1f\x00\x00\x00"))
	if !errors.Is(err, engine.ErrAttachment) || !strings.Contains(err.Error(), "long.gif: the image has 8001 x 8001 pixels; the service takes 8000 x 8000") {
		t.Errorf("%v", err)
	}
	s.Service = native.Service{Provider: s.Service.Provider, Name: "openai", NoPDF: "localhost:11434"}
	if _, err = s.run(attached(t, "what?", "a.pdf", paper)); !errors.Is(err, engine.ErrAttachment) || !strings.Contains(err.Error(), "a.pdf: localhost:11434 takes no PDF files") {
		t.Errorf("%v", err)
	}
	if len(s.api.Requests()) != 0 || kept(objects) != 0 {
		t.Errorf("%d requests, %d files", len(s.api.Requests()), kept(objects))
	}
}

// readers are the engine's real tools in a directory with an image and a PDF.
func readers(t *testing.T, shown string) *builtin.Box {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"cat": shown, "paper.txt": paper} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pattern, err := policy.Parse("Read(**)")
	if err != nil {
		t.Fatal(err)
	}
	box := &builtin.Box{Roots: []policy.Root{{Dir: dir}}, Allow: []policy.Pattern{pattern}}
	box.Open()
	return box
}

// TestReadShowsFiles: Read of an image and a PDF gives the model both: in the result where the service takes them there, else in a
// message behind it.
func TestReadShowsFiles(t *testing.T) {
	shown := picture(t, 40)
	reads := engine.Request{Input: engine.Input{Prompt: "look"}, Scope: engine.Scope{BuiltIns: []string{"Read"}}}
	s, objects := seeing(t)
	s.Tools = func(engine.Request) native.BuiltIns { return readers(t, shown) }
	uses := []anthropicapi.ToolUse{
		{ID: "a", Name: "Read", Input: map[string]any{"file_path": "cat"}}, {ID: "b", Name: "Read", Input: map[string]any{"file_path": "paper.txt"}},
	}
	s.api.Reply(anthropicapi.Reply{ToolUses: uses}, anthropicapi.Reply{Text: "seen"})
	r := s.says(reads, "seen")
	same(t, s.lastSeen(), []string{"image/png:" + shown, "application/pdf:" + paper})
	results := s.api.Requests()[1].ToolResults()
	if results[0].ResultText == "" || !strings.HasPrefix(results[0].ResultText, "[image cat, image/png, ") || !strings.Contains(results[1].ResultText, " 3 pages") || kept(objects) != 2 {
		t.Errorf("%+v, %d files kept", results, kept(objects))
	}
	s.api.Reply(anthropicapi.Reply{Text: "still"})
	reads.Session.ID = r.Session
	s.says(reads, "still")
	same(t, s.lastSeen(), []string{"image/png:" + shown, "application/pdf:" + paper})

	api := openaiapi.New(t)
	s.Service = native.Service{Provider: provider.NewOpenAI(provider.Options{BaseURL: api.URL(), Key: "k"}), Name: "openai", NoPDF: "here"}
	calls := []openaiapi.ToolCall{{ID: "c", Name: "Read", Arguments: `{"file_path":"cat"}`}, {ID: "d", Name: "Read", Arguments: `{"file_path":"paper.txt"}`}}
	api.Reply(openaiapi.Reply{ToolCalls: calls}, openaiapi.Reply{Text: "seen too"})
	reads.Session.ID = ""
	s.says(reads, "seen too")
	asked := api.Requests()[1].Messages
	last := asked[len(asked)-1]
	same(t, last.Files(), []string{"image/png:" + shown})
	if !strings.Contains(last.Text(), "takes no PDF files") || !strings.Contains(asked[len(asked)-2].Text(), "is in the next message") || api.Violations() != nil {
		t.Errorf("%+v %v", asked, api.Violations())
	}
}

// generous adds files to each result.
type generous struct {
	*builtin.Box

	more []*transcript.Source
}

func (g generous) Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult {
	r := g.Box.Call(ctx, name, input)
	r.More = g.more
	return r
}

// TestAllFilesOfAResultAreShown: the first is in the result where the service takes it there, the others follow the results of all
// tools. A resumed session has them again.
func TestAllFilesOfAResultAreShown(t *testing.T) {
	cat, dog := picture(t, 40), picture(t, 50)
	second, err := engine.Source("dog", []byte(dog))
	if err != nil {
		t.Fatal(err)
	}
	third, err := engine.Source("paper", []byte(paper))
	if err != nil {
		t.Fatal(err)
	}
	s, objects := seeing(t)
	s.Tools = func(engine.Request) native.BuiltIns {
		return generous{readers(t, cat), []*transcript.Source{second, third}}
	}
	reads := engine.Request{Input: engine.Input{Prompt: "look"}, Scope: engine.Scope{BuiltIns: []string{"Read"}}}
	uses := []anthropicapi.ToolUse{
		{ID: "a", Name: "Read", Input: map[string]any{"file_path": "cat"}}, {ID: "b", Name: "Read", Input: map[string]any{"file_path": "none"}},
	}
	want := []string{"image/png:" + cat, "image/png:" + dog, "application/pdf:" + paper, "image/png:" + dog, "application/pdf:" + paper}
	s.api.Reply(anthropicapi.Reply{ToolUses: uses}, anthropicapi.Reply{Text: "seen"})
	r := s.says(reads, "seen")
	same(t, s.lastSeen(), want)
	if n := kept(objects); n != 3 {
		t.Errorf("%d files are kept", n)
	}
	s.api.Reply(anthropicapi.Reply{Text: "still"})
	reads.Session.ID = r.Session
	s.says(reads, "still")
	same(t, s.lastSeen(), want)

	api := openaiapi.New(t)
	s.Service = native.Service{Provider: provider.NewOpenAI(provider.Options{BaseURL: api.URL(), Key: "k"}), Name: "openai", NoPDF: "here"}
	call := openaiapi.ToolCall{ID: "c", Name: "Read", Arguments: `{"file_path":"cat"}`}
	api.Reply(openaiapi.Reply{ToolCalls: []openaiapi.ToolCall{call}}, openaiapi.Reply{Text: "seen too"})
	reads.Session.ID = ""
	s.says(reads, "seen too")
	asked := api.Requests()[1].Messages
	same(t, asked[len(asked)-1].Files(), []string{"image/png:" + cat, "image/png:" + dog})
	if api.Violations() != nil {
		t.Errorf("%v", api.Violations())
	}
}

// TestARefusedFileDoesNotEndTheConversation: a file that the agent read and that the service refuses is left out, in this turn, in
// later ones and in a compaction. A refusal of the prompt's own file is an error.
func TestARefusedFileDoesNotEndTheConversation(t *testing.T) {
	s, _ := seeing(t)
	s.Tools = func(engine.Request) native.BuiltIns { return readers(t, picture(t, 40)) }
	s.api.On(func(q anthropicapi.Request) bool { return len(sees(q)) > 0 }, func(anthropicapi.Request) anthropicapi.Reply {
		return anthropicapi.Reply{Status: 400, Message: "The PDF specified was not valid."}
	})
	s.api.Reply(anthropicapi.Use("Read", map[string]any{"file_path": "paper.txt"}), anthropicapi.Reply{Text: "unreadable"}, anthropicapi.Reply{Text: "later"})
	reads := engine.Request{Input: engine.Input{Prompt: "look"}, Scope: engine.Scope{BuiltIns: []string{"Read"}}}
	reads.Session.ID = s.says(reads, "unreadable").Session
	s.says(reads, "later")
	if asked := strings.Join(s.asked(), "\n"); !strings.Contains(asked, "(left out: the service refused the files of this conversation)") {
		t.Errorf("%s", asked)
	}
	s.api.Reply(anthropicapi.Reply{Text: "the summary"})
	if c, err := s.Compact(t.Context(), engine.Request{Session: reads.Session, Scope: engine.Scope{Root: "/work"}}, "keep all", s.sink); err != nil || c.Summary != "the summary" {
		t.Errorf("%+v, %v", c, err)
	}
	own := attached(t, "this one?", "cat.png", picture(t, 40))
	own.Session.ID = reads.Session.ID
	if _, err := s.run(own); !errors.Is(err, provider.ErrRejected) {
		t.Errorf("%v", err)
	}
}
