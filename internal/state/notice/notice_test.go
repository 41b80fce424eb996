package notice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
	"github.com/ollim/ollim/internal/testkit"
	"pgregory.net/rapid"
)

// reporter is what *testing.T and *rapid.T have in common.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// desk is a book with a clock that stands still.
type desk struct {
	Book
	t   reporter
	dir string
}

func deskAt(t reporter, dir string) *desk {
	l := ledger.New(paths.Dir(dir), store.Disk{Now: noon, Warn: func(m string) { t.Errorf("%s", m) }}, Facts())
	l.Imports = []ledger.Import{{Store: "notice", Former: Former(), Add: func(tx *ledger.Tx) error {
		return Import(tx, func(name string) string { return filepath.Join(dir, "state", name) })
	}}}
	return &desk{Book{l}, t, dir}
}

func noon() time.Time { return time.Date(2026, 2, 24, 15, 30, 0, 0, time.FixedZone("", 3600)) }

func (d *desk) edit(change func(*Page) bool) {
	d.t.Helper()
	if err := d.Edit(context.Background(), change); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) set(subject string) {
	d.t.Helper()
	d.edit(func(p *Page) bool {
		p.Set(Key(JobKind, subject), Entry{Kind: JobKind, Subject: subject, Name: subject, Text: subject + " failed", Since: noon().UTC()})
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

// lines returns the kinds of the facts that were added.
func (d *desk) lines() (kinds []string) {
	d.t.Helper()
	for line, err := range d.Ledger.Lines(time.Time{}) {
		if err != nil {
			d.t.Fatal(err)
		}
		if line.Kind != "ledger.imported" {
			kinds = append(kinds, line.Kind)
		}
	}
	return kinds
}

func (d *desk) write(name, content string) {
	d.t.Helper()
	path := filepath.Join(d.dir, "state", name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		d.t.Fatal(err)
	}
}

// has compares the causes with those that are wanted.
func (d *desk) has(keys ...string) {
	d.t.Helper()
	p, err := d.Read()
	if len(p.Causes) != len(keys) || err != nil || d.Empty() != (len(keys)+len(p.Unsent) == 0) {
		d.t.Errorf("causes %v, %v, want %q", p.Causes, err, keys)
	}
	for _, key := range keys {
		if _, known := p.Causes[key]; !known {
			d.t.Errorf("no cause %q in %v", key, p.Causes)
		}
	}
}

// What changes nothing writes nothing, and what is changed is only in the page of the caller until then.
func TestWritesOnlyChanges(t *testing.T) {
	d := deskAt(t, t.TempDir())
	d.drop("j")
	d.has()
	d.set("a")
	d.set("a")
	d.drop("k")
	d.edit(func(p *Page) bool {
		p.Unsent = append(p.Unsent, Message{ID: "m"})
		clear(p.Causes)
		return false
	})
	if got := d.lines(); !slices.Equal(got, []string{"notice.cause"}) {
		t.Errorf("wrote %q", got)
	}
	d.has("job a")
	d.drop("a")
	d.has()
}

func TestManyAtOnce(t *testing.T) {
	d := deskAt(t, t.TempDir())
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			other := deskAt(t, d.dir)
			for k := range 5 {
				other.set(fmt.Sprint(i, k))
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
				deskAt(r, dir).has(keys...)
			},
		})
	})
}

// TestImport: the files of earlier versions are taken over and put away. A job that had failed is a cause that the owner knows about; what the
// oldest version noted in "seen" is said once more.
func TestImport(t *testing.T) {
	const failures = `{"seen": {"bad-file x": "2026-02-24T14:30:00Z"}, "failures": {"j": 4}}`
	const page = `{"causes": {"key native": {"kind": "key", "subject": "native", "since": "2026-02-24T14:30:00Z", "said": true}}, "unsent": [{"id": "m", "text": "held"}]}`
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"the page":        {map[string]string{"notices.json": page}, []string{"key native"}},
		"its former name": {map[string]string{"told.json": page}, []string{"key native"}},
		"both":            {map[string]string{"told.json": failures, "notices.json": page}, []string{"key native"}},
		"failures":        {map[string]string{"notices.json": failures}, []string{"job j"}},
		"damaged":         {map[string]string{"notices.json": "{"}, nil},
		"empty":           {map[string]string{"notices.json": `{"causes":null,"failures":null}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := deskAt(t, t.TempDir())
			for file, text := range tc.files {
				d.write(file, text)
			}
			d.write("notices.jsonl", `{"id":"a","text":"one","at":"2026-02-20T14:30:00Z"}`+"\ntorn")
			for range 2 {
				d.has(tc.want...)
				d = deskAt(t, d.dir)
			}
			p, err := d.Read()
			if e := p.Causes["job j"]; err != nil || slices.Contains(tc.want, "job j") && (!e.Said || e.Jobs["j"].Failed != 4 || !e.Open()) {
				t.Errorf("%+v, %v", p, err)
			}
			if len(p.Unsent) != strings.Count(strings.Join(tc.want, " "), "native") {
				t.Errorf("waiting: %+v", p.Unsent)
			}
			for m, err := range d.Said(time.Time{}) {
				if err != nil || m.Text != "one" || m.At.Day() != 20 {
					t.Errorf("said %+v, %v", m, err)
				}
			}
			for file := range tc.files {
				if _, err := os.Lstat(filepath.Join(d.dir, "state", file)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is there: %v", file, err)
				}
			}
		})
	}
}

// TestSay: a message that was said leaves the page and is among those that were said.
func TestSay(t *testing.T) {
	d := deskAt(t, t.TempDir())
	first, second := Message{ID: "a", Text: "one"}, Message{ID: "b", Text: "two"}
	texts := func(since time.Time) (texts []string) {
		for m, err := range d.Said(since) {
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, m.Text)
		}
		return texts
	}
	ctx := t.Context()
	d.edit(func(p *Page) bool { p.Unsent = []Message{first, second}; return true })
	if err := errors.Join(d.Say(ctx, Message{ID: "other"}), d.Say(ctx, first), d.Say(ctx, first, Message{ID: "b"})); err != nil {
		t.Fatal(err)
	}
	if got := texts(noon()); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%q", got)
	}
	if got := texts(noon().Add(time.Second)); len(got) > 0 {
		t.Errorf("later: %q", got)
	}
	d.has()
	if got, want := d.lines(), "notice.waiting notice.waiting notice.said notice.waiting notice.said"; strings.Join(got, " ") != want {
		t.Errorf("wrote %q", got)
	}
}
