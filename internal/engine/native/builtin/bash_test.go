package builtin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
)

func TestBash(t *testing.T) {
	h := newFixture(t)
	script := func(name, text string) {
		t.Helper()
		h.put(t, "bin/"+name, "#!/bin/sh\n"+text)
		if err := os.Chmod(filepath.Join(h.top, "bin", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script("both", "echo out; echo err >&2; exit 3")
	script("quiet", "exit 4")
	script("flood", "yes 0123456789 | head -c 6000000; echo END")
	script("long", "printf BEGIN; yes x | head -c 50000; printf END")
	script("binary", `printf 'a\000b\377c'`)
	script("environment", "env | sort")
	script("where", "pwd -P; cat")
	script("killed", "kill -9 $$")
	h.box.Env = append(h.box.Env, "PATH="+filepath.Join(h.top, "bin")+":/usr/bin:/bin")
	for command, want := range map[string]string{
		"echo a 'b  c' \"d\"": "a b  c d", "printf '%s|' a '$HOME' '*' ''": "a|$HOME|*||", "true": "(no output)", "where": h.dir, "binary": "a\ufffdb\ufffdc",
	} {
		if got := h.good(t, "Bash", "command", command); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if got := h.good(t, "Bash", "command", "environment", "description", "looks"); !strings.Contains(got, "OLLIM_TEST=yes") || strings.Contains(got, "HOME=") {
		t.Errorf("%q", got)
	}
	for command, want := range map[string]string{
		"both": "exit status 3\nout\nstderr: err", "quiet": "exit status 4", "killed": "signal: killed", "nosuchprogram x": "nosuchprogram: not found in PATH",
		"echo a; echo b": "the command: one simple command: no pipe, redirection, variable assignment, comment, newline, ! ; or &", "echo $HOME": "the command: no substitution, expansion or pattern; put the text in single quotes if it is meant literally",
		"echo a | cat": "the command: one simple command: no pipe, redirection, variable assignment, comment, newline, ! ; or &", "": "the command: it is empty",
	} {
		if r := h.call(t, "Bash", "command", command); !r.IsError || r.Text != want {
			t.Errorf("%s: %+v, want %q", command, r, want)
		}
	}
	if got := h.good(t, "Bash", "command", "long"); !strings.HasPrefix(got, "BEGIN") || !strings.HasSuffix(got, "END") || len(got) > bashChars+100 || !strings.Contains(got, "20008 characters omitted") {
		t.Errorf("%d, %.100q", len(got), got)
	}
	if got := h.good(t, "Bash", "command", "flood"); !strings.HasSuffix(got, "(cut at 4 MiB)") || len(got) > bashChars+100 {
		t.Errorf("%d, %.100q", len(got), got)
	}
}

func TestBashEnds(t *testing.T) {
	h := newFixture(t)
	if r := h.call(t, "Bash", "command", "sleep 100000", "timeout", 50); !r.IsError || r.Text != "stopped after 50ms" {
		t.Errorf("%+v", r)
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if r := h.box.Call(ctx, "Bash", object(t, "command", "sleep 100000")); !r.IsError || !strings.Contains(r.Text, "deadline") {
		t.Errorf("%+v", r)
	}
}

func TestMiddle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringN(0, 60, -1).Draw(t, "s")
		most := 2 * rapid.IntRange(1, 20).Draw(t, "half")
		got := middle(s, most)
		if n := utf8.RuneCountInString(s); n <= most && got != s {
			t.Fatalf("%q", got)
		} else if r := []rune(s); n > most && (!strings.HasPrefix(got, string(r[:most/2])) || !strings.HasSuffix(got, string(r[n-most/2:]))) {
			t.Fatalf("%q of %q", got, s)
		}
	})
}

func TestSecretsInCutLines(t *testing.T) {
	const value = "sup3r-s3cret-t0ken"
	h := newFixture(t)
	h.box.Secrets = plaintext.NewSecrets(value)
	h.put(t, "data/wide.md", strings.Repeat("x", readWidth-9)+value+"more\n"+value+"\n")
	got := h.good(t, "Read", "file_path", "wide.md")
	if strings.Contains(got, value[:4]) || strings.Count(got, "[secret]") != 2 || strings.Count(got, lineCut) != 1 {
		t.Errorf("%q", got[len(got)-100:])
	}
}

// A secret is not shown by a piece where output is cut: in its middle, at its end, or at the beginning of standard error.
func TestSecretsInCutOutput(t *testing.T) {
	const value = "sup3r-s3cret-t0ken"
	h := newFixture(t)
	h.box.Secrets = plaintext.NewSecrets(value)
	for name, text := range map[string]string{
		"middle.sh": fmt.Sprintf("yes x | tr -d '\\n' | head -c %d; printf %s; yes y | tr -d '\\n' | head -c 50000", bashChars/2-9, value),
		"end.sh":    fmt.Sprintf("yes x | tr -d '\\n' | head -c %d; printf %s; echo more", bashBytes-9, value),
		"error.sh":  fmt.Sprintf("{ printf %s; yes x | tr -d '\\n' | head -c %d; } >&2", value, process.StderrLimit-9),
	} {
		h.put(t, "data/"+name, "#!/bin/sh\n"+text)
		if err := os.Chmod(filepath.Join(h.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		got := h.good(t, "Bash", "command", "./"+name)
		if strings.Contains(got, value[:4]) || strings.Contains(got, value[len(value)-4:]) || !strings.Contains(got, "[secret") {
			at := max(0, strings.IndexAny(got, "s3-"))
			t.Errorf("%s: %.80q", name, got[at:])
		}
	}
}
