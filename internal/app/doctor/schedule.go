package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// runs looks for runs whose process died. ollim tick ends them within minutes; this check reports those that remain.
func (e *examination) runs(context.Context) string {
	since := e.App.Now().Add(-lately)
	unfinished, _, openErr := e.home.Runs.Unfinished(since)
	for _, r := range unfinished {
		e.cutOff(r)
	}
	e.unreadableRuns()
	all, err := e.home.Runs.Tally(e.home.Runs.Midnight(since))
	if err = errors.Join(openErr, err); err != nil {
		e.fault(err, "")
		return ""
	}
	number, last := 0, map[string]runlog.Brief{}
	for _, t := range all.Tallies {
		for _, id := range t.Interrupted {
			e.left(id, t.Newest.Name)
		}
		number += t.Runs
		if last[t.Newest.Name].Started.Before(t.Newest.Started) {
			last[t.Newest.Name] = t.Newest
		}
	}
	for _, name := range slices.Sorted(maps.Keys(last)) {
		if r := last[name]; len(r.Refused) > 0 {
			e.warn("if it needs that, add it to its file; see ollim-seal(7)", "%s: in run %s a command failed: %s", name, r.ID, strings.Join(r.Refused, "; "))
		}
	}
	return plaintext.Count(number, "run") + " since yesterday"
}

// unreadableRuns names the runs whose records cannot be read. Lists and sums leave them out.
func (e *examination) unreadableRuns() {
	unreadable, _ := e.home.Runs.Unreadable(time.Time{}) // the check "growth" reports the error
	for _, err := range unreadable {
		remedy := "make it readable: chmod -R u+rwX "
		var path string
		if damaged := (*runlog.Damaged)(nil); errors.As(err, &damaged) {
			remedy, path = "restore it, or remove its directory: rm -r ", damaged.Path
		} else if closed := (*fs.PathError)(nil); errors.As(err, &closed) {
			path = closed.Path
		}
		e.fault(err, remedy+filepath.Dir(path))
	}
}

// cutOff warns of a run whose process died, if ticks have had time to end it.
func (e *examination) cutOff(r runlog.Record) {
	const settle = 2 * time.Minute
	switch {
	case e.home.Runs.Attended(r), e.App.Now().Sub(r.Started) < settle, r.Kind == string(job.Webhook) && e.home.Inbox.Waits(r.ID):
	case e.home.Runs.Alive(r):
		e.warn("ollim stop "+r.ID, "the ollim process of run %s of %s died, but its engine is still running", r.ID, r.Name)
	default:
		e.warn("ollim tick", "the process of run %s of %s died, and its record is incomplete", r.ID, r.Name)
	}
}

// left looks for processes of a run whose ollim was killed. It reports only processes with the variable that the run gave them, because
// nothing else proves whose they are.
func (e *examination) left(run, name string) {
	for _, p := range e.home.Runs.Left(run) {
		e.warn("kill "+strconv.Itoa(p.PID), "process %d (%s) is left of run %s of %s", p.PID, p.Name(), run, name)
	}
}

const readWrite = 4 | 2 // of access(2)

// hungAfter is how long a lock of a data file may be held. The work under it takes milliseconds, and seconds where the disk is busy.
const hungAfter = 10 * time.Second

// locks checks that locks work, and looks for locks that are held although their holder should have released them.
func (e *examination) locks(ctx context.Context) string {
	e.working()
	e.reaching()
	entries, err := store.List(e.home.Dir.Locks())
	if err != nil {
		e.fault(err, "")
	}
	held := 0
	for _, entry := range entries {
		name, isLock := strings.CutSuffix(entry.Name(), lock.Ext)
		path := filepath.Join(e.home.Dir.Locks(), entry.Name())
		switch info, err := os.Lstat(path); {
		case !isLock || err != nil:
			continue
		case !info.Mode().IsRegular():
			e.fail("remove it", "%s is not a file", path)
			continue
		case lock.Free(path), syscall.Access(path, readWrite) != nil: // what cannot be opened is no evidence of a holder
			continue
		}
		held++
		switch {
		case strings.HasPrefix(name, "job-"), strings.HasPrefix(name, "session-"):
			if left := e.home.Runs.Leftover(path); left != nil {
				e.fail("kill "+strconv.Itoa(left.Process.PID), "%s: %v", path, left)
			}
		case slices.Contains([]string{"tick", "discord", "inbox"}, name), strings.HasPrefix(name, "door_"): // held by a service, or for as long as its work takes
		case e.hung(ctx, path):
			e.fail("end the process: fuser "+path, "%s was held for %s", path, hungAfter)
		}
	}
	return plaintext.Count(held, "lock") + " held"
}

