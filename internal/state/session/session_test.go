package session

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

var start = time.Date(2026, 2, 24, 22, 30, 0, 0, time.UTC)

// newBook is a Book in a new data directory, in a zone eight hours behind UTC; warned collects the messages of Disk.Warn.
func newBook(t *testing.T) (b Book, warned *[]string) {
	t.Helper()
	warned = new([]string)
	disk := store.Disk{
		Now:  func() time.Time { return start },
		Warn: func(m string) { *warned = append(*warned, m) },
	}
	return Book{Home: paths.Dir(t.TempDir()), Disk: disk, Zone: time.FixedZone("PST", -8*3600)}, warned
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestReadToleratesOtherSoftware(t *testing.T) {
	const uuid = "0b6e2d5e-5a3f-4d59-9d2e-3c5c2a6f2f10"
	for name, tc := range map[string]struct{ data, want string }{
		"bare":            {uuid, uuid},
		"newline":         {uuid + "\n", uuid},
		"crlf":            {uuid + "\r\n", uuid},
		"byte order mark": {"\ufeff" + uuid + "\n", uuid},
		"native":          {"n-01JN0Z6Y4T7Q1V5W8X9Y0Z1A2B", "n-01JN0Z6Y4T7Q1V5W8X9Y0Z1A2B"},
		"empty":           {"", ""},
		"blank":           {" \n\t\n", ""},
		"older layout":    {`{"main": "` + uuid + `"}`, ""},
		"indented layout": {"\n  {\n}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := newBook(t)
			write(t, b.Home.MainSession(), tc.data)
			write(t, b.Home.RoutineSession("a1b2c3d4"), tc.data)
			if got, err := b.Main(); got != tc.want || err != nil {
				t.Errorf("Main: %q, %v, want %q", got, err, tc.want)
			}
			if got, err := b.Routine("a1b2c3d4"); got != tc.want || err != nil {
				t.Errorf("Routine: %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestMissingIsNone(t *testing.T) {
	b, _ := newBook(t)
	if got, err := b.Main(); got != "" || err != nil {
		t.Errorf("Main: %q, %v", got, err)
	}
	if got, err := b.Routine("x"); got != "" || err != nil {
		t.Errorf("Routine: %q, %v", got, err)
	}
	if ids, err := b.Routines(); len(ids) != 0 || err != nil {
		t.Errorf("Routines: %q, %v", ids, err)
	}
	if err := errors.Join(b.RemoveRoutine("x"), b.ClearMain()); err != nil {
		t.Errorf("removing what is not there: %v", err)
	}
}

func TestSetWritesABareString(t *testing.T) {
	b, _ := newBook(t)
	for _, id := range []string{"one", "n-2", strings.Repeat("x", 200)} {
		if err := errors.Join(b.SetMain(id), b.SetRoutine("r.1", id)); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{b.Home.MainSession(), b.Home.RoutineSession("r.1")} {
			if got := content(t, path); got != id {
				t.Errorf("%s holds %q, want exactly %q", path, got, id)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
	if err := errors.Join(b.ClearMain(), b.RemoveRoutine("r.1")); err != nil {
		t.Fatal(err)
	}
	main, err1 := b.Main()
	routine, err2 := b.Routine("r.1")
	if main+routine != "" || err1 != nil || err2 != nil {
		t.Errorf("after removal: %q %v, %q %v", main, err1, routine, err2)
	}
}

// The inode reports whether a file was replaced; time stamps are too coarse.
func TestUnchangedIsNotWritten(t *testing.T) {
	b, _ := newBook(t)
	write(t, b.Home.MainSession(), "one\n")
	before, err := os.Stat(b.Home.MainSession())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetMain("one"); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(b.Home.MainSession()); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was replaced (%v)", err)
	}
	if got := content(t, b.Home.MainSession()); got != "one\n" {
		t.Errorf("holds %q", got)
	}
	if err := b.SetMain("two"); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(b.Home.MainSession()); err != nil || os.SameFile(before, after) {
		t.Errorf("the file was written in place (%v)", err)
	}
}

func TestUnsafeSessionIDs(t *testing.T) {
	for _, id := range []string{
		"", " ", ".", "..", "../x", "a/b", "/etc/passwd", `a\b`, "a..b", "a\nb", "a\x00b", "a\x1bb", "a\u0085b", "a\u202eb",
		"a\xff", " a", "a\n", "{a", "-rf", "\ufeffa", strings.Repeat("x", 201),
	} {
		b, warned := newBook(t)
		if err := b.SetMain(id); !errors.Is(err, ErrID) {
			t.Errorf("SetMain(%q): %v", id, err)
		}
		if err := b.SetRoutine("r", id); !errors.Is(err, ErrID) {
			t.Errorf("SetRoutine(%q): %v", id, err)
		}
		if _, err := os.Stat(b.Home.State()); !errors.Is(err, fs.ErrNotExist) || len(*warned) != 0 {
			t.Errorf("%q left something behind: %v, %q", id, err, *warned)
		}
	}
}

func TestUnsafeRoutineIDs(t *testing.T) {
	for _, id := range []string{"", ".", "..", ".x", "-x", "../x", "a/b", "a b", "a\n", "é", strings.Repeat("x", 65)} {
		b, _ := newBook(t)
		write(t, b.Home.State("x"), "outside")
		_, err := b.Routine(id)
		for what, err := range map[string]error{
			"Routine": err, "SetRoutine": b.SetRoutine(id, "s"), "RemoveRoutine": b.RemoveRoutine(id),
		} {
			if !errors.Is(err, ErrID) {
				t.Errorf("%s(%q): %v", what, id, err)
			}
		}
		if got := content(t, b.Home.State("x")); got != "outside" {
			t.Errorf("%q reached outside: %q", id, got)
		}
	}
}

// An id that would lead a lock or a transcript elsewhere is not given to anyone, and not lost either.
func TestGarbageIsKeptAside(t *testing.T) {
	b, warned := newBook(t)
	write(t, b.Home.RoutineSession("r"), "../../etc/passwd\n")
	if got, err := b.Routine("r"); got != "" || err != nil {
		t.Errorf("Routine: %q, %v", got, err)
	}
	if err := b.SetRoutine("r", "good"); err != nil {
		t.Fatal(err)
	}
	if got := content(t, b.Home.RoutineSession("r")); got != "good" {
		t.Errorf("holds %q", got)
	}
	if got := content(t, b.Home.RoutineSession("r")+".corrupt-20260224T223000.000000Z"); got != "../../etc/passwd\n" {
		t.Errorf("aside: %q", got)
	}
	if len(*warned) != 1 {
		t.Errorf("warned %q", *warned)
	}
	if ids, err := b.Routines(); err != nil || !slices.Equal(ids, []string{"r"}) {
		t.Errorf("Routines: %q, %v", ids, err)
	}
}

func TestRoutinesListsOnlySessions(t *testing.T) {
	b, _ := newBook(t)
	for _, name := range []string{"b", "a1b2c3d4", "C.x_y-z", ".b.tmp-123", ".hidden", "b~", "not an id", "b.corrupt-20260224T223000.000000Z"} {
		write(t, b.Home.RoutineSession(name), "s")
	}
	if err := os.Mkdir(b.Home.RoutineSession("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	ids, err := b.Routines()
	if want := []string{"C.x_y-z", "a1b2c3d4", "b"}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("%q, %v, want %q", ids, err, want)
	}
}

func TestCurrent(t *testing.T) {
	b, _ := newBook(t)
	if got, err := b.Current(); err != nil || len(got) != 0 {
		t.Errorf("nothing yet: %v, %v", got, err)
	}
	write(t, b.Home.RoutineSession("a"), "n-1")
	write(t, b.Home.RoutineSession("b"), "n-2")
	write(t, b.Home.RoutineSession("empty"), "")
	write(t, b.Home.MainSession(), "n-2")
	want := map[string]string{"n-1": "a", "n-2": ""}
	if got, err := b.Current(); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestNotWritten(t *testing.T) {
	b, _ := newBook(t)
	write(t, b.Home.State(), "a file where the folder should be")
	for what, err := range map[string]error{"SetMain": b.SetMain("s"), "SetRoutine": b.SetRoutine("r", "s")} {
		if _, ok := errors.AsType[*store.NotWritten](err); !ok {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := b.Main(); err == nil || errors.Is(err, ErrID) {
		t.Errorf("Main: %v", err)
	}
	if _, err := b.Routines(); err == nil {
		t.Error("Routines: no error")
	}
	if owners, err := b.Current(); err == nil {
		t.Errorf("Current: %v, no error", owners)
	}
}

func FuzzSet(f *testing.F) {
	for _, id := range []string{"0b6e2d5e-5a3f", "n-01JN0", "../x", "a\n", "{", "-x", "\ufeff", "\xff"} {
		f.Add(id)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, id string) {
		b := Book{Home: paths.Dir(dir), Disk: store.Disk{Now: func() time.Time { return start }, Warn: func(string) {}}, Zone: time.UTC}
		if err := b.SetMain(id); err != nil {
			if !errors.Is(err, ErrID) {
				t.Errorf("SetMain(%q): %v", id, err)
			}
			return
		}
		if got, err := b.Main(); got != id || err != nil {
			t.Errorf("wrote %q, read %q, %v", id, got, err)
		}
		if lock := b.Home.SessionLock(id); filepath.Dir(lock) != b.Home.Locks() {
			t.Errorf("%q leads to %s", id, lock)
		}
	})
}
