package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// loggedOut is a claude command without a login.
const loggedOut = `case "$*$ANTHROPIC_API_KEY" in "auth status") echo '{"loggedIn": false}' ;; auth*) echo '{"loggedIn": true}' ;; esac; exit 1`

// TestInitClaudeAddress: the service of the claude command is asked for with its key, before any question is sent, and Enter is the vendor's,
// or that of the environment.
func TestInitClaudeAddress(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, map[string]string{"claude": loggedOut})
	const own = "https://models.example.org"
	r := w.answers([]string{"", "", "example.org", own + "/v1/", token, "no", "none", "none", "none"}, "init")
	shows(t, r.errOut, "press Enter at the next questions", "Service: anthropic or an address [anthropic]: ", "is not the address of a service: write one like\nhttp://localhost:11434\n", "Service: ", "ANTHROPIC_API_KEY (not shown; ", "test question")
	if text := w.secretsFile(); r.status != 0 || !strings.Contains(text, "\nengine.ANTHROPIC_BASE_URL="+own+"\n") || !strings.Contains(text, "engine.ANTHROPIC_API_KEY="+token) {
		t.Errorf("%+v, %q", r, text)
	}
	w.must("secret", "rm", "engine.ANTHROPIC_API_KEY")
	r = w.answers([]string{"anthropic", token, "no"}, "init")
	shows(t, r.errOut, "Service: anthropic or an address\n["+own+"]: ", "test question")
	if text := w.secretsFile(); strings.Contains(text, "BASE_URL") || !strings.Contains(text, token) {
		t.Errorf("%q", text)
	}
	w = newBareWorld(t, map[string]string{"claude": loggedOut})
	w.env["ANTHROPIC_BASE_URL"] = own
	shows(t, w.answers([]string{"", "", "", token, "no", "none", "none", "none"}, "init").errOut, "Service: anthropic or an address\n["+own+"]: ")
	if text := w.secretsFile(); !strings.Contains(text, "BASE_URL="+own) {
		t.Errorf("%q", text)
	}
	w = newBareWorld(t, map[string]string{"claude": loggedOut})
	r = w.pipe(token+"\n", "init", "--engine", "claude-code", "--base-url", own, "--key-stdin")
	if text := w.secretsFile(); r.status != 0 || !strings.Contains(text, "BASE_URL="+own) || w.must("config", "get", "native.base-url") != "\n" {
		t.Errorf("%+v, %q", r, text)
	}
}

// TestInitGoesOnAtEachStep: a question at which init was ended is asked by the next one.
func TestInitGoesOnAtEachStep(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, map[string]string{"crontab": homeCrontab})
	script := filepath.Join(w.home, "hello.yaml")
	if err := os.WriteFile(script, []byte("turns:\n- - text: I am here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, run := range []struct {
		answers     []string
		first, last string // questions
	}{
		{[]string{"UTC"}, "Timezone", "Engine ["},
		{[]string{"UTC", "script:" + script}, "Timezone", "test question ["},
		{[]string{"yes"}, "test question [", "Send messages by"},
		{[]string{`cat >>"$HOME/mail"`}, "Send messages by", "Did it arrive"},
		{[]string{"yes"}, "Send a test message", "Did it arrive"},
		{[]string{"yes", "yes"}, "Send a test message", "Routine ["},
		{[]string{"disk"}, "Routine [", "Scheduler: "},
		{[]string{"crontab"}, "Scheduler: ", "Fire disk now"},
	} {
		r := w.answers(run.answers, "init")
		first, last := strings.Index(r.errOut, "]: "), strings.LastIndex(r.errOut, run.last)
		if !strings.Contains(r.errOut[:max(first, 0)], run.first) || last < 0 || strings.Count(r.errOut[last:], "]: ") != 1 || r.status != int(statusUsage) {
			t.Errorf("%q does not lead from %s to %s: %+v", run.answers, run.first, run.last, r)
		}
	}
	if r := w.answers([]string{"yes"}, "init"); r.status != 0 || r.out != "I am here\n" || !strings.Contains(r.errOut, "Fire disk now") {
		t.Errorf("%+v", r)
	}
	if r := w.answers(nil, "init"); unfolded(r.errOut) != w.dir+": nothing is missing" {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "state/setup.json")); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// TestInitFlagsAnswer: a flag answers its question and those that follow from it; what no flag is about is asked.
