package claudecode

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestMain makes this test binary the `ollim` that the command starts: "stub DIR", then the verb.
func TestMain(m *testing.M) {
	if len(os.Args) < 4 || os.Args[1] != "stub" {
		testkit.Run(m)
		return
	}
	err := error(nil)
	if os.Args[2] == "misbehaves" {
		err = misbehave(os.Args[3], os.Args[4], os.Args[5:])
	} else {
		err = stub(os.Args[2], strings.Join(os.Args[3:], " "))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// rules are what the hook goes by.
type rules struct {
	Allow     []string
	Roots     []policy.Root
	Protected []string
}

// verdict is one answer of the hook.
type verdict struct {
	Tool    string          `json:"tool_name"`
	ID      string          `json:"tool_use_id"`
	Agent   string          `json:"agent_type"` // of a use by a subagent: its name
	Input   json.RawMessage `json:"tool_input"`
	Allowed bool
	Reason  string
}

func stub(dir, verb string) error {
	switch verb {
	case "hook pre-tool":
		return stubPreTool(dir)
	case "mcp serve":
		return stubServe()
	case "search":
		return stubSearch()
	}
	return nil
}

// keyOutside is the key that TestKeyIsOutside looks for, backwards, so that no memory holds it by chance.
const keyOutside = "EDISTUO-30ipa-tna-ks"

// stubSearch prints where a process other than this one holds the key: in its memory, environment or open files.
func stubSearch() error {
	key := []byte(keyOutside)
	slices.Reverse(key)
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if dir += "/"; dir == fmt.Sprintf("/proc/%d/", os.Getpid()) {
			continue
		}
		files, _ := filepath.Glob(dir + "fd/*")
		for _, name := range append(files, dir+"environ", dir+"cmdline") {
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
				if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, key) {
					fmt.Println("found:", name)
				}
			}
		}
		maps, err := os.ReadFile(dir + "maps")
		memory, openErr := os.Open(dir + "mem")
		pages, pagesErr := os.Open(dir + "pagemap")
		openErr = errors.Join(openErr, pagesErr)
		if err != nil || openErr != nil {
			continue
		}
		for line := range strings.Lines(string(maps)) {
			var from, to int64
			if n, _ := fmt.Sscanf(line, "%x-%x rw", &from, &to); n == 2 && holds(memory, pages, from, to, key) {
				fmt.Println("found:", dir+"mem")
			}
		}
		_, _ = memory.Close(), pages.Close()
	}
	fmt.Println("searched")
	return nil
}

// holds reports whether a range of memory holds a text. It skips what was reserved and never used, which is most of it.
func holds(f, pages *os.File, from, to int64, text []byte) bool {
	const page, entry = 4096, 8
	buffer := make([]byte, 1<<20)
	used := make([]byte, (len(buffer)/page+1)*entry)
	for at := from; at < to; at += int64(len(buffer) - len(text)) {
		n, _ := pages.ReadAt(used, at/page*entry)
		if n > 0 && len(bytes.Trim(used[:n], "\x00")) == 0 {
			continue
		}
		n, _ = f.ReadAt(buffer[:min(int64(len(buffer)), to-at)], at)
		if bytes.Contains(buffer[:n], text) {
			return true
		}
	}
	return false
}

func stubPreTool(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "silent")); err == nil {
		return nil
	}
	var asked rules
	text, err := os.ReadFile(filepath.Join(dir, "rules.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &asked); err != nil {
		return err
	}
	raw, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var v verdict
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	p := policy.Policy{Roots: asked.Roots, Protected: asked.Protected, Sealed: true} // commands are judged by their words alone
	for _, pattern := range asked.Allow {
		parsed, err := policy.Parse(pattern)
		if err != nil {
			return err
		}
		p.Allow = append(p.Allow, parsed)
	}
	decided := p.Decide(v.Tool, v.Input)
	v.Allowed, v.Reason = decided.Allow, decided.Reason
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, "verdicts.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(log, "%s\n", line); err != nil {
		return err
	}
	word := "deny"
	if v.Allowed {
		word = "allow"
	}
	fmt.Printf(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":%q,"permissionDecisionReason":%q}}`, word, v.Reason)
	return nil
}

// stubServe is a tool server with one tool, `note`.
func stubServe() error {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var q struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Protocol string `json:"protocolVersion"`
			}
		}
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			return err
		}
		answer := "{}"
		switch q.Method {
		case "initialize":
			answer = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"ollim","version":"0"}}`, q.Params.Protocol)
		case "tools/list":
			answer = `{"tools":[{"name":"note","description":"Notes it.","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			answer = `{"content":[{"type":"text","text":"noted"}]}`
		}
		if q.ID != nil {
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", q.ID, answer)
		}
	}
	return in.Err()
}

// world is the real command over an API server of the test, with the stub as its hook and tool server.
type world struct {
	t      testing.TB
	api    *anthropicapi.Server
	engine *Engine
	dir    string       // of the stub
	id     string       // of the run
	seal   *seal.Seal   // nil: the command is not sealed
	scope  engine.Scope // of the turn
	root   string
	events []runlog.Event
	asked  int
	stop   context.Context    // stops the turn; nil: nobody does
	heard  func(runlog.Event) // is given each event; nil: none is waited for
}

// patience is how long a turn may go on without an event. A machine that is busy takes several seconds to start the command.
const patience = 5 * time.Minute

