package installer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
)

// Units is the units of ours in one manager's directory.
type Units struct {
	Dir    string   // of the unit files
	Stamps string   // where the manager keeps when timers fired last
	System bool     // the machine's manager, not the user's own
	Env    []string // of systemctl
}

var (
	// ErrForeign is a file of our name that we did not write, or that was changed since.
	ErrForeign = errors.New("not as ollim wrote it")
	// ErrManager is a systemctl that failed.
	ErrManager = errors.New("systemctl")
)

// Change is what has to be done to one file.
type Change struct {
	Name string `json:"name"`
	What string `json:"what"` // add, change, remove, start
}

// The changes.
const (
	Add        = "add"
	modifyUnit = "change"
	Drop       = "remove"
	enableUnit = "start" // the file is as it should be, but the manager does not run the timer
)

// Compare says what has to be done for the directory to hold these files of ours and no others, by name. ErrForeign names files
// that are in the way.
func (u Units) Compare(want []File) ([]Change, error) {
	have, err := u.installed()
	if err != nil {
		return nil, err
	}
	wanted := texts(want)
	all := maps.Clone(wanted)
	maps.Copy(all, have)
	var changes []Change
	var foreign []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		old, exists := have[name]
		text, needed := wanted[name]
		ours, intact := isMarked(old)
		switch {
		case !exists:
			changes = append(changes, Change{name, Add})
		case !needed && !ours:
		case !intact:
			foreign = append(foreign, name)
		case !needed:
			changes = append(changes, Change{name, Drop})
		case old != text:
			changes = append(changes, Change{name, modifyUnit})
		}
	}
	if len(foreign) > 0 {
		return changes, fmt.Errorf("%s: %w", strings.Join(foreign, ", "), ErrForeign)
	}
	return changes, nil
}

// Unknown returns the installed units of ours for jobs that are none of these.
func (u Units) Unknown(jobs []job.Job) (files []File, err error) {
	have, err := u.installed()
	for _, name := range slices.Sorted(maps.Keys(have)) {
		id, ours := strings.CutPrefix(name, jobPrefix)
		if ours, intact := isMarked(have[name]); !ours || !intact {
			continue
		}
		known := slices.ContainsFunc(jobs, func(j job.Job) bool { return id == j.ID+".service" || id == j.ID+".timer" })
		if ours && !known {
			files = append(files, File{name, have[name]})
		}
	}
	return files, err
}

func texts(files []File) map[string]string {
	texts := make(map[string]string, len(files))
	for _, f := range files {
		texts[f.Name] = f.Text
	}
	return texts
}

// installed is the unit files with names like ours, by name.
func (u Units) installed() (map[string]string, error) {
	have := map[string]string{}
	entries, err := store.List(u.Dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if !strings.HasPrefix(e.Name(), "ollim-") || ext != ".service" && ext != ".timer" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(u.Dir, e.Name()))
		if err != nil {
			return nil, err
		}
		have[e.Name()] = string(text)
	}
	return have, nil
}

// Apply makes the directory hold these files of ours and no others, and has the manager take note, in the order in which no timer
// fires because of it: systemd fires a timer at once whose new times lie between its last one and now, unless it was stopped and
// its stamp is new. An empty list removes everything.
func (u Units) Apply(ctx context.Context, want []File, now time.Time) ([]Change, error) {
	changes, err := u.Compare(want)
	if err != nil {
		return changes, err
	}
	if len(changes) > 0 {
		if err := u.leave(ctx, changes); err != nil {
			return changes, err
		}
		if err := u.write(changes, want, now); err != nil {
			return changes, err
		}
	}
	return changes, u.enter(ctx, changes, want)
}

// leave stops the timers that change, and takes those away that go. It ends with a reload in any case, before a file is
// written: where no manager answers, nothing is changed.
func (u Units) leave(ctx context.Context, changes []Change) error {
	for _, step := range []struct {
		what string
		verb []string
	}{{modifyUnit, []string{"stop"}}, {Drop, []string{"disable", "--now"}}} {
		names := timers(changes, func(c Change) string { return when(c.What == step.what, c.Name) })
		if len(names) == 0 {
			continue
		}
		if err := u.systemctl(ctx, append(step.verb, names...)...); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if c.What != Drop {
			continue
		}
		if err := store.Remove(filepath.Join(u.Dir, c.Name)); err != nil {
			return err
		}
		_ = os.Remove(filepath.Join(u.Stamps, "stamp-"+c.Name)) // there is none for a service
	}
	return u.systemctl(ctx, "daemon-reload")
}