func TestInitFlagsAnswer(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, map[string]string{"crontab": homeCrontab})
	r := w.answers([]string{"none", "none"}, "init", "--engine", "script:x.yaml", "--routine", "disk")
	shows(t, r.errOut, "Send messages by", "Scheduler: ")
	if n := strings.Count(r.errOut, "]: "); r.status != 0 || n != 2 {
		t.Errorf("%d questions: %+v", n, r)
	}
	if r := w.answers([]string{"none", "none"}, "init"); r.status != 0 || strings.Count(r.errOut, "]: ") != 2 {
		t.Errorf("%+v", r)
	}
}

// TestInitScheduleFails: the reason and a command that can be copied are shown, nothing is asked again, and the next step follows.
func TestInitScheduleFails(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, map[string]string{"crontab": homeCrontab})
	gone := "/srv/a-directory-that-was-there-before/and-is-there-no-more"
	table := "# BEGIN ollim (managed; do not edit between the markers)\n* * * * * /usr/bin/ollim --data-dir " + gone + " tick\n# END ollim\n"
	if err := os.WriteFile(filepath.Join(w.home, "table"), []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	w.write("../home/x.yaml", "turns:\n- - text: fired\n")
	r := w.answers([]string{"none", "crontab", "yes"}, "init", "--engine", "script:"+w.home+"/x.yaml", "--routine", "disk", "--fire")
	shows(t, r.errOut, "the entries of another data directory are\n  installed there\n", "\n  ollim --data-dir '"+gone+"' schedule remove crontab\n", "schedule  not installed")
	if r.out != "fired\n" || r.status != int(statusConfig) || strings.Count(r.errOut, "Scheduler: ") != 1 {
		t.Errorf("%+v", r)
	}
	w.must("--data-dir", filepath.Join(w.home, "none"), "schedule", "remove", "systemd")
	if r := w.run("--data-dir", gone, "schedule", "remove", "crontab"); r.status != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Errorf("%s: %v", gone, err)
	}
}

// TestNoCronDaemon: init and status name what starts the daemon that fires the installed entries.
func TestNoCronDaemon(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, map[string]string{"crontab": homeCrontab})
	w.noCron = true
	r := w.answers([]string{"none", "none", "crontab"}, "init", "--engine", "script:x.yaml", "--routine", "disk", "--delivery", "none", "--schedule", "crontab")
	shows(t, r.errOut, "schedule  in crontab, but no cron daemon is running:", "next ")
	status := w.must("status")
	shows(t, status, "tick\tnot running\tnever seen\tno cron daemon is running\t", "cron")
	w.noCron = false
	if status := w.must("status"); strings.Contains(status, "daemon") || !strings.Contains(status, "\tsee: ollim doctor\n") {
		t.Errorf("%s", status)
	}
}

// TestInitAsksTheService: the API and the model that a service names are the standard answers.
func TestInitAsksTheService(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, nil)
	local := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/models" && q.URL.Path != "/v1/models" {
			out.WriteHeader(http.StatusNotFound)
			_, _ = out.Write([]byte(`{"type": "error", "error": {"message": "not found"}}`))
			return
		}
		_, _ = out.Write([]byte(`{"data": [{"id": "tiny-8b"}, {"id": "large-70b"}]}`))
	}))
	defer local.Close()
	r := w.answers([]string{"", "native", local.URL, "", "", "no", "none", "none", "none"}, "init")
	shows(t, r.errOut, "API that it speaks: anthropic or openai [anthropic]: ", "Its models: tiny-8b, large-70b", "names it [tiny-8b]: ")
	if got := w.must("config", "get", "native.model"); r.status != 0 || got != "tiny-8b\n" {
		t.Errorf("%q, %+v", got, r)
	}
}

