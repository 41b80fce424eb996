// Command startup measures what starting ollim costs beside a bare Go program: whole processes, interleaved in one run, so
// that whatever else the machine does falls on both. Run it from the repository: go run ./bench/startup
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	wall []time.Duration
	rss  []int64 // kB
}

func main() {
	n := flag.Int("n", 200, "starts of each command")
	flag.Parse()
	if err := measure(*n); err != nil {
		fmt.Fprintln(os.Stderr, "startup:", err)
		os.Exit(1)
	}
}

func measure(n int) error {
	dir, err := os.MkdirTemp("", "ollim-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	subjects, err := prepare(dir)
	if err != nil {
		return err
	}
	for range n {
		for i := range subjects {
			if err := subjects[i].start(dir); err != nil {
				return err
			}
		}
	}
	report(subjects)
	return sizes(dir)
}

func prepare(dir string) ([]subject, error) {
	files := map[string]string{"bare/main.go": bare, "bare/go.mod": "module bare\n\ngo 1.26\n"}
	if err := write(dir, files); err != nil {
		return nil, err
	}
	ollim, plain := filepath.Join(dir, "ollim"), filepath.Join(dir, "plain")
	if err := build(".", ollim, "./cmd/ollim"); err != nil {
		return nil, err
	}
	if err := build(filepath.Join(dir, "bare"), plain, "."); err != nil {
		return nil, err
	}
	init := subject{argv: []string{ollim, "init"}}
	if err := init.start(dir); err != nil {
		return nil, err
	}
	if err := write(dir, map[string]string{"data/routines/bench.md": routine, "data/bench.yaml": script}); err != nil {
		return nil, err
	}
	return []subject{
		{name: "bare Go program", argv: []string{plain}},
		{name: "ollim version", argv: []string{ollim, "version"}},
		{name: "ollim routine list", argv: []string{ollim, "routine", "list"}},
		{name: "ollim updates list", argv: []string{ollim, "updates", "list"}},
		{name: "ollim fire (script)", argv: []string{ollim, "fire", "bench"}},
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
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, what)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	return cmd.Run()
}

func (s *subject) start(dir string) error {
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Env = []string{"OLLIM_DATA_DIR=" + filepath.Join(dir, "data"), "HOME=" + dir, "PATH=/usr/bin:/bin"}
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

func report(subjects []subject) {
	least := quantile(subjects[0].wall, 50)
	fmt.Println("| command | median | more than bare | p95 | peak RSS |\n| --- | --- | --- | --- | --- |")
	for _, s := range subjects {
		median := quantile(s.wall, 50)
		fmt.Printf("| %s | %.1f ms | %+.1f ms | %.1f ms | %.1f MiB |\n", s.name, ms(median), ms(median-least),
			ms(quantile(s.wall, 95)), float64(quantile(s.rss, 50))/1024)
	}
}

func sizes(dir string) error {
	for _, name := range []string{"plain", "ollim"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Printf("\n%s: %.1f MB stripped", name, float64(info.Size())/1e6)
	}
	fmt.Println()
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func quantile[T cmp.Ordered](values []T, percent int) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}
