package installer

import "strings"

// The texts are put together by hand: text/template calls methods by name, for which the linker would have to keep every method of
// the program, half as much again.

const (
	jobPages = "Documentation=man:ollim-schedule(1) man:ollim-fire(1) man:ollim-routine(5)\n"
	onFail   = "OnFailure=ollim-failed@%n.service\n"
	hardened = "NoNewPrivileges=yes\nLockPersonality=yes\nRestrictRealtime=yes\n"
	wanted   = "\n[Install]\nWantedBy=timers.target\n"
)

func when(is bool, text string) string {
	if !is {
		return ""
	}
	return text
}

// oneshot begins a service.
func (h Host) oneshot() string {
	return "\n[Service]\nType=oneshot\n" + when(h.System, "User="+h.User+"\n")
}

func (h Host) fireService(about, exec string) string {
	return "[Unit]\nDescription=" + about + "\n" + jobPages + onFail +
		when(h.System, "Wants=network-online.target\nAfter=network-online.target\n") +
		h.oneshot() + "ExecStart=" + exec + `
# Skipped, paused and refused are no failures. The job's own timeout holds.
SuccessExitStatus=75 77
TimeoutStartSec=infinity
# With these, setuid programs do not work, sudo and some mail programs among them; see the example of a drop-in.
` + hardened
}

func routineTimer(about string, times []string) string {
	return "[Unit]\nDescription=" + about + "\n" + jobPages + "\n[Timer]\nOnCalendar=" + strings.Join(times, "\nOnCalendar=") + `
AccuracySec=1s
# Whether a missed time is made up for is up to the routine's catch-up.
Persistent=true
` + wanted
}

func (h Host) tickService(about, exec string) string {
	return "[Unit]\nDescription=" + about + "\nDocumentation=man:ollim-tick(1)\n" + onFail +
		h.oneshot() + when(!h.System, "Environment="+UnitsVariable+"=user\n") + "ExecStart=" + exec + `
TimeoutStartSec=10min
# What it starts by itself, where it may not start a unit, goes on without it.
KillMode=process
# The two lines that systemd writes at every start would fill the journal; what it says itself stays.
LogLevelMax=notice
SyslogLevel=notice
` + hardened
}

const tickTimer = `[Unit]
Description=ollim: each minute
Documentation=man:ollim-tick(1)

[Timer]
# In UTC, because in a zone systemd leaves out an hour when clocks are set back.
OnCalendar=*-*-* *:*:00 UTC
AccuracySec=1s
` + wanted

func (h Host) failedService(about, exec string) string {
	return "[Unit]\nDescription=" + about + "\nDocumentation=man:ollim-schedule(1)\n" +
		h.oneshot() + "ExecStart=" + exec + "\nTimeoutStartSec=10min\n" + hardened
}
