package main

import (
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

// usefulWork are scripts that work under the seal without a network, in a folder of their own that is writable, each with the
// program that it needs and the last line that it prints.
func usefulWork() map[string][3]string {
	return map[string][3]string{
		"git": {"git", `
git init -q -b main .
echo one >file; git add file; git commit -q -m one
echo two >>file; git status --short; git commit -q -a -m two
git worktree add -q -b other tree; echo three >tree/file; git -C tree commit -q -a -m three
git merge -q other; git log --format=%an:%s | tr '\n' ' '`, "Rex:three Rex:two Rex:one"},
		"go test": {"go", `
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
go test -vet=off ./... 2>&1 | cut -f1,2`, "ok  \ta.example/m"},
		"npm test": {"npm", `
cat >package.json <<'JSON'
{"name": "m", "version": "1.0.0", "scripts": {"test": "node test.js"}}
JSON
cat >test.js <<'JS'
const http = require("http"), s = http.createServer((q, r) => r.end("hello")).listen(0, "localhost", () =>
  http.get({ host: "localhost", port: s.address().port }, r => r.on("data", d => console.log("said " + d)).on("end", () => s.close())));
JS
npm test --silent`, "said hello"},
		"venv": {"python3", `
python3 -m venv --without-pip v && v/bin/python -c 'import sys, tempfile; tempfile.TemporaryFile(); print(sys.prefix == sys.base_prefix)'`, "False"},
		"make": {"make", `
printf '#include <stdio.h>\nint main(void) { return puts("made") < 0; }\n' >made.c
make -s made && ./made`, "made"},
		"curl": {"curl", `
python3 -u -c '
import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b"served")
s = http.server.HTTPServer(("localhost", 0), H)
print(s.server_port, flush=True); s.handle_request()' >port 2>log &
until [ -s port ]; do sleep 0.05; done
curl -sS http://localhost:$(cat port)/`, "served"},
		"ripgrep": {"rg", `rg -l 'needle +of' "$OLLIM_DATA_DIR" 2>/dev/null | sed 's/.*data/data/'`, "data/notes/today.md"},
	}
}

// TestUsefulWork: what agents do on a machine works under the seal.
func TestUsefulWork(t *testing.T) {
	t.Parallel()
	testUsefulWork(t, goCache(t))
}

// goCache is a directory that keeps what go has compiled for the next time.
func goCache(t *testing.T) string {
	cache, err := filepath.Abs("../../.bin/test/go-build")
	if err == nil {
		err = os.MkdirAll(cache, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

// TestUsefulWorkOfUser is the same as a user without privileges, with a copy of what go has compiled for the other test so far.
func TestUsefulWorkOfUser(t *testing.T) {
	t.Parallel()
	const copied = "OLLIM_TEST_GO_CACHE"
	cache := os.Getenv(copied)
	if cache == "" && os.Getuid() == 0 {
		cache = filepath.Join(t.TempDir(), "go-build")
		_ = exec.Command("cp", "-r", goCache(t), cache).Run() // what the other test is writing may be incomplete
		err := errors.Join(os.Chmod(filepath.Dir(filepath.Dir(cache)), 0o755), os.Chmod(filepath.Dir(cache), 0o755))
		if out, failed := exec.Command("chown", "-R", "nobody", cache).CombinedOutput(); failed != nil || err != nil {
			t.Fatal(err, string(out))
		}
	}
	if testkit.Unprivileged(t, "OLLIM_TEST_PROGRAM="+program, copied+"="+cache) && cache != "" { // else it is no other user
		testUsefulWork(t, cache)
	}
}

// testUsefulWork keeps what go compiles in cache.
func testUsefulWork(t *testing.T, cache string) {
	if _, err := seal.Check(); err != nil {
		testkit.Missing(t, "%v: run the test on Linux 6.12 or later", err)
	}
	c, api := withNative(t)
	base := t.TempDir()
	c.data = filepath.Join(base, "data")
	c.env = []string{"HOME=" + base, "PATH=" + os.Getenv("PATH"), "GOPROXY=off", "GOFLAGS="}
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
	var uses []anthropicapi.ToolUse
	var names []string
	for name, work := range usefulWork() {
		if !slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool { _, err := os.Stat(filepath.Join(dir, work[0])); return err == nil }) {
			if testkit.CI() {
				t.Errorf("%s: %s is missing", name, work[0])
			}
			continue
		}
		dir := filepath.Join("projects", fmt.Sprint(len(names)))
		c.put(filepath.Join(dir, "script"), "export GOCACHE="+cache+"\n"+work[1])
		names = append(names, name)
		uses = append(uses, anthropicapi.ToolUse{
			ID: fmt.Sprintf("use_%d", len(uses)), Name: "Bash", Input: map[string]any{"command": "./work " + dir, "timeout": 300_000},
		})
	}
	c.ok("routine", "add", "daily", "--id", "daily", "--cron", "@yearly", "--background", "--isolated", "--seal", "on", "--network", "none", "--dirs", "rw:"+cache,
		"--allowed-tools", "Bash(./work *)", "--allowed-tools", "Write(projects/**)", "Work.")
	api.Reply(anthropicapi.Reply{ToolUses: uses}, anthropicapi.Reply{Text: "done"})
	c.ok("fire", "daily")
	for i, result := range api.Requests()[1].ToolResults() {
		t.Run(names[i], func(t *testing.T) {
			lines := strings.Split(strings.TrimSpace(result.ResultText), "\n")
			if want := usefulWork()[names[i]][2]; strings.TrimSpace(lines[len(lines)-1]) != want {
				t.Errorf("the last line is not %q: %s", want, result.ResultText)
			}
		})
	}
}
