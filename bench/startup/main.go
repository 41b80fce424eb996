// Command startup measures what starting ollim costs beside a bare Go program: whole processes, interleaved in one run, so
// that other work on the machine falls on all of them. Run it from the repository: go run ./bench/startup
package main

import (
	"cmp"
	"errors"
	"flag"
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

const bare = `package main

import "os"

func main() { os.Stdout.WriteString("x\n") }
`

const routine = `---
id: bench
cron: "0 9 * * *"
background: true
session: persistent
engine: script:bench.yaml
---
Go.
`

const script = `turns:
  - - text: one
    - tool: report_updates
      input: {message: "reported"}
`

// subject is one command that is measured.
type subject struct {
	name string
	argv []string
	home string // the data directory
	wall []time.Duration
	rss  []int64 // kB
}

func main() {
	n := flag.Int("n", 200, "starts of each command")
	list := flag.String("ollim", "", "binaries to measure instead of this tree, separated by commas")
	dir := flag.String("built", "", "a directory with the bare program; what is measured is built already")
	flag.Parse()
	builds := strings.FieldsFunc(*list, func(r rune) bool { return r == ',' })
	run := prepare
	if *dir != "" {
		run = func(n int, builds []string) error { return measure(n, *dir, builds) }
	}
	if err := run(*n, builds); err != nil {
		fmt.Fprintln(os.Stderr, "startup:", err)
		os.Exit(1)
	}
}

// prepare builds what is measured, and has a new process measure it: Linux counts the memory of the process that starts a
// program as that program's own, and by then this process is larger than what it would start.
func prepare(n int, builds []string) error {
	dir, err := os.MkdirTemp("", "ollim-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := write(dir, map[string]string{"bare/main.go": bare, "bare/go.mod": "module bare\n\ngo 1.26\n"}); err != nil {
		return err
	}
	if err := build(filepath.Join(dir, "bare"), filepath.Join(dir, "plain"), "."); err != nil {
		return err
	}
	if len(builds) == 0 {
		builds = []string{filepath.Join(dir, "ollim")}
		if err := build(".", builds[0], "./cmd/ollim"); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "-n", strconv.Itoa(n), "-ollim", strings.Join(builds, ","), "-built", dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

func measure(n int, dir string, builds []string) error {
	memory, err := os.MkdirTemp("/dev/shm", "ollim-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(memory) }()
	plain := filepath.Join(dir, "plain")
	subjects := []subject{{name: "bare Go program", argv: []string{plain}}}
	for i, ollim := range builds {
		name := strconv.Itoa(i)
		more, err := commands(ollim, filepath.Join(dir, "idle"+name), filepath.Join(dir, name), filepath.Join(memory, name))
		if err != nil {
			return err
		}
		subjects = append(subjects, more...)
	}
	for range n {
		for i := range subjects {
			if err := subjects[i].start(); err != nil {
				return err
			}
		}
	}
	if err := report(subjects); err != nil {
		return err
	}
	return sizes(append(builds, plain))
}

// commands makes data directories: one in which nothing ever runs, one on the disk, and one in memory, where syncing costs nothing.
func commands(ollim, idle, disk, memory string) ([]subject, error) {
	for _, home := range []string{idle, disk, memory} {
		init := subject{argv: []string{ollim, "init"}, home: home}
		if err := init.start(); err != nil {
			return nil, err
		}
		if err := write(home, map[string]string{"routines/bench.md": routine, "bench.yaml": script}); err != nil {
			return nil, err
		}
	}
	name := filepath.Base(ollim)
	return []subject{
		{name: name + " version", argv: []string{ollim, "version"}, home: idle},
		{name: name + " update list", argv: []string{ollim, "update", "list"}, home: idle},
		{name: name + " tick, nothing due", argv: []string{ollim, "tick"}, home: idle},
		{name: name + " fire (script)", argv: []string{ollim, "fire", "bench"}, home: disk},
		{name: name + " fire (script), in memory", argv: []string{ollim, "fire", "bench"}, home: memory},
	}, nil
}

func write(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func build(dir, out, what string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "nethttpomithttp2", "-ldflags", "-s -w", "-o", out, what)
	cmd.Dir, cmd.Stderr, cmd.Env = dir, os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return err
	}
	// The linker leaves its output in the page cache page by page, which costs every start a tenth. A copy in one write is there in
	// large pieces, each of which counts as memory of the program as a whole.
	binary, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	if err := os.Remove(out); err != nil {
		return err
	}
	f, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	for piece := range slices.Chunk(binary, 16<<10) {
		if _, writeErr := f.Write(piece); writeErr != nil {
			err = writeErr
		}
	}
	return errors.Join(err, f.Close())
}

func (s *subject) start() error {
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Env = []string{"OLLIM_DATA_DIR=" + s.home, "HOME=" + s.home, "PATH=/usr/bin:/bin"}
	cmd.Stderr = os.Stderr
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%v: %w", s.argv, err)
	}
	s.wall = append(s.wall, time.Since(begin))
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.rss = append(s.rss, usage.Maxrss)
	}
	return nil
}

func report(subjects []subject) error {
	bare := quantile(subjects[0].wall, 50)
	fmt.Println("| command | median | times bare | p95 | peak RSS |\n| --- | --- | --- | --- | --- |")
	for _, s := range subjects {
		median := quantile(s.wall, 50)
		fmt.Printf("| %s | %.2f ms | %.2f | %.2f ms | %.1f MiB |\n", s.name, ms(median), float64(median)/float64(bare),
			ms(quantile(s.wall, 95)), float64(quantile(s.rss, 50))/1024)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, own, _ := strings.Cut(string(status), "VmHWM:")
	own, _, _ = strings.Cut(own, "\n")
	fmt.Printf("\nA peak below that of the program that measures, %s, is not seen.\n", strings.TrimSpace(own))
	return nil
}

func sizes(paths []string) error {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		fmt.Printf("\n%s: %.2f MB", filepath.Base(path), float64(info.Size())/1e6)
	}
	fmt.Println()
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func quantile[T cmp.Ordered](values []T, percent int) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}
