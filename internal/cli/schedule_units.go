package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/schedule/installer"
	"github.com/ollim/ollim/internal/state/job"
)

// The schedulers that entries are made for.
const (
	forCrontab    = "crontab"
	forSystemd    = "systemd"
	forKubernetes = "kubernetes"
)

type unitOptions struct {
	target   string
	system   bool
	tickOnly bool
	untold   bool // no message about routines that ollim tick fires instead of the scheduler
	kube     installer.KubeOptions
}

func (o *unitOptions) flags(f *pflag.FlagSet, verb string) {
	f.BoolVar(&o.system, "system", false, "systemd: use system units instead of user units")
	if verb != "remove" {
		f.BoolVar(&o.tickOnly, "tick-only", false, "only the line or timer of ollim tick, which fires everything")
	}
	o.clusterFlags(f, verb)
}

func (o *unitOptions) wants(verb string, targets []string) error {
	if !slices.Contains(targets, o.target) {
		return usage("%q: want one of %s", o.target, strings.Join(targets, ", "))
	}
	if o.system && o.target != forSystemd {
		return usage("--system is for systemd only")
	}
	return o.wantsCluster(verb)
}

// newScheduleUnits makes one of print, install, diff and remove.
func newScheduleUnits(d *deps, verb, short, inside string, work func(context.Context, *deps, unitOptions) error) *cobra.Command {
	o, targets := unitOptions{}, []string{forCrontab, forSystemd, forKubernetes}
	arg := strings.Join(targets, "|")
	if verb == "remove" {
		arg = "[" + arg + "]"
	}
	cmd := command(agentNever(inside), verb+" "+arg, short, func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			o.target = args[0]
		} else if err := d.onlyInstalled(cmd.Context(), &o); err != nil {
			return err
		}
		if err := o.wants(verb, targets); err != nil {
			return err
		}
		if err := d.settleContext(&o); err != nil {
			return err
		}
		return o.fault(work(cmd.Context(), d, o))
	})
	o.flags(cmd.Flags(), verb)
	if verb == "diff" {
		withJSON(d, cmd, jsonLines)
	}
	return cmd
}

// onlyInstalled fills in the scheduler that has entries of this data directory. None and several are errors. Clusters are those in which this
// directory has recorded an installation.
func (d *deps) onlyInstalled(ctx context.Context, o *unitOptions) error {
	var installed []string
	for _, name := range doctor.Schedulers() {
		if found, err := d.installedEntries(ctx, name); err == nil && found.Installed && (!o.system || strings.HasSuffix(name, "--system")) {
			installed = append(installed, name)
		}
	}
	clusters, err := d.installedClusters()
	if err != nil && !errors.Is(err, app.ErrNoConfig) { // a deleted directory has no record
		return err
	}
	for _, c := range clusters {
		if !o.system {
			installed = append(installed, c.where())
		}
	}
	switch {
	case o.kube != (installer.KubeOptions{}):
		return usage("--context, --namespace, --claim and --folder are for ollim schedule remove kubernetes")
	case len(installed) == 0:
		return usage("no entries of this data directory were found: want crontab, systemd or kubernetes")
	case len(installed) > 1:
		return usage("several have entries: want one of %s", strings.Join(installed, ", "))
	}
	target, flag, _ := strings.Cut(installed[0], " ")
	if o.target = target; target == forKubernetes {
		o.kube = clusters[0].kube.Place()
		return nil
	}
	o.system = flag != ""
	return nil
}

// host returns the host that entries are made for: this machine.
func (d *deps) host(h app.Home, o unitOptions) (installer.Host, error) {
	path, err := program()
	if err != nil {
		return installer.Host{}, err
	}
	host := installer.Host{
		Ollim: path, DataDir: string(h.Dir), Config: d.ConfigFile(h.Dir), Zone: h.Config.Zone, Configured: h.Config.Zone,
		System: o.system, TickOnly: o.tickOnly,
	}
	if zone, err := time.LoadLocation(app.MachineZone()); err == nil {
		host.Zone = zone
	}
	host.User, err = owner(host.DataDir)
	return host, err
}

// owner returns the user who owns a directory. Root installs system units, but they run as this user.
func owner(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	id := strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username, nil
	}
	return id, nil
}

// entries is what the entries of a scheduler are made from.
type entries struct {
	home   app.Home
	host   installer.Host
	all    []job.Job      // of every kind
	jobs   []job.Job      // the routines
	faults yamldoc.Faults // of routines: an entry without a job may belong to such a file, and stays
}

