package process

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/testkit"
)

// sealed returns a script to run below a seal that lets it write in its directory.
func sealed(t *testing.T, body string) Call {
	t.Helper()
	if _, err := seal.Check(); err != nil {
		testkit.Missing(t, "%v: run the test on Linux 6.12 or later, with landlock among the modules of the lsm= option", err)
	}
	c := sh(t, body)
	dir, err := filepath.EvalSymlinks(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	canary := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(canary, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	rules := seal.Rules{Write: []string{dir, os.DevNull}, Canary: canary}
	for _, system := range []string{"/bin", "/etc", "/lib", "/lib64", "/usr"} {
		if real, err := filepath.EvalSymlinks(system); err == nil {
			rules.Read = append(rules.Read, real)
		}
	}
	c.Env = append(c.Env, "canary="+canary)
	c.Seal = seal.New(func() (seal.Rules, error) { return rules, nil }, nil)
	t.Cleanup(func() {
		if err := c.Seal.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestSealed(t *testing.T) {
	t.Parallel()
	c := sealed(t, `cat; echo in > made && cat made; cat <&3; cat "$canary"; exit 3`)
	c.Stdin, c.Limit = []byte("input\n"), 100
	file, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c.Files = []*os.File{file}
	r, err := Run(t.Context(), c)
	if err != nil || r.Status != 3 || string(r.Out) != "input\nin\n" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, want := range []string{"3: Bad file descriptor", "canary: Permission denied"} {
		if !strings.Contains(r.Stderr, want) {
			t.Errorf("said %q, want %s", r.Stderr, want)
		}
	}
}

func TestSealedProgramOutside(t *testing.T) {
	t.Parallel()
	c := sealed(t, "")
	c.Argv = []string{filepath.Join(t.TempDir(), "program")}
	if err := testkit.WriteFile(c.Argv[0], []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), c); !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), "the seal does not allow reading it") {
		t.Errorf("got %v", err)
	}
	c.Argv[0] = "missing-program"
	if _, err := Run(t.Context(), c); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestSealedPeer(t *testing.T) {
	t.Parallel()
	p, err := Open(sealed(t, `cat "$canary"; cat`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(p.In, "hello"); err != nil {
		t.Fatal(err)
	}
	_ = p.In.Close()
	out, err := io.ReadAll(p.Out)
	end := p.End(time.Minute)
	if said, cut := p.Stderr(); err != nil || string(out) != "hello" || !strings.Contains(said, "Permission denied") || cut || end != "exit status 0" {
		t.Errorf("%q, %v, %s, %s", out, err, said, end)
	}
	p.Close(0)
}

// TestSealedEnd: ctx ends a sealed program as any other one, and what it leaves behind ends with the seal.
func TestSealedEnd(t *testing.T) {
	t.Parallel()
	c := sealed(t, `setsid sh -c 'echo $$ > child; exec sleep 100000' >/dev/null 2>&1 & while [ ! -s child ]; do sleep 0.01; done
trap "echo bye >&2; exit 0" TERM; echo $$ > ready; while :; do sleep 0.01; done`)
	c.Grace = time.Hour
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		pid(t, c, "ready")
		cancel(errLate)
	}()
	r, err := Run(ctx, c)
	if !errors.Is(err, errLate) || !strings.HasSuffix(r.Stderr, "bye\n") {
		t.Errorf("%+v, %v", r, err)
	}
	child := pid(t, c, "child")
	if !alive(child) {
		t.Error("what it left behind has ended with it")
	}
	if err := c.Seal.Close(); err != nil {
		t.Error(err)
	}
	dead(t, child)
}
