package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

// elsewhere returns the address of a server on this machine as one of another machine, which needs a key.
func elsewhere(url string) string { return strings.Replace(url, "127.0.0.1", "0.0.0.0", 1) }

// keyed is a bare world with a server of Anthropic's API that accepts one key only.
func keyed(t *testing.T, programs map[string]string) (*world, *anthropicapi.Server) {
	t.Helper()
	w, api := newBareWorld(t, programs), anthropicapi.New(t)
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if q.Header.Get("X-Api-Key") != token {
			return anthropicapi.Reply{Status: 401, ErrorType: "authentication_error", Message: "invalid x-api-key"}
		}
		return anthropicapi.Reply{Text: "OK."}
	})
	w.secrets("# mine\nengine.ANTHROPIC_BASE_URL=" + elsewhere(api.URL()) + "\n")
	return w, api
}

// keptSecret fails unless the key is in the secrets file, and nowhere else below the world nor in an output.
func (w *world) keptSecret(outputs ...string) {
	w.t.Helper()
	if text := w.secretsFile(); !strings.HasPrefix(text, "# mine\nengine.ANTHROPIC_BASE_URL=") || strings.Count(text, "engine.ANTHROPIC_API_KEY="+token+"\n") != 1 {
		w.t.Errorf("the secrets: %q", text)
	}
	if info, err := os.Stat(filepath.Join(w.home, ".config/ollim/secrets.env")); err != nil || info.Mode().Perm() != 0o600 {
		w.t.Errorf("%v, %v", info.Mode(), err)
	}
	if found := w.holding(".", token); len(found) > 0 {
		w.t.Errorf("it is in %q", found)
	}
	if slices.ContainsFunc(outputs, func(text string) bool { return strings.Contains(text, token) }) {
		w.t.Errorf("it was shown: %q", outputs)
	}
}

// TestInitAsksForTheKey: a key that the service does not accept is asked for again, and the right one is stored and used.
func TestInitAsksForTheKey(t *testing.T) {
	t.Parallel()
	w, api := keyed(t, nil)
	r := w.answers([]string{"", "native", "", "a-wrong-key", "", "", token, "none", "none", "none"}, "init")
	shows(t, r.errOut, "Engine [native]: ", "Service: ", "Key, ANTHROPIC_API_KEY (not shown; Enter: from a command, or none): ", "test question", "invalid x-api-key", "does not accept the key",
		"Give a key [yes]: ", "Key, ANTHROPIC_API_KEY (not shown; Enter: from a command, or none): ", "stored engine.ANTHROPIC_API_KEY in", "test question: ok, ", "Send messages by", "engine    native")
	if r.status != 0 || r.out != "OK.\n" || strings.Contains(w.secretsFile(), "a-wrong-key") {
		t.Errorf("%+v", r)
	}
	if n := len(api.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
	w.keptSecret(r.out, r.errOut)
}

// TestInitServiceOfTheEnvironment: the key of the environment goes to the service that the environment names, and to no other.
func TestInitServiceOfTheEnvironment(t *testing.T) {
	t.Parallel()
	w, api := keyed(t, nil)
	w.secrets("")
	w.env["ANTHROPIC_API_KEY"], w.env["ANTHROPIC_BASE_URL"] = token, elsewhere(api.URL())
	r := w.answers([]string{"", "native", "", "", "", "", "", "none", "none", "none"}, "init")
	shows(t, r.errOut, "Service: ", "["+elsewhere(api.URL())+"]", "API that it speaks: anthropic or openai [anthropic]: ", "sonnet is a name of ollim's own: the service is asked for claude-sonnet-", "names it [sonnet]: ", "test question: ok, ")
	if list := api.Requests(); r.status != 0 || len(list) != 2 || list[0].Key() != "" || list[1].Key() != token { // the first asks which API it is
		t.Errorf("%d requests, %+v", len(list), r)
	}
}

// TestInitKeySources: the key comes from the environment with consent, or from a command, once.
func TestInitKeySources(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env     string
		answers []string
		args    []string
		input   string
		status  int
		shown   string
	}{
		"environment":      {token, []string{"yes"}, nil, "", 0, "Copy it into secrets.env [yes]: "},
		"command":          {"", []string{"", "vault"}, nil, "", 0, "automatic runs cannot unlock a vault"},
		"bad commands":     {"other", []string{"no", "", "exit 3", "true", "sk-ant-012345678901234567890", "vault"}, nil, "", 0, "this looks like a key"},
		"--key-env":        {token, nil, []string{"--key-env", "ANTHROPIC_API_KEY"}, "", 0, ""},
		"--key-stdin":      {"", nil, []string{"--key-stdin"}, token + "\nrest\n", 0, ""},
		"--key-command":    {"", nil, []string{"--key-command", "vault"}, "", 0, ""},
		"no such variable": {"", nil, []string{"--key-env", "NOTHING"}, "", int(statusUsage), "the key is empty"},
		"failing command":  {"", nil, []string{"--key-command", "exit 3"}, "", int(statusUnavailable), "the command that prints the key: exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := keyed(t, nil)
			if c.env != "" {
				w.env["ANTHROPIC_API_KEY"] = c.env
			}
			vault := filepath.Join(t.TempDir(), "vault")
			if err := testkit.WriteFile(vault, []byte("#!/bin/sh\necho >>'"+vault+".calls'; echo "+token+"; echo more\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			for i := range c.answers {
				c.answers[i] = strings.ReplaceAll(c.answers[i], "vault", vault)
			}
			args := append([]string{"init", "--timezone", "UTC", "--engine", "native", "--test-engine"}, c.args...)
			if len(c.args) > 0 {
				args[len(args)-1] = strings.ReplaceAll(args[len(args)-1], "vault", vault)
				r := w.pipe(c.input, args...)
				if r.status != c.status || !strings.Contains(r.errOut, c.shown) || (r.out == "OK.\n") != (c.status == 0) {
					t.Errorf("%+v", r)
				}
				if c.status == 0 {
					w.keptSecret(r.errOut)
				}
				return
			}
			r := w.answers(append(c.answers, "none", "none", "none"), args...)
			if r.status != 0 || r.out != "OK.\n" || !strings.Contains(r.errOut, c.shown) {
				t.Errorf("%+v", r)
			}
			w.keptSecret(r.errOut)
			if calls, err := os.ReadFile(vault + ".calls"); strings.Contains(name, "command") && string(calls) != "\n" {
				t.Errorf("the command ran %q, %v", calls, err)
			}
		})
	}
}

