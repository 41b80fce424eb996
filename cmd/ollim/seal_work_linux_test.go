package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// work is a script that works under the seal without a network, in a folder of its own that is writable.
type work struct {
	needs    []string // programs
	packages string   // of Debian that have them
	script   string
	want     string // the last line that it prints
}

func usefulWork() map[string]work {
	return map[string]work{
		"git": {[]string{"git"}, "git", `
git init -q -b main .
echo one >file; git add file; git commit -q -m one
echo two >>file; git status --short; git commit -q -a -m two
git worktree add -q -b other tree; echo three >tree/file; git -C tree commit -q -a -m three
git merge -q other; git log --format=%an:%s | tr '\n' ' '`, "Rex:three Rex:two Rex:one"},
		"go test": {[]string{"go"}, "golang", `
printf 'module a.example/m\n\ngo 1.21\n' >go.mod
cat >m_test.go <<'GO'
package m

import (
	"io"
	"net"
	"testing"
)

func TestServer(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, _ := l.Accept()
		_, _ = io.WriteString(conn, "hello")
		_ = conn.Close()
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(conn); err != nil || string(said) != "hello" {
		t.Fatal(said, err)
	}
}
GO
go test -vet=off -count=1 ./... 2>&1 | cut -f1,2`, "ok  \ta.example/m"},
		"npm test": {[]string{"npm", "node"}, "npm nodejs", `
cat >package.json <<'JSON'
{"name": "m", "version": "1.0.0", "scripts": {"test": "node test.js"}}
JSON
cat >test.js <<'JS'
const http = require("http"), s = http.createServer((q, r) => r.end("hello")).listen(0, "localhost", () =>
  http.get({ host: "localhost", port: s.address().port }, r => r.on("data", d => console.log("said " + d)).on("end", () => s.close())));
JS
npm test --silent`, "said hello"},
		"venv": {[]string{"python3"}, "python3 python3-venv", `
python3 -m venv --without-pip v && v/bin/python -c 'import sys, tempfile; tempfile.TemporaryFile(); print(sys.prefix == sys.base_prefix)'`, "False"},
		"make": {[]string{"make", "cc"}, "make gcc libc6-dev", `
printf '#include <stdio.h>\nint main(void) { return puts("made") < 0; }\n' >made.c
make -s made && ./made`, "made"},
		"curl": {[]string{"curl", "python3"}, "curl python3", `
python3 -u -c '
import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b"served")
s = http.server.HTTPServer(("localhost", 0), H)
print(s.server_port, flush=True); s.handle_request()' >port 2>log &
until [ -s port ]; do sleep 0.05; done
curl -sS http://localhost:$(cat port)/`, "served"},
		"ripgrep": {[]string{"rg"}, "ripgrep", `rg -l 'needle +of' "$OLLIM_DATA_DIR" 2>/dev/null | sed 's/.*data/data/'`, "data/notes/today.md"},
	}
}

// TestUsefulWork: what agents do on a machine works under the seal.
func TestUsefulWork(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "compilers, package managers and servers under the seal")
	testUsefulWork(t, goSettings(t))
}

// goSettings returns variables by which go uses this user's cache of what it has compiled, for the packages that this test has too.
func goSettings(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOFLAGS", "CGO_ENABLED").Output()
	settings := map[string]string{}
	if err := errors.Join(err, json.Unmarshal(out, &settings)); err != nil {
		t.Fatal(err)
	}
	return settings
}

// TestUsefulWorkOfUser is the same as a user without privileges, except go: in a cache that is empty it compiles for a minute.
func TestUsefulWorkOfUser(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "TestUsefulWork once more, as a user without privileges")
	if testkit.Unprivileged(t, "OLLIM_TEST_PROGRAM="+program) && os.Getenv("OLLIM_TEST_PROGRAM") != "" { // else it is no other user
		testUsefulWork(t, nil)
	}
}

// testUsefulWork lets go work by settings; nil leaves go out.
func testUsefulWork(t *testing.T, settings map[string]string) {
	if _, err := seal.Check(); err != nil {
		testkit.Missing(t, "%v: run the test on Linux 6.12 or later", err)
	}
	c, api := newWorkplace(t)
	all, dirs, export := usefulWork(), []string(nil), ""
	if settings == nil {
		delete(all, "go test")
	} else {
		dirs = []string{"--dirs", "rw:" + settings["GOCACHE"]}
	}
	for name, value := range settings {
		export += "export " + name + "='" + value + "'\n"
	}
	var uses []anthropicapi.ToolUse
	var names []string
	for name, work := range all {
		if i := slices.IndexFunc(work.needs, func(program string) bool { _, err := exec.LookPath(program); return err != nil }); i >= 0 {
			t.Run(name, func(t *testing.T) { testkit.Missing(t, "no %s: apt-get install %s", work.needs[i], work.packages) })
			continue
		}
		dir := filepath.Join("projects", fmt.Sprint(len(names)))
		c.put(filepath.Join(dir, "script"), export+work.script)
		names = append(names, name)
		uses = append(uses, anthropicapi.ToolUse{
			ID: fmt.Sprintf("use_%d", len(uses)), Name: "Bash", Input: map[string]any{"command": "./work " + dir, "timeout": 300_000},
		})
	}
	c.ok(append([]string{
		"routine", "add", "daily", "--id", "daily", "--cron", "@yearly", "--background", "--isolated", "--seal", "on", "--network", "none",
		"--allowed-tools", "Bash(./work *)", "--allowed-tools", "Write(projects/**)", "Work.",
	}, dirs...)...)
	api.Reply(anthropicapi.Reply{ToolUses: uses}, anthropicapi.Reply{Text: "done"})
	c.ok("fire", "daily")
	for i, result := range api.Requests()[1].ToolResults() {
		t.Run(names[i], func(t *testing.T) {
			lines := strings.Split(strings.TrimSpace(result.ResultText), "\n")
			if want := all[names[i]].want; strings.TrimSpace(lines[len(lines)-1]) != want {
				t.Errorf("the last line is not %q: %s", want, result.ResultText)
			}
		})
	}
}

// newWorkplace returns a data directory with a program "work", which runs the script in a folder.
func newWorkplace(t *testing.T) (*command, *anthropicapi.Server) {
	t.Helper()
	c, api := withNative(t)
	base := t.TempDir()
	c.data = filepath.Join(base, "data")
	c.env = []string{"HOME=" + base, "PATH=" + os.Getenv("PATH"), "GOPROXY=off"}
	c.ok("init", "--timezone", "America/New_York")
	c.ok("config", "set", "env", "ANTHROPIC_API_KEY=k")
	c.ok("config", "set", "native.base-url", api.URL())
	c.ok("config", "set", "engine", "native")
	c.put("notes/today.md", "the needle of today\n")
	c.put("state/diary", "needle of state\n")
	c.write("work", "#!/bin/sh\ncd \"$1\" && sh -e ./script 2>&1\n")
	err := errors.Join(os.Chmod(filepath.Join(c.data, "work"), 0o700),
		os.WriteFile(filepath.Join(base, ".gitconfig"), []byte("[user]\nname = Rex\nemail = rex@a.example\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return c, api
}
