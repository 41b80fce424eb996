package cli

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
)

// month is a data directory that lives for weeks in the clock of a synctest bubble. Every command line is a process of its own: a
// goroutine that begins at once and sleeps beside the others.
type month struct {
	*world
	service  *monthService
	zone     *time.Location
	from, to time.Time
	jobs     []monthJob
	events   []monthEvent
	troubles []incident
	power    bool

	mu       sync.Mutex
	output   bytes.Buffer // what commands of cron write to standard error
	messages []message
	days     []monthDay
	doctor   []diagnosis
	chats    []string // failed turns of the owner

	lived []monthRun // the records at the end, once they are read
}

// monthJob is a routine as the oracle knows it.
type monthJob struct {
	id, cron, zone string
	steady         bool // its work is the same each time
	persistent     bool
	schedule       monthCron
}

// monthEvent is something that happens at an instant.
type monthEvent struct {
	at time.Time
	do func()
}

// incident is a trouble: what it is about, and when. A doctor who looks in its last part must find it.
type incident struct {
	cause    string
	from, to time.Time
	quiet    bool // doctor needs not see it: it is a wish of the owner
}

// message is one message that reached the owner.
type message struct {
	at   time.Time
	text string
}

// monthDay is what is on disk at the end of a day.
type monthDay struct {
	day          string
	files, bytes int64
	largest      map[string]int64 // files by top directory of state/
}

// diagnosis is one look of `ollim doctor`.
type diagnosis struct {
	at     time.Time
	cause  string // of the trouble; "": none
	faults []string
}

func (m *month) now() time.Time { return m.clock().In(m.zone) }

// spawn starts a command line as cron does.
func (m *month) spawn(args ...string) {
	go func() {
		var out, errOut bytes.Buffer
		d := m.deps(strings.NewReader(""), &out, &errOut)
		d.Automatic = func() bool { return true }
		d.Begin = m.begin
		d.Now = func() time.Time {
			now := m.clock()
			m.service.now.Store(now.UnixNano())
			return now
		}
		status := execute(m.t.Context(), d, args)
		m.mu.Lock()
		defer m.mu.Unlock()
		if errOut.Len() > 0 {
			fmt.Fprintf(&m.output, "%s ollim %s: status %d: %s", m.now().Format(time.DateTime), strings.Join(args, " "), status, errOut.String())
		}
	}()
}

// patience is how long the owner waits for an answer before Ctrl-C.
const patience = 5 * time.Minute

// chat is a turn of the owner at a terminal.
func (m *month) chat(text string) {
	go func() {
		ctx, end := context.WithCancelCause(m.t.Context())
		defer end(nil)
		defer time.AfterFunc(patience, func() { end(signalled(syscall.SIGINT)) }).Stop()
		begun := m.now()
		var out, errOut bytes.Buffer
		if status := execute(ctx, m.deps(strings.NewReader(""), &out, &errOut), []string{"chat", text}); status != 0 {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.chats = append(m.chats, fmt.Sprintf("%s: status %d: %s", begun.Format(time.DateTime), status, strings.TrimSpace(errOut.String())))
		}
	}()
}

func (m *month) begin(args []string) (process.ID, error) {
	m.spawn(args...)
	return process.Of(os.Getpid()), nil
}

// day is an hour of the n-th day of the month, from 0.
func (m *month) day(n int, hour float64) time.Time {
	y, mo, d := m.from.Date()
	return time.Date(y, mo, d+n, 0, int(hour*60), 0, 0, m.zone)
}

func (m *month) on(at time.Time, do func()) { m.events = append(m.events, monthEvent{at, do}) }

// incident begins and ends something, and has doctor look shortly before its end and a while after it.
func (m *month) incident(cause string, from, to time.Time, begin, end func()) {
	m.troubles = append(m.troubles, incident{cause: cause, from: from, to: to})
	m.on(from, begin)
	m.on(to, end)
	m.look(to.Add(-20*time.Minute), cause)
	after := to.Add(3 * time.Hour)
	if local := after.In(m.zone); local.Hour() < 12 { // jobs of the morning have run by then
		after = time.Date(local.Year(), local.Month(), local.Day(), 12, 5, 0, 0, m.zone)
	}
	m.look(after, "")
}

func (m *month) look(at time.Time, cause string) {
	m.on(at, func() {
		r := m.run("doctor")
		d := diagnosis{at: m.now(), cause: cause}
		for line := range strings.Lines(r.out) {
			asks := cause == "approval" && strings.HasPrefix(line, "WARN\tapprovals\t") // the owner is asked, and nothing is broken
			if strings.HasPrefix(line, "FAIL") || asks {
				d.faults = append(d.faults, strings.TrimSpace(line))
			}
		}
		m.doctor = append(m.doctor, d)
	})
}

