package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	stores "github.com/ollim/ollim/internal/state"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// world is a scratch home and data directory in which command lines run in this process, over a fake clock and a fake
// environment. Sleeps return at once and move the clock.
type world struct {
	t      *testing.T
	dir    string            // the data directory
	home   string            // the owner's home; also the directory of secrets
	env    map[string]string // what commands see as their environment
	cron   bool              // commands are started by a scheduler
	random io.Reader
	real   bool // the clock is the real one, moved by pass, and sleeps take their time

	kernel func() (abi int, err error) // what it has for seals; nil: what this machine has
	noCron bool                        // no cron daemon runs

	mu    sync.Mutex
	now   time.Time
	ahead time.Duration // of the clock that is the real one
}

// facts returns the stores of the data directory as a process of its own has them.
func (w *world) facts() *stores.Stores {
	return stores.Of(paths.Dir(w.dir), store.Disk{Now: w.clock, Warn: func(m string) { w.t.Error(m) }}, time.UTC)
}

// runFile is the path of a file of a run below the data directory.
func runFile(run string, elem ...string) string { return paths.Dir("").Run(run, elem...) }

// result is what a command line left: its exit status and its streams.
type result struct {
	status      int
	out, errOut string
}

// newWorld makes a world and runs `ollim init` in it, with the script engine playing data/script.yaml unless args say otherwise.
// The clock stands at Monday 2026-03-02 10:00 UTC.
func newWorld(t *testing.T, initArgs ...string) *world {
	t.Helper()
	root := t.TempDir()
	w := &world{t: t, random: rand.Reader, dir: filepath.Join(root, "data"), home: filepath.Join(root, "home"), now: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}
	temporary := filepath.Join(root, "tmp") // not that of the test's program, which thus may be installed in schedules
	for _, dir := range []string{w.home, temporary} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.env = map[string]string{"OLLIM_DATA_DIR": w.dir, "HOME": w.home, "TZ": "UTC", "PATH": os.Getenv("PATH"), "TMPDIR": temporary}
	if len(initArgs) == 0 {
		initArgs = []string{"--engine", "script:script.yaml"}
	}
	w.must(append([]string{"init"}, initArgs...)...)
	return w
}

// newNativeWorld makes a world whose engine is the native one, talking to a server of Anthropic's API in this process.
func newNativeWorld(t *testing.T) (*world, *anthropicapi.Server) {
	t.Helper()
	api := anthropicapi.New(t)
	w := newWorld(t, "--engine", "native")
	w.must("config", "set", "env", "ANTHROPIC_API_KEY=k")
	w.must("config", "set", "native.base-url", api.URL())
	return w, api
}

// run runs a command line without standard input.
func (w *world) run(args ...string) result { return w.pipe("", args...) }

// pipe runs a command line with text on standard input.
func (w *world) pipe(input string, args ...string) result {
	var out, errOut bytes.Buffer
	status := execute(w.t.Context(), w.deps(strings.NewReader(input), &out, &errOut), args)
	return result{status, out.String(), errOut.String()}
}

// deps is the world as one process sees it.
func (w *world) deps(in io.Reader, out, errOut io.Writer) *deps {
	return &deps{
		In: in, Stdout: out, Stderr: errOut,
		Automatic: func() bool { return w.cron },
		App: &app.App{Machine: app.Machine{
			Now:    w.clock,
			Lookup: func(name string) (string, bool) { value, ok := w.env[name]; return value, ok },
			Random: w.random,
			Kernel: w.kernel,
			Cron:   func() (runs, known bool) { return !w.noCron, true },
			Sleep: func(ctx context.Context, d time.Duration) error {
				if w.real {
					return process.Sleep(ctx, d)
				}
				w.pass(d)
				return ctx.Err()
			},
		}},
	}
}

func homeOf(t testing.TB, d *deps) app.Home {
	t.Helper()
	h, err := d.Home()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// must runs a command line that has to exit 0, and returns its standard output.
func (w *world) must(args ...string) string {
	w.t.Helper()
	r := w.run(args...)
	if r.status != 0 {
		w.t.Fatalf("ollim %s: exit status %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), r.status, r.out, r.errOut)
	}
	w.pass(time.Second) // so that ids and times of commands differ
	return r.out
}

// clock is the time in this world.
func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.real {
		return time.Now().Add(w.ahead)
	}
	return w.now
}

// pass moves the clock.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now, w.ahead = w.now.Add(d), w.ahead+d
}

// write writes a file of the data directory, made with its directories.
func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := testkit.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// replace is write for a file that a program reads meanwhile: it never reads a part.
func (w *world) replace(name, text string) {
	w.t.Helper()
	w.write(name+".new", text)
	path := filepath.Join(w.dir, name)
	if err := os.Rename(path+".new", path); err != nil {
		w.t.Fatal(err)
	}
}

// read reads a file of the data directory; a missing one is "".
func (w *world) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(data)
}

// script is what the engine plays at every run from now on: YAML, as ollim-engines(7) describes it.
func (w *world) script(text string) { w.write("script.yaml", text) }

// runs is the records of all runs, oldest first, as they are on disk.
func (w *world) runs() []map[string]any {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "state/runs/*/*/*/*/run.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(files)
	var out []map[string]any
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		var record map[string]any
		if err := json.Unmarshal(data, &record); err != nil {
			w.t.Fatalf("%s: %v", file, err)
		}
		out = append(out, record)
	}
	return out
}

// last is the record of the newest run.
func (w *world) last() map[string]any {
	w.t.Helper()
	all := w.runs()
	if len(all) == 0 {
		w.t.Fatal("there is no run")
	}
	return all[len(all)-1]
}

func TestWorldAsksAModel(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	api.Reply(anthropicapi.Reply{Text: "Hello."})
	if out := w.must("chat", "hi"); out != "Hello.\n" {
		t.Errorf("chat printed %q", out)
	}
	if n := len(api.Requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestWorldFiresARoutine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "Look around.")
	if out := w.must("fire", "--print", "daily"); out != "done\n" {
		t.Errorf("fire printed %q, want %q", out, "done\n")
	}
	if got := w.last()["outcome"]; got != "ok" {
		t.Errorf("outcome %v, want ok", got)
	}
}