// TestInitServiceDown: a service that does not answer is said, and the rest of the set-up goes on; run again, init offers another address.
func TestInitServiceDown(t *testing.T) {
	t.Parallel()
	w, api := keyed(t, nil)
	w.real = false
	w.secrets("engine.ANTHROPIC_BASE_URL=http://0.0.0.0:1\n")
	r := w.answers([]string{"", "native", "", token, "yes", "on", "none", "none", "none"}, "init")
	shows(t, r.errOut, "ollim: init: the test question: ", "to change the address", "http://0.0.0.0:1:", "--base-url ADDRESS", "[change]: ", "Send messages by", "engine    native, but its test question failed: ")
	if r.status != 0 || strings.Contains(r.errOut, "Give a key") || w.holding(".", token) != nil {
		t.Errorf("%+v", r)
	}
	r = w.answers([]string{"", "", elsewhere(api.URL()), "anthropic", "opus", "", "none", "none", "none"}, "init")
	shows(t, r.errOut, "The last test question failed: ", "[change]: ", "Engine [native]: ", "[http://0.0.0.0:1]: ", "names it [sonnet]: ", "(not shown; Enter: no change): ", "test question: ok, ", "engine    native\n")
	if got := w.must("config", "get", "native.base-url") + w.must("config", "get", "native.model"); r.out != "OK.\n" || got != elsewhere(api.URL())+"\nopus\n" {
		t.Errorf("%q, %+v", got, r)
	}
	r = w.answers([]string{"none", "none", "none"}, "init", "--base-url", "http://0.0.0.0:1", "--test-engine")
	shows(t, r.errOut, "the test question: ", "[change]: ")          // and then the input ends with a wrong answer
	r = w.answers([]string{"change", "native", "anthropic"}, "init") // the input ends at the key, before anything is sent
	if got := w.must("config", "get", "native.base-url") + w.must("config", "get", "native.model"); got != "https://api.anthropic.com\nsonnet\n" {
		t.Errorf("%q, %+v", got, r)
	}
}