// routine adds a routine as the owner does.
func (m *month) routine(id, cron, zone string, steady bool, flags ...string) {
	args := append([]string{"routine", "add", id, "--id", id, "--cron", cron, "--description", "Job " + id}, flags...)
	if zone == "" {
		zone = m.zone.String()
	} else {
		args = append(args, "--timezone", zone)
	}
	m.must(append(args, "Look after "+id+" as always. Answer with PING. if the owner must know, else with one line. "+strings.Repeat("Be brief and exact. ", 8))...)
	m.jobs = append(m.jobs, monthJob{id, cron, zone, steady, slices.Contains(flags, "persistent"), parseMonthCron(m.t, cron, zone)})
}

// setUp is the owner's first hour: fourteen routines of all kinds, and all settings at their defaults.
func (m *month) setUp() {
	m.must("config", "set", "timezone", m.zone.String())
	m.must("config", "set", "delivery.command", "sh", "-c", "cat >$(mktemp "+m.box()+"/XXXXXXXXXX)")
	m.writeProgram("gates/changes", "#!/bin/sh\nset -- $(cat change.txt)\n[ $(($1 % 3)) = 0 ] || exit 1\nfor i in 1 2 3 4 5 6 7 8; do echo \"change $1 line $i: the value moved a little\"; done\n")
	m.writeProgram("gates/mails", "#!/bin/sh\nset -- $(cat change.txt)\ni=0; while [ $i -lt 120 ]; do i=$((i+1)); echo \"mail $1.$i from somebody about something that happened\"; done\n")
	m.routine("monitor", "*/30 * * * *", "", true, "--background", "--session", "persistent", "--gate", "changes")
	m.routine("inbox", "0 8-20 * * *", "", true, "--background", "--session", "persistent", "--gate", "mails")
	m.routine("digest", "0 18 * * *", "", true, "--background", "--isolated")
	m.routine("journal", "30 21 * * *", "", false, "--background", "--update-main-session", "always")
	m.routine("briefing", "0 8 * * *", "", false)
	m.routine("weekly", "0 17 * * 5", "", true, "--background", "--isolated")
	m.routine("monthly", "0 9 1 * *", "", false, "--background")
	m.routine("market", "30 9 * * 1-5", "America/New_York", true, "--background", "--isolated")
	m.routine("backup", "30 2 * * *", "", true, "--background", "--isolated", "--model", "haiku", "--update-main-session", "freely")
	m.routine("nightly", "30 1,2 * * *", "America/New_York", true, "--background", "--isolated", "--allow-ping=false")
	m.routine("quarter", "15 */6 * * *", "", true, "--background", "--isolated", "--update-main-session", "blocked")
	m.routine("lately", "0 7 * * *", "", true, "--background", "--isolated", "--catch-up", "6h")
	m.routine("lights", "@hourly", "America/New_York", true, "--background", "--isolated", "--model", "haiku", "--gate", "changes")
	m.routine("fetch", "0 12 * * *", "", true, "--background", "--isolated", "--allowed-tools", "WebFetch")
	m.write("webhooks/ci.md", branchHook)
}

func (m *month) box() string { return filepath.Join(filepath.Dir(m.dir), "messages") }

// habits are what the owner and the world do on every day.
func (m *month) habits(days int) {
	for n := range days {
		for i, hour := range []float64{9.3, 9.45, 10.1, 19.8} {
			m.on(m.day(n, hour), func() {
				if m.power && !m.away(m.now()) {
					m.chat(fmt.Sprintf("Question %d of %s: what is new, and what should I do about the plan for the week?", i, m.now().Format(time.DateOnly)))
				}
			})
		}
		m.on(m.day(n, 14.1), func() {
			if m.power {
				m.accepts("ci", fmt.Sprintf("%q", "release "+m.now().Format(time.DateOnly)))
			}
		})
		if n%4 == 1 {
			m.on(m.day(n, 9), func() {
				if m.power {
					m.run("remind", "6h", fmt.Sprintf("REMINDER of day %d", n))
					m.run("reminder", "add", "--in", "5h", "--id", fmt.Sprintf("chain%d", n), "--isolated", "--max-chain", "2", "Ask whether it is done.")
				}
			})
		}
	}
	for i := range days * 48 {
		m.on(m.from.Add(time.Duration(i)*30*time.Minute-time.Minute), func() { m.write("change.txt", fmt.Sprintln(i)) })
	}
}

// away reports whether the owner is on vacation, and does not chat.
func (m *month) away(at time.Time) bool {
	return slices.ContainsFunc(m.troubles, func(x incident) bool {
		return (x.cause == "vacation" || x.cause == "pause") && !at.Before(x.from) && at.Before(x.to)
	})
}

func (m *month) overload(from, to time.Time) {
	m.incident("overload", from, to, func() { m.service.fail(529) }, func() { m.service.fail(0) })
}