func (d *deps) entries(o unitOptions) (e entries, err error) {
	if e.home, err = d.Home(); err != nil {
		return e, err
	}
	s, err := e.home.Jobs.Load()
	if err != nil {
		return e, err
	}
	e.all, s = s.Jobs, s.Only(job.Routine)
	if e.jobs = s.Jobs; !o.tickOnly {
		e.faults = s.Faults
	}
	e.host, err = d.host(e.home, o)
	return e, err
}

// files returns the units that are to be installed, with those that stay.
func (e entries) files(u installer.Units) ([]installer.File, error) {
	files, err := installer.Systemd(e.host, e.jobs)
	if err != nil || len(e.faults) == 0 {
		return files, err
	}
	kept, err := u.Unknown(e.jobs)
	return append(files, kept...), err
}

// told warns of the files that cannot be read. They are the error unless err is set.
func (e entries) told(d *deps, err error) error {
	for _, fault := range e.faults {
		d.warn(fault.Error())
	}
	if err == nil && len(e.faults) > 0 {
		return &reported{statusData}
	}
	return err
}

func crontabOf(h app.Home, d *deps) installer.Table {
	return installer.Table{Home: h.Dir, Disk: h.Disk, Env: d.callerEnv(), Backups: h.Config.Keep.Backups}
}

// units returns the place where systemd looks for the system's units or those of the current user.
func (d *deps) units(o unitOptions) (installer.Units, error) {
	u := installer.Units{Dir: "/etc/systemd/system", Stamps: "/var/lib/systemd/timers", System: o.system, Env: d.callerEnv()}
	if o.system {
		return u, nil
	}
	base, err := d.UserHome()
	folder := func(variable, normal, name string) string {
		if dir, ok := d.Lookup(variable); ok && filepath.IsAbs(dir) {
			return filepath.Join(dir, "systemd", name)
		}
		return filepath.Join(base, normal, "systemd", name)
	}
	u.Dir, u.Stamps = folder("XDG_CONFIG_HOME", ".config", "user"), folder("XDG_DATA_HOME", ".local/share", "timers")
	return u, err
}

// callerEnv returns what crontab and systemctl need of the caller's environment.
func (d *deps) callerEnv() (env []string) {
	for _, name := range []string{"HOME", "PATH", "USER", "LOGNAME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS", "TZ"} {
		if value, ok := d.Lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, "LC_ALL=C") // their output is parsed
}

func (d *deps) tellLeft(left []installer.Left) {
	for _, l := range left {
		d.warn(fmt.Sprintf("%s is left to ollim tick: %s", l.Job.Name(), l.Why))
	}
}

// fault gives errors of units their status and what to do about them.
func (o unitOptions) fault(err error) error {
	where, systemctl, noManager := o.target, "systemctl --user", "loginctl enable-linger, and log in again; or: ollim schedule install crontab"
	if o.system {
		where, systemctl, noManager = o.target+" --system", "systemctl", "ollim schedule install crontab"
	}
	other := &otherDataDir{}
	if o.target == forKubernetes {
		return o.clusterFault(err)
	}
	switch {
	case errors.Is(err, installer.ErrMarkers):
		return hint(&withStatus{err, statusData}, "correct the markers with crontab -e: one line %q, and one %q below it", "# BEGIN ollim", "# END ollim")
	case errors.Is(err, installer.ErrForeign):
		return hint(&withStatus{err, statusData}, "move it away, or put your changes into a drop-in: %s edit UNIT", systemctl)
	case errors.As(err, &other):
		return hint(&withStatus{err, statusConfig}, "first run `ollim --data-dir '%s' schedule remove %s`, which needs no such directory",
			other.dir, where)
	case errors.Is(err, installer.ErrUnfit) && o.target == forCrontab:
		return hint(&withStatus{err, statusConfig}, "move it to such a path, or: ollim schedule install systemd")
	case errors.Is(err, installer.ErrUnfit):
		return &withStatus{err, statusConfig}
	case errors.Is(err, installer.ErrTable) && errors.Is(err, process.ErrNotFound):
		return hint(&withStatus{err, statusUnavailable}, "install cron, or: ollim schedule install systemd")
	case errors.Is(err, installer.ErrManager) && (errors.Is(err, process.ErrNotFound) || strings.Contains(err.Error(), "Failed to connect to")):
		return hint(&withStatus{err, statusUnavailable}, "%s", noManager)
	case errors.Is(err, installer.ErrTable), errors.Is(err, installer.ErrManager):
		return &withStatus{err, statusUnavailable}
	}
	return err
}
