// Command runs measures what grows with the number of runs and with the length of a transcript: the first tick of a day, the
// commands whose answer has a window, the list of all runs, the page of a report beside it, and a fire that continues a large session of the script engine. Each command is a
// process of its own, so the peak of its memory is the command's. Run it from the repository: go run ./bench/runs
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/ollim/ollim/bench/program"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/state/runlog"
)

const routine = `---
id: bench
cron: "0 9 * * *"
background: true
session: persistent
engine: script:bench.yaml
---
Go.
`

// prompt and events are what a run was asked and did.
const (
	prompt = "[routine-bg:bench] [2026-11-23 Mon 04:54 PM UTC]\n\nLook after everything, and say what has changed.\n"
	events = `{"at":"2026-11-23T16:54:44Z","type":"session","session":"s-7f9f0ec7"}
{"at":"2026-11-23T16:54:44Z","type":"tool_use","tool":"Bash","tool_id":"1","input":{"command":"git log -3"}}
{"at":"2026-11-23T16:54:44Z","type":"tool_result","tool":"Bash","tool_id":"1","text":"three commits since yesterday, all of them small"}
{"at":"2026-11-23T16:54:44Z","type":"text","text":"Nothing has changed that needs anybody's attention today."}
{"at":"2026-11-23T16:54:44Z","type":"usage","usage":{"in":2990,"out":30,"cache_read":0,"cache_write":0},"cost":0.01}
{"at":"2026-11-23T16:54:44Z","type":"result","text":"Nothing has changed that needs anybody's attention today."}
`
)

func main() {
	runs := flag.Int("runs", 100_000, "run records")
	ago := flag.Duration("ago", time.Hour, "how long ago the newest run began; 5s: the last hour has runs as well")
	megabytes := flag.Int("transcript", 1000, "size of the script session, in MB")
	binary := flag.String("ollim", "", "the program to measure; default: built from this repository")
	flag.Parse()
	if err := measure(*runs, *megabytes, *ago, *binary); err != nil {
		fmt.Fprintln(os.Stderr, "runs:", err)
		os.Exit(1)
	}
}

func measure(runs, megabytes int, ago time.Duration, binary string) error {
	dir, err := os.MkdirTemp("", "ollim-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err = program.Path(binary, dir)
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	b := bench{binary, data}
	if _, _, err := b.run("init", "--engine", "script:bench.yaml"); err != nil {
		return err
	}
	if err := b.files(); err != nil {
		return err
	}
	fmt.Println("| command | with | processor time | peak RSS |\n| --- | --- | --- | --- |")
	if err := b.windows("no runs"); err != nil {
		return err
	}
	for _, n := range []int{runs / 10, runs} {
		if err := b.records(n, ago); err != nil {
			return err
		}
		with := fmt.Sprintf("%d runs", n)
		if err := b.windows(with); err != nil {
			return err
		}
		if err := cmp.Or(b.row(with, "run", "list", "-n", "0"), b.row(with, "run", "list", "-n", "0", "--json")); err != nil {
			return err
		}
		if err := b.report(with); err != nil {
			return err
		}
	}
	_ = os.RemoveAll(filepath.Join(data, "state", "runs"))
	for _, size := range []int{megabytes / 10, megabytes} {
		if err := b.session(size); err != nil {
			return err
		}
		if err := b.row(fmt.Sprintf("a transcript of %d MB", size), "fire", "bench"); err != nil {
			return err
		}
	}
	return nil
}

type bench struct{ binary, data string }

// run runs a command and returns its processor time and its largest resident set, in kB.
func (b bench) run(args ...string) (time.Duration, int64, error) {
	cmd := exec.Command(b.binary, append([]string{"--data-dir", b.data}, args...)...)
	cmd.Stderr = os.Stderr
	err := cmd.Run()
	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), usage.Maxrss, err
}

// row prints the better of two runs.
func (b bench) row(with string, args ...string) error {
	took, rss, err := b.run(args...)
	if err == nil && args[0] != "tick" && args[0] != "fire" { // which do something only once
		var again time.Duration
		if again, rss, err = b.run(args...); again < took {
			took = again
		}
	}
	fmt.Printf("| ollim %s | %s | %.3f s | %d MiB |\n", strings.Join(args, " "), with, took.Seconds(), rss>>10)
	return err
}

