// Command parallel lets many routines be due in one minute, and prints how much memory that takes at once, in which order they begin and when
// the last one ends. It fails if a slot has no run or two. Run it from the repository:
//
//	go run ./bench/parallel                         # 10,000 routines, 8 at once
//	go run ./bench/parallel -n 500 -most 32
//
// The ticks and the process that starts waiting slots are those of ollim, and work as cron starts them, each minute. Only the fires are
// simulated: each takes its job's lock, claims its slot, sleeps and settles the slot, without an agent.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/cli"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/slot"
)

const (
	asProgram = "OLLIM_BENCH_PARALLEL" // set: this process is ollim; its value is how long a fire takes
	logName   = "fires"                // a line for each fire: job, begin and end in ns
)

func main() {
	if length := os.Getenv(asProgram); length != "" {
		if slices.Contains(os.Args, "--slot") {
			if err := fire(os.Args, length); err != nil {
				fmt.Fprintln(os.Stderr, "parallel: fire:", err)
				os.Exit(1)
			}
			return
		}
		os.Exit(cli.Main(os.Args[1:]))
	}
	var s simulation
	flag.IntVar(&s.n, "n", 10_000, "how many routines are due")
	flag.IntVar(&s.most, "most", 8, "limits.parallel")
	flag.DurationVar(&s.length, "length", 50*time.Millisecond, "how long a fire takes")
	flag.Parse()
	if err := s.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "parallel:", err)
		os.Exit(1)
	}
}

// fire is the fire of a slot: args are those of ollim fire.
func fire(args []string, length string) error {
	begin := time.Now()
	pause, err := time.ParseDuration(length)
	if err != nil {
		return err
	}
	job, dir := args[len(args)-1], paths.Dir(os.Getenv("OLLIM_DATA_DIR"))
	at, err := time.Parse(time.RFC3339, args[slices.Index(args, "--slot")+1])
	if err != nil {
		return err
	}
	self := process.Of(os.Getpid())
	book := slot.Book{Home: dir, Disk: store.Disk{Now: time.Now}, Zone: time.UTC}
	if err := book.Claim(slot.Claim{Job: job, Slot: at, Run: job, PID: self.PID, PIDStart: self.Start}); err != nil {
		return err
	}
	guard, err := lock.TryGuard(dir.JobLock(job))
	if err != nil {
		return err
	}
	defer guard.Release()
	time.Sleep(pause)
	if err := book.Settle(job, at, job, "ok"); err != nil {
		return err
	}
	log, err := os.OpenFile(dir.Path(logName), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(log, "%s %d %d\n", job, begin.UnixNano(), time.Now().UnixNano())
	return errors.Join(err, log.Close())
}

type simulation struct {
	n, most int
	length  time.Duration
	dir     string
}

func (s *simulation) run(out io.Writer) (err error) {
	if s.dir, err = os.MkdirTemp("", "ollim-parallel-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if err := s.command("init", "--timezone", "UTC").Run(); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "play.yaml"), []byte("turns:\n  - - text: well\n"), 0o600); err != nil { // or no engine is there
		return err
	}
	due := time.Now().UTC().Truncate(time.Minute)
	for i := range s.n {
		text := fmt.Sprintf("---\nid: %s\ncron: \"%d %d %d %d *\"\ntimezone: UTC\nbackground: true\nengine: script:play.yaml\n---\nGo.\n", name(i), due.Minute(), due.Hour(), due.Day(), due.Month())
		if err := os.WriteFile(filepath.Join(s.dir, "routines", name(i)+".md"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	var highest, starter int64
	begin := time.Now()
	cron, watch := time.NewTicker(time.Minute), time.NewTicker(50*time.Millisecond)
	defer cron.Stop()
	defer watch.Stop()
	ended, ticks := make(chan error), 0
	tick := func() {
		ticks++
		cmd := s.command("tick", "--wait")
		go func() { ended <- cmd.Run() }()
	}
	tick()
	for running := 1; running > 0; {
		select {
		case <-cron.C:
			running++
			tick()
		case <-watch.C:
			sum, one := s.memory()
			highest, starter = max(highest, sum), max(starter, one)
		case err := <-ended:
			if running--; err != nil {
				return fmt.Errorf("tick: %w", err)
			}
		}
	}
	return s.report(out, time.Since(begin), ticks, highest, starter)
}

func name(i int) string { return fmt.Sprintf("r%05d", i) }

func (s *simulation) command(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + s.dir, "OLLIM_DATA_DIR=" + s.dir, asProgram + "=" + s.length.String(),
		"OLLIM_LIMITS_PARALLEL=" + strconv.Itoa(s.most)}
	cmd.Stderr = os.Stderr
	return cmd
}

// memory returns the memory of all processes of the simulation, each shared page counted once, and that of the process that starts waiting
// slots, in kB.
func (s *simulation) memory() (sum, starter int64) {
	for _, p := range process.Carrying("OLLIM_DATA_DIR=" + s.dir) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID))
		_, rest, _ := strings.Cut(string(text), "\nPss:")
		line, _, _ := strings.Cut(rest, "\n")
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(line), " kB"), 10, 64)
		if err != nil {
			continue
		}
		sum += kb
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID)); bytes.Contains(line, []byte("--waiting")) {
			starter = max(starter, kb)
		}
	}
	return sum, starter
}

// report reads the log of the fires.
func (s *simulation) report(out io.Writer, took time.Duration, ticks int, highest, starter int64) error {
	text, err := os.ReadFile(filepath.Join(s.dir, logName))
	if err != nil {
		return err
	}
	type moment struct {
		at    int64
		begin int
		job   string
	}
	var moments []moment
	seen := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var job string
		var begin, end int64
		if _, err := fmt.Sscan(line, &job, &begin, &end); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		seen[job]++
		moments = append(moments, moment{begin, 1, job}, moment{end, -1, job})
	}
	slices.SortFunc(moments, func(a, b moment) int { return int(a.at - b.at) })
	now, most, place, off := 0, 0, 0, 0
	for _, m := range moments {
		now += m.begin
		most = max(most, now)
		if m.begin < 0 {
			continue
		}
		own, _ := strconv.Atoi(strings.TrimLeft(m.job[1:], "0"))
		off = max(off, own-place, place-own)
		place++
	}
	doubles := 0
	for _, runs := range seen {
		if runs > 1 {
			doubles++
		}
	}
	_, err = fmt.Fprintf(out, "%d routines: %d have a run, %d two; at most %d at once; each begins at most %d places from its own; %d ticks; peak memory %d MB, of it the starter %d MB; %.0f s\n",
		s.n, len(seen), doubles, most, off, ticks, highest>>10, starter>>10, took.Seconds())
	if err == nil && (len(seen) != s.n || doubles > 0 || most > s.most) {
		err = errors.New("a slot does not have one run, or too many ran at once")
	}
	return err
}
