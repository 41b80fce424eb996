// Package crontabimport finds the lines of a crontab that run Claude Code without a terminal (claude -p). It returns
// the equivalent routine and a list of the differences. It reads text only: it opens no file and runs nothing.
//
// A line is read as cron reads it: variables hold from their line on, the first % that is not quoted by a backslash
// ends the command, and the rest is its input. The command is read as a shell would read it, also after cd, timeout,
// nice, env and the like, and within sh -c. Its other commands are reported, never converted: a routine runs no shell.
package crontabimport

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/job"
)

// Errors of lines that cannot become a routine.
var (
	errUnclear  = errors.New("it seems to run claude -p, but cannot be parsed")
	errSeveral  = errors.New("it runs claude more than once: make it one prompt")
	errNoPrompt = errors.New("its prompt is not in the line")
)

// Found is a line that runs claude.
type Found struct {
	Line int      // from 1
	Job  job.Job  // a routine without an id, if Err is nil
	Lost []string // differences between the routine and the line, one sentence each; empty without a routine
	Err  error    // why there is no routine: one of those above, an error that cron would report, or a fault of the job file
}

// Find reads a crontab.
func Find(crontab string) (list []Found) {
	for _, e := range entries(crontab) {
		r, err := e.call()
		if r == nil && err == nil {
			continue
		}
		f := Found{Line: e.line, Err: err}
		if _, err := cron.Parse(e.cron); err != nil {
			f.Err = err
		}
		if f.Err == nil {
			f.Job, f.Err = r.routine()
		}
		if f.Err == nil {
			f.Lost = r.lost
		}
		list = append(list, f)
	}
	return list
}

// routine returns the call as a job that a job file can hold.
func (r *reading) routine() (job.Job, error) {
	j := r.job
	j.Cron, j.Background, j.Isolated = r.entry.cron, true, j.Session == ""
	if zone := r.entry.vars["CRON_TZ"]; zone != "" {
		j.Timezone = zone
		if _, err := time.LoadLocation(zone); err != nil || zone == "Local" {
			j.Timezone = ""
			r.lose("CRON_TZ=%s is not a zone", zone)
		}
	}
	j.Body = strings.Join(slices.DeleteFunc([]string{r.system, r.prompt, r.input}, blank), "\n\n")
	if blank(r.prompt) && blank(r.input) {
		return j, fmt.Errorf("%w%s: ollim routine add --cron '%s' --background --isolated - reads one", errNoPrompt, r.source, j.Cron)
	}
	j.Description = describe(r.prompt + "\n" + r.input)
	if r.filled {
		j.Enabled = false
		r.lose("the shell inserts a part of the prompt: write it out, then remove enabled: false")
	}
	r.allow(&j)
	r.leaveVariables()
	return checked(j)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// checked returns the job as read back from its file.
func checked(j job.Job) (job.Job, error) {
	j.ID = "id"
	text, err := job.Format(j)
	if err != nil {
		return j, err
	}
	j, err = job.Parse(job.Routine, "routine", text)
	var faults yamldoc.Faults
	if errors.As(err, &faults) {
		return j, fmt.Errorf("it cannot be written as a job file: %s: %s", faults[0].Key, faults[0].Reason)
	}
	j.ID = ""
	return j, err
}

// describe returns a description made of the first words of a prompt.
func describe(prompt string) string {
	const most = 60 // characters
	line, _, _ := strings.Cut(strings.TrimLeft(prompt, " \t\r\n#"), "\n")
	words := strings.Join(strings.Fields(line), " ")
	text, more := plaintext.First(words, most)
	if space := strings.LastIndexByte(text, ' '); more && space > 0 && words[len(text)] != ' ' { // else it is one long word
		text = text[:space]
	}
	return strings.TrimRight(text, " .,:;")
}
