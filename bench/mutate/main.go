// Command mutate changes the program in one place at a time and reports which changes no test notices. Run it from the
// repository:
//
//	go run ./bench/mutate -n 20 internal/agent/run internal/agent/conversation
//
// A change that does not compile is omitted. A change is caught by the tests of its own package, by those of the command line,
// which run in process, or by the scripts. The sources stay as they are: each change is an overlay of the go command.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// stages are the tests that run, one after the other, until one fails; they follow those of the changed package.
func stages() [][]string {
	return [][]string{{"./internal/cli"}, {"-run", "^TestScript$", "./cmd/ollim"}}
}

// limit is how long the tests of one package may take; a change that makes them hang is caught.
const limit = 5 * time.Minute

func main() {
	n := flag.Int("n", 20, "changes of each package, chosen at random; 0 is all")
	seed := flag.Uint64("seed", 1, "of the choice")
	jobs := flag.Int("j", 2, "changes that are tested at a time")
	flag.Parse()
	if err := mutate(os.Stdout, flag.Args(), *n, *seed, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// mutate tests changes of the packages in the directories dirs and writes a line for each that survives, and the sums.
func mutate(out io.Writer, dirs []string, n int, seed uint64, jobs int) error {
	scratch, err := os.MkdirTemp("", "ollim-mutate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	for _, dir := range dirs {
		all, err := changes(dir)
		if err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		_, _ = fmt.Fprintf(out, "%s: %s\n", dir, verdicts(out, scratch, all, n, jobs))
	}
	return nil
}

// tally counts what became of the changes of one package.
type tally struct{ caught, survived int }

func (t tally) String() string {
	return fmt.Sprintf("%d caught, %d survived (%.0f %% caught)", t.caught, t.survived, 100*float64(t.caught)/float64(max(1, t.caught+t.survived)))
}

// verdicts tests changes in their order until n of them compiled.
func verdicts(out io.Writer, scratch string, all []change, n, jobs int) tally {
	var (
		sum  tally
		mu   sync.Mutex
		next int
		work sync.WaitGroup
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(all) || n > 0 && sum.caught+sum.survived >= n {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range jobs {
		work.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				caught, err := all[i].test(filepath.Join(scratch, fmt.Sprint(i)))
				mu.Lock()
				switch {
				case errors.Is(err, errInvalid):
				case err != nil:
					_, _ = fmt.Fprintf(out, "%s: %v\n", all[i], err)
				case caught:
					sum.caught++
				default:
					sum.survived++
					_, _ = fmt.Fprintf(out, "survived: %s\n", all[i])
				}
				mu.Unlock()
			}
		})
	}
	work.Wait()
	return sum
}

// errInvalid is a change that does not compile.
var errInvalid = errors.New("it does not compile")

// test reports whether a test fails with the change. Its files go to the directory dir.
func (c change) test(dir string) (bool, error) {
	overlay, err := c.write(dir)
	if err != nil {
		return false, err
	}
	own := "./" + filepath.Dir(c.file)
	if _, err := run(overlay, "build", own); err != nil {
		return false, errInvalid
	}
	for _, tests := range append([][]string{{own}}, stages()...) {
		args := append([]string{"test", "-timeout", limit.String(), "-failfast"}, tests...)
		if out, err := run(overlay, args...); err != nil {
			if bytes.Contains(out, []byte("[build failed]")) {
				return false, errInvalid
			}
			return true, nil
		}
	}
	return false, nil
}

// write writes the changed file and the overlay that names it; it returns the overlay's path.
func (c change) write(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	original, err := filepath.Abs(c.file)
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	changed := slices.Concat(source[:c.from], []byte(c.with), source[c.to:])
	file := filepath.Join(dir, filepath.Base(c.file))
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: file}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// run runs the go command with an overlay and returns what it wrote. The overlay is in GOFLAGS, for the go command that the tests
// start as well: those of cmd/ollim build the program.
func run(overlay string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
	return cmd.CombinedOutput()
}

// String is where the change is, what stood there and what stands there now.
func (c change) String() string {
	return fmt.Sprintf("%s:%d: %s → %s", c.file, c.line, oneLine(c.was), oneLine(c.with))
}

func oneLine(s string) string {
	if s = strings.Join(strings.Fields(s), " "); s == "" {
		return "nothing"
	}
	return s
}
