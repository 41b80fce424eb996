package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ollim/ollim/internal/testkit"
)

// cmdAnswers is
//
//	answers [-stdin | -all] [-ahead FILE] FILE STATUS COMMAND [ARG...]
//
// It runs a command that was started from a terminal of its own, at which somebody types the next line of FILE at each question, and
// Ctrl-D when there is none left. The terminal is standard input with -stdin, and all streams with -all. With -ahead what that file holds
// is typed before the command is started. What the terminal shows is in the file tty; with -all it is standard output.
func cmdAnswers(ts *testscript.TestScript, neg bool, args []string) {
	var stdin, all bool
	ahead := ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		stdin, all = stdin || args[0] == "-stdin", all || args[0] == "-all"
		if args[0] == "-ahead" && len(args) > 1 {
			ahead, args = ts.ReadFile(args[1]), args[1:]
		}
		args = args[1:]
	}
	if neg || len(args) < 3 {
		ts.Fatalf("usage: answers [-stdin | -all] [-ahead FILE] FILE STATUS COMMAND [ARG...]")
	}
	lines, want := strings.SplitAfter(strings.TrimSuffix(ts.ReadFile(args[0]), "\n")+"\n", "\n"), atoi(ts, args[1])
	ts.Check(ts.Exec("env", "-0")) // the only way to the script's environment
	vars := strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\x00"), "\x00")
	keys, terminal, err := testkit.OpenTerminal()
	ts.Check(err)
	var out, said, shown watched
	cmd := exec.Command(lookPath(ts, args[2]), args[3:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), vars, &out, &said
	cmd.ExtraFiles, cmd.SysProcAttr = []*os.File{terminal}, &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	if stdin || all {
		cmd.Stdin = terminal
	}
	if all {
		cmd.Stdout, cmd.Stderr = terminal, terminal
	}
	_, err = io.WriteString(keys, ahead)
	ts.Check(errors.Join(err, cmd.Start(), terminal.Close()))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(&shown, keys)
	}()
	err = typeAnswers(cmd, keys, lines, &shown, &said)
	<-gone
	ts.Check(errors.Join(os.WriteFile(filepath.Join(ts.Getenv("WORK"), "tty"), shown.all(), 0o600), keys.Close()))
	_, _ = ts.Stdout().Write(out.all())
	_, _ = ts.Stderr().Write(said.all())
	if all {
		_, _ = ts.Stdout().Write(shown.all())
	}
	if got := status(err); got != want {
		ts.Fatalf("exit status %d, want %d; the terminal shows:\n%s", got, want, shown.all())
	}
}

// asks matches the end of a text that asks for a line.
func asks() *regexp.Regexp {
	return regexp.MustCompile(`(\]: |\n[A-Z][^\n]*: |\[y/N\] |which\? |\n?> |, n: )$`)
}

// typeAnswers types a line at each question that one of the texts ends with, until the command ends, and returns its error.
func typeAnswers(cmd *exec.Cmd, keys io.Writer, lines []string, texts ...*watched) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	late := time.After(patience)
	for question := asks(); ; {
		for _, text := range texts {
			if !text.next(question) {
				continue
			}
			line := "\x04"
			if len(lines) > 1 { // the last one is empty
				line, lines = lines[0], lines[1:]
			}
			if _, err := io.WriteString(keys, line); err != nil {
				return err
			}
		}
		select {
		case err := <-ended:
			return err
		case <-late:
			_ = cmd.Process.Kill()
			return <-ended
		case <-look.C:
		}
	}
}

// watched is a text that grows while it is looked at.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen int
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *watched) all() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.text.Bytes())
}

// next reports whether what was written since it last did ends with a match.
func (w *watched) next(end *regexp.Regexp) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !end.Match(w.text.Bytes()[w.seen:]) {
		return false
	}
	w.seen = w.text.Len()
	return true
}

// TestAnswersOfScripts: the terminal of a script shows what a command writes there, and passes on what is typed at its questions.
func TestAnswersOfScripts(t *testing.T) {
	t.Parallel()
	keys, terminal := testkit.Terminal(t)
	cmd := exec.Command("sh", "-c", `printf 'first? [y/N] '; read a; printf 'second [x]: '; read b; echo "<$a$b>"`)
	cmd.Stdin, cmd.Stdout = terminal, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close()
	var shown watched
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(&shown, keys)
	}()
	if err := typeAnswers(cmd, keys, []string{"one\n", "two\n", ""}, &shown); err != nil {
		t.Error(err)
	}
	<-gone
	if text := string(shown.all()); !strings.Contains(text, "<onetwo>") {
		t.Errorf("shown: %q", text)
	}
}
