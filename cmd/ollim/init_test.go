package main

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/testkit"
)

// TestInitReleases: the routine that init offers asks its engine about a new release, and does not on a day without one.
func TestInitReleases(t *testing.T) {
	testkit.Program(t, "git", "git")
	repository := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(repository)))
	defer server.Close()
	release := func(tag string) {
		t.Helper()
		git(t, repository, "commit", "-q", "--allow-empty", "-m", tag)
		git(t, repository, "tag", tag)
		git(t, repository, "update-server-info")
	}
	git(t, repository, "init", "-q")
	release("v1.2.0")
	c := &command{t: t, path: program, data: t.TempDir()}
	c.write("play.yaml", "turns:\n  - - text: told\n")
	c.env = []string{"PATH=" + filepath.Dir(program) + ":/usr/local/bin:/usr/bin:/bin"}
	fire := func(want, prompt string) {
		t.Helper()
		c.ok("fire", "releases")
		if got := c.ok("run", "show", lastRun(t, c)); !strings.Contains(got, `"outcome": "`+want+`"`) && !strings.Contains(got, want) {
			t.Errorf("want %s:\n%s", want, got)
		}
		if text, _ := os.ReadFile(paths.Dir(c.data).Run(lastRun(t, c), "prompt.txt")); !strings.Contains(string(text), prompt) {
			t.Errorf("%q is missing:\n%s", prompt, text)
		}
	}
	c.ok("init", "--engine", "script:play.yaml", "--routine", "releases:"+server.URL+"/.git")
	fire("ok", "v1.2.0")
	fire("gated", "")
	release("v1.10.0")
	fire("ok", "+ v1.10.0")
	fire("gated", "")
}

// lastRun is the id of the newest run.
func lastRun(t *testing.T, c *command) string {
	t.Helper()
	runs := c.runs()
	if len(runs) == 0 {
		t.Fatal("no run")
	}
	return filepath.Base(runs[len(runs)-1])
}

// TestInitKilled: what a killed init has made is usable, and the next one goes on.
func TestInitKilled(t *testing.T) {
	keys, terminal := testkit.Terminal(t)
	c := &command{t: t, path: program, data: filepath.Join(t.TempDir(), "data")}
	cmd := c.cmd("init", "--timezone", "UTC")
	cmd.Env = append(cmd.Env, "HOME="+filepath.Dir(c.data))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown, text := bufio.NewReader(keys), ""
	for _, step := range []struct{ question, answer string }{{"Engine [", "native\n"}, {"Service: anthropic, openai or an address [", "\n"}, {"not shown", ""}} {
		for text = ""; !strings.Contains(text, step.question); {
			b, err := shown.ReadByte()
			if err != nil {
				t.Fatalf("%v after %q", err, text)
			}
			text += string(b)
		}
		for step.answer != "" && !strings.HasSuffix(text, "]: ") {
			b, err := shown.ReadByte()
			if err != nil {
				t.Fatalf("%v after %q", err, text)
			}
			text += string(b)
		}
		if _, err := keys.WriteString(step.answer); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if got := c.ok("config", "get", "engine"); got != "native\n" {
		t.Errorf("the engine is %q", got)
	}
	again := exec.Command(c.path, "init", "--engine", "script:play.yaml", "--routine", "disk")
	again.Env = cmd.Env
	if out, err := again.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	if got := c.ok("config", "get", "engine") + c.ok("routine", "list"); !strings.HasPrefix(got, "script:play.yaml\ndisk\tdisk\ton\t") {
		t.Errorf("%q", got)
	}
}
