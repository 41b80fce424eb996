// Command calls counts the system calls of a fire, of ollim -p and of a message of ollim chat: the calls that wait for the disk, locks, and
// files that are opened. It needs strace. Run it from the repository: go run ./bench/calls
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

const routine = `---
id: bench
cron: "* * * * *"
background: true
session: persistent
---
Go.
`

const script = `turns:
  - - text: one
    - tool: report_updates
      input: {message: "reported"}
`

func main() {
	list := flag.String("ollim", "", "binaries to measure instead of this tree, separated by commas")
	keep := flag.String("keep", "", "a directory for the traces, with stacks")
	flag.Parse()
	if err := run(strings.FieldsFunc(*list, func(r rune) bool { return r == ',' }), *keep); err != nil {
		fmt.Fprintln(os.Stderr, "calls:", err)
		os.Exit(1)
	}
}

func run(builds []string, keep string) error {
	if _, err := exec.LookPath("strace"); err != nil {
		return fmt.Errorf("%w: install strace", err)
	}
	dir, err := os.MkdirTemp("", "ollim-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if len(builds) == 0 {
		builds = []string{filepath.Join(dir, "ollim")}
		cmd := exec.Command("go", "build", "-trimpath", "-tags", "nethttpomithttp2", "-o", builds[0], "./cmd/ollim")
		cmd.Stderr, cmd.Env = os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	s := &testkit.Script{}
	defer s.End()
	api := anthropicapi.New(s)
	api.Handle(model)
	fmt.Println("| build | engine | command | fsync | flock | open |\n| --- | --- | --- | --- | --- | --- |")
	for i, ollim := range builds {
		for _, engine := range []string{"script:bench.yaml", "native"} {
			d := desk{ollim: ollim, home: filepath.Join(dir, fmt.Sprint("data", i, engine[:6])), engine: engine, keep: keep}
			if err := d.measure(api.URL()); err != nil {
				return err
			}
		}
	}
	return nil
}

// model reports an update in a run of the routine, and then says that it is done.
func model(q anthropicapi.Request) anthropicapi.Reply {
	if q.Has("Go.") && len(q.ToolResults()) == 0 {
		return anthropicapi.Use("report_updates", map[string]string{"message": "reported"})
	}
	return anthropicapi.Reply{Text: "done"}
}

// desk is a data directory that one build uses with one engine.
type desk struct {
	ollim, home, engine, keep string
}

func (d desk) measure(url string) error {
	if err := d.do("init"); err != nil {
		return err
	}
	for name, text := range map[string]string{"routines/bench.md": routine, "bench.yaml": script} {
		path := filepath.Join(d.home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return err
		}
	}
	key := d.command(d.ollim, "secret", "set", "engine.ANTHROPIC_API_KEY")
	key.Stdin = strings.NewReader("bench\n")
	if out, err := key.CombinedOutput(); err != nil {
		return fmt.Errorf("ollim secret set: %w: %s", err, out)
	}
	for _, setting := range [][]string{
		{"engine", d.engine}, {"native.base-url", url}, {"native.model", "claude-sonnet-4-5"},
	} {
		if err := d.do(append([]string{"config", "set"}, setting...)...); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"fire", "bench"}, {"fire", "--scheduled", "bench"}, {"-p", "hello"}, {"chat", "hello"}} {
		if err := errors.Join(d.do(args...), d.count(args)); err != nil { // what only the first run does is not counted
			return err
		}
	}
	return nil
}

func (d desk) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"OLLIM_DATA_DIR=" + d.home, "HOME=" + d.home, "PATH=/usr/bin:/bin", "OLLIM_QUIET=none"}
	cmd.Dir = d.home
	return cmd
}

func (d desk) do(args ...string) error {
	if err := os.MkdirAll(d.home, 0o700); err != nil {
		return err
	}
	out, err := d.command(d.ollim, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ollim %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

var call = regexp.MustCompile(`(?m)^\d+ +(fsync|fdatasync|flock|open|openat)\(`)

// count runs a command under strace and prints a row of the table. A timer's fire gets an unclaimed slot of a routine that has had others,
// any other fire a claimed one.
func (d desk) count(args []string) error {
	name := strings.Join(args, " ")
	if strings.Contains(name, "--scheduled") {
		claims, err := filepath.Glob(filepath.Join(d.home, "state", "slots", "bench", "*"))
		for _, path := range claims {
			err = errors.Join(err, os.Remove(path))
		}
		if err != nil {
			return err
		}
	}
	trace := filepath.Join(d.home, "trace")
	options := []string{"-f", "-e", "trace=fsync,fdatasync,flock,open,openat", "-o", trace}
	if d.keep != "" {
		trace = filepath.Join(d.keep, strings.NewReplacer(" ", "", "/", "-").Replace(filepath.Base(d.ollim)+"-"+d.engine+"-"+name))
		options[len(options)-1] = trace
		options = append(options, "-k", "-y")
	}
	if out, err := d.command("strace", append(append(options, d.ollim), args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("strace ollim %s: %w: %s", name, err, out)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		return err
	}
	n := map[string]int{}
	for _, m := range call.FindAllSubmatch(text, -1) {
		n[string(m[1])]++
	}
	engine, _, _ := strings.Cut(d.engine, ":")
	fmt.Printf("| %s | %s | %s | %d | %d | %d |\n", filepath.Base(d.ollim), engine, name, n["fsync"]+n["fdatasync"], n["flock"], n["open"]+n["openat"])
	return nil
}
