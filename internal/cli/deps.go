package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/changed"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/spend"
)

// Deps is the world as commands see it. Nothing is opened before a command asks for it, so --help and completion touch
// no file.
type Deps struct {
	In     io.Reader
	Out    io.Writer // buffered standard output; on a terminal without control sequences
	Stdout io.Writer // the stream behind Out
	Stderr io.Writer
	Now    func() time.Time
	Lookup func(string) (string, bool) // the environment
	Random io.Reader
	Sleep  func(context.Context, time.Duration) error
	// Automatic reports whether a cron daemon or a timer started this process.
	Automatic func() bool

	dataDir, configPath, logFormat string // global flags
	quiet, verbose                 bool

	loaded *config.Config
	hung   *store.Hung // nil before the first use
}

// disk is what every part of this process changes state with.
func (d *Deps) disk() store.Disk {
	if d.hung == nil {
		d.hung = &store.Hung{}
	}
	return store.Disk{Now: d.Now, Warn: d.warn, Hung: d.hung}
}

// Errors of this room.
var (
	errNoConfig   = errors.New("there is no configuration")
	errNotAllowed = errors.New("not allowed")
	errTooLong    = errors.New("too long")
)

// configFault is anything wrong with config.yaml.
type configFault struct{ err error }

func (e *configFault) Error() string { return e.err.Error() }

func (e *configFault) Unwrap() error { return e.err }

// home is the data directory; it need not exist.
func (d *Deps) home() (paths.Dir, error) {
	path := d.dataDir
	if path == "" {
		path, _ = d.Lookup("OLLIM_DATA_DIR")
	}
	if path == "" {
		base, err := d.userHome()
		if err != nil {
			return "", err
		}
		path = filepath.Join(base, ".ollim-bot")
	}
	path, err := filepath.Abs(path)
	return paths.Dir(path), err
}

// userHome falls back to the password database, because cron and systemd may give no HOME.
func (d *Deps) userHome() (string, error) {
	if path, ok := d.Lookup("HOME"); ok && path != "" {
		return path, nil
	}
	u, err := user.Current()
	if err != nil || u.HomeDir == "" {
		return "", hint(errors.New("no home directory is known"), "set OLLIM_DATA_DIR or use --data-dir")
	}
	return u.HomeDir, nil
}

// config is the settings, read once.
func (d *Deps) config() (config.Config, error) {
	if d.loaded != nil {
		return *d.loaded, nil
	}
	dir, err := d.home()
	if err != nil {
		return config.Config{}, err
	}
	c, err := config.Load(config.Source{Path: d.configFile(dir), Lookup: d.Lookup, Zone: d.systemZone()})
	if err != nil {
		return c, &configFault{err}
	}
	d.loaded = &c
	return c, nil
}

func (d *Deps) configFile(dir paths.Dir) string {
	fromEnv, _ := d.Lookup("OLLIM_CONFIG")
	path := cmp.Or(d.configPath, fromEnv, dir.Config())
	if absolute, err := filepath.Abs(path); err == nil { // engines start our commands elsewhere
		return absolute
	}
	return path
}

// systemZone is the machine's zone by its IANA name: TZ, /etc/timezone, or where /etc/localtime leads.
func (d *Deps) systemZone() string {
	candidates := []string{}
	if tz, ok := d.Lookup("TZ"); ok {
		candidates = append(candidates, strings.TrimPrefix(tz, ":"))
	}
	if text, err := os.ReadFile("/etc/timezone"); err == nil {
		candidates = append(candidates, strings.TrimSpace(string(text)))
	}
	if target, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		if _, name, found := strings.Cut(target, "zoneinfo/"); found {
			candidates = append(candidates, name)
		}
	}
	for _, name := range candidates {
		if _, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
			return name
		}
	}
	return "UTC"
}

// house is the data directory with its settings; it must have been made by init.
type house struct {
	home   paths.Dir
	config config.Config
	disk   store.Disk
	user   string // the owner's home, "" when it is not known

	secrets func() plaintext.Secrets // that no record and no result of a tool holds; the file is read when they are first needed
}

func (d *Deps) house() (house, error) {
	dir, err := d.home()
	if err != nil {
		return house{}, err
	}
	c, err := d.config()
	if err != nil {
		return house{}, err
	}
	if !c.Exists {
		return house{}, hint(fmt.Errorf("%s: %w", d.configFile(dir), errNoConfig), "ollim init")
	}
	return house{dir, c, d.disk(), d.homeOrNone(), d.hidden(c)}, nil
}

// anyHouse is house for what must work although the settings do not: the brakes, the past, and what must not be lost.
func (d *Deps) anyHouse() (house, error) {
	h, err := d.house()
	if !as[*configFault](err) {
		return h, err
	}
	d.warn(err.Error())
	dir, err := d.home()
	if err != nil {
		return h, err
	}
	c, err := config.Load(config.Source{Path: dir.Path("no-such-file"), Lookup: func(string) (string, bool) { return "", false }, Zone: d.systemZone()})
	d.loaded = &c
	return house{dir, c, d.disk(), d.homeOrNone(), d.hidden(c)}, err
}

// hidden returns the values of all secrets, and those of the keys that an engine may get from elsewhere. What is wrong with the
// file is reported by the commands that need it.
func (d *Deps) hidden(c config.Config) func() plaintext.Secrets {
	return sync.OnceValue(func() plaintext.Secrets { return d.readHidden(c) })
}