// hung reports whether a lock stays held.
func (e *examination) hung(ctx context.Context, path string) bool {
	const step = 50 * time.Millisecond
	for waited := time.Duration(0); waited < hungAfter; waited += step {
		if lock.Free(path) || e.App.Sleep(ctx, step) != nil {
			return false
		}
	}
	return true
}

// working takes a lock and checks that it excludes others.
func (e *examination) working() {
	path := e.home.Dir.Lock("doctor")
	guard, err := lock.TryGuard(path)
	if errors.Is(err, lock.ErrBusy) { // another doctor is running
		return
	}
	if err != nil {
		e.fault(err, "")
		return
	}
	if lock.Free(path) {
		e.fail("move the data directory to a local file system", "locks have no effect in %s", e.home.Dir.Locks())
	}
	e.fault(guard.Delete(), "")
}

// reaching looks at the file system of the data directory, where locks may not exclude other machines.
func (e *examination) reaching() {
	read := e.Probe.Mounts
	if read == nil {
		read = func() ([]byte, error) { return os.ReadFile("/proc/self/mountinfo") }
	}
	data, err := read()
	if err != nil {
		return // there is no /proc
	}
	dir, err := filepath.EvalSymlinks(string(e.home.Dir))
	if err != nil {
		return
	}
	if why := remote(mountOf(data, dir)); why != "" {
		e.warn("use the data directory on one machine only, or move it to a local file system", "the file system of %s %s", dir, why)
	}
}

// Entries describes ollim's entries in a scheduler.
type Entries struct {
	Installed bool
	Programs  []string // that they call
	Changes   int      // what `ollim schedule install` would change
	Other     string   // the data directory whose entries are there instead
	Unseen    string   // why the installed entries could not be compared
	Flags     string   // what `ollim schedule install` needs besides the scheduler's name
}

const crontab, kubernetes = "crontab", "kubernetes"

// Schedulers lists the schedulers of a machine, as `ollim schedule install` names them.
func Schedulers() []string { return []string{crontab, "systemd", "systemd --system"} }

// Scheduler names the scheduler that has entries of this data directory; current says whether they must be the present ones. "" is none. A
// cluster is not asked: what was installed there counts.
func (d Doctor) Scheduler(ctx context.Context, current bool) string {
	for _, name := range Schedulers() {
		if found, err := d.Entries(ctx, name); err == nil && found.Installed && (!current || found.Changes == 0) {
			return name
		}
	}
	if clusters, err := d.clusters(); err == nil && len(clusters) > 0 {
		return clusters[0]
	}
	return ""
}

func (d Doctor) clusters() ([]string, error) {
	if d.Clusters == nil {
		return nil, nil
	}
	return d.Clusters()
}

// Stalled returns why nothing runs `ollim tick`, if that is known, and the remedy. It is for an installation in which no tick was seen
// lately.
func (d Doctor) Stalled(ctx context.Context) (why, remedy string) {
	switch name := d.Scheduler(ctx, false); {
	case name == "":
		return "no schedule is installed", "ollim schedule install crontab, or systemd"
	case name == crontab:
		if start := d.App.CronStopped(); start != "" {
			return "no cron daemon is running", start
		}
		return "", "wait a minute; then look for the error of `ollim tick` in the log of cron, or in your mail"
	case strings.HasPrefix(name, kubernetes):
		return "", "wait a minute; then see: kubectl get cronjobs,jobs,pods --selector=app.kubernetes.io/name=ollim"
	default:
		manager := "systemctl --user"
		if strings.HasSuffix(name, "--system") {
			manager = "systemctl"
		}
		return "", "wait a minute; then see: " + manager + " list-timers 'ollim*'"
	}
}

// entries compares the installed entries with the routines. Missing entries are not a fault: any program may run `ollim tick`, see tick.
func (e *examination) entries(ctx context.Context) string {
	clusters, err := e.clusters()
	e.fault(err, "remove it, and install the entries again")
	var installed []string
	for _, scheduler := range slices.Concat(Schedulers(), clusters) {
		if e.entriesIn(ctx, scheduler) {
			installed = append(installed, scheduler)
		}
	}
	if len(installed) == 0 {
		return "none installed"
	}
	return "current in " + strings.Join(installed, ", ")
}

