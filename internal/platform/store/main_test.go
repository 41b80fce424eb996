package store_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

func TestMain(m *testing.M) {
	forever := func(write func(path string, i int) error) func([]string) error {
		return func(args []string) error {
			for i := 0; ; i++ {
				if err := write(args[0], i); err != nil {
					return err
				}
				if i == 0 {
					fmt.Println("ready")
				}
			}
		}
	}
	once := func(write func(path string) error) func([]string) error {
		return func(args []string) error {
			runtime.LockOSThread() // strace counts calls by thread
			return write(args[0])
		}
	}
	testkit.Main(m, map[string]func([]string) error{
		"append once":  once(func(path string) error { return store.AppendJSON(path, store.Synced, entry{N: 2}) }),
		"replace once": once(func(path string) error { return store.Replace(path, []byte("new")) }),
		"replace":      forever(func(path string, i int) error { return store.Replace(path, content(i)) }),
		"create":       forever(func(path string, i int) error { return store.Create(fmt.Sprintf("%s-%d", path, i), content(i)) }),
		"append": forever(func(path string, i int) error {
			return store.AppendJSON(path, store.Buffered, entry{N: i, Text: strings.Repeat("x", 20_000)})
		}),
	})
}

// content is large, and of one letter, so that any mixture of two is seen.
func content(i int) []byte { return []byte(strings.Repeat(string(rune('a'+i%26)), 50_000+i%26)) }

func whole(data []byte) bool {
	return len(data) >= 50_000 && string(data) == string(content(int(data[0]-'a')))
}

// entry is a line in the files of these tests.
type entry struct {
	N    int    `json:"n"`
	Text string `json:"text,omitempty"`
}

func write(t testing.TB, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func permissions(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != want {
		t.Errorf("%s is %v, want %v", path, info.Mode().Perm(), want)
	}
}

// only fails unless a directory holds exactly these names.
func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

// numbers are the lines of a file, in short, and how many were bad.
func numbers(t testing.TB, path string) (list []int, bad int) {
	t.Helper()
	for e, err := range store.Lines[entry](path, &bad) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e.N)
	}
	return list, bad
}

func noon() time.Time {
	return time.Date(2026, 2, 24, 12, 0, 0, 123456789, time.FixedZone("CET", 3600))
}

// disk is a Disk at noon whose warnings are kept.
func disk() (store.Disk, *[]string) {
	var warned []string
	return store.Disk{Now: noon, Warn: func(m string) { warned = append(warned, m) }}, &warned
}
