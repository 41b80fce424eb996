package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// build is the test programs with all changes in them.
type build struct {
	scratch string
	judges  judges
	all     map[int]change
	places  map[string]int // numbers of all
	suites  []*suite
	workers []*worker
}

// switches is the file that is added to each changed package. Its argument is the package. The linker sets mutatedIn, the directory of the
// file on, which says which change is on, and of the file reached, which notes those that were reached.
const switches = `package %s

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

var mutatedIn string

var mutatedOn = func() int {
	text, err := os.ReadFile(mutatedIn + "/on")
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return -2
	}
	return n
}()

var mutatedSeen sync.Map

func mutated(i int) bool {
	if mutatedOn == -2 {
		if _, seen := mutatedSeen.LoadOrStore(i, true); !seen {
			if f, err := os.OpenFile(mutatedIn+"/reached", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err == nil {
				_, _ = f.WriteString(strconv.Itoa(i) + "\n")
				_ = f.Close()
			}
		}
	}
	return i == mutatedOn
}

func mutatedError(i int, err error) error {
	if mutated(i) {
		return nil
	}
	return err
}

func mutatedSign[T ~int | ~int64 | ~int32 | ~uint64 | ~float64](i int, v T) T {
	if mutated(i) {
		return -v
	}
	return v
}

var _ = mutatedError
var _ = mutatedSign[int]
`

// built builds the tests that judge changes of the packages in dirs. A change that does not compile is left out.
func built(scratch string, dirs []string, j judges) (*build, error) {
	b := &build{scratch: scratch, judges: j, all: map[int]change{}}
	names := map[string]string{}
	for _, dir := range dirs {
		found, name, err := changes(filepath.Clean(dir))
		if err != nil {
			return nil, err
		}
		names[filepath.Clean(dir)] = name
		for _, c := range found {
			b.all[len(b.all)] = c
		}
	}
	for {
		overlay, err := b.write(names)
		if err != nil {
			return nil, err
		}
		said, err := goCommand(overlay, append([]string{"build", "-gcflags=-e"}, packages(dirs)...)...)
		if err == nil {
			b.places = map[string]int{}
			for i, c := range b.all {
				b.places[c.place()] = i
			}
			return b, b.link(overlay, dirs)
		}
		if !b.leaveOut(string(said)) {
			return nil, fmt.Errorf("%w: %s", err, said)
		}
	}
}

func packages(dirs []string) (all []string) {
	for _, dir := range dirs {
		all = append(all, "./"+filepath.Clean(dir))
	}
	return all
}

// leaveOut removes the changes in the lines of which the compiler complains and reports whether there were any.
func (b *build) leaveOut(said string) (some bool) {
	for line := range strings.Lines(said) {
		part := strings.SplitN(line, ":", 3)
		if len(part) < 3 {
			continue
		}
		number, err := strconv.Atoi(part[1])
		if err != nil {
			continue
		}
		for i, c := range b.all {
			if c.line <= number && number <= c.last && filepath.Base(c.file) == filepath.Base(part[0]) && strings.HasSuffix(filepath.Dir(part[0]), filepath.Base(filepath.Dir(c.file))) {
				delete(b.all, i)
				some = true
			}
		}
	}
	return some
}

// write writes the changed files and the overlay that names them; it returns the overlay's path.
func (b *build) write(names map[string]string) (string, error) {
	files := map[string]map[int]change{}
	for i, c := range b.all {
		if files[c.file] == nil {
			files[c.file] = map[int]change{}
		}
		files[c.file][i] = c
	}
	replace := map[string]string{}
	put := func(file string, text []byte) error {
		original, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		replace[original] = filepath.Join(b.scratch, "sources", file)
		if err := os.MkdirAll(filepath.Dir(replace[original]), 0o700); err != nil {
			return err
		}
		return os.WriteFile(replace[original], text, 0o600)
	}
	for file, those := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if err := put(file, apply(source, those)); err != nil {
			return "", err
		}
	}
	for dir, name := range names {
		if err := put(filepath.Join(dir, "mutated.go"), fmt.Appendf(nil, switches, name)); err != nil {
			return "", err
		}
	}
	if err := overlay(b.path("overlay.json"), replace); err != nil {
		return "", err
	}
	// The program of the scripts is in a temporary directory, which it must not mind: cmd/ollim/main_test.go says why.
	if err := put("internal/cli/temporary.go", []byte("package cli\n\nfunc temporary() []string { return nil }\n")); err != nil {
		return "", err
	}
	return b.path("overlay.json"), overlay(b.path("program.json"), replace)
}

func overlay(file string, replace map[string]string) error {
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

func (b *build) path(name string) string { return filepath.Join(b.scratch, name) }

// link builds ollim and the programs of the tests for each worker, and lists the tests in them: the scripts last, because each takes long.
func (b *build) link(overlay string, dirs []string) error {
	for _, dir := range dirs {
		b.suites = append(b.suites, &suite{dir: filepath.Clean(dir)})
	}
	if !b.judges.own {
		b.suites = append(b.suites, &suite{dir: "internal/cli"}, &suite{dir: "cmd/ollim"}, &suite{dir: "cmd/ollim", scripts: true})
	}
	for i := range workers {
		w := &worker{build: b, dir: b.path(strconv.Itoa(i))}
		b.workers = append(b.workers, w)
		if err := w.link(overlay, dirs); err != nil {
			return err
		}
	}
	for _, s := range b.suites {
		if err := s.list(b.workers[0]); err != nil {
			return err
		}
	}
	return nil
}

// in lists the changes of one package, in order.
func (b *build) in(dir string) (numbers []int) {
	for i, c := range b.all {
		if filepath.Dir(c.file) == filepath.Clean(dir) {
			numbers = append(numbers, i)
		}
	}
	slices.Sort(numbers)
	return numbers
}

func first(own bool) int {
	if own {
		return 0
	}
	return 1
}

// tests counts the tests that reach change i.
func (b *build) tests(i int) (n int) {
	for _, s := range b.suites {
		n += len(s.reached[i])
	}
	return n
}
