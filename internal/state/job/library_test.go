package job

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// shelfOf makes a data directory of these routine files and loads it.
func shelfOf(t *testing.T, files map[string]string) (Set, paths.Dir) {
	t.Helper()
	dir := paths.Dir(t.TempDir())
	if err := os.MkdirAll(dir.Routines(), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir.Routines(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sameAge(t, dir)
	return load(t, dir), dir
}

// sameAge makes all job files equally old, so that none keeps an id that others have.
func sameAge(t *testing.T, dir paths.Dir) {
	t.Helper()
	files, _ := filepath.Glob(dir.Path("*", "*.md"))
	firing, _ := filepath.Glob(dir.Path("state", "firing", "*.md"))
	for _, file := range append(files, firing...) {
		age(t, file, 0)
	}
}

// age sets the time of a file's last change, so many hours before the others.
func age(t *testing.T, file string, hours int) {
	t.Helper()
	at := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC).Add(-time.Duration(hours) * time.Hour)
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, dir paths.Dir) Set {
	t.Helper()
	s, err := Library{Home: dir}.Load()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func good(id string, more ...string) string {
	return page(append([]string{"id: " + id, "cron: 0 9 * * *"}, more...)...)
}

func ids(jobs []Job) (list []string) {
	for _, j := range jobs {
		list = append(list, j.ID)
	}
	return list
}

func TestLoad(t *testing.T) {
	_, dir := shelfOf(t, map[string]string{
		"b.md": good("two"), "a.md": good("one"), "bad.md": good("x", "corn: y", "timeout: z"), "notes.txt": "no job", ".#a.md": "a lock of emacs",
		".hidden.md": "no job", "a.md~": "a backup", "README": "no job", "upper.MD": "no job", ".md": "no job",
		"large.md": good("large") + strings.Repeat("x", 1<<20), "latin1.md": good("y", "description: caf\xe9"),
	})
	in := func(name string) string { return filepath.Join(dir.Routines(), name) }
	outside := filepath.Join(t.TempDir(), "elsewhere.md")
	for err := range slices.Values([]error{
		os.Mkdir(in("folder.md"), 0o700),
		os.WriteFile(outside, []byte(good("three")), 0o600),
		os.Symlink(outside, in("link.md")),
		os.Symlink("nowhere", in("dangling.md")),
		os.Symlink("loop.md", in("loop.md")),
		os.Symlink("/dev/zero", in("zero.md")),
		syscall.Mkfifo(in("pipe.md"), 0o600),
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := load(t, dir)
	if got := ids(s.Jobs); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("jobs %q", got)
	}
	if got := s.Jobs[2].Path; got != in("link.md") {
		t.Errorf("path %s", got)
	}
	want := `routines/bad.md:4: corn: unknown key (did you mean cron?)
routines/bad.md:5: timeout: "z" is not a duration: write one like 30m, 2h or 1d
routines/dangling.md: cannot be read: no such file or directory
routines/folder.md: cannot be read: is a directory
routines/large.md: cannot be read: larger than 1048576 bytes
routines/latin1.md:4: not valid UTF-8
routines/loop.md: cannot be read: too many levels of symbolic links
routines/pipe.md: cannot be read: not a file
routines/zero.md: cannot be read: not a file`
	if got := faults(s.Faults); got != want {
		t.Errorf("faults\n%s\nwant\n%s", got, want)
	}
}

func TestLoadOddFolders(t *testing.T) {
	dir := paths.Dir(t.TempDir())
	if s := load(t, dir); len(s.Jobs)+len(s.Faults) != 0 {
		t.Errorf("without a folder: %v, %v", s.Jobs, s.Faults)
	}
	if err := os.WriteFile(dir.Routines(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Library{Home: dir}).Load(); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file in its place: %v", err)
	}
}

func TestTwins(t *testing.T) {
	s, _ := shelfOf(t, map[string]string{
		"a.md": good("same"), "b.md": page("# mine", "cron: 0 9 * * *", "id: same"), "c.md": good("other"), "d.md": good("Cap"), "e.md": good("cAP"),
		"f.md": good("same"), "h.md": good("h"), "i.md": good("h", "corn: x"), "g.md": good("i"),
	})
	want := `routines/a.md:2: id: "same" is used twice, also in routines/b.md
routines/b.md:4: id: "same" is used twice, also in routines/a.md
routines/d.md:2: id: "Cap" differs from "cAP" in routines/e.md only in case
routines/e.md:2: id: "cAP" differs from "Cap" in routines/d.md only in case
routines/f.md:2: id: "same" is used twice, also in routines/a.md
routines/i.md:4: corn: unknown key (did you mean cron?)`
	if got := faults(s.Faults); got != want {
		t.Errorf("faults\n%s\nwant\n%s", got, want)
	}
	if got := ids(s.Jobs); !slices.Equal(got, []string{"other", "i", "h"}) {
		t.Errorf("jobs %q", got)
	}
	// whoever asks for the id is told why there is no job of it
	_, err := s.Find("same")
	if got := faults(err); strings.Count(got, "is used twice") != 3 {
		t.Errorf("Find: %s", got)
	}
	if _, err := s.Find("b"); faults(err) != `routines/b.md:4: id: "same" is used twice, also in routines/a.md` {
		t.Errorf("Find by name: %v", err)
	}
}

// Of several files with one id the one that the owner approved keeps it, else the older one; only the others are faulty.
func TestTwinsOfAKeeper(t *testing.T) {
	for name, c := range map[string]struct {
		approved []string // files
		hours    map[string]int
		keeper   string
	}{
		"the older":                {nil, map[string]int{"a.md": 1, "b.md": 3, "same.md": 2}, "b.md"},
		"the approved":             {[]string{"a.md"}, map[string]int{"a.md": 1, "b.md": 3, "same.md": 9}, "a.md"},
		"the older of two":         {[]string{"a.md", "b.md"}, map[string]int{"a.md": 1, "b.md": 3, "same.md": 9}, "b.md"},
		"equally old and approved": {[]string{"a.md", "b.md"}, map[string]int{"same.md": 9}, ""},
	} {
		_, dir := shelfOf(t, map[string]string{"a.md": good("same"), "b.md": good("SAME"), "same.md": good("same"), "c.md": good("other")})
		for file, hours := range c.hours {
			age(t, filepath.Join(dir.Routines(), file), hours)
		}
		library := Library{Home: dir, Approved: func(j Job) bool { return slices.Contains(c.approved, filepath.Base(j.Path)) }}
		s, err := library.Load()
		if err != nil {
			t.Fatal(err)
		}
		if c.keeper == "" {
			if len(s.Jobs) != 1 || len(s.Faults) != 3 {
				t.Errorf("%s: %q, %v", name, ids(s.Jobs), s.Faults)
			}
			continue
		}
		if len(s.Jobs) != 2 || len(s.Faults) != 2 || strings.Count(faults(s.Faults), "routines/"+c.keeper+" keeps") != 2 {
			t.Errorf("%s: %q, %v", name, ids(s.Jobs), s.Faults)
		}
		kept := s.Jobs[slices.IndexFunc(s.Jobs, func(j Job) bool { return filepath.Base(j.Path) == c.keeper })]
		if j, err := s.Find(kept.ID); err != nil || j.Path != kept.Path {
			t.Errorf("%s: Find(%s): %s, %v", name, kept.ID, j.Path, err)
		}
	}
}

// An id that is another file's name is no twin: the id is what counts, and only asking by that word is refused.
func TestIDOfAnotherName(t *testing.T) {
	s, _ := shelfOf(t, map[string]string{"a.md": good("b"), "b.md": good("c")})
	if len(s.Faults) > 0 || len(s.Jobs) != 2 {
		t.Fatalf("%v", s.Faults)
	}
	for name, want := range map[string]string{"a": "b", "c": "c", "a.md": "b", "b.md": "c"} {
		if j, err := s.Find(name); err != nil || j.ID != want {
			t.Errorf("Find(%q): %q, %v", name, j.ID, err)
		}
	}
	var ambiguous *plaintext.Ambiguous
	if _, err := s.Find("b"); !errors.As(err, &ambiguous) || err.Error() != `"b" could be any of: routines/a.md, routines/b.md` {
		t.Errorf("%v", err)
	}
}

func TestFind(t *testing.T) {
	s, dir := shelfOf(t, map[string]string{
		"daily-market.md": good("a1b2c3d4", "description: Market, every day!"),
		"Two Words.md":    good("two"),
		"nihongo.md":      good("ja", "description: 日本語"),
		"x.md":            good("x", "description: Weekly"),
		"y.md":            good("y", "description: weekly..."),
		"broken.md":       good("b", "corn: z"),
	})
	t.Chdir(string(dir))
	for _, name := range []string{
		"a1b2c3d4", "daily-market", "daily-market.md", "market-every-day", "routines/daily-market.md", "./routines/daily-market.md",
		"routines/daily-market", filepath.Join(dir.Routines(), "daily-market.md"), "routines/../routines/daily-market.md",
	} {
		j, err := s.Find(name)
		if strings.HasSuffix(name, "routines/daily-market") {
			if err == nil {
				t.Errorf("Find(%q) is no path to a file, and found %s", name, j.ID)
			}
			continue
		}
		if err != nil || j.ID != "a1b2c3d4" {
			t.Errorf("Find(%q): %q, %v", name, j.ID, err)
		}
	}
	t.Chdir("/")
	if j, err := s.Find("routines/daily-market.md"); err != nil || j.ID != "a1b2c3d4" { // from anywhere
		t.Errorf("%q, %v", j.ID, err)
	}
	for name, want := range map[string]string{
		"Two Words":            "",
		"ja":                   "",
		"":                     `no job ""`,
		".md":                  `no job ".md"`,
		"dialy-market":         `no job "dialy-market" (did you mean daily-market?)`,
		"A1B2C3D4":             `no job "A1B2C3D4" (did you mean a1b2c3d4?)`,
		"market":               `no job "market"`,
		"/elsewhere/x.md":      `no job "/elsewhere/x.md"`,
		"/elsewhere/broken.md": `no job "/elsewhere/broken.md"`,
		"weekly":               `"weekly" could be any of: routines/x.md, routines/y.md`,
		"broken":               "routines/broken.md:4: corn: unknown key (did you mean cron?)",
		"broken.md":            "routines/broken.md:4: corn: unknown key (did you mean cron?)",
		"routines/broken.md":   "routines/broken.md:4: corn: unknown key (did you mean cron?)",
	} {
		_, err := s.Find(name)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("Find(%q): %s, want %s", name, got, want)
		}
	}
	var unknown *plaintext.Unknown
	if _, err := s.Find("dialy-market"); !errors.As(err, &unknown) || unknown.Bad != 1 || !slices.Equal(unknown.Near, []string{"daily-market"}) {
		t.Errorf("%#v", unknown)
	}
	var bad yamldoc.Faults
	if _, err := s.Find("broken"); !errors.As(err, &bad) {
		t.Errorf("%T", err)
	}
}

func TestNewID(t *testing.T) {
	id, err := NewID(bytes.NewReader([]byte{0, 1, 0xab, 0xff, 9}))
	if id != "0001abff" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	if _, err := NewID(bytes.NewReader([]byte{0, 1})); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
}

func TestCreate(t *testing.T) {
	l := Library{Home: paths.Dir(t.TempDir())}
	j := New(Routine)
	j.ID, j.Cron, j.Body = "a", "0 9 * * *", "Look at the market."
	create := func(name string) string {
		t.Helper()
		made, err := l.Create(j, name)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(made.Path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		return filepath.Base(made.Path)
	}
	if got := create("mine"); got != "mine.md" {
		t.Error(got)
	}
	if made, err := l.Create(j, "mine"); !errors.Is(err, fs.ErrExist) || made.Name() != "mine" {
		t.Errorf("a name that is taken: %v", err)
	}
	for _, want := range []string{"look-at-the-market.md", "look-at-the-market-2.md", "look-at-the-market-3.md"} {
		if got := create(""); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if j.Description = "Daily!"; create("") != "daily.md" {
		t.Error("the description does not come first")
	}
	if j.Description, j.Body = "お風呂を 掃除する!", "x"; create("") != "お風呂を-掃除する.md" {
		t.Error("not named after its letters")
	}
	if j.Description, j.Body = "!", "?"; create("") != "a.md" {
		t.Error("not named after the id")
	}
	for _, name := range []string{"../x", "a/b", ".", "..", ".hidden", "/x"} {
		if made, err := l.Create(j, name); err == nil {
			t.Errorf("%q became %s", name, made.Path)
		}
	}
	entries, err := os.ReadDir(l.Home.Routines())
	if err != nil || len(entries) != 7 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

func TestCreateRace(t *testing.T) {
	l := Library{Home: paths.Dir(t.TempDir())}
	var all sync.WaitGroup
	names := make([]string, 8)
	for i := range names {
		all.Go(func() {
			j := New(Routine)
			j.ID, j.Cron, j.Description, j.Body = fmt.Sprint("id", i), "0 9 * * *", "The same", "Do it."
			made, err := l.Create(j, "")
			if err != nil {
				t.Error(err)
			}
			names[i] = made.Name()
		})
	}
	all.Wait()
	s, err := l.Load()
	if err != nil || len(s.Jobs) != 8 || len(s.Faults) > 0 {
		t.Fatalf("%d jobs, %v, %v", len(s.Jobs), s.Faults, err)
	}
	for i, name := range names {
		if name == "the-same" {
			name += ".md" // as a slug it is everybody's
		}
		if j, err := s.Find(name); err != nil || j.ID != fmt.Sprint("id", i) {
			t.Errorf("%s holds %s, %v", name, j.ID, err)
		}
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "the-same the-same-2 the-same-3 the-same-4 the-same-5 the-same-6 the-same-7 the-same-8" {
		t.Error(got)
	}
}
