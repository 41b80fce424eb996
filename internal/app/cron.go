package app

import (
	"os"
	"path/filepath"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
)

// CronStopped returns how to start the cron daemon; "" if one runs, or that is not known. It is what fires the entries of a crontab.
func (a *App) CronStopped() (remedy string) {
	runs := a.Cron
	if runs == nil {
		runs = func() (bool, bool) { return process.Runs("/proc", "cron", "crond", "fcron", "dcron") }
	}
	if running, known := runs(); running || !known {
		return ""
	}
	return startCron(store.Exists, os.Geteuid() == 0)
}

// startCron returns the command that starts the cron daemon that is installed on this machine, for a user who is root or not.
func startCron(exists func(path string) bool, root bool) string {
	sudo := "sudo "
	if root {
		sudo = ""
	}
	systemd := exists("/run/systemd/system")
	for _, name := range []string{"cron", "crond", "cronie", "fcron", "dcron"} {
		switch {
		case systemd && (exists(filepath.Join("/usr/lib/systemd/system", name+".service")) || exists(filepath.Join("/etc/systemd/system", name+".service"))):
			return sudo + "systemctl enable --now " + name
		case !systemd && exists(filepath.Join("/etc/init.d", name)):
			return sudo + "service " + name + " start"
		}
	}
	for _, path := range []string{"/usr/sbin/crond", "/usr/sbin/cron"} {
		if exists(path) {
			return sudo + path
		}
	}
	return "start the cron daemon of this machine, or install one"
}
