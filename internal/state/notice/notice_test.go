package notice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
	"pgregory.net/rapid"
)

// desk is a book with a clock that stands still, and its warnings.
type desk struct {
	Book
	t      reporter
	warned []string
}

// reporter is what *testing.T and *rapid.T have in common.
type reporter interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	return deskAt(t, t.TempDir())
}

func deskAt(t reporter, dir string) *desk {
	d := &desk{t: t}
	d.Book = Book{paths.Dir(dir), store.Disk{
		Now:  func() time.Time { return time.Date(2026, 2, 24, 15, 30, 0, 0, time.FixedZone("", 3600)) },
		Warn: func(m string) { d.warned = append(d.warned, m) },
	}}
	return d
}

func (d *desk) edit(change func(*Page) bool) {
	d.t.Helper()
	if err := d.Edit(context.Background(), change); err != nil {
		d.t.Error(err)
	}
}

func (d *desk) set(subject string) {
	d.t.Helper()
	d.edit(func(p *Page) bool {
		p.Set(Key(JobKind, subject), Entry{Kind: JobKind, Subject: subject, Name: subject, Text: subject + " failed", Since: d.Disk.Now().UTC()})
		return true
	})
}

func (d *desk) drop(subject string) {
	d.t.Helper()
	d.edit(func(p *Page) bool {
		_, known := p.Causes[Key(JobKind, subject)]
		delete(p.Causes, Key(JobKind, subject))
		return known
	})
}

// file is notices.json, "" if it is not there.
func (d *desk) file() string {
	d.t.Helper()
	data, err := os.ReadFile(d.Home.Notices())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	return string(data)
}

func (d *desk) write(path, content string) {
	d.t.Helper()
	if err := errors.Join(store.MkdirAll(d.Home.State()), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		d.t.Fatal(err)
	}
}

// has compares the causes with those that are wanted.
func (d *desk) has(keys ...string) {
	d.t.Helper()
	p, err := d.Read()
	if len(p.Causes) != len(keys) || err != nil {
		d.t.Errorf("causes %v, %v, want %q", p.Causes, err, keys)
	}
	for _, key := range keys {
		if _, known := p.Causes[key]; !known {
			d.t.Errorf("no cause %q in %v", key, p.Causes)
		}
	}
}

func TestFile(t *testing.T) {
	d := newDesk(t)
	if !d.Empty() {
		t.Error("not empty")
	}
	d.set("j")
	want := `{
  "causes": {
    "job j": {
      "kind": "job",
      "subject": "j",
      "name": "j",
      "text": "j failed",
      "since": "2026-02-24T14:30:00Z"
    }
  }
}
`
	if got := d.file(); got != want || d.Empty() {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	d.drop("j")
	if got := d.file(); got != "" || !d.Empty() {
		t.Errorf("left %s", got)
	}
}

// What changes nothing writes nothing.
func TestWritesOnlyChanges(t *testing.T) {
	d := newDesk(t)
	d.drop("j")
	if got := d.file(); got != "" {
		t.Errorf("made %s", got)
	}
	d.set("a")
	before, err := os.Stat(d.Home.Notices())
	if err != nil {
		t.Fatal(err)
	}
	d.drop("k")
	after, err := os.Stat(d.Home.Notices())
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("replaced, %v", err)
	}
}

func TestEmptyFile(t *testing.T) {
	for _, content := range []string{"{}", "null", `{"causes":null,"failures":null}`, `{"other":1}`} {
		d := newDesk(t)
		d.write(d.Home.Notices(), content)
		d.set("a")
		d.has("job a")
		if len(d.warned) != 0 {
			t.Errorf("%q: warned %q", content, d.warned)
		}
	}
}

