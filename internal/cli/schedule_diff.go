package cli

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/schedule/installer"
)

func runScheduleDiff(ctx context.Context, d *deps, o unitOptions) error {
	e, err := d.entries(o)
	if err != nil {
		return err
	}
	if o.target == forCrontab {
		changes, _, left, err := d.crontabChanges(ctx, e)
		d.tellLeft(left)
		if err != nil {
			return err
		}
		return e.told(d, differences(d, "", changes, lineChange.cells))
	}
	column, find := "UNIT", d.unitChanges
	if o.target == forKubernetes {
		column, find = "CRONJOB", d.clusterChanges
	}
	changes, err := find(ctx, o, e)
	told := differences(d, column+" CHANGE", changes, func(c installer.Change) []any { return []any{c.Name, c.What} })
	return e.told(d, cmp.Or(err, told))
}

// differences lists changes. If there are any, the error is exit status 1.
func differences[T any](d *deps, columns string, changes []T, cells func(T) []any) error {
	if err := records(d, columns, changes, cells); err != nil || len(changes) == 0 {
		return err
	}
	return &reported{statusFailed}
}

// unitChanges returns what install would change in the units of systemd. With an error the list may be incomplete.
func (d *deps) unitChanges(ctx context.Context, o unitOptions, e entries) ([]installer.Change, error) {
	units, err := d.ownUnits(o, e.host)
	if err != nil {
		return nil, err
	}
	files, err := e.files(units)
	if err != nil {
		return nil, err
	}
	changes, err := units.Compare(files)
	if err == nil { // an idle unit that changes is listed once
		idle := units.Idle(ctx, files)
		changes = append(changes, slices.DeleteFunc(idle, func(c installer.Change) bool {
			return slices.ContainsFunc(changes, func(known installer.Change) bool { return known.Name == c.Name })
		})...)
	}
	return changes, err
}

// lineChange is a line of a crontab that would go or come.
type lineChange struct {
	Line string `json:"line"`
	What string `json:"what"` // add, remove
}

func (c lineChange) cells() []any {
	return []any{map[string]string{installer.Add: "+ ", installer.Drop: "- "}[c.What] + c.Line}
}

// crontabChanges returns what install would change in the crontab, its present block ("" for none), and what is left to the tick.
func (d *deps) crontabChanges(ctx context.Context, e entries) (changes []lineChange, have string, left []installer.Left, err error) {
	now, err := crontabOf(e.home, d).Read(ctx)
	if err != nil {
		return nil, "", left, err
	}
	want, left, err := d.crontabBlock(e, now)
	if err != nil {
		return nil, "", left, err
	}
	have, err = ownBlock(e.host, now)
	if err != nil {
		return nil, have, left, err
	}
	merged, err := installer.Merge(now, want)
	if err != nil || bytes.Equal(merged, now) {
		return nil, have, left, err
	}
	gone, come := lacking(have, want), lacking(want, have)
	if len(gone)+len(come) == 0 { // only their order or place differs
		gone, come = lacking(have, ""), lacking(want, "")
	}
	for _, line := range gone {
		changes = append(changes, lineChange{line, installer.Drop})
	}
	for _, line := range come {
		changes = append(changes, lineChange{line, installer.Add})
	}
	return changes, have, left, nil
}

// lacking returns the lines of a text that the other text lacks or has less often.
func lacking(text, other string) (list []string) {
	count := map[string]int{}
	for line := range strings.Lines(other) {
		count[strings.TrimRight(line, "\n")]++
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if count[line]--; count[line] < 0 {
			list = append(list, line)
		}
	}
	return list
}

// crontabBlock returns the block that a crontab should have. If the rest of the crontab runs the tick, the block does not.
func (d *deps) crontabBlock(e entries, table []byte) (string, []installer.Left, error) {
	rest, _, err := installer.Remove(table)
	if err != nil {
		return "", nil, err
	}
	host := e.host
	if len(e.faults) > 0 {
		block, _, err := installer.Extract(table)
		if err != nil {
			return "", nil, err
		}
		host.Kept = installer.Unknown(block, e.jobs)
	}
	line := d.tickLine(host, rest)
	if host.Ticked = line > 0; host.Ticked {
		d.note("line %d of the crontab runs ollim tick already: it stays as it is, and no second one is added", line)
	}
	return installer.Crontab(host, e.jobs)
}