// windows measures the commands that answer for an hour, a day or the newest runs, however many there are.
func (b bench) windows(with string) error {
	// the first commands make the sums of the days, and doctor those that a tick does not need
	for _, command := range []string{"tick", "doctor"} {
		_, _, _ = b.run(command)
	}
	if err := b.age(); err != nil {
		return err
	}
	for _, command := range []string{
		"tick", "tick", "events --since 1h", "run list", "status", "cost", "cost --since 1d", "schedule list", "schedule audit", "doctor",
	} {
		if err := b.row(with, strings.Fields(command)...); err != nil && command != "doctor" { // whose status says what it found
			return err
		}
	}
	return nil
}

// age makes the next tick the first one of a day, and the directory of all runs as old as its year.
func (b bench) age() error {
	page := filepath.Join(b.data, "state", "tick.json")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text = regexp.MustCompile(`"tidied": "[^"]*"`).ReplaceAll(text, []byte(`"tidied": ""`))
	if err := os.WriteFile(page, text, 0o600); err != nil {
		return err
	}
	old := time.Now().AddDate(0, -1, 0)
	if err := os.Chtimes(filepath.Join(b.data, "state", "runs"), old, old); !os.IsNotExist(err) {
		return err
	}
	return nil
}

// report measures the page of all runs, and prints its size.
func (b bench) report(with string) error {
	page := filepath.Join(b.data, "report.html")
	if err := b.row(with, "report", "--since", "365d"); err != nil {
		return err
	}
	if _, _, err := b.run("report", "--since", "365d", "-o", page); err != nil {
		return err
	}
	info, err := os.Stat(page)
	if err == nil {
		fmt.Printf("| its page | %s | %.1f MB | |\n", with, float64(info.Size())/1e6)
	}
	return err
}

func (b bench) files() error {
	if err := os.WriteFile(filepath.Join(b.data, "bench.yaml"), []byte("turns:\n  - - text: one\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.data, "routines", "bench.md"), []byte(routine), 0o600)
}

// records writes so many records of runs that have ended, two a minute back from a time ago. One in a hundred failed.
func (b bench) records(n int, ago time.Duration) error {
	now, days := time.Now().Add(-ago), map[string]time.Time{} // when the directory of a day changed last
	for i := range n {
		at := now.Add(-time.Duration(i) * time.Minute / 2)
		end := at.Add(time.Second)
		r := runlog.Record{
			ID: fmt.Sprintf("%s-%06x", at.UTC().Format("20060102T150405.000Z"), i), Subject: runlog.Subject{Kind: "routine", Job: "bench", Name: "bench", Path: filepath.Join(b.data, "routines", "bench.md")}, Mode: "persistent", Engine: "script:bench.yaml", Started: at,
			Finished: &end, Outcome: runlog.OK, Text: strings.Repeat("What was said. ", 20), Turns: 1, Cost: 0.01,
			Tools: []string{"Read(./**.md)", "Glob(./**.md)", "Grep(./**.md)", "Bash(ollim help)", "Bash(ollim tasks *)"},
		}
		if i%100 == 0 {
			r.Outcome, r.Error = runlog.Failed, "the service is overloaded"
		}
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		folder := paths.Dir(b.data).Run(r.ID)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		did := strings.ReplaceAll(events, "2026-11-23T16:54:44Z", at.Format(time.RFC3339))
		for name, text := range map[string]string{"run.json": string(text), "prompt.txt": prompt, "events.jsonl": did} {
			path := filepath.Join(folder, name)
			if err := cmp.Or(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, end, end)); err != nil {
				return err
			}
		}
		if day := filepath.Dir(folder); days[day].IsZero() { // the newest run comes first
			days[day] = end
		}
	}
	for day, end := range days {
		if err := os.Chtimes(day, end, end); err != nil {
			return err
		}
	}
	return nil
}

// session makes the routine's session one of so many MB.
func (b bench) session(megabytes int) error {
	const id = "s-00000001"
	folder := filepath.Join(b.data, "sessions", "script")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(folder, id+".jsonl"))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	_, _ = fmt.Fprintf(w, `{"type":"session","id":%q}`+"\n", id)
	line := fmt.Sprintf(`{"type":"message","message":{"role":"user","content":%q}}`+"\n", strings.Repeat("x", 10_000))
	for range megabytes * 100 {
		_, _ = w.WriteString(line)
	}
	if err := cmp.Or(w.Flush(), f.Close()); err != nil {
		return err
	}
	own := filepath.Join(b.data, "state", "routine_sessions")
	if err := os.MkdirAll(own, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(own, "bench"), []byte(id), 0o600)
}
