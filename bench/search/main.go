// Command search measures ollim session search beside ripgrep on the same files: transcripts, and the session files of Claude Code.
// The whole processes are timed in turns, with the files in the page cache. It needs rg on PATH. Run it from the repository:
// go run ./bench/search
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ollim/ollim/bench/program"
)

func main() {
	megabytes := flag.Int("mb", 1000, "size of the files of each form, in MB")
	rounds := flag.Int("rounds", 7, "measurements of each, of which the median counts")
	binary := flag.String("ollim", "", "the program to measure; default: built from this repository")
	flag.Parse()
	if err := measure(*megabytes, *rounds, *binary); err != nil {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

func measure(megabytes, rounds int, binary string) error {
	dir, err := os.MkdirTemp("", "ollim-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err = program.Path(binary, dir)
	if err != nil {
		return err
	}
	data, theirs := filepath.Join(dir, "data"), filepath.Join(dir, "projects")
	ollim := []string{binary, "--data-dir", data, "session", "search"}
	if out, err := exec.Command(binary, "--data-dir", data, "init").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := errors.Join(transcripts().write(filepath.Join(data, "sessions", "--w--"), megabytes), claude().write(theirs, megabytes)); err != nil {
		return err
	}
	fmt.Println("| search | files | rg -i | ollim | ratio | peak RSS |\n| --- | --- | --- | --- | --- | --- |")
	for _, c := range []struct {
		what, form string
		args       []string
	}{
		{"a word that is nowhere", "transcripts", []string{"zyzzyva"}},
		{"a word of common letters that is nowhere", "transcripts", []string{"retinase"}},
		{"a word in 10 messages", "transcripts", []string{"quagga"}},
		{"a phrase with escaped characters in 10 messages", "transcripts", []string{`said "quagga"`}},
		{"a word in every file, 20 results", "transcripts", []string{"walrus"}},
		{"a word in every file, all results", "transcripts", []string{"-n", "0", "walrus"}},
		{"a word that is nowhere", "Claude Code", []string{"--in", theirs, "zyzzyva"}},
		{"a word in 10 messages", "Claude Code", []string{"--in", theirs, "quagga"}},
		{"a word in every file, 20 results", "Claude Code", []string{"--in", theirs, "walrus"}},
	} {
		folder := filepath.Join(data, "sessions")
		if c.form != "transcripts" {
			folder = theirs
		}
		word := strings.ReplaceAll(c.args[len(c.args)-1], `"`, `\"`) // as the files have it
		var ours, rg []time.Duration
		peak := int64(0)
		for range rounds {
			took, _, err := timed([]string{"rg", "-i", "-F", "-I", word, folder})
			rg = append(rg, took)
			if err == nil {
				took, peak, err = timed(append(ollim, c.args...))
				ours = append(ours, took)
			}
			if err != nil {
				return err
			}
		}
		a, b := median(rg), median(ours)
		fmt.Printf("| %s | %s | %d ms | %d ms | %.2f | %d MiB |\n", c.what, c.form, a.Milliseconds(), b.Milliseconds(), float64(b)/float64(a), peak>>10)
	}
	return nil
}

// timed runs a command, of which status 1 means that nothing was found. The size is the largest resident set, in kB.
func timed(args []string) (took time.Duration, size int64, err error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	begun := time.Now()
	if err = cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 {
		return 0, 0, fmt.Errorf("%s: %w", args[0], err)
	}
	took = time.Since(begun)
	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return took, usage.Maxrss, nil
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// form makes the lines of a program's session files.
type form struct {
	name string // of a file, for its id
	head string // of a file, for its id
	line func(id string, i int, role string, content any) any
}

func transcripts() form {
	return form{"2026-01-01T00-00-00_%s.jsonl", `{"type":"session","id":"%s","cwd":"/w","provider":"anthropic","model":"m","timestamp":"2026-01-01T00:00:00Z"}` + "\n",
		func(_ string, i int, role string, content any) any {
			return struct { // in the order in which ollim writes it
				Type      string    `json:"type"`
				Timestamp time.Time `json:"timestamp"`
				Message   any       `json:"message"`
			}{"message", at(i), map[string]any{"role": role, "content": content}}
		}}
}

func claude() form {
	return form{"%s.jsonl", `{"type":"queue-operation","operation":"enqueue","sessionId":"%s"}` + "\n", func(id string, i int, role string, content any) any {
		return map[string]any{
			"parentUuid": fmt.Sprintf("%s-%d", id, i-1), "uuid": fmt.Sprintf("%s-%d", id, i), "isSidechain": false, "type": role, "timestamp": at(i), "cwd": "/w",
			"sessionId": id, "message": map[string]any{"id": fmt.Sprintf("msg_%d", i), "type": "message", "role": role, "content": content},
		}
	}}
}

func at(i int) time.Time { return time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC) }

// write makes session files of half a megabyte: questions, answers, and tool calls whose results are pieces of Go source. Each file
// has "walrus" once, and each of ten has "quagga" once.
func (f form) write(folder string, megabytes int) error {
	const size = 500_000
	var source []byte
	paths, _ := filepath.Glob("internal/state/*/*.go")
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		source = append(source, text...)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, 2))
	piece := func(most int) string {
		n := 1 + r.IntN(most)
		from := r.IntN(len(source) - n)
		return string(source[from : from+n])
	}
	count := megabytes * 1_000_000 / size
	for n := range count {
		id := fmt.Sprintf("%08x-0000-4000-8000-000000000000", n)
		var out bytes.Buffer
		fmt.Fprintf(&out, f.head, id)
		lines := json.NewEncoder(&out)
		lines.SetEscapeHTML(false)
		i := 4 * n // later files have later messages
		for out.Len() < size {
			tool := fmt.Sprintf("toolu_%d", i)
			said := piece(800)
			if i == 4*n {
				said += " A walrus."
				if n%(count/10) == 0 {
					said += ` He said "quagga".`
				}
			}
			err := errors.Join(
				lines.Encode(f.line(id, i, "user", piece(400))),
				lines.Encode(f.line(id, i+1, "assistant", []any{map[string]any{"type": "tool_use", "id": tool, "name": "Read", "input": map[string]any{"file_path": "/w/a.go"}}})),
				lines.Encode(f.line(id, i+2, "user", []any{map[string]any{"type": "tool_result", "tool_use_id": tool, "content": piece(8000)}})),
				lines.Encode(f.line(id, i+3, "assistant", []any{map[string]any{"type": "text", "text": said}})))
			if err != nil {
				return err
			}
			i += 4
		}
		path := filepath.Join(folder, fmt.Sprintf(f.name, id))
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			return err
		}
		if err := os.Chtimes(path, at(i), at(i)); err != nil {
			return err
		}
	}
	return nil
}