// warnOfTick warns if the crontab runs the tick that units of systemd are to run. A crontab that cannot be read has no tick.
func (d *deps) warnOfTick(ctx context.Context, h app.Home, host installer.Host) {
	table, err := crontabOf(h, d).Read(ctx)
	if err != nil {
		return
	}
	const message = "the crontab also runs ollim tick, so every fire is tried twice: "
	rest, _, err := installer.Remove(table)
	if line := d.tickLine(host, rest); err == nil && line > 0 {
		d.warn(message + "delete this line with crontab -e: " + strings.TrimSpace(strings.Split(string(rest), "\n")[line-1]))
	} else if d.tickLine(host, table) > 0 {
		d.warn(message + "ollim schedule remove crontab")
	}
}

// shellVariables are the variables of a command in a crontab.
type shellVariables map[string]string

// assign reads NAME=value, and reports whether the text is one. If expand is set, as within a command, variables in the value are replaced.
func (v shellVariables) assign(text string, expand bool) bool {
	assigned := regexp.MustCompile(`^\s*["']?([A-Za-z_]\w*)["']?\s*=\s*(.*?)\s*$`).FindStringSubmatch(text)
	if assigned == nil {
		return false
	}
	v[assigned[1]] = strings.Trim(assigned[2], `"'`)
	if expand {
		v[assigned[1]] = v.expand(assigned[2])
	}
	return true
}

// expand reads a word as the shell does: quotes, a home and variables.
func (v shellVariables) expand(word string) string {
	if text := strings.Trim(word, "'"); text != word {
		return text
	}
	if strings.HasPrefix(word, "~/") {
		word = "$HOME" + word[1:]
	}
	return os.Expand(strings.Trim(word, `"`), func(name string) string { return v[name] })
}

// tickLine returns the number of the line, from 1, that runs the tick of the data directory every minute; 0 if no line certainly does.
func (d *deps) tickLine(host installer.Host, table []byte) int {
	home, err := d.UserHome()
	if err != nil {
		return 0
	}
	variables, number := shellVariables{}, 0
	for _, entry := range process.CronEnv(home) {
		variables.assign(entry, false)
	}
	for line := range strings.Lines(string(table)) {
		number++
		words := strings.Fields(line)
		if variables.assign(line, false) || len(words) < 6 {
			continue
		}
		if fields := strings.Join(words[:5], " "); (fields == "* * * * *" || fields == "*/1 * * * *") && ticks(host, words[5:], maps.Clone(variables)) {
			return number
		}
	}
	return 0
}

// ticks reports whether a command of a crontab is the tick of the data directory.
func ticks(host installer.Host, words []string, variables shellVariables) bool {
	for len(words) > 0 && variables.assign(words[0], true) {
		words = words[1:]
	}
	for i := range words {
		words[i] = variables.expand(words[i])
	}
	if len(words) == 0 {
		return false
	}
	program, err := process.LookPath(words[0], []string{"PATH=" + variables["PATH"]})
	if err != nil || !filepath.IsAbs(program) || filepath.Base(program) != "ollim" && !sameFile(program, host.Ollim) || !exists(program) {
		return false
	}
	there := app.App{Machine: app.Machine{Lookup: func(name string) (string, bool) { value, ok := variables[name]; return value, ok }}}
	flags := pflag.NewFlagSet("ollim", pflag.ContinueOnError)
	flags.SetInterspersed(false)
	flags.StringVar(&there.DataDir, "data-dir", variables["OLLIM_DATA_DIR"], "")
	flags.StringVar(&there.ConfigPath, "config", variables["OLLIM_CONFIG"], "")
	flags.BoolP("quiet", "q", false, "")
	if flags.Parse(words[1:]) != nil || flags.Arg(0) != "tick" || flags.NArg() > 1 && !regexp.MustCompile(`^[12]?[<>|&;]`).MatchString(flags.Arg(1)) {
		return false
	}
	for _, path := range []string{there.DataDir, there.ConfigPath} {
		if path != "" && !filepath.IsAbs(path) {
			return false // it depends on the shell's working directory
		}
	}
	dir, err := there.Dir()
	return err == nil && sameFile(string(dir), host.DataDir) && sameFile(there.ConfigFile(dir), host.Config)
}
