package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// suite is the tests of one package.
type suite struct {
	dir     string
	program string
	ollim   string           // the program that scripts start
	tests   []string         // names; those of scripts are TestScript/NAME
	reached map[int][]string // tests by the change that they reach
	took    map[string]time.Duration
}

// list finds the names of the tests. Of cmd/ollim they are the scripts.
func (s *suite) list() error {
	s.reached, s.took = map[int][]string{}, map[string]time.Duration{}
	if s.dir == "cmd/ollim" {
		scripts, err := filepath.Glob("cmd/ollim/testdata/script/*.txtar")
		for _, script := range scripts {
			s.tests = append(s.tests, "TestScript/"+strings.TrimSuffix(filepath.Base(script), ".txtar"))
		}
		return err
	}
	cmd := exec.Command(s.program, "-test.list", ".")
	cmd.Dir = s.dir
	out, err := cmd.Output()
	for line := range strings.Lines(string(out)) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "Test") {
			s.tests = append(s.tests, name)
		}
	}
	return err
}

// few is how many tests judge a change at first.
const few = 6

// closest returns the tests that reach change i, those that reach the fewest changes first: they are about it most likely.
func (s *suite) closest(i int) []string {
	wide := map[string]int{}
	for _, tests := range s.reached {
		for _, test := range tests {
			wide[test]++
		}
	}
	tests := slices.Clone(s.reached[i])
	slices.SortStableFunc(tests, func(a, b string) int { return wide[a] - wide[b] })
	return tests
}

// alone runs one test, notes how long it takes and reports whether it passes.
func (s *suite) alone(test string) bool {
	began := time.Now()
	ok := s.run(10*time.Minute, test)
	s.took[test] = time.Since(began)
	return ok
}

// together runs tests and reports whether they pass in time: a change that makes them hang is caught.
func (s *suite) together(tests []string) bool {
	limit := 30 * time.Second
	for _, test := range tests {
		limit += 10 * s.took[test]
	}
	return s.run(limit, tests...)
}

func (s *suite) run(limit time.Duration, tests ...string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program, "-test.run", pattern(tests), "-test.failfast", "-test.timeout", "0")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "OLLIM_TEST_PROGRAM="+s.ollim, "PATH="+filepath.Dir(s.ollim)+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd.Run() == nil
}

// pattern matches exactly the tests: of each level the alternatives.
func pattern(tests []string) string {
	var levels [2][]string
	for _, test := range tests {
		for i, name := range strings.SplitN(test, "/", 2) {
			levels[i] = append(levels[i], regexp.QuoteMeta(name))
		}
	}
	text := "^(" + strings.Join(levels[0], "|") + ")$"
	if len(levels[1]) > 0 {
		text += "/^(" + strings.Join(levels[1], "|") + ")$"
	}
	return text
}

// goCommand runs the go command with an overlay and returns what it wrote.
func goCommand(overlay string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
	return cmd.CombinedOutput()
}
