package app

import (
	"slices"
	"testing"
)

// TestStartCron: the command that starts the cron daemon is that of the machine.
func TestStartCron(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		there []string
		root  bool
	}{
		"sudo service cron start":                               {[]string{"/etc/init.d/cron", "/usr/sbin/cron"}, false},
		"service cron start":                                    {[]string{"/etc/init.d/cron"}, true},
		"sudo systemctl enable --now cron":                      {[]string{"/run/systemd/system", "/etc/init.d/cron", "/usr/lib/systemd/system/cron.service"}, false},
		"sudo systemctl enable --now cronie":                    {[]string{"/run/systemd/system", "/usr/lib/systemd/system/cronie.service"}, false},
		"sudo /usr/sbin/crond":                                  {[]string{"/usr/sbin/crond"}, false},
		"start the cron daemon of this machine, or install one": {nil, false},
	} {
		if got := startCron(func(path string) bool { return slices.Contains(c.there, path) }, c.root); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
