package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/schedule/installer"
	"github.com/ollim/ollim/internal/state/job"
)

// crontabBlock is the block that a crontab should have. One with a line for the tick gets no second one.
func (d *Deps) crontabBlock(host installer.Host, jobs []job.Job, table []byte) (string, []installer.Left, error) {
	rest, _, err := installer.Remove(table)
	if err != nil {
		return "", nil, err
	}
	line := d.tickLine(host, rest)
	if host.Ticked = line > 0; host.Ticked {
		d.note("line %d of the crontab runs ollim tick already: it stays as it is, and no second one is added", line)
	}
	return installer.Crontab(host, jobs)
}

// tickLine is the number of the line, from 1, that runs the tick of the data directory every minute; 0 if none certainly does.
func (d *Deps) tickLine(host installer.Host, table []byte) int {
	number, environment := 0, false
	for line := range strings.Lines(string(table)) {
		number++
		words := strings.Fields(line)
		if name, _, assigned := strings.Cut(line, "="); assigned && len(strings.Fields(name)) == 1 {
			name = strings.Trim(strings.TrimSpace(name), "\"'")
			environment = environment || name == "HOME" || strings.HasPrefix(name, "OLLIM_") // another directory may be the usual one
		}
		if len(words) > 5 && (words[0] == "*" || words[0] == "*/1") && !slices.ContainsFunc(words[1:5], func(w string) bool { return w != "*" }) &&
			d.ticks(host, words[5], words[6:], environment) {
			return number
		}
	}
	return 0
}

// ticks reports whether a command of a crontab is the tick of the data directory. In a changed environment, that of a command which
// names no data directory is not known.
func (d *Deps) ticks(host installer.Host, program string, words []string, changed bool) bool {
	if !filepath.IsAbs(program) || filepath.Base(program) != "ollim" || !exists(program) {
		return false
	}
	var dir, config string
	flags := pflag.NewFlagSet("ollim", pflag.ContinueOnError)
	flags.SetInterspersed(false)
	flags.StringVar(&dir, "data-dir", "", "")
	flags.StringVar(&config, "config", "", "")
	flags.BoolP("quiet", "q", false, "")
	if flags.Parse(words) != nil || flags.Arg(0) != "tick" || flags.NArg() > 1 && !strings.ContainsAny(flags.Arg(1)[:1], "<>|&;12") {
		return false
	}
	if dir == "" {
		home, err := d.UserHome()
		if err != nil || changed {
			return false
		}
		dir = filepath.Join(home, app.UsualDir)
	}
	if config == "" {
		config = paths.Dir(dir).Config()
	}
	return sameFile(dir, host.DataDir) && sameFile(config, host.Config)
}