// TestInitChangesTheEngine: after a failed test question another engine can be chosen at once; none leaves things as they are.
func TestInitChangesTheEngine(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, map[string]string{"claude": "exit 1"})
	script := filepath.Join(w.home, "hello.yaml")
	if err := os.WriteFile(script, []byte("turns:\n- - text: I am here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	claude := "#!/bin/sh\nexit 1\n"
	other := filepath.Join(w.home, "my-claude")
	if err := testkit.WriteFile(other, []byte(claude), 0o700); err != nil {
		t.Fatal(err)
	}
	w.must("init", "--engine", "claude-code")
	w.must("config", "set", "claude-code.command", other)
	r := w.answers([]string{"change", "", "anthropic", "", "change", "none", "none", "none", "none"}, "init", "--test-engine")
	shows(t, r.errOut, "the test question: ", "[change]: ", "Engine [claude-code]: ", "Service: anthropic or an address [anthropic]: ", "Enter: no change): ", "the test question: ",
		"[change]: ", "Engine [claude-code]: ", "Send messages by", "engine    claude-code, but its test question failed: ")
	if got := w.must("config", "get", "claude-code.command"); got != other+"\n" || r.status != 0 {
		t.Errorf("%q, %+v", got, r)
	}
	r = w.answers([]string{"change", "script:" + script, "none", "none", "none"}, "init")
	if shows(t, unfolded(r.errOut), "The last test question failed: ", "Engine [claude-code]: ", "engine script:"); r.out != "I am here\n" || strings.Contains(r.errOut, "but its") {
		t.Errorf("%+v", r)
	}
	r = w.answers([]string{"none", "none", "none"}, "init", "--engine", "script:"+script)
	shows(t, unfolded(r.errOut), "engine script:", "not", "tested: ", "ollim init --test-engine")
}

// unfolded is text without the line breaks that long values cause.
func unfolded(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestInitLocalServer: a server on this machine needs no key, and is asked by the model's name that was given.
func TestInitLocalServer(t *testing.T) {
	t.Parallel()
	w, api := newBareWorld(t, nil), openaiapi.New(t)
	api.Reply(openaiapi.Reply{Text: "Here."})
	r := w.answers([]string{"", "native", "localhost", api.URL(), "", "tiny", "yes", "none", "none", "none"}, "init")
	shows(t, r.errOut, "Service: ", "is not the address of a service", "API that it speaks", "Model, as the service names it: ", "test question", "Send messages by")
	if r.status != 0 || r.out != "Here.\n" || strings.Contains(r.errOut, "API_KEY") || api.Requests()[0].Model != "tiny" {
		t.Errorf("%+v", r)
	}
}

// TestInitClaudeLogin: a claude command that is not logged in may have a key.
func TestInitClaudeLogin(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, map[string]string{"claude": `case "$*" in *auth*) echo '{"loggedIn": false}'; exit 1 ;; esac; exit 1`})
	w.env["CLAUDE_CODE_OAUTH_TOKEN"] = token
	r := w.answers([]string{"", "", "", token, "no", "none", "none", "none"}, "init")
	shows(t, r.errOut, "Engine [claude-code]: ", "not logged in", "Service: anthropic or an address [anthropic]: ", "ANTHROPIC_API_KEY (not shown; ", "stored engine.ANTHROPIC_API_KEY in")
	r = w.run("init", "--key-env", "CLAUDE_CODE_OAUTH_TOKEN")
	if text := w.secretsFile(); r.status != 0 || !strings.Contains(text, "\nengine.CLAUDE_CODE_OAUTH_TOKEN="+token) {
		t.Errorf("%+v, %q", r, text)
	}
}

// TestInitGoesOn: what an earlier init has left open is asked, and nothing else; where nothing is open, it says so.
func TestInitGoesOn(t *testing.T) {
	t.Parallel()
	w, _ := keyed(t, map[string]string{"crontab": homeCrontab})
	r := w.answers([]string{"Europe/Paris", "native", ""}, "init") // and the input ends
	if r.status != int(statusUsage) || !strings.Contains(r.errOut, "the next ollim init continues here") {
		t.Errorf("%+v", r)
	}
	r = w.answers([]string{token, ""}, "init")
	if shows(t, r.errOut, "ANTHROPIC_API_KEY (not shown; ", "test question", "Send messages by"); strings.Contains(r.errOut, "Timezone") || strings.Contains(r.errOut, "Engine [") {
		t.Errorf("%+v", r)
	}
	r = w.answers([]string{`cat >>"$HOME/mail"`, "yes", "disk", "crontab", "no"}, "init")
	if r.status != 0 || strings.Contains(r.errOut, "API_KEY") {
		t.Errorf("%+v", r)
	}
	if r := w.answers(nil, "init"); unfolded(r.errOut) != w.dir+": nothing is missing" || r.status != 0 {
		t.Errorf("%+v", r)
	}
	w.must("config", "set", "delivery.command", "sh", "-c", `cat >>"$HOME/other"`)
	r = w.answers([]string{"yes", "yes"}, "init")
	if shows(t, r.errOut, "was not tested since", "Did it arrive"); strings.Contains(r.errOut, "Scheduler") {
		t.Errorf("%+v", r)
	}
	if err := os.Remove(filepath.Join(w.home, "table")); err != nil {
		t.Fatal(err)
	}
	shows(t, w.answers([]string{"crontab"}, "init").errOut, "Scheduler", "schedule  in crontab")
	if err := os.Remove(filepath.Join(w.home, ".config/ollim/secrets.env")); err != nil {
		t.Fatal(err)
	}
	shows(t, w.answers([]string{"", "none"}, "init").errOut, "ANTHROPIC_API_KEY (not shown; ", "to store it later: ollim secret set engine.ANTHROPIC_API_KEY")
	w.keptNothing()
}

// keptNothing fails if the data directory holds the key.
func (w *world) keptNothing() {
	w.t.Helper()
	if found := w.holding(".", token); len(found) > 0 {
		w.t.Errorf("it is in %q", found)
	}
}

// TestInitByFlags: the flags alone do all that the questions do.
func TestInitByFlags(t *testing.T) {
	t.Parallel()
	w, api := keyed(t, map[string]string{"crontab": homeCrontab})
	w.env["ANTHROPIC_API_KEY"] = token
	r := w.run("init", "--engine", "native", "--key-env", "ANTHROPIC_API_KEY", "--delivery", "file:"+w.home+"/it's here", "--test-delivery",
		"--schedule", "crontab", "--routine", "disk", "--fire", "--yes")
	if r.status != 0 || r.out != "OK.\nOK.\n" {
		t.Errorf("%+v", r)
	}
	for file, want := range map[string]string{"it's here": "This is a test message of ollim init.\n\n", "table": " tick"} {
		if text, err := os.ReadFile(filepath.Join(w.home, file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	if got := w.last()["outcome"]; got != "ok" || len(api.Requests()) != 2 {
		t.Errorf("%v, %d requests", got, len(api.Requests()))
	}
	w.keptSecret(r.errOut)
	if r := w.answers(nil, "init"); unfolded(r.errOut) != w.dir+": nothing is missing" {
		t.Errorf("%+v", r)
	}
}

// TestInitRepository: the agent of the repository routine may read the repository's log, and no other command.
func TestInitRepository(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	path := filepath.Join(w.home, "work")
	for _, args := range [][]string{{"init", "-q", path}, {"-C", path, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "--allow-empty", "-m", "mend the pump"}} {
		if out, err := exec.Command(testkit.Program(t, "git", "git"), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s, %v", out, err)
		}
	}
	for answer, want := range map[string]string{"repository:work": "write an absolute path", "repository:" + w.home: "not a git repository", "repository:" + w.home + "/none": "no such file"} {
		if r := w.run("init", "--routine", answer); r.status != int(statusUsage) || !strings.Contains(r.errOut, want) {
			t.Errorf("%s: %+v", answer, r)
		}
	}
	api.Reply(bash("git -C "+path+" log --since=1.day --stat"), bash("git -C "+path+" status --short --branch"), bash("git -C "+path+" push"), anthropicapi.Reply{Text: "The pump was mended."})
	if r := w.run("init", "--routine", "repository:~/work", "--fire"); r.status != 0 || r.out != "The pump was mended.\n" {
		t.Fatalf("%+v", r)
	}
	for i, want := range []string{"mend the pump", "## ", "matches none of the allowed patterns"} {
		results := api.Requests()[1+i].ToolResults()
		if got := results[len(results)-1].ResultText; !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
