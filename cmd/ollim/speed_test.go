package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/slot"
)

// TestTenThousandRoutines holds the commands that read everything to their targets, over 10,000 routines (300 outside CI) whose slots of
// the last week were all answered. The targets are for two idle cores. Here the quickest of some runs may take twice as long, on the
// clock or on the processor, because other tests run beside it; the log has the medians.
func TestTenThousandRoutines(t *testing.T) {
	c := newCommand(t)
	c.ok("config", "set", "engine", "script:none.yaml")
	many := newMultitude(c, full(10_000, 300))
	many.write()
	slots := many.answer()
	c.ok("tick") // the first of a day does more

	lines := func(want int) func(string) bool {
		return func(out string) bool { return strings.Count(out, "\n") == want }
	}
	for _, test := range []struct {
		args   string
		target time.Duration
		right  func(out string) bool
	}{
		{"schedule list", 500 * time.Millisecond, lines(10)},
		{"schedule print systemd", 1500 * time.Millisecond, func(out string) bool {
			return strings.Count(out, "==> ollim-job-") == 2*many.enabled
		}},
		{"schedule audit --since 7d", time.Second, func(out string) bool {
			n := strings.Count(out, "\tok\t") // since they were answered, the oldest have left the window, and newer ones have come into it
			return n <= slots && n > slots*95/100 && lines(n)(out)
		}},
		{"tick", 500 * time.Millisecond, lines(0)},
	} {
		t.Run(test.args, func(t *testing.T) {
			m := c.measure(t, strings.Fields(test.args), full(3, 1), test.right)
			t.Logf("%d routines, %d slots: median %v of %v, %d MiB", len(many.list), slots, m.median, test.target, m.memory>>20)
			if m.quickest > 2*test.target {
				t.Errorf("the quickest took %v, want %v", m.quickest, test.target)
			}
		})
	}
	if runs, err := os.ReadDir(paths.Dir(c.data).Runs()); len(runs) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tick has started something: %d runs, %v", len(runs), err)
	}
}

// onProcessor is what a command that has ended took of the processor: no more than on the clock, but for threads side by side. Other
// tests do not make it much longer.
func onProcessor(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// measured is what some runs of a command took.
type measured struct {
	quickest time.Duration // on the clock or on the processor, whichever is less
	median   time.Duration // on the clock
	memory   int64         // bytes, the most of any
}

func (c *command) measure(t *testing.T, args []string, runs int, right func(out string) bool) (m measured) {
	t.Helper()
	m.quickest = math.MaxInt64
	var walls []time.Duration
	for range runs {
		var out, errOut strings.Builder
		cmd := c.cmd(args...)
		cmd.Stdout, cmd.Stderr = &out, &errOut
		begin := time.Now()
		err := cmd.Run()
		walls = append(walls, time.Since(begin).Round(time.Millisecond))
		m.quickest = min(m.quickest, walls[len(walls)-1], onProcessor(cmd))
		if err != nil || errOut.Len() > 0 || !right(out.String()) {
			t.Fatalf("%v, %d bytes, %d lines\n%.2000s%.2000s", err, out.Len(), strings.Count(out.String(), "\n"), errOut.String(), out.String())
		}
		m.memory = max(m.memory, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10)
	}
	slices.Sort(walls)
	m.median = walls[len(walls)/2]
	return m
}

// multitude is a data directory of many routines: half of them daily, others hourly, on workdays, weekly, monthly or on leap days; a third
// in a zone of its own, a tenth disabled.
type multitude struct {
	c       *command
	list    []slot.Schedule
	enabled int
}

func newMultitude(c *command, n int) *multitude {
	m := &multitude{c: c}
	zones := []string{"Europe/Paris", "Asia/Tokyo", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"}
	for i := range n {
		s := slot.Schedule{Job: fmt.Sprintf("r%05d", i), Name: fmt.Sprintf("routine-%d", i), Cron: line(i), Enabled: i%10 != 3}
		if i%3 == 0 {
			s.Zone = zones[i/3%len(zones)]
		}
		if s.Enabled {
			m.enabled++
		}
		m.list = append(m.list, s)
	}
	return m
}

// line is the cron line of the i-th routine.
func line(i int) string {
	minute, hour := i*7%60, i*13%24
	switch {
	case i%64 == 0:
		return fmt.Sprintf("%d * * * *", minute)
	case i%2 == 0:
		return fmt.Sprintf("%d %d * * *", minute, hour)
	}
	switch i % 10 {
	case 1, 3:
		return fmt.Sprintf("%d %d * * 1-5", minute, hour)
	case 5:
		return fmt.Sprintf("%d %d * * %d", minute, hour, i%7)
	case 7:
		return fmt.Sprintf("%d %d %d,%d */2 *", minute, hour, 1+i%14, 15+i%14)
	}
	return fmt.Sprintf("%d %d 29 feb *", minute, hour)
}

// write makes the files.
func (m *multitude) write() {
	m.c.t.Helper()
	for i, s := range m.list {
		var b strings.Builder
		fmt.Fprintf(&b, "---\nid: %s\ncron: %q\ndescription: \"Look after thing %d: what is new, what is late\"\nbackground: true\n", s.Job, s.Cron, i)
		if s.Zone != "" {
			fmt.Fprintf(&b, "timezone: %s\n", s.Zone)
		}
		if i%7 == 0 {
			b.WriteString("session: persistent\n")
		}
		if i%5 == 0 {
			b.WriteString("catch-up: 2h\nallowed-tools: [Read, \"Bash(git log *)\"]\n")
		}
		if !s.Enabled {
			b.WriteString("enabled: false\n")
		}
		b.WriteString("---\n" + strings.Repeat("Read what came in, compare it with what was there, and say what matters.\n", 8))
		m.c.write(filepath.Join("routines", s.Name+".md"), b.String())
	}
}

// answer notes the schedules as they were eight days ago, and an answer for each slot of the last seven days and the next ten minutes. It
// returns how many.
func (m *multitude) answer() (slots int) {
	m.c.t.Helper()
	now := time.Now()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		m.c.t.Fatal(err)
	}
	clock := now.AddDate(0, 0, -8)
	book := slot.Book{Home: paths.Dir(m.c.data), Zone: zone, Disk: store.Disk{
		Now: func() time.Time { return clock }, Warn: func(s string) { m.c.t.Error(s) },
	}}
	for _, s := range m.list {
		s.At = clock.In(zone).Truncate(time.Minute)
		if err := store.AppendJSON(book.Home.Schedules(), s, store.Buffered); err != nil {
			m.c.t.Fatal(err)
		}
		for at := range forecast.Expected([]slot.Schedule{s}, zone, now.AddDate(0, 0, -7), now.Add(10*time.Minute)) {
			if err := book.Claim(slot.Claim{Job: s.Job, Slot: at, Outcome: "ok"}); err != nil {
				m.c.t.Fatal(err)
			}
			slots++
		}
	}
	return slots
}
