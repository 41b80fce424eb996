package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// secretsFile is the owner's file of secrets.
func (w *world) secretsFile() string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.home, ".config/ollim/secrets.env"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(text)
}

// TestSecretCommands: a value comes from standard input, and no output has it; other lines stay.
func TestSecretCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, want := range map[string]string{
		"engine.ANTROPIC_API_KEY": "did you mean engine.ANTHROPIC_API_KEY?", "engine.K=" + token: "must not be an argument", "radio.X": "write engine.NAME",
	} {
		r := w.pipe(token+"\n", "secret", "set", name)
		if r.status != int(statusUsage) || !strings.Contains(r.errOut, want) || strings.Contains(r.errOut, token) || w.secretsFile() != "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := w.run("secret", "set", "engine.ANTHROPIC_API_KEY", token); r.status != int(statusUsage) || !strings.Contains(r.errOut, "must not be an argument") || !strings.Contains(r.errOut, "asks for the value") || strings.Contains(r.errOut, token) {
		t.Errorf("%+v", r)
	}
	if r := w.pipe("", "secret", "set", "delivery.TOKEN"); r.status != int(statusUsage) || !strings.Contains(r.errOut, "the value is empty") {
		t.Errorf("%+v", r)
	}
	if r := w.pipe(strings.Repeat("k", maxInput+1), "secret", "set", "delivery.TOKEN"); r.status != int(statusData) || !strings.Contains(r.errOut, "longer than 256 KiB") {
		t.Errorf("%+v", r)
	}
	if r := w.pipe(token+" \nmore\n", "secret", "set", "delivery.TOKEN"); r != (result{}) {
		t.Errorf("%+v", r)
	}
	if text := w.secretsFile(); text != "# set 2026-03-02T10:00:01Z\ndelivery.TOKEN="+token+"\n" {
		t.Errorf("%q", text)
	}
	w.secrets("# mine\nengine.ANTHROPIC_API_KEY=old\n" + w.secretsFile())
	w.pipe(token, "secret", "set", "engine.ANTHROPIC_API_KEY")
	list := w.must("secret", "list") + w.must("secret", "list", "--json")
	shows(t, list, "engine.ANTHROPIC_API_KEY\tthe engine\t2026-03-02 10:00", "delivery.TOKEN\tthe delivery command\t", `{"name":"engine.ANTHROPIC_API_KEY","user":"the engine","since":"2026-`)
	if strings.Contains(list, token) {
		t.Error(list)
	}
	if got := w.must("__complete", "secret", "rm", "eng"); !strings.Contains(got, "engine.ANTHROPIC_API_KEY") || strings.Contains(got, token) {
		t.Errorf("%q", got)
	}
	shows(t, w.must("__complete", "secret", "set", ""), "engine.ANTHROPIC_API_KEY", "discord.TOKEN")
	w.must("secret", "rm", "delivery.TOKEN")
	if r := w.run("secret", "rm", "delivery.TOKEN"); r.status != int(statusNoJob) || !strings.Contains(r.errOut, "no such secret") {
		t.Errorf("%+v", r)
	}
	if text := w.secretsFile(); !strings.HasPrefix(text, "# mine\n# set ") || !strings.HasSuffix(text, "\nengine.ANTHROPIC_API_KEY="+token+"\n") {
		t.Errorf("%q", text)
	}
	w.secrets("\ufeffengine.ANTHROPIC_API_KEY=old\r\ndelivery.TOKEN=x") // of an editor of Windows
	w.pipe(token, "secret", "set", "engine.ANTHROPIC_API_KEY")
	if text := w.secretsFile(); !strings.HasPrefix(text, "# set ") || !strings.HasSuffix(text, "\nengine.ANTHROPIC_API_KEY="+token+"\ndelivery.TOKEN=x\n") {
		t.Errorf("%q", text)
	}
	if found := w.holding(".", token); len(found) > 0 {
		t.Errorf("the data directory has it: %q", found)
	}
}

// TestSecretsOfAServiceManager: a credential is not the owner's to change here.
func TestSecretsOfAServiceManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ollim-secrets"), []byte("engine.A=b\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	w.env["CREDENTIALS_DIRECTORY"] = dir
	if r := w.pipe("x", "secret", "set", "engine.ANTHROPIC_API_KEY"); r.status != int(statusRefused) || !strings.Contains(r.errOut, "service manager") {
		t.Errorf("%+v", r)
	}
}

// TestSecretPrompt: what is typed at the prompt is not shown, and after a signal the terminal shows again what is typed.
func TestSecretPrompt(t *testing.T) {
	t.Parallel()
	for _, signal := range []bool{false, true} {
		w := newWorld(t)
		keys, terminal := testkit.Terminal(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		ended := make(chan int, 1)
		go func() {
			ended <- execute(ctx, w.deps(terminal, io.Discard, terminal), []string{"secret", "set", "discord.TOKEN"})
		}()
		shown := bufio.NewReader(keys)
		prompt, err := shown.ReadString(':')
		if err != nil || !strings.HasPrefix(prompt, "discord.TOKEN, not shown:") {
			t.Fatalf("%q, %v", prompt, err)
		}
		if signal {
			cancel(signalled(syscall.SIGINT))
		} else if _, err := io.WriteString(keys, token+"\n"); err != nil {
			t.Fatal(err)
		}
		if status, want := <-ended, map[bool]int{true: int(statusInterrupted)}[signal]; status != want {
			t.Errorf("status %d, want %d", status, want)
		}
		if got := w.secretsFile(); strings.Contains(got, token) == signal {
			t.Errorf("%v: %q", signal, got)
		}
		if _, err := io.WriteString(keys, "visible\n"); err != nil {
			t.Fatal(err)
		}
		rest := ""
		for !strings.Contains(rest, "visible") {
			line, err := shown.ReadString('\n')
			if rest += line; err != nil {
				t.Fatalf("%q, %v", rest, err)
			}
		}
		if strings.Contains(rest, token) {
			t.Errorf("it was shown: %q", rest)
		}
	}
}
