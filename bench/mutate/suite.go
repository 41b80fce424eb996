package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// suite is the tests of one package, or its scripts.
type suite struct {
	dir     string
	scripts bool
	tests   []string         // names; those of scripts are TestScript/NAME
	reached map[int][]string // tests by the change that they reach
	took    map[string]time.Duration
}

// list finds the names of the tests.
func (s *suite) list(w *worker) error {
	s.reached, s.took = map[int][]string{}, map[string]time.Duration{}
	if s.scripts {
		scripts, err := filepath.Glob("cmd/ollim/testdata/script/*.txtar")
		for _, script := range scripts {
			s.tests = append(s.tests, "TestScript/"+strings.TrimSuffix(filepath.Base(script), ".txtar"))
		}
		return err
	}
	cmd := exec.Command(w.program(s), "-test.list", ".")
	cmd.Dir = s.dir
	out, err := cmd.Output()
	for line := range strings.Lines(string(out)) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "Test") && name != "TestScript" {
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
