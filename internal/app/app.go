// Package app builds what a process works with: from its flags and environment the data directory and the settings, from those
// the stores, the engines and the runner. Every entry point (a command, the MCP server, a listener) gets one App, and takes from
// it a Home, which is the data directory with the settings as they are now.
//
// Nothing is opened before it is asked for: an App that is never asked touches no file. An App may be used from several
// goroutines at once; a Home is a value, and its settings do not change under its holder.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/forward"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/config"
)

// Machine is what a process gets from its machine.
type Machine struct {
	Now    func() time.Time
	Lookup func(string) (string, bool) // the environment
	Random io.Reader
	Sleep  func(context.Context, time.Duration) error // returns early, with its error, when the context ends
	Kernel func() (abi int, err error)                // returns the kernel's version of Landlock; nil: seal.Check
	Cron   func() (runs, known bool)                  // reports whether a cron daemon runs, if that is known; nil: this machine's
}

// App is one process.
type App struct {
	Machine

	Warn func(message string) // one line, no newline

	DataDir    string    // "" is $OLLIM_DATA_DIR, else ~/.ollim-bot
	ConfigPath string    // "" is $OLLIM_CONFIG, else config.yaml in the data directory
	Terminal   io.Writer // where messages to the owner also go; nil: nobody watches

	Commands policy.OllimAccess // what an agent may do with the commands of ollim; nil: nothing
	// Execute executes a command of ollim for a process of a sealed run, and returns its exit status.
	Execute func(context.Context, Sealed, forward.Request) int

	mu     sync.Mutex
	loaded *settings // nil before the first use
	memory memory
	parent *App    // App whose memory is used if a process executes several commands; nil: this App's own
	run    *Sealed // sealed run that sent the command; nil: the caller of the process did
}

// whole returns the App whose memory is used.
func (a *App) whole() *App {
	if a.parent != nil {
		return a.parent.whole()
	}
	return a
}

// Another returns the App of another command that this process executes for the same caller. It finds the directory and the settings
// of this App in its environment.
func (a *App) Another() *App {
	m := a.Machine
	m.Lookup = func(name string) (string, bool) {
		switch {
		case name == "OLLIM_DATA_DIR" && a.DataDir != "":
			return a.DataDir, true
		case name == "OLLIM_CONFIG" && a.ConfigPath != "":
			return a.ConfigPath, true
		}
		return a.Lookup(name)
	}
	return &App{Machine: m, parent: a}
}

// memory is what all parts of a process share.
type memory struct {
	locks     lock.Table
	channels  channel.Cache
	discord   *api.Client
	discordOf string // address and token
}

// settings is the configuration with the state of the file that it was read from.
type settings struct {
	config config.Config
	path   string
	file   fs.FileInfo // nil: there was no file
}

// UsualDir is the name of the data directory in the owner's home, unless another directory is named.
const UsualDir = ".ollim-bot"

// Dir returns the data directory, which need not exist.
func (a *App) Dir() (paths.Dir, error) {
	path := a.DataDir
	if path == "" {
		path, _ = a.Lookup("OLLIM_DATA_DIR")
	}
	if path == "" {
		base, err := a.UserHome()
		if err != nil {
			return "", err
		}
		path = filepath.Join(base, UsualDir)
	}
	path, err := filepath.Abs(path)
	return paths.Dir(path), err
}

// UserHome returns the owner's home. It falls back to the password database, because cron and systemd may give no HOME.
func (a *App) UserHome() (string, error) {
	if path, ok := a.Lookup("HOME"); ok && path != "" {
		return path, nil
	}
	u, err := user.Current()
	if err != nil || u.HomeDir == "" {
		return "", Hint(errors.New("the home directory is unknown"), "set OLLIM_DATA_DIR or use --data-dir")
	}
	return u.HomeDir, nil
}

// userHome is UserHome, "" when it is not known.
func (a *App) userHome() string {
	dir, err := a.UserHome()
	if err != nil {
		return ""
	}
	return dir
}

// ConfigFile returns the absolute path of the configuration of a data directory.
func (a *App) ConfigFile(dir paths.Dir) string {
	fromEnv, _ := a.Lookup("OLLIM_CONFIG")
	path := cmp.Or(a.ConfigPath, fromEnv, dir.Config())
	if absolute, err := filepath.Abs(path); err == nil { // engines start ollim in other directories
		return absolute
	}
	return path
}

