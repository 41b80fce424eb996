// Package installer converts routines into the input of a scheduler: a block for a crontab, systemd units, Kubernetes
// CronJobs. The same jobs on the same host give the same text, byte for byte, so that installed entries can be compared with
// expected ones.
//
// No scheduler here decides whether a routine runs. Each only calls `ollim fire --scheduled`, which knows the slots, so a
// scheduler that calls too often, late, or beside another one does no harm. Every scheduler also calls `ollim tick` each
// minute, which fires the routines that the scheduler cannot express; these are returned as Left, to be reported.
//
// Routines that are disabled or never fire are in no file. Texts that would need quoting are quoted where the format has
// rules for it that hold everywhere, and refused where it has not.
package installer

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/job"
)

// Host is where the jobs are to be fired.
type Host struct {
	Ollim      string         // the program, an absolute path
	DataDir    string         // an absolute path
	Config     string         // of the settings, an absolute path; "" are those of the data directory
	Zone       *time.Location // in which the scheduler reads a time that names no zone
	Configured *time.Location // of jobs without a zone of their own
	User       string         // who runs the jobs; only for System
	System     bool           // systemd: the machine's manager, not the user's own
	TickOnly   bool           // nothing but the tick, which fires everything
	Ticked     bool           // crontab: a line of the owner's runs the tick, so the block needs none
	Kept       []string       // crontab: lines that stay, see Unknown
}

// Left is a routine that the scheduler cannot express, so that the tick has to fire it.
type Left struct {
	Job job.Job
	Why string // one clause, such as "its zone Asia/Tokyo is not that of cron (Europe/Paris)"
}

// File is one file to be installed.
type File struct {
	Name string // without a directory
	Text string
}

// ErrUnfit is a path, name or id that the format cannot carry.
var ErrUnfit = errors.New("cannot be expressed there")

// routines are the jobs that fire by the clock, by id. It refuses paths in which unfit finds fault.
func (h Host) routines(jobs []job.Job, unfit func(string) (why string)) (found []job.Job, err error) {
	if err := h.checkPaths(unfit); err != nil || h.TickOnly {
		return nil, err
	}
	for _, j := range jobs {
		if j.Kind != job.Routine || !j.Enabled || j.Schedule.Never() {
			continue
		}
		if !plaintext.IsID(j.ID) { // no job file has such an id: what follows relies on it
			return nil, fmt.Errorf("id %q: %w", j.ID, ErrUnfit)
		}
		found = append(found, j)
	}
	slices.SortStableFunc(found, func(a, b job.Job) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// write writes the routines with do, and returns those that it could not write, with the reason that do gave.
func (h Host) write(jobs []job.Job, unfit func(string) (why string), do func(job.Job) (why string)) (left []Left, err error) {
	routines, err := h.routines(jobs, unfit)
	for _, j := range routines {
		if why := do(j); why != "" {
			left = append(left, Left{j, why})
		}
	}
	return left, err
}

// foreignZone is the zone that a routine's times have to name on this host; "" when they are in the scheduler's own.
func (h Host) foreignZone(j job.Job) string {
	own, host := j.Zone(h.Configured).String(), h.Zone.String()
	if SameZone(own, host) {
		return ""
	}
	return own
}

// SameZone reports whether two names mean one zone, as far as it matters here.
func SameZone(a, b string) bool { return a == b || isUTC(a) && isUTC(b) }

// isUTC knows the two names that systems write down by themselves.
func isUTC(zone string) bool { return zone == "UTC" || zone == "Etc/UTC" }

func fiveFields(j job.Job) (fields, why string) {
	fields, ok := j.Schedule.Crontab()
	if !ok {
		return "", "both day fields must match, which not every cron supports"
	}
	return fields, ""
}

// command is how a scheduler calls us. The directory is named even if it is the usual one, because the environment there is
// not that of the owner's shell.
func (h Host) command(verb ...string) []string {
	args := []string{h.Ollim, "--data-dir", h.DataDir}
	if h.Config != "" && h.Config != paths.Dir(h.DataDir).Config() {
		args = append(args, "--config", h.Config)
	}
	return append(args, verb...)
}

func (h Host) fire(id string) []string { return h.command("fire", "--scheduled", "--", id) }

func (h Host) tick(flags ...string) []string { return h.command(append([]string{"tick"}, flags...)...) }

// checkPaths refuses paths that are relative, or in which unfit finds fault.
func (h Host) checkPaths(unfit func(string) (why string)) error {
	paths := []string{h.Ollim, h.DataDir}
	if h.Config != "" {
		paths = append(paths, h.Config)
	}
	for _, path := range paths {
		why := unfit(path)
		if !filepath.IsAbs(path) {
			why = "not an absolute path"
		}
		if why != "" {
			return fmt.Errorf("%q: %w: %s", path, ErrUnfit, why)
		}
	}
	return nil
}

// unprintable finds fault with what not even quotes make safe.
func unprintable(text string) (why string) {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "an unprintable character"
	}
	return ""
}

// unquoted finds fault with what is not one plain word to every shell, from sh to csh and fish, and to cron.
func unquoted(text string) (why string) {
	if !plaintext.IsWord(text, "._-/=@:,+") {
		return "only letters, digits and . _ - / = @ : , + are safe in every shell"
	}
	return ""
}

// labelLimit is the longest description that is shown, in characters.
const labelLimit = 80

// label is a job's description on one line, without anything that a terminal or a parser acts on.
func label(j job.Job) string {
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, j.Label())
	if first, more := plaintext.First(text, labelLimit); more {
		return first + "..."
	}
	return text
}

// CallOf returns the program that an entry, as Crontab or Systemd makes it, calls and the data directory that it is for; "" if it is
// none of ours. A user has one crontab and one directory of units, and maybe two data directories.
func CallOf(entry string) (program, dataDir string) {
	for line := range strings.Lines(entry) {
		before, rest, found := strings.Cut(line, " --data-dir ")
		if !found || strings.HasPrefix(line, "Description=") { // which may say anything
			continue
		}
		program = before[strings.LastIndexByte(before, ' ')+1:]
		if word, ok := strings.CutPrefix(before, "ExecStart="); ok {
			program = readWord(word)
		}
		return program, readWord(rest)
	}
	return "", ""
}
