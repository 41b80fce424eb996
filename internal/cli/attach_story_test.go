package cli

import (
	"bytes"
	"image"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

// gallery is a directory with a file of each kind, under names that say nothing.
func gallery(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var picture, moving bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 20, 20))); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&moving, image.NewGray(image.Rect(0, 0, 20, 20)), nil); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"picture.txt": picture.String(), "moving": moving.String(), "my paper": "%PDF-1.7\n<</Type/Pages/Count 2>>\n", "notes.png": "buy oats\n", "data": "PK\x03\x04\x00\x00",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shown is the media types of the files in the messages of a request.
func shown(q anthropicapi.Request) (kinds []string) {
	for _, m := range q.Messages {
		for _, b := range m.Content {
			if b.File != nil {
				kinds = append(kinds, b.MediaType)
			}
		}
	}
	return kinds
}

func lastOf(api *anthropicapi.Server) anthropicapi.Request {
	all := api.Requests()
	return all[len(all)-1]
}

// TestAskWithFiles: images and PDFs are shown by their content, a text is data, anything else is named; the next question of the
// conversation has them still, and so has its transcript.
func TestAskWithFiles(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	dir := gallery(t)
	api.Reply(anthropicapi.Reply{Text: "a cat"})
	w.must("ask", "-n", "-f", filepath.Join(dir, "picture.txt"), "-f", filepath.Join(dir, "data"),
		"What is in @"+filepath.Join(dir, "moving")+", in (@"+filepath.Join(dir, "notes.png")+"), in @\""+filepath.Join(dir, "my paper")+
			"\", and who is @ada or me@"+dir+"/data or @"+dir+"?")
	q := lastOf(api)
	want := []string{"image/png", "image/gif", "application/pdf"}
	if got := shown(q); !slices.Equal(got, want) {
		t.Errorf("shown %q", got)
	}
	for _, text := range []string{"picture.txt: image/png, ", "data: application/zip, 6 bytes; not shown", "notes.png: text/plain, 9 bytes; its text is below", "\nbuy oats\n", "my paper: application/pdf"} {
		if !q.Has(text) {
			t.Errorf("the prompt lacks %q: %s", text, q.LastUserText())
		}
	}
	api.Reply(anthropicapi.Reply{Text: "still"})
	w.must("ask", "-n", "-c", "and now?")
	if got := shown(lastOf(api)); !slices.Equal(got, want) {
		t.Errorf("then shown %q", got)
	}
	id := w.last()["session_after"].(string)
	for _, out := range []string{w.must("session", "export", id), w.must("session", "export", "--json", id), w.must("session", "search", "picture.txt")} {
		if !strings.Contains(out, "picture.txt") {
			t.Errorf("%s", out)
		}
	}
	if out := w.must("session", "export", id); !strings.Contains(out, "my paper, application/pdf, 33 bytes]") {
		t.Errorf("%s", out)
	}
	// with the transcript the contents to which no run refers go, a minute later at the earliest
	w.pass(time.Hour)
	if err := os.RemoveAll(filepath.Join(w.dir, "state/runs")); err != nil {
		t.Fatal(err)
	}
	w.must("session", "rm", id)
	for _, content := range []string{"GIF89a", "\x89PNG", "%PDF"} {
		if left := w.holding("state/objects", content); len(left) != 0 {
			t.Errorf("%s is left in %q", content, left)
		}
	}
}

// TestFilesThatCannotCome: the error has the numbers, nothing is sent, and nothing is kept.
func TestFilesThatCannotCome(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	dir := gallery(t)
	for name, text := range map[string]string{"long": strings.Repeat("x", 300<<10), "large": "GIF89a\x01\x00\x01\x00\x00\x00\x00" + strings.Repeat("x", 5<<20)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"none": "no such file", ".": "directory", "long": "a text of 307200 bytes, and a prompt takes 262144", "large": "the image has 5242893 bytes; the service takes 3932160",
	} {
		if r := w.run("ask", "-n", "-f", filepath.Join(dir, name), "what?"); r.status != int(statusData) || !strings.Contains(r.errOut, want) {
			t.Errorf("%s: %d %s", name, r.status, r.errOut)
		}
	}
	if r := w.run("ask", "-n", "-f", "-", "what?"); r.status != int(statusUsage) {
		t.Errorf("%d %s", r.status, r.errOut)
	}
	if len(api.Requests()) != 0 {
		t.Errorf("%d requests", len(api.Requests()))
	}
	api.Reply(anthropicapi.Reply{Text: "ok"}, anthropicapi.Reply{Text: "ok"})
	w.must("ask", "-n", "--no-session", "-f", filepath.Join(dir, "moving"), "what?")
	if got := shown(lastOf(api)); len(got) != 1 {
		t.Errorf("shown %q", got)
	}
	if left, _ := os.ReadDir(filepath.Join(w.dir, "state/objects")); len(left) != 0 {
		t.Errorf("%d files are left", len(left))
	}
	if r := w.pipe("what is in @"+filepath.Join(dir, "moving"), "ask"); r.status != int(statusOK) || len(shown(lastOf(api))) != 0 {
		t.Errorf("a piped text named a file: %+v", r)
	}
}