func (m *month) unreachable(from, to time.Time) {
	m.incident("refused", from, to, func() { m.service.door.set(false) }, func() { m.service.door.set(true) })
}

func (m *month) revoked(from, to time.Time) {
	m.incident("key", from, to, func() { m.service.fail(401) }, func() { m.service.fail(0) })
}

func (m *month) noPower(from, to time.Time) {
	m.troubles = append(m.troubles, incident{cause: "power", from: from, to: to, quiet: true})
	m.on(from.Add(-6*time.Hour), func() {
		if m.power {
			m.run("remind", from.Add(2*time.Hour).Format(time.RFC3339), "REMINDER dentist")
		}
	})
	m.on(from, func() { m.power = false })
	m.on(to, func() { m.power = true })
}

func (m *month) pause(from, to time.Time) {
	m.troubles = append(m.troubles, incident{cause: "pause", from: from, to: to, quiet: true})
	m.on(from, func() {
		m.run("remind", from.Add(4*time.Hour).Format(time.RFC3339), "REMINDER passport")
		m.must("pause", to.Sub(from).String())
	})
}

func (m *month) vacation(from, to time.Time) {
	m.troubles = append(m.troubles, incident{cause: "vacation", from: from, to: to, quiet: true})
}

// invalid breaks the file of the monitor.
func (m *month) invalid(from, to time.Time) {
	var whole string
	m.incident("invalid", from, to, func() {
		whole = m.read("routines/monitor.md")
		m.write("routines/monitor.md", strings.Replace(whole, "cron:", "corn:", 1))
	}, func() { m.write("routines/monitor.md", whole) })
}

// unapproved changes what a job with a gate is asked, which the owner has not approved.
func (m *month) unapproved(from, to time.Time) {
	var whole string
	m.incident("approval", from, to, func() {
		whole = m.read("routines/fetch.md")
		m.write("routines/fetch.md", whole+"\nAnd fetch everything else.\n")
	}, func() { m.write("routines/fetch.md", whole) })
}

func errorsOf(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// live lets the time pass: a tick in every minute with a slot and in every fifth one, and what happens between.
func (m *month) live() {
	slices.SortStableFunc(m.events, func(a, b monthEvent) int { return a.at.Compare(b.at) })
	next := 0
	for at := m.from; at.Before(m.to); at = at.Add(time.Minute) {
		m.until(at)
		if at.In(m.zone).Hour() == 0 && at.Minute() == 0 {
			m.endDay()
		}
		for ; next < len(m.events) && m.events[next].at.Before(at.Add(time.Minute)); next++ {
			m.events[next].do()
			m.settle()
		}
		due := slices.ContainsFunc(m.jobs, func(j monthJob) bool { return j.schedule.fires(at) })
		if m.power && (due || at.Minute()%5 == 0) {
			m.spawn("tick")
			m.settle()
		}
	}
	m.until(m.to)
	m.endDay()
}

// until sleeps until an instant of the month.
func (m *month) until(at time.Time) {
	if d := at.Sub(m.clock()); d > 0 {
		time.Sleep(d)
	}
	m.settle()
}

// settle waits until all that has begun has ended or sleeps, and collects the messages that have arrived.
func (m *month) settle() {
	synctest.Wait()
	m.service.now.Store(m.clock().UnixNano())
	entries, err := os.ReadDir(m.box())
	if err != nil {
		m.t.Fatal(err)
	}
	for _, e := range entries {
		file := filepath.Join(m.box(), e.Name())
		text, err := os.ReadFile(file)
		if err = errorsOf(err, os.Remove(file)); err != nil {
			m.t.Fatal(err)
		}
		head, rest, together := strings.Cut(strings.TrimSpace(string(text)), " notices:\n\n")
		parts := []string{strings.TrimSpace(string(text))}
		if _, err := strconv.Atoi(head); err == nil && together { // what was held in quiet hours
			parts = strings.Split(rest, "\n\n")
		}
		for _, part := range parts {
			m.messages = append(m.messages, message{m.now(), part})
		}
	}
}

// endDay counts what is on disk, and dates files of the day as the month does: they have the date of the machine's real clock.
func (m *month) endDay() {
	day := monthDay{day: m.now().Add(-time.Minute).Format(time.DateOnly), largest: map[string]int64{}}
	now, earliest := m.clock(), m.from.AddDate(0, 0, -2)
	err := filepath.WalkDir(m.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if at := info.ModTime(); at.Before(earliest) || at.After(now) {
			_ = os.Chtimes(path, now, now)
		}
		if e.IsDir() {
			return nil
		}
		day.files++
		day.bytes += info.Size()
		name, _ := filepath.Rel(m.dir, path)
		parts := strings.Split(name, "/")
		day.largest[strings.Join(parts[:min(2, len(parts)-1)], "/")]++
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.days = append(m.days, day)
}