// Config returns the configuration. It reads the file again when that has changed since the last call. If the file has become invalid, that
// is reported once, and the settings that were read before stay in force. If none were read, the error is a *ConfigFault.
func (a *App) Config() (config.Config, error) {
	s, err := a.settings()
	return s.config, err
}

// settings is Config. Its result is never nil, and stays the same pointer until the settings change.
func (a *App) settings() (*settings, error) {
	dir, err := a.Dir()
	if err != nil {
		return &settings{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	path := a.ConfigFile(dir)
	file := stat(path)
	before := a.loaded
	if before != nil && before.path == path && same(before.file, file) {
		return before, nil
	}
	if info := stat(string(dir)); info != nil && !info.IsDir() {
		return &settings{}, Hint(fmt.Errorf("%s: %w", dir, ErrNoDirectory), "OLLIM_DATA_DIR and --data-dir name a directory, which ollim init creates")
	}
	c, err := config.Load(config.Source{Path: path, Lookup: a.Lookup, Zone: a.SystemZone})
	if before != nil && before.path == path && before.config.Exists && (err != nil || !c.Exists) {
		if err == nil {
			err = fmt.Errorf("%s: %w", path, ErrNoConfig)
		}
		a.warn(err.Error() + "; the settings that were read before stay in force")
		before.file = file
		return before, nil
	}
	s := &settings{c, path, file}
	if err != nil {
		return s, &ConfigFault{err}
	}
	a.loaded = s
	return s, nil
}

// stat returns the state of a file, nil if there is none.
func stat(path string) fs.FileInfo {
	file, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return file
}

// same reports whether two states of a file are the same one, by identity, size and time of the last change.
func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// SystemZone returns the machine's zone by its IANA name: that of TZ, of /etc/timezone, or of the target of /etc/localtime.
func (a *App) SystemZone() string {
	own, _ := a.Lookup("TZ")
	file, _ := os.ReadFile("/etc/timezone") // not every system has one
	target, _ := filepath.EvalSymlinks("/etc/localtime")
	_, link, _ := strings.Cut(target, "zoneinfo/")
	for _, name := range []string{strings.TrimPrefix(own, ":"), strings.TrimSpace(string(file)), link} {
		if _, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
			return name
		}
	}
	return "UTC"
}

// MachineZone returns the zone of cron and systemd, which do not see the caller's TZ.
func MachineZone() string {
	machine := App{Machine: Machine{Lookup: func(string) (string, bool) { return "", false }}}
	return machine.SystemZone()
}

func (a *App) warn(message string) {
	if a.Warn != nil {
		a.Warn(message)
	}
}

// SetNames stores names in config.yaml; "" leaves a name unchanged.
func (h Home) SetNames(user, bot string) error {
	for _, name := range []string{user, bot} { // both are valid, or neither is stored
		if err := config.CheckName(name); name != "" && err != nil {
			return &BadArgument{err.Error()}
		}
	}
	var err error
	if user != "" {
		err = h.Set(context.Background(), "names.user", user)
	}
	if bot != "" && err == nil {
		err = h.Set(context.Background(), "names.bot", bot)
	}
	return err
}

// Set changes one setting of config.yaml.
func (h Home) Set(ctx context.Context, key string, values ...string) error {
	return h.edit(ctx, func(path string) error { return config.Set(path, key, values) })
}

// edit changes config.yaml while it holds its lock.
func (h Home) edit(ctx context.Context, change func(path string) error) error {
	held, err := h.Disk.Lock(ctx, h.Dir.Lock("config"))
	if err != nil {
		return err
	}
	defer held.Release()
	path := h.app.ConfigFile(h.Dir)
	err = change(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", path, ErrNoConfig)
	}
	return err
}

// Errors that a caller acts on.
var (
	ErrNoConfig    = errors.New("no configuration")
	ErrNoDirectory = errors.New("not a directory") // the path of the data directory
	ErrNotAllowed  = errors.New("not allowed")     // to an agent
	ErrNoSession   = errors.New("no session")
)

// ConfigFault is anything wrong with config.yaml or with the secrets file.
type ConfigFault struct{ error }

func (e *ConfigFault) Unwrap() error { return e.error }

// BadArgument is the error of an invalid argument.
type BadArgument struct{ Reason string }

func (e *BadArgument) Error() string { return e.Reason }

// Hinted is an error with a command that helps.
type Hinted struct {
	error
	Hint string
}

func (e *Hinted) Unwrap() error { return e.error }

// Hint adds to an error what its reader can do.
func Hint(err error, format string, args ...any) error {
	return &Hinted{err, fmt.Sprintf(format, args...)}
}
