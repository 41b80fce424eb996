package webhook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
)

// TestFilesChange: webhooks that are added, changed, broken and removed while the server runs are so for the next request.
func TestFilesChange(t *testing.T) {
	w := serve(t)
	w.wants("before", w.post("bearer", "a", "{}"), 202, "accepted")
	w.keys["new"] = keysOf(t, "bearer", bearerSecret)
	w.wants("not yet there", w.post("new", "a", "{}"), 401, "")
	w.define("new", "bearer")
	w.wants("added", w.post("new", "a", "{}"), 202, "accepted")
	w.define("new", "github") // of the same size
	w.wants("changed", w.post("new", "b", "{}"), 401, "")
	path := filepath.Join(w.book.Home.Webhooks(), "new.md")
	old := time.Now().Add(-time.Hour)
	for _, text := range []string{"---\nid: new\nfields: {}\ntypo: 1\n---\nLook.\n", ""} {
		w.define("new", "bearer")
		if err := os.Chtimes(path, old, old); err != nil { // so that the file is not read each time
			t.Fatal(err)
		}
		w.wants("there", w.post("new", "a", "{}"), 202, "accepted")
		err := os.WriteFile(path, []byte(text), 0o600)
		if text == "" {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.wants("broken or removed", w.post("new", "a", "{}"), 401, "")
		w.wants("the others", w.post("bearer", "a", "{}"), 202, "accepted")
	}
	if lines := w.logged(10); !strings.Contains(lines[5].Reason, "ollim check") {
		t.Errorf("logged %+v", lines[5])
	}
}

// TestSameIDElsewhere: a webhook whose id an older file keeps is found when that file is gone.
func TestSameIDElsewhere(t *testing.T) {
	now := time.Now()
	w := &site{T: t, book: inbox.Book{Home: paths.Dir(t.TempDir())}}
	files := &Files{
		Jobs: job.Library{Home: w.book.Home, Zone: time.UTC}, Now: func() time.Time { return now },
		Keys: func(job.Hook) ([][]byte, error) { return nil, nil },
	}
	w.define("a", "bearer")
	other := w.book.Home.Path("routines", "other.md")
	if err := store.Replace(other, []byte("---\nid: a\ncron: 0 9 * * *\n---\nGo.\n")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(other, now.Add(-time.Hour), now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour) // so that the files are not read each time
	if _, err := files.find("a"); err == nil {
		t.Error("an id that another file keeps was found")
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	now = now.Add(unsettled)
	if _, err := files.find("a"); err != nil {
		t.Error(err)
	}
}

// TestLongSignatures: a refusal takes the time of SHA-512 only while a webhook signs with it.
func TestLongSignatures(t *testing.T) {
	w := serve(t)
	w.wants("a refusal", w.post("bearer", "a b", "{}"), 401, "")
	if w.s.Files.long() {
		t.Error("no webhook signs with SHA-512")
	}
	text := "---\nid: long\nsignature: {kind: hmac, header: X-Sum, hash: sha512}\nfields: {properties: {title: {type: string}}}\n---\nLook.\n"
	if err := os.WriteFile(filepath.Join(w.book.Home.Webhooks(), "long.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.s.Files.find("none"); err == nil || !w.s.Files.long() {
		t.Errorf("a webhook signs with SHA-512: %v", err)
	}
}

// BenchmarkRefuse is a refusal of a body of 1 MiB.
func BenchmarkRefuse(b *testing.B) {
	body := make([]byte, 1<<20)
	for _, long := range []bool{false, true} {
		b.Run(map[bool]string{false: "SHA-256", true: "SHA-512"}[long], func(b *testing.B) {
			for b.Loop() {
				k := Keys{Scheme: job.New(job.Webhook).Hook.Signature, long: long}
				_, _ = k.verify(nil, body, time.Now())
			}
		})
	}
}
