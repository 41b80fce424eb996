package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// workers is how many tests run at once: many of them only wait.
const workers = 2

// worker runs tests with one change on, in a directory of its own.
type worker struct {
	*build

	dir string
}

// each calls do for each of n numbers, on one of the workers.
func (b *build) each(n int, do func(w *worker, i int) error) error {
	next, failed := make(chan int), make(chan error, len(b.workers))
	for _, w := range b.workers {
		go func() {
			var err error
			for i := range next {
				if err == nil {
					err = do(w, i)
				}
			}
			failed <- err
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	var err error
	for range b.workers {
		if one := <-failed; err == nil {
			err = one
		}
	}
	return err
}

func (w *worker) path(name string) string { return filepath.Join(w.dir, name) }

func (w *worker) ollim() string { return w.path("bin/ollim") }

func (w *worker) program(s *suite) string {
	return w.path(strings.ReplaceAll(s.dir, "/", "-") + ".test")
}

// link builds ollim and the programs of the tests.
func (w *worker) link(overlay string, dirs []string) error {
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return err
	}
	flags := "-ldflags=-s -w"
	for _, dir := range dirs {
		flags += " -X github.com/ollim/ollim/" + filepath.Clean(dir) + ".mutatedIn=" + w.dir
	}
	if said, err := goCommand(w.build.path("program.json"), "build", flags, "-o", w.ollim(), "./cmd/ollim"); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	for _, s := range w.suites {
		if s.scripts {
			continue
		}
		if said, err := goCommand(overlay, "test", "-c", flags, "-o", w.program(s), "./"+s.dir); err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
	}
	return nil
}

// goCommand runs the go command with an overlay and returns what it wrote.
func goCommand(overlay string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
	return cmd.CombinedOutput()
}

// caught reports whether a test fails with change i, and whether it did because it did not end in time.
func (w *worker) caught(i int) (caught, hung bool, err error) {
	own := filepath.Dir(w.all[i].file)
	order := slices.Clone(w.suites)
	slices.SortStableFunc(order, func(x, y *suite) int { return first(x.dir == own) - first(y.dir == own) })
	for _, s := range order {
		tests := s.closest(i)
		if most := w.judges.most; most > 0 {
			tests = tests[:min(most, len(tests))]
		}
		for n := few; len(tests) > 0; n *= 4 {
			n = min(n, len(tests))
			if caught, hung, err = w.judge(s, i, tests[:n]); caught || err != nil {
				return caught, hung, err
			}
			tests = tests[n:]
		}
	}
	return false, false, nil
}

// judge reports whether one of the tests fails with change i. A test that fails counts if it passes without the change and fails with it
// once more; otherwise the others decide.
func (w *worker) judge(s *suite, i int, tests []string) (caught, hung bool, err error) {
	for len(tests) > 0 {
		with, err := w.together(s, i, tests)
		if err != nil || with.passes {
			return false, false, err
		}
		without, err := w.together(s, none, with.blamed)
		if err != nil {
			return false, false, err
		}
		if without.passes {
			again := with
			if !with.hung {
				again, err = w.together(s, i, with.blamed)
			}
			if err != nil || !again.passes {
				return err == nil, again.hung, err
			}
		}
		_, _ = fmt.Fprintf(os.Stderr, "%s: not judged by %s, which fails at times\n", w.all[i], strings.Join(with.blamed, ", "))
		tests = slices.DeleteFunc(slices.Clone(tests), func(test string) bool { return slices.Contains(with.blamed, test) })
	}
	return false, false, nil
}

// none is the number of no change.
const none = -1

// verdict is what tests say of the program.
type verdict struct {
	passes bool
	hung   bool     // they did not end in time
	blamed []string // those that failed; all if that is not known
}

// together runs tests with change i. It may make them hang, so they have ten times as long as without it.
func (w *worker) together(s *suite, i int, tests []string) (verdict, error) {
	if err := os.WriteFile(w.path("on"), []byte(strconv.Itoa(i)), 0o600); err != nil {
		return verdict{}, err
	}
	limit := 30 * time.Second
	for _, test := range tests {
		limit += 10 * s.took[test]
	}
	return w.run(s, limit, tests...), nil
}

func (w *worker) run(s *suite, limit time.Duration, tests ...string) verdict {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.program(s), "-test.run", pattern(tests), "-test.failfast", "-test.timeout", "0")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "OLLIM_TEST_PROGRAM="+w.ollim(), "PATH="+filepath.Dir(w.ollim())+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	said, err := os.Create(w.path("said")) // not a pipe, which processes that the tests leave would hold
	if err != nil {
		return verdict{blamed: tests}
	}
	defer func() { _ = said.Close() }()
	cmd.Stdout, cmd.Stderr = said, said
	err = cmd.Run()
	v := verdict{passes: err == nil, hung: ctx.Err() != nil}
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	out, _ := os.ReadFile(said.Name())
	for _, test := range tests {
		if !v.passes && bytes.Contains(out, []byte("--- FAIL: "+test+" (")) {
			v.blamed = append(v.blamed, test)
		}
	}
	if !v.passes && len(v.blamed) == 0 {
		v.blamed = tests
	}
	return v
}
