package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/slot"
)

// routineCommands are the commands that read all routines. The function is false for an output that is wrong.
func (m *multitude) routineCommands() map[string]func(out string) bool {
	lines := func(out string, want int) bool { return strings.Count(out, "\n") == want }
	return map[string]func(string) bool{
		"schedule list": func(out string) bool { return lines(out, 10) },
		"schedule print systemd": func(out string) bool {
			return strings.Count(out, "==> ollim-job-") == 2*m.enabled
		},
		"schedule audit --since 7d": func(out string) bool {
			n := strings.Count(out, "\tok\t") // since they were answered, the oldest have left the window, and newer ones have come into it
			return n <= m.slots && n > m.slots*95/100 && lines(out, n)
		},
		"tick": func(out string) bool { return out == "" },
		"fire --dry-run routine-2": func(out string) bool {
			return strings.Contains(out, "Look after thing 2: ") && strings.Count(out, "Look after thing") > 3
		},
	}
}

// newMultitude makes n routines whose slots of the last week were all answered.
func newMultitude(t testing.TB, n int) *multitude {
	t.Helper()
	m := &multitude{c: newCommand(t)}
	m.c.write("none.yaml", "turns:\n  - - text: hello\n")
	m.c.ok("config", "set", "engine", "script:none.yaml")
	m.invent(n)
	m.write()
	m.answer()
	m.c.ok("tick") // the first of a day does more
	return m
}

func (m *multitude) nothingStarted(t testing.TB) {
	t.Helper()
	if runs, err := os.ReadDir(paths.Dir(m.c.data).Runs()); len(runs) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tick has started something: %d runs, %v", len(runs), err)
	}
}

// TestManyRoutines: what the commands say of many routines whose slots were all answered.
func TestManyRoutines(t *testing.T) {
	t.Parallel()
	m := newMultitude(t, 300)
	for args, right := range m.routineCommands() {
		var errOut strings.Builder
		cmd := m.c.cmd(strings.Fields(args)...)
		cmd.Stderr = &errOut
		out, err := cmd.Output()
		if err != nil || errOut.Len() > 0 || !right(string(out)) {
			t.Errorf("%s: %v, %d bytes, %d lines\n%.2000s%.2000s", args, err, len(out), strings.Count(string(out), "\n"), errOut.String(), out)
		}
	}
	m.nothingStarted(t)
}

// BenchmarkRoutines measures the same commands over 10,000 routines. The first iteration warms the page cache, and
// makes the cache of the job files.
func BenchmarkRoutines(b *testing.B) {
	m := newMultitude(b, 10_000)
	for args, right := range m.routineCommands() {
		b.Run(args, func(b *testing.B) {
			memory := int64(0)
			for b.Loop() {
				cmd := m.c.cmd(strings.Fields(args)...)
				out, err := cmd.Output()
				if err != nil || !right(string(out)) {
					b.Fatalf("%v, %d bytes", err, len(out))
				}
				memory = max(memory, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
			}
			b.ReportMetric(float64(memory>>10), "MiB")
		})
	}
	m.nothingStarted(b)
}

// multitude is a data directory of many routines: half of them daily, others hourly, on workdays, weekly, monthly or on leap days; a third
// in a zone of its own, a tenth disabled.
type multitude struct {
	c       *command
	list    []slot.Schedule
	enabled int
	slots   int // that were answered in the last seven days
}

func (m *multitude) invent(n int) {
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

// answer notes the schedules as they were eight days ago, and an answer for each slot of the last seven days and the next ten minutes.
func (m *multitude) answer() {
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
		if err := store.AppendJSON(book.Home.Schedules(), store.Buffered, s); err != nil {
			m.c.t.Fatal(err)
		}
		for at := range forecast.Expected([]slot.Schedule{s}, zone, now.AddDate(0, 0, -7), now.Add(10*time.Minute)) {
			if err := book.Claim(slot.Claim{Job: s.Job, Slot: at, Outcome: "ok"}); err != nil {
				m.c.t.Fatal(err)
			}
			m.slots++
		}
	}
}
