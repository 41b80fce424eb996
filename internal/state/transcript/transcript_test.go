package transcript_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/state/transcript"
)

func TestFolder(t *testing.T) {
	long := "/" + strings.Repeat("é/", 200)
	for cwd, want := range map[string]string{
		"/Users/foo/myproject":  "--Users-foo-myproject--",
		"/Users/foo/myproject/": "--Users-foo-myproject--",
		"/a-b":                  "--a-b--",
		"/a/b":                  "--a-b--",
		"/":                     "----",
		"/a/../../etc":          "--etc--",
		"/..a/...":              "--..a-...--",
		"/tab\tline\nesc\x1b[m": "--tab-line-esc-[m--",
		"/bad\xff\xfeutf8":      "--bad--utf8--",
		`/back\slash`:           "--back-slash--",
		"/with space/ü":         "--with space-ü--",
	} {
		if got := folder("/s", cwd); got != "/s/"+want {
			t.Errorf("%q: %q, want %q", cwd, got, want)
		}
	}
	a, b := filepath.Base(folder("/s", long)), filepath.Base(folder("/s", long+"x"))
	if a == b || len(a) > 255 || len(a) < 250 || !strings.HasSuffix(a, "--") {
		t.Errorf("%q (%d bytes) and %q", a, len(a), b)
	}
}

func FuzzFolder(f *testing.F) {
	f.Add("/a/b")
	f.Add("/..\x00\\" + strings.Repeat("ü", 300))
	f.Fuzz(func(t *testing.T, cwd string) {
		got := folder("/s", "/"+cwd)
		name := filepath.Base(got)
		if filepath.Dir(got) != "/s" || len(name) > 255 || !utf8.ValidString(name) ||
			!strings.HasPrefix(name, "--") || !strings.HasSuffix(name, "--") || strings.ContainsFunc(name, unicode.IsControl) {
			t.Errorf("%q: %q", cwd, got)
		}
	})
}

func TestCreate(t *testing.T) {
	sessions := filepath.Join(t.TempDir(), "new", "sessions")
	h := header("n-a1b2c3")
	h.ParentID = "n-0"
	made, err := transcript.Dir(sessions).Create(h)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(sessions, "--home-ada-project--", "2026-02-24T19-30-00_n-a1b2c3.jsonl"); made.Path != want {
		t.Errorf("%s, want %s", made.Path, want)
	}
	const line = `{"type":"session","id":"n-a1b2c3","cwd":"/home/ada/project","provider":"anthropic","model":"m-1",` +
		`"timestamp":"2026-02-24T14:30:00.123456789-05:00","parent_id":"n-0"}` + "\n"
	if got := read(t, made.Path); got != line {
		t.Errorf("%s", got)
	}
	for path, want := range map[string]fs.FileMode{made.Path: 0o600, filepath.Dir(made.Path): 0o700, sessions: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if _, err := transcript.Dir(sessions).Create(h); !errors.Is(err, fs.ErrExist) || strings.Count(err.Error(), "file") > 1 {
		t.Errorf("a second time: %v", err)
	}
	if got := names(t, filepath.Dir(made.Path)); len(got) != 1 {
		t.Errorf("%q", got)
	}
	again, err := transcript.Open(made.Path)
	if err != nil || again.ParentID != "n-0" || !again.Timestamp.Equal(noon) || again.Cwd != h.Cwd || again.Path != made.Path {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestRefusedIDs(t *testing.T) {
	for _, id := range []string{
		"", ".", "..", "../x", "a/b", `a\b`, "-rf", "a b", "a\n", "\x00", "a..b", "\xff", strings.Repeat("x", 201), "a\u202eb",
	} {
		if _, err := transcript.Dir(t.TempDir()).Create(header(id)); err == nil || !strings.HasSuffix(err.Error(), ": not a valid session id") {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"n-0", strings.Repeat("x", 200), "3f0c9a1e-8d0b-4c53-a6d5-0f6e2f9b1c7d", "a_b.c"} {
		if _, err := transcript.Dir(t.TempDir()).Create(header(id)); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		text string
		ok   bool
	}{
		"of the seed": {`{"type": "session", "id": "uuid", "cwd": "/path", "provider": "anthropic", "model": "m", "timestamp": "2024-01-15T10:30:00.5"}` + "\n", true},
		"more fields": {`{"release":3,"type":"session","id":"a","cwd":"/p","tools":["x"],"timestamp":"soon"}` + "\r\n{}\n", true},
		"version 3":   {`{"type":"session","version":3,"id":"a","timestamp":"2026-02-24T14:30:00Z","cwd":"/p"}` + "\n", false},
		"its first":   {`{"type":"session","id":"a","cwd":"/p","provider":"anthropic","modelId":"m","timestamp":"2026-02-24T14:30:00Z"}` + "\n", false},
		"torn":        {`{"type":"session","id":"a","cwd":"/p"}`, false},
		"empty":       {"", false},
		"no cwd":      {`{"type":"session","id":"s-1","timestamp":"2026-02-24T14:30:00Z"}` + "\n", false},
		"a message":   {`{"type":"message","id":"a","cwd":"/p"}` + "\n", false},
		"a bad id":    {`{"type":"session","id":"../a","cwd":"/p"}` + "\n", false},
		"no JSON":     {"hello\n", false},
		"one line":    {strings.Repeat("x", 1<<20), false},
	} {
		path := filepath.Join(dir, name)
		write(t, path, tc.text)
		got, err := transcript.Open(path)
		if tc.ok != (err == nil) || !tc.ok && !errors.Is(err, transcript.ErrForeign) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if name == "of the seed" && (got.ID != "uuid" || got.Timestamp.Year() != 2024) {
			t.Errorf("%+v", got)
		}
	}
	if _, err := transcript.Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir} {
		if _, err := transcript.Open(path); !errors.Is(err, transcript.ErrForeign) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
