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

func (d *desk) once(key string, want bool) {
	d.t.Helper()
	if first, err := d.Once(context.Background(), key); first != want || err != nil {
		d.t.Errorf("Once(%q) = %v, %v, want %v", key, first, err, want)
	}
}

func (d *desk) forget(keep ...string) {
	d.t.Helper()
	if err := d.Forget(context.Background(), func(key string) bool { return slices.Contains(keep, key) }); err != nil {
		d.t.Error(err)
	}
}

func (d *desk) failed(job string, count int, speak bool) {
	d.t.Helper()
	n, s, err := d.Failed(context.Background(), job)
	if n != count || s != speak || err != nil {
		d.t.Errorf("Failed(%q) = %d, %v, %v, want %d, %v", job, n, s, err, count, speak)
	}
}

func (d *desk) worked(job string) {
	d.t.Helper()
	if err := d.Worked(context.Background(), job); err != nil {
		d.t.Error(err)
	}
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

func TestOnce(t *testing.T) {
	d := newDesk(t)
	d.once("a", true)
	d.once("a", false)
	d.once("b", true)
	d.once("a", false)
	d.once("", true)
	d.once("", false)
}

func TestForget(t *testing.T) {
	d := newDesk(t)
	d.once("a", true)
	d.once("b", true)
	d.forget("b", "c")
	d.once("b", false)
	d.once("a", true)
	d.forget()
	if got := d.file(); got != "" {
		t.Errorf("a memory of nothing: %s", got)
	}
	d.once("b", true)
}

func TestFailed(t *testing.T) {
	d := newDesk(t)
	speaks := []int{1, 2, 3, 10, 100}
	for n := 1; n <= 101; n++ {
		d.failed("a", n, slices.Contains(speaks, n))
	}
	d.failed("b", 1, true)
	d.worked("a")
	d.failed("a", 1, true)
	d.failed("b", 2, true)
}

func TestPowersOfTen(t *testing.T) {
	var list []int
	for n := -100; n <= 20000; n++ {
		if powerOfTen(n) {
			list = append(list, n)
		}
	}
	if want := []int{1, 10, 100, 1000, 10000}; !slices.Equal(list, want) {
		t.Errorf("got %v, want %v", list, want)
	}
}

func TestFile(t *testing.T) {
	d := newDesk(t)
	d.once("a", true)
	d.failed("j", 1, true)
	d.failed("j", 2, true)
	want := `{
  "seen": {
    "a": "2026-02-24T14:30:00Z"
  },
  "failures": {
    "j": 2
  }
}
`
	if got := d.file(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	d.forget()
	d.worked("j")
	if got := d.file(); got != "" {
		t.Errorf("left %s", got)
	}
}

// What changes nothing writes nothing.
func TestWritesOnlyChanges(t *testing.T) {
	d := newDesk(t)
	d.worked("j")
	d.forget()
	if got := d.file(); got != "" {
		t.Errorf("made %s", got)
	}
	d.once("a", true)
	d.failed("j", 1, true)
	before, err := os.Stat(d.Home.Notices())
	if err != nil {
		t.Fatal(err)
	}
	d.once("a", false)
	d.forget("a")
	d.worked("k")
	after, err := os.Stat(d.Home.Notices())
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("replaced, %v", err)
	}
}

func TestEmptyFile(t *testing.T) {
	for _, content := range []string{"{}", "null", `{"seen":null,"failures":null}`, `{"other":1}`} {
		d := newDesk(t)
		if err := errors.Join(store.MkdirAll(d.Home.State()), os.WriteFile(d.Home.Notices(), []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
		d.once("a", true)
		d.failed("j", 1, true)
		if len(d.warned) != 0 {
			t.Errorf("%q: warned %q", content, d.warned)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	d := newDesk(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	firsts, spoken := map[string]int{}, 0
	for range 8 {
		group.Go(func() {
			for i := range 5 {
				key := fmt.Sprint(i)
				first, err := d.Once(context.Background(), key)
				_, speak, err2 := d.Failed(context.Background(), "j")
				mu.Lock()
				if first {
					firsts[key]++
				}
				if speak {
					spoken++
				}
				if err != nil || err2 != nil {
					t.Error(err, err2)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if fmt.Sprint(firsts) != "map[0:1 1:1 2:1 3:1 4:1]" || spoken != 4 { // of 40: 1, 2, 3, 10
		t.Errorf("told first %v, spoke %d times", firsts, spoken)
	}
	d.failed("j", 41, false)
}

func TestBookAgainstModel(t *testing.T) {
	root := testkit.MemoryDir(t)
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			r.Fatal(err)
		}
		d := deskAt(r, dir)
		seen, failures := map[string]bool{}, map[string]int{}
		key := rapid.SampledFrom([]string{"a", "b", "c"})
		r.Repeat(map[string]func(*rapid.T){
			"once": func(r *rapid.T) {
				k := key.Draw(r, "key")
				d.once(k, !seen[k])
				seen[k] = true
			},
			"forget": func(r *rapid.T) {
				keep := rapid.SliceOf(key).Draw(r, "keep")
				d.forget(keep...)
				for k := range seen {
					if !slices.Contains(keep, k) {
						delete(seen, k)
					}
				}
			},
			"fail": func(r *rapid.T) {
				k := key.Draw(r, "job")
				failures[k]++
				d.failed(k, failures[k], failures[k] <= 3 || failures[k] == 10 || failures[k] == 100)
			},
			"work": func(r *rapid.T) {
				k := key.Draw(r, "job")
				d.worked(k)
				delete(failures, k)
			},
			"": func(r *rapid.T) {
				if empty := len(seen)+len(failures) == 0; empty != (d.file() == "") {
					r.Fatalf("file %q, model %v, %v", d.file(), seen, failures)
				}
			},
		})
	})
}

// TestFormerName: the notices of told.json are kept, and the file goes. One that is older than notices.json is not read.
func TestFormerName(t *testing.T) {
	d := newDesk(t)
	former := d.Home.State("told.json")
	write := func(content string) {
		t.Helper()
		if err := errors.Join(store.MkdirAll(d.Home.State()), os.WriteFile(former, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"seen": {"old": "2026-02-24T14:30:00Z"}}`)
	d.once("old", false)
	d.once("new", true)
	write(`{"seen": {"other": "2026-02-24T14:30:00Z"}}`)
	d.once("new", false)
	d.once("other", true)
	if _, err := os.Lstat(former); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("told.json is there: %v", err)
	}
}