// TestEarlierVersion: a job that had failed is a cause that the owner knows about; what else was noted is said once more.
func TestEarlierVersion(t *testing.T) {
	d := newDesk(t)
	d.write(d.Home.Notices(), `{"seen": {"bad-file x": "2026-02-24T14:30:00Z"}, "failures": {"j": 4}}`)
	p, err := d.Read()
	e := p.Causes["job j"]
	if err != nil || len(p.Causes) != 1 || !e.Said || e.Jobs["j"].Failed != 4 || !e.Open() {
		t.Errorf("%+v, %v", p, err)
	}
	d.set("k")
	d.has("job j", "job k")
	d.drop("j")
	d.has("job k")
}

func TestManyAtOnce(t *testing.T) {
	d := newDesk(t)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for k := range 5 {
				d.set(fmt.Sprint(i, k))
			}
		})
	}
	group.Wait()
	if p, err := d.Read(); err != nil || len(p.Causes) != 40 {
		t.Errorf("%d causes, %v", len(p.Causes), err)
	}
}

func TestBookAgainstModel(t *testing.T) {
	root := testkit.MemoryDir(t)
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			r.Fatal(err)
		}
		d := deskAt(r, dir)
		var keys []string
		key := rapid.SampledFrom([]string{"a", "b", "c"})
		r.Repeat(map[string]func(*rapid.T){
			"set": func(r *rapid.T) {
				k := key.Draw(r, "key")
				d.set(k)
				if k = "job " + k; !slices.Contains(keys, k) {
					keys = append(keys, k)
				}
			},
			"drop": func(r *rapid.T) {
				k := key.Draw(r, "key")
				d.drop(k)
				keys = slices.DeleteFunc(keys, func(old string) bool { return old == "job "+k })
			},
			"": func(r *rapid.T) {
				d.has(keys...)
				if d.Empty() != (len(keys) == 0) {
					r.Fatalf("file %q, model %v", d.file(), keys)
				}
			},
		})
	})
}

// TestFormerName: the notices of told.json are kept, and the file goes. One that is older than notices.json is not read.
func TestFormerName(t *testing.T) {
	d := newDesk(t)
	former := d.Home.State("told.json")
	d.write(former, `{"failures": {"old": 1}}`)
	d.set("new")
	d.has("job old", "job new")
	d.write(former, `{"failures": {"other": 1}}`)
	d.set("new")
	d.has("job old", "job new")
	if _, err := os.Lstat(former); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("told.json is there: %v", err)
	}
}

// TestArchive: a message that was said leaves the page and is in the archive, until that is trimmed.
func TestArchive(t *testing.T) {
	dir := t.TempDir()
	b, at := bookAt(dir, func(message string) { t.Error(message) }), time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	first, second := Message{ID: "a", Text: "one", At: at}, Message{ID: "b", Text: "two", At: at.Add(time.Hour)}
	archived := func() (texts []string) {
		for m, err := range b.Archive() {
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, m.Text)
		}
		return texts
	}
	ctx := t.Context()
	err := b.Edit(ctx, func(p *Page) bool { p.Unsent = []Message{first, second}; return true })
	err = errors.Join(err, b.Say(ctx, Message{ID: "other"}), b.Say(ctx, first), b.Say(ctx, first, Message{ID: "b"}))
	if err != nil || !slices.Equal(archived(), []string{"one", "two"}) {
		t.Errorf("%q, %v", archived(), err)
	}
	if p, err := b.Read(); err != nil || len(p.Unsent) > 0 {
		t.Errorf("on the page: %+v, %v", p.Unsent, err)
	}
	err = b.Edit(ctx, func(p *Page) bool { p.Unsent = []Message{first, second}; return true }) // as after a kill between the two files
	if err = errors.Join(err, b.Say(ctx, first, second)); err != nil || !slices.Equal(archived(), []string{"one", "two"}) {
		t.Errorf("said again: %q, %v", archived(), err)
	}
	if err := b.Trim(ctx, second.At); err != nil || !slices.Equal(archived(), []string{"two"}) {
		t.Errorf("trimmed: %q, %v", archived(), err)
	}
}