// examined is what the first world has found out about the command. It is the same for all.
var examined struct {
	sync.Once
	known Known
	err   error
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := freshWorld(t)
	examined.Do(func() { examined.known, examined.err = w.engine.Contract(t.Context()) })
	if examined.err != nil {
		t.Fatal(examined.err)
	}
	if err := store.MkdirOwn(filepath.Dir(w.engine.Home.ClaudeContract())); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteJSON(w.engine.Home.ClaudeContract(), examined.known, store.Buffered); err != nil {
		t.Fatal(err)
	}
	return w
}

// freshWorld is a world in which nothing is known of the command.
func freshWorld(t testing.TB) *world {
	t.Helper()
	command := anthropicapi.Claude(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, api: anthropicapi.New(t), dir: t.TempDir(), root: t.TempDir()}
	w.id = filepath.Base(filepath.Dir(w.dir)) // one of its own: by it leftovers are found
	w.engine = &Engine{
		Command: command, Self: self, Args: []string{"stub", w.dir},
		Env:    append(anthropicapi.ClaudeEnv(t, w.api), "GORACE=atexit_sleep_ms=0"),
		Models: model.Known(), Effort: "high",
		Disk: store.Disk{Now: time.Now, Warn: func(message string) { t.Error("warning:", message) }, Locks: &lock.Table{}},
		Home: newHome(t, w.id), Grace: 5 * time.Second,
	}
	w.sealed()
	return w
}

// newHome makes a data directory with a run.
func newHome(t testing.TB, run string) paths.Dir {
	t.Helper()
	home := paths.Dir(t.TempDir())
	if err := os.MkdirAll(home.Run(run), 0o700); err != nil {
		t.Fatal(err)
	}
	return home
}

// sealed seals the command from now on, where the kernel can.
func (w *world) sealed() {
	w.t.Helper()
	if _, err := seal.Check(); err != nil {
		w.t.Log(err)
		return
	}
	canary := w.place(w.engine.Home.State(), "canary", "SECRET")
	made := seal.New(func() (seal.Rules, error) {
		rules := seal.Rules{
			Read:    []string{"/usr", "/bin", "/lib", "/lib64", "/etc", "/opt", "/proc", "/sys/fs/cgroup"},
			Write:   []string{"/dev/null", "/dev/zero", "/dev/urandom", "/dev/tty", w.root, w.dir, w.engine.variable("TMPDIR")},
			Network: !w.scope.Offline, Canary: canary,
		}
		for _, dir := range w.scope.Dirs {
			rules.Write = append(rules.Write, dir.Dir)
		}
		return rules, nil
	}, nil)
	w.seal = made
	w.t.Cleanup(func() {
		if err := made.Close(); err != nil {
			w.t.Error(err)
		}
	})
}

// stubTools knows the verdicts of the stub.
type stubTools struct {
	engine.Tools
	w *world
}

func (s stubTools) Judged() (map[string]bool, error) {
	judged := map[string]bool{}
	for _, v := range s.w.verdicts() {
		judged[v.ID] = true
	}
	return judged, nil
}

func (w *world) verdicts() (list []verdict) {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "verdicts.jsonl"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		var v verdict
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			w.t.Error(err)
		}
		list = append(list, v)
	}
	return list
}

// run is one turn under the rules.
func (w *world) run(r engine.Request, allow ...string) (engine.Result, error) {
	w.t.Helper()
	rules := rules{Allow: allow, Roots: []policy.Root{{Dir: w.root, Writable: true}}, Protected: r.Scope.Protected}
	rules.Roots = append(rules.Roots, r.Scope.Dirs...)
	text, err := json.Marshal(rules)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "rules.json"), text, 0o600); err != nil {
		w.t.Fatal(err)
	}
	r.Run.ID, r.Scope.Root, r.Scope.Seal = w.id, w.root, w.seal
	w.scope = r.Scope
	if r.Scope.BuiltIns == nil {
		for _, pattern := range allow {
			name, _, _ := strings.Cut(pattern, "(")
			if !strings.HasPrefix(name, "mcp__") && !slices.Contains(r.Scope.BuiltIns, name) {
				r.Scope.BuiltIns = append(r.Scope.BuiltIns, name)
			}
		}
	}
	ctx, cancel := context.WithCancelCause(w.t.Context())
	defer cancel(nil)
	silence := time.AfterFunc(patience, func() { cancel(errors.New("nothing has happened for " + patience.String())) })
	defer silence.Stop()
	if w.stop != nil {
		defer context.AfterFunc(w.stop, func() { cancel(context.Canceled) })()
	}
	w.events = nil
	return w.engine.Run(ctx, r, stubTools{w: w}, func(e runlog.Event) error {
		silence.Reset(patience)
		w.events = append(w.events, e)
		if w.heard != nil {
			w.heard(e)
		}
		return nil
	})
}

// place makes a file and returns its path.
func (w *world) place(dir, name, text string) string {
	w.t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Error(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Error(err)
	}
	return path
}

func (w *world) move(from, to string) {
	w.t.Helper()
	if err := os.Rename(from, to); err != nil {
		w.t.Error(err)
	}
}

// results are those that the model was told, by the id of the use.
func (w *world) results() map[string]anthropicapi.Block {
	list := map[string]anthropicapi.Block{}
	for _, q := range w.api.Requests() {
		for _, r := range q.ToolResults() {
			list[r.ToolUseID] = r
		}
	}
	return list
}

// result is the last of a tool.
func (w *world) result(tool string) (last runlog.Event) {
	for _, e := range w.events {
		if e.Type == runlog.ToolResult && e.Tool == tool {
			last = e
		}
	}
	return last
}