// TestConfigSetFindsClaude: the claude command is found as init finds it, a program that cannot be executed is refused, and one that is
// missing is named without the list of all directories.
func TestConfigSetFindsClaude(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, map[string]string{"claude": loggedOut})
	w.must("init", "--engine", "none")
	w.must("config", "set", "engine", "claude-code")
	claude := strings.TrimSpace(w.must("config", "get", "claude-code.command"))
	if filepath.Base(claude) != "claude" || !strings.Contains(w.must("config", "get", "env"), "HOME="+w.home) {
		t.Errorf("%q", claude)
	}
	plain := filepath.Join(w.home, "claude")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{plain: "not an executable file", w.home: "not an executable file", "/nowhere/claude": "no such file"} {
		r := w.run("config", "set", "claude-code.command", value)
		if r.status != int(statusConfig) || !strings.Contains(r.errOut, want) || strings.Contains(r.errOut, "/usr/bin") {
			t.Errorf("%s: %+v", value, r)
		}
	}
	if r := w.run("config", "set", "delivery.command", "no-such-mail", "-s", "x"); r.status != int(statusConfig) || !strings.Contains(r.errOut, "no-such-mail: not found in PATH\n") || !strings.Contains(r.errOut, "hint: install no-such-mail; or write its absolute path") {
		t.Errorf("%+v", r)
	}
	if got := strings.TrimSpace(w.must("config", "get", "claude-code.command")); got != claude {
		t.Errorf("%q", got)
	}
}

// TestKeyHint: an error about a missing key names the command that stores it, also where the service itself says so.
func TestKeyHint(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, nil)
	service := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.WriteHeader(http.StatusUnauthorized)
		_, _ = out.Write([]byte(`{"error": {"message": "no key", "code": "invalid_api_key"}}`))
	}))
	defer service.Close()
	for _, url := range []string{service.URL + "/v1", elsewhere(service.URL) + "/v1"} {
		w.must("init", "--provider", "openai", "--base-url", url, "--model", "tiny")
		if r := w.run("ask", "hello"); !strings.Contains(r.errOut, "hint: ollim secret set engine.OPENAI_API_KEY; ") || strings.Contains(r.errOut, "put it into") {
			t.Errorf("%+v", r)
		}
	}
}

// TestRoutineAddWithoutSpaces: a text in a script without spaces is a prompt; a single word is not.
func TestRoutineAddWithoutSpaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for body, isPrompt := range map[string]bool{"日本語のニュースを読んで": true, "สรุปข่าววันนี้": true, "morning": false, "Zürich": false, "утро": false} {
		if r := w.run("routine", "add", "--cron", "@daily", body); (r.status == 0) != isPrompt || !isPrompt && !strings.Contains(r.errOut, "is one word") {
			t.Errorf("%s: %+v", body, r)
		}
	}
}

// TestInitFlagOfTheConfiguredEngine: a flag of a service is about the engine that is configured, unless another is named.
func TestInitFlagOfTheConfiguredEngine(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, map[string]string{"claude": loggedOut})
	w.must("init", "--engine", "claude-code")
	claude := w.must("config", "get", "claude-code.command")
	w.must("init", "--base-url", "http://models.example.org:8080")
	if text := w.secretsFile(); !strings.Contains(text, "engine.ANTHROPIC_BASE_URL=http://models.example.org:8080\n") {
		t.Errorf("%q", text)
	}
	if r := w.run("init", "--model", "tiny"); r.status != int(statusUsage) || !strings.Contains(r.errOut, "are for --engine native") || !strings.Contains(r.errOut, "the engine is claude-code") {
		t.Errorf("%+v", r)
	}
	if got := w.must("config", "get", "engine") + w.must("config", "get", "native.base-url"); got != "claude-code\n\n" || w.must("config", "get", "claude-code.command") != claude {
		t.Errorf("%q", got)
	}
	w.must("init", "--engine", "native", "--base-url", "http://localhost:1", "--model", "tiny")
	w.must("init", "--base-url", "http://localhost:2")
	if got := w.must("config", "get", "engine") + w.must("config", "get", "native.base-url"); got != "native\nhttp://localhost:2\n" {
		t.Errorf("%q", got)
	}
}
