package claudecode

import (
	"bytes"
	"image"
	"image/png"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// picture is a PNG image of so many pixels in each direction.
func picture(t *testing.T, side int) string {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, side, side))); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestAttachments: the real command passes an image and a PDF on as they are, keeps them in its session, and sends them again. The gateway
// keeps the requests. No word of the prompt is a command or the name of a file.
func TestAttachments(t *testing.T) {
	anthropicapi.InCI(t)
	w := newWorld(t)
	shown := picture(t, 60)
	paper := "%PDF-1.4\n1 0 obj<</Type/Pages/Count 1>>endobj\n%%EOF\n"
	var all kept
	r := engine.Request{Model: engine.Model{Name: canaryModel}}
	r.Run.Sent = all.keep
	r.Input.Prompt = "/what is in @" + w.place(w.root, "secret.txt", "SECRET") + " and in the files?"
	r.Input.Attachments = []engine.Attachment{
		{Name: "cat.png", Type: "image/png", Path: w.place(w.root, "cat.png", shown)},
		{Name: "paper.pdf", Type: "application/pdf", Path: w.place(w.root, "paper.pdf", paper)},
	}
	result, err := w.run(r)
	if err != nil {
		t.Fatal(err)
	}
	again := engine.Request{Session: engine.Session{ID: result.Session}, Model: r.Model, Run: r.Run}
	again.Input.Prompt = "And now?"
	second, err := w.run(again)
	if err != nil {
		t.Fatal(err)
	}
	all.check(w, 2, result.Cost+second.Cost)
	requests := w.api.Requests()
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	for i, q := range requests {
		var kinds []string
		var content []string
		for _, b := range q.Messages[0].Content {
			if b.Type == "image" || b.Type == "document" {
				kinds, content = append(kinds, b.MediaType), append(content, string(b.File))
			}
		}
		if strings.Join(kinds, " ") != "image/png application/pdf" || content[0] != shown || content[1] != paper {
			t.Errorf("request %d: %s", i, kinds)
		}
		if q.Has("SECRET") || !q.Has("/what is in @") {
			t.Errorf("request %d: %+v", i, q.Messages)
		}
	}
	entries, err := loadPast(t, w, result.Session)
	if err != nil || !strings.Contains(entries, "[image, image/png, ") || !strings.Contains(entries, "[document paper.pdf, application/pdf, ") {
		t.Errorf("%v: %s", err, entries)
	}
}

func loadPast(t *testing.T, w *world, id string) (labels string, err error) {
	t.Helper()
	archive := &Engine{Env: w.engine.Env, Home: w.engine.Home}
	found, err := archive.Find(id)
	if err != nil {
		return "", err
	}
	bad := 0
	entries, err := archive.Load(found, false, &bad)
	for _, e := range entries {
		for _, b := range e.Message.Content {
			if b.Source != nil {
				labels += b.Source.Label()
			}
		}
	}
	return labels, err
}

// TestUnfitAttachment: nothing is sent, and the error has the numbers.
func TestUnfitAttachment(t *testing.T) {
	e := &Engine{Models: priced().Models}
	dir := t.TempDir()
	w := &world{t: t}
	for name, tc := range map[string]struct{ content, want string }{
		"long.gif":  {"GIF89a\x41\x1f\x41\x1f\x00\x00\x00", "8001 x 8001 pixels; the service takes 8000 x 8000"},
		"large.gif": {"GIF89a\x01\x00\x01\x00\x00\x00\x00" + strings.Repeat("x", 5<<20), "5242893 bytes; the service takes 3932160"},
		"notes.txt": {"hello", "neither an image nor a PDF"},
	} {
		r := engine.Request{}
		r.Input.Attachments = []engine.Attachment{{Name: name, Path: w.place(dir, filepath.Base(name), tc.content)}}
		if _, err := e.input(r); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