func (u Units) write(changes []Change, want []File, now time.Time) error {
	text := texts(want)
	if err := store.MkdirAll(u.Dir); err != nil {
		return err
	}
	for _, c := range changes {
		if c.What == Drop {
			continue
		}
		err := store.Replace(filepath.Join(u.Dir, c.Name), []byte(text[c.Name]))
		if err == nil && filepath.Ext(c.Name) == ".timer" {
			err = u.stamp(c.Name, now) // of a new one, too: an older one of its name may have left its own
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enter has the manager read what is new, and starts the timers: all of them, because one that an install wrote which was then
// cut short looks as it should. To those that run already it does nothing.
func (u Units) enter(ctx context.Context, changes []Change, want []File) error {
	start := timers(want, func(f File) string { return f.Name })
	if len(start) == 0 {
		return nil
	}
	if len(changes) > 0 {
		if err := u.systemctl(ctx, "daemon-reload"); err != nil {
			return err
		}
	}
	return u.systemctl(ctx, append([]string{"enable", "--now"}, start...)...)
}

// timers are the timers among the names of some items.
func timers[T any](items []T, name func(T) string) (names []string) {
	for _, item := range items {
		if n := name(item); filepath.Ext(n) == ".timer" {
			names = append(names, n)
		}
	}
	return names
}

// stamp tells the manager that a timer fired just now.
func (u Units) stamp(timer string, now time.Time) error {
	if err := os.MkdirAll(u.Stamps, 0o755); err != nil { //nolint:gosec // the manager's own directory has these
		return err
	}
	path := filepath.Join(u.Stamps, "stamp-"+timer)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // likewise
	if err == nil {
		err = errors.Join(f.Close(), os.Chtimes(path, now, now))
	}
	return err
}

// managerLimit bounds one call of systemctl.
const managerLimit = 2 * time.Minute

// maxSaid is how much of what systemctl says is read, in bytes: some hundred for each of a thousand timers.
const maxSaid = 1 << 20

func (u Units) systemctl(ctx context.Context, args ...string) error {
	_, err := u.ask(ctx, args...)
	return err
}

func (u Units) ask(ctx context.Context, args ...string) (said []byte, err error) {
	argv := []string{"systemctl"}
	if !u.System {
		argv = append(argv, "--user")
	}
	ctx, cancel := context.WithTimeout(ctx, managerLimit)
	defer cancel()
	r, err := process.Run(ctx, process.Call{Argv: append(argv, args...), Env: u.Env, Limit: maxSaid})
	if err == nil {
		err = r.Failure()
	}
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrManager, args[0], err)
	}
	return r.Out, nil
}

// Idle is the timers among the files that the manager would have to enable or start; none where no manager answers.
func (u Units) Idle(ctx context.Context, want []File) (idle []Change) {
	said, err := u.ask(ctx, append([]string{"show", "--property=Id,ActiveState,UnitFileState"}, timers(want, func(f File) string { return f.Name })...)...)
	if err != nil {
		return nil
	}
	for _, unit := range strings.Split(string(said), "\n\n") {
		lines := strings.Split(unit, "\n")
		i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Id=") })
		runs := slices.Contains(lines, "ActiveState=active") && slices.Contains(lines, "UnitFileState=enabled")
		if i >= 0 && !runs {
			idle = append(idle, Change{strings.TrimPrefix(lines[i], "Id="), enableUnit})
		}
	}
	return idle
}

// Start has the manager run a job as a unit of its own, and does not wait.
func (u Units) Start(ctx context.Context, id string) error {
	return u.systemctl(ctx, "start", "--no-block", instance(id))
}

// Calls returns the programs that the installed units of ours call, and the data directories that they are for, sorted; more than
// one of these only after a failure.
func (u Units) Calls() (programs, dataDirs []string, err error) {
	have, err := u.installed()
	for _, text := range have {
		if program, dir := CallOf(text); dir != "" && strings.HasPrefix(text, markPrefix) { // a timer has none
			programs, dataDirs = append(programs, program), append(dataDirs, dir)
		}
	}
	slices.Sort(programs)
	slices.Sort(dataDirs)
	return slices.Compact(programs), slices.Compact(dataDirs), err
}
