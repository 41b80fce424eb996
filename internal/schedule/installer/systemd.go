package installer

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/job"
)

// What units are called. The id of a job is the name's last part as it is: none of its characters has to be escaped.
const (
	jobPrefix    = "ollim-job-"
	firePrefix   = "ollim-fire@"
	failedPrefix = "ollim-failed@"
	tickName     = "ollim-tick"
)

// UnitsVariable is set to "user" for the tick that a timer of the user's own manager starts, which can start an instance for it. The
// machine's manager would refuse that to whom it is not root.
const UnitsVariable = "OLLIM_UNITS"

// Systemd is the units of a host, each marked, see isMarked: a service and a timer for each routine, a service to be
// instantiated by the tick, the tick with its timer, and the service that reports failures. The error, if any, is ErrUnfit.
func Systemd(h Host, jobs []job.Job) ([]File, error) {
	routines, err := h.routines(jobs, unprintable)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(h.Ollim, `"'\`) {
		return nil, fmt.Errorf("%q: %w: systemd does not support quotes and backslashes in the path of a program", h.Ollim, ErrUnfit)
	}
	if h.System && (h.User == "" || unquoted(h.User) != "") {
		return nil, fmt.Errorf("user %q: %w: system units need the name of a user", h.User, ErrUnfit)
	}
	var files []File
	add := func(name, text string) { files = append(files, File{name, markPrefix + digest(text) + "\n" + text}) }
	for _, j := range routines {
		add(jobPrefix+j.ID+".service", h.fireService(about(j), execLine(h.fire(j.ID))))
		add(jobPrefix+j.ID+".timer", routineTimer(about(j), j.Schedule.OnCalendar(h.foreignZone(j))))
	}
	add(firePrefix+".service", h.fireService("ollim: %i, started by the tick", execLine(h.command("fire", "--scheduled", "--"))+" %i"))
	add(failedPrefix+".service", h.failedService("ollim: report the failure of %i", execLine(h.command("schedule", "failed", "--"))+" %i"))
	add(tickName+".service", h.tickService("ollim: what is due this minute", execLine(h.tick())))
	add(tickName+".timer", tickTimer)
	return files, nil
}

// instance is the unit by which the tick has a job fired.
func instance(id string) string { return firePrefix + id + ".service" }

// JobOf is the id of the job that a unit is for, by the unit's full name; "" if it is for none.
func JobOf(unit string) string {
	suffix := path.Ext(unit) // the last one: an id may end in .timer, too
	if suffix != ".service" && suffix != ".timer" {
		return ""
	}
	for _, prefix := range []string{jobPrefix, firePrefix} {
		if id, found := strings.CutPrefix(strings.TrimSuffix(unit, suffix), prefix); found && plaintext.IsID(id) {
			return id
		}
	}
	return ""
}

// about is a routine in a Description=. The id ends it, because a backslash at the end would join the next line.
func about(j job.Job) string {
	if text := label(j); text != "" && text != j.ID {
		return "ollim: " + escapePercent(text) + " (" + j.ID + ")"
	}
	return "ollim: " + j.ID
}

// execLine is a command as ExecStart= reads it. In the first word, the program, a dollar sign means itself.
func execLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if i > 0 {
			word = strings.ReplaceAll(word, "$", "$$")
		}
		quoted[i] = quoteWord(escapePercent(word))
	}
	return strings.Join(quoted, " ")
}

// readWord is the first word of a command as execLine wrote it, not its program, or of one that needed no quotes.
func readWord(text string) string {
	word, _, _ := strings.Cut(strings.TrimRight(text, "\n"), " ")
	if strings.HasPrefix(text, `"`) {
		quoted, _ := strconv.QuotedPrefix(text)
		word, _ = strconv.Unquote(quoted) // empty if no quote ends it
	}
	return strings.NewReplacer("$$", "$", "%%", "%").Replace(word)
}

// escapePercent keeps systemd from reading specifiers.
func escapePercent(text string) string { return strings.ReplaceAll(text, "%", "%%") }

func quoteWord(word string) string {
	if unquoted(word) == "" {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// The texts are put together by hand: text/template calls methods by name, for which the linker would have to keep every method of
// the program, half as much again.

const (
	jobPages = "Documentation=man:ollim-schedules(7) man:ollim-fire(1) man:ollim-routine(5)\n"
	onFail   = "OnFailure=ollim-failed@%n.service\n"
	hardened = "NoNewPrivileges=yes\nLockPersonality=yes\nRestrictRealtime=yes\nRestrictSUIDSGID=yes\n" +
		"SystemCallArchitectures=native\nSystemCallFilter=~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap\nSystemCallErrorNumber=EPERM\n" +
		"RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK\n"
	wanted = "\n[Install]\nWantedBy=timers.target\n"
)

func when(is bool, text string) string {
	if !is {
		return ""
	}
	return text
}

func (h Host) oneshot() string {
	return "\n[Service]\nType=oneshot\n" + when(h.System, "User="+h.User+"\n")
}

func (h Host) fireService(about, exec string) string {
	return "[Unit]\nDescription=" + about + "\n" + jobPages + onFail +
		when(h.System, "Wants=network-online.target\nAfter=network-online.target\n") +
		h.oneshot() + "ExecStart=" + exec + `
# Skipped, paused and refused fires are not failures. The job has a timeout of its own.
SuccessExitStatus=75 77
TimeoutStartSec=infinity
# These stop setuid programs from working, such as sudo and some mail programs; ollim-schedules(7) has a drop-in that allows them.
` + hardened
}

func routineTimer(about string, times []string) string {
	return "[Unit]\nDescription=" + about + "\n" + jobPages + "\n[Timer]\nOnCalendar=" + strings.Join(times, "\nOnCalendar=") + `
AccuracySec=1s
# systemd starts a missed job later; catch-up in the routine's file decides whether it runs.
Persistent=true
` + wanted
}

func (h Host) tickService(about, exec string) string {
	return "[Unit]\nDescription=" + about + "\nDocumentation=man:ollim-tick(1)\n" + onFail +
		h.oneshot() + when(!h.System, "Environment="+UnitsVariable+"=user\n") + "ExecStart=" + exec + `
TimeoutStartSec=10min
# Where it may not start units it starts jobs as processes, which continue when it has ended.
KillMode=process
# Without this the two lines that systemd writes at every start would fill the journal. Messages of ollim are kept.
LogLevelMax=notice
SyslogLevel=notice
` + hardened
}

const tickTimer = `[Unit]
Description=ollim: each minute
Documentation=man:ollim-tick(1)

[Timer]
# In UTC: in other zones systemd skips an hour when clocks are set back.
OnCalendar=*-*-* *:*:00 UTC
AccuracySec=1s
` + wanted

func (h Host) failedService(about, exec string) string {
	return "[Unit]\nDescription=" + about + "\nDocumentation=man:ollim-schedules(7)\n" +
		h.oneshot() + "ExecStart=" + exec + "\nTimeoutStartSec=10min\n" + hardened
}