// entriesIn compares the entries in one scheduler, and reports whether any are installed.
func (e *examination) entriesIn(ctx context.Context, scheduler string) bool {
	found, err := e.Entries(ctx, scheduler)
	remedy := "ollim schedule install " + scheduler + found.Flags
	if faults := (yamldoc.Faults)(nil); errors.As(err, &faults) {
		e.warn("ollim check", "%s: not compared, because job files are invalid", scheduler)
	} else {
		e.fault(err, "")
	}
	if found.Other != "" {
		e.warn("ollim --data-dir '"+found.Other+"' schedule remove "+scheduler, "%s has the entries of another data directory, %s", scheduler, found.Other)
	}
	before := len(e.list)
	for _, program := range found.Programs {
		if _, err := os.Stat(program); found.Installed && err != nil {
			e.fail(remedy, "%s: its entries call %s, which does not exist", scheduler, program)
		}
	}
	switch {
	case found.Unseen != "":
		e.warn("where kubectl reaches the cluster, run: ollim schedule diff "+scheduler+found.Flags, "%s: not compared: %s", scheduler, found.Unseen)
	case found.Installed && found.Changes > 0 && len(e.list) == before:
		e.warn(remedy, "%s: its entries are not current: %s", scheduler, plaintext.Count(found.Changes, "change"))
	}
	return found.Installed
}

// tick checks that something runs `ollim tick` each minute, on which everything that is automatic depends.
func (e *examination) tick(ctx context.Context) string {
	if paused, until, err := e.home.Spend.Paused(); err != nil {
		e.fail("ollim resume", "%v", err)
	} else if paused {
		ending := ""
		if !until.IsZero() {
			ending = " until " + e.clockText(until)
		}
		e.warn("ollim resume", "automatic runs are paused%s", ending)
	}
	seen, coming, err := tick.Coming(e.home.Dir, e.App.Now())
	report := e.fail
	if len(e.enabled()) == 0 {
		report = e.warn // there is nothing to fire
	}
	text := "ollim tick was never seen"
	switch {
	case err != nil:
		e.fault(err, "remove it")
		return ""
	case coming:
		return "seen in the last minutes"
	case !seen.IsZero():
		text = fmt.Sprintf("ollim tick was last seen %s ago, at %s", e.App.Now().Sub(seen).Round(time.Minute), e.clockText(seen))
	}
	why, remedy := e.Stalled(ctx)
	if why != "" {
		text += ": " + why
	}
	report(remedy, "%s", text)
	return ""
}

func (e *examination) clockText(at time.Time) string {
	return at.In(e.home.Config.Zone).Format(time.RFC3339)
}

// lately is how far back the checks look at what has happened.
const lately = 24 * time.Hour

// slots looks for scheduled times that no run answered.
func (e *examination) slots(context.Context) string {
	answers, err := e.home.Audit(e.App.Now().Add(-lately))
	e.fault(err, "")
	numbers, reasons := map[string]int{}, map[string]int{}
	for _, a := range answers {
		numbers[a.Outcome]++
		if a.Outcome == slot.Missed {
			reasons[a.Why]++
		}
	}
	const remedy = "ollim schedule audit --since 1d"
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		e.warn(remedy, "%s missed in the last day: %s", plaintext.Count(reasons[why], "slot"), why)
	}
	if n := numbers[forecast.Unaccounted]; n > 0 {
		e.fail(remedy, "%s unaccounted for in the last day", plaintext.Count(n, "slot"))
	}
	return plaintext.Count(len(answers), "slot") + " in the last day"
}

// spending looks at limits that keep automatic runs from starting.
func (e *examination) spending(context.Context) string {
	totals, err := e.home.Spend.Totals()
	if err != nil {
		e.fault(err, "")
		return ""
	}
	const remedy = "wait, or raise it: ollim config set spend."
	limits := totals.Limits
	if limits.PerRun == 0 {
		e.fail("ollim config set spend.per-run 1.00", "no automatic run may start: spend.per-run is 0")
	}
	if totals.Today.Spent >= limits.PerDay {
		e.warn(remedy+"per-day", "no automatic run starts today: $%.2f of $%.2f are spent", totals.Today.Spent, limits.PerDay)
	}
	if totals.Month.Spent >= limits.PerMonth {
		e.warn(remedy+"per-month", "no automatic run starts this month: $%.2f of $%.2f are spent", totals.Month.Spent, limits.PerMonth)
	}
	if totals.Runs >= limits.RunsPerDay {
		e.warn(remedy+"runs-per-day", "no automatic run starts today: there were %d of %d", totals.Runs, limits.RunsPerDay)
	}
	return "below the limits"
}