func (d *Deps) readHidden(c config.Config) plaintext.Secrets {
	secrets, err := d.loadSecrets()
	if err != nil {
		secrets = config.Secrets{}
	}
	values := secrets.Values()
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY"} {
		value, _ := d.Lookup(name)
		values = append(values, value)
		for _, entry := range c.Env {
			if value, found := strings.CutPrefix(entry, name+"="); found {
				values = append(values, value)
			}
		}
	}
	return plaintext.NewSecrets(values...)
}

func (h house) jobs() job.Library { return job.Library{Home: h.home, Zone: h.config.Zone} }

func (h house) runs() runlog.Book {
	return runlog.Book{Home: h.home, Disk: h.disk, Zone: h.config.Zone, Secrets: h.secrets}
}

// spend is the accounts. The settings were checked when they were read, so every amount is one.
func (h house) spend() spend.Book {
	usd := func(text string) float64 {
		n, _ := config.Amount(text)
		return n
	}
	limits := spend.Limits{
		PerRun: usd(h.config.Spend.PerRun), PerDay: usd(h.config.Spend.PerDay), PerMonth: usd(h.config.Spend.PerMonth),
		RunsPerDay: math.MaxInt,
	}
	if n := usd(h.config.Spend.RunsPerDay); !math.IsInf(n, 1) {
		limits.RunsPerDay = int(n)
	}
	return spend.Book{Home: h.home, Disk: h.disk, Zone: h.config.Zone, Limits: limits, Past: h.past, Share: 4}
}

// past is what the accounts are made from anew when their file is gone.
func (h house) past(since time.Time) (past []spend.Past, err error) {
	for r, err := range h.runs().Since(since) {
		if err != nil {
			return past, err
		}
		if r.Accounted {
			cost := -1.0
			if bill, err := h.runs().Bill(r); err == nil {
				cost = bill.Cost
			}
			past = append(past, spend.Past{Run: r.ID, Job: r.Job, Started: r.Started, Cost: cost, Alive: h.runs().Alive(r)})
		}
	}
	return past, nil
}

// shelf is the job files; what is wrong with some of them is told on standard error, but for those that a command is about,
// whose error it will be.
func (d *Deps) shelf(about ...string) (job.Shelf, house, error) {
	h, err := d.house()
	if err != nil {
		return job.Shelf{}, h, err
	}
	s, err := h.jobs().Load()
	for _, fault := range s.Faults {
		if !slices.ContainsFunc(about, func(name string) bool { return stem(name) == stem(fault.File) }) {
			d.warn(fault.Error())
		}
	}
	return s, h, err
}

// stem is a job file's name without folder and .md.
func stem(path string) string { return strings.TrimSuffix(filepath.Base(path), ".md") }

// firer is everything a fire needs.
func (d *Deps) firer(h house) *runner.Firer {
	return &runner.Firer{
		Home: h.home, Disk: h.disk, Zone: h.config.Zone,
		Jobs: h.jobs(), Runs: h.runs(), Updates: d.updates(h),
		Sessions: session.Book{Home: h.home, Disk: h.disk, Zone: h.config.Zone},
		Told:     notice.Book{Home: h.home, Disk: h.disk},
		Post:     d.post(h),
		Spend:    h.spend(),
		Random:   d.Random,
		Process:  runner.Process{ID: process.Self(), Group: processGroup()},
		Budget:   h.budget(), Approvals: h.approvals(), Changes: changed.Book{Home: h.home, Disk: h.disk}, Slots: h.slots(),
		Names: h.config.Names, SetNames: func(user, bot string) error { return d.setNames(h, user, bot) },
		Secret: d.secretPaths(), UserHome: d.homeOrNone(), Env: d.programEnv(h),
		Engine:  h.config.Engine,
		Engines: d.engines(h, false),
		Sleep:   d.Sleep,
	}
}

// homeOrNone is the owner's home, "" when it is not known.
func (d *Deps) homeOrNone() string {
	dir, err := d.userHome()
	if err != nil {
		return ""
	}
	return dir
}

// programEnv is the environment of gates, of commands in skills and of the native engine's: that of our children, told which
// directory this is, without the way to secrets.
func (d *Deps) programEnv(h house) []string {
	env := slices.DeleteFunc(d.childEnv(h.config), func(kv string) bool { return strings.HasPrefix(kv, "CREDENTIALS_DIRECTORY=") })
	return append(env, "OLLIM_DATA_DIR="+string(h.home), "OLLIM_CONFIG="+d.configFile(h.home))
}

func (d *Deps) post(h house) outbox.Post {
	p := outbox.Post{
		Home: h.home, Disk: h.disk, Command: h.config.Delivery.Command, Timeout: h.config.Delivery.Timeout,
		Env: append(d.childEnv(h.config), d.secrets().For("delivery")...),
	}
	if isTerminal(d.Stdout) {
		p.Terminal = clean{terminal{d}}
	}
	return p
}

// childEnv is the environment of commands that we start: what the configuration says, never what cron or a shell happens
// to have, but for HOME, PATH and TZ (an ollim in a run counts the same days) where it says nothing of them.
func (d *Deps) childEnv(c config.Config) []string {
	env := []string{}
	for _, name := range []string{"HOME", "PATH", "XDG_CONFIG_HOME", "TZ", "CREDENTIALS_DIRECTORY"} {
		if value, ok := d.Lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, c.Env...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