// TestChatWithFiles: so does chat, and a branch of main shows the files too; a removed fork takes nothing from main.
func TestChatWithFiles(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	dir := gallery(t)
	w.must("routine", "add", "watch", "--cron", "0 9 * * *", "--background", "Look around.")
	w.must("chat", "-f", filepath.Join(dir, "moving"), "look at @"+filepath.Join(dir, "picture.txt"))
	if got := shown(lastOf(api)); !slices.Equal(got, []string{"image/gif", "image/png"}) {
		t.Errorf("shown %q", got)
	}
	w.must("fire", "watch")
	if got := shown(lastOf(api)); len(got) != 2 {
		t.Errorf("a branch shows %q", got)
	}
	w.pass(time.Hour)
	w.must("session", "rm", w.last()["session_after"].(string))
	w.must("chat", "and now?")
	if got := shown(lastOf(api)); len(got) != 2 {
		t.Errorf("then shown %q", got)
	}
}

// TestProtectedFilesAreNotMentioned: a text that was pasted brings no file that no agent may reach, by whatever name; typed with
// -f, the owner means it.
func TestProtectedFilesAreNotMentioned(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.write("state/notes.md", "sesame\n")
	w.write("open.md", "barley\n")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(w.dir, "state"), link); err != nil {
		t.Fatal(err)
	}
	api.Reply(anthropicapi.Reply{Text: "Done."})
	w.must("chat", "look at @"+w.dir+"/state/notes.md, @"+link+"/notes.md, @"+w.dir+"/config.yaml and @"+w.dir+"/open.md")
	if q := lastOf(api); q.Has("sesame") || q.Has("timezone:") || !q.Has("barley") {
		t.Errorf("the request has %s", q.LastUserText())
	}
	api.Reply(anthropicapi.Reply{Text: "Done."})
	w.must("chat", "-f", w.dir+"/state/notes.md", "look")
	if q := lastOf(api); !q.Has("sesame") {
		t.Errorf("-f brings nothing: %s", q.LastUserText())
	}
}

// TestFilesOfOtherServices: a service of OpenAI's kind gets images as data URLs, and one that takes no PDF is named before anything is
// sent.
func TestFilesOfOtherServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--engine", "native")
	api := openaiapi.New(t)
	w.must("config", "set", "env", "OPENAI_API_KEY=k")
	w.must("config", "set", "native.provider", "openai")
	w.must("config", "set", "native.model", "local")
	w.must("config", "set", "native.base-url", api.URL())
	dir := gallery(t)
	w.must("ask", "-n", "-f", filepath.Join(dir, "picture.txt"), "what?")
	messages := api.Requests()[0].Messages
	if got := messages[len(messages)-1].Files(); len(got) != 1 || !strings.HasPrefix(got[0], "image/png:\x89PNG") {
		t.Errorf("%q", got)
	}
	r := w.run("ask", "-n", "-f", filepath.Join(dir, "my paper"), "what?")
	if r.status != int(statusData) || !strings.Contains(r.errOut, "my paper: 127.0.0.1") || !strings.Contains(r.errOut, "takes no PDF files") || len(api.Requests()) != 1 {
		t.Errorf("%+v", r)
	}
}

// TestScriptListsFiles: the script engine has the files in its prompt.
func TestScriptListsFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n- - expect: 'moving: image/gif, 829 bytes'\n  - text: seen\n")
	if out := w.must("chat", "-f", filepath.Join(gallery(t), "moving"), "look"); !strings.Contains(out, "seen") {
		t.Error(out)
	}
}
