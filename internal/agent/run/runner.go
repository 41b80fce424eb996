package run

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Runner runs agents over one data directory.
type Runner struct {
	*state.Stores

	Home     paths.Dir
	Disk     store.Disk
	Zone     *time.Location
	Random   io.Reader
	Host     Host
	Settings Settings
	SetNames func(user, bot string) error // stores them in the settings
	Outbox   outbox.Post
	Engines  func(name string) (engine.Engine, error) // makes an engine of a name
	Archive  conversation.Archive                     // reads the sessions of all engines
}

// Settings are the owner's settings that runs follow.
type Settings struct {
	Engine    string                     // the configured engine; "" if there is none
	Model     func(engine string) string // the model that an engine asks if no job and no option names one; nil: not known
	Fallback  []string                   // models that are asked in order if a run's own cannot be used
	Models    func() model.Table         // what is known of models; nil without Fallback and causes of models: nothing
	CompactAt int                        // tokens at which a session is compacted without being asked; 0: its model's window decides
	Names     config.Names
	Main      config.Chat
	Channel   config.Channels
	Quiet     timeparse.Span // hours in which only critical messages are sent
	Claim     string         // absolute path of the command that gives slots to machines; "": every slot is this machine's
}

// Host is what the process and its machine provide to runs.
type Host struct {
	Name     string                                     // name of this machine, as hostname prints it
	Process  func() runlog.Process                      // describes this process by four files of /proc, which only a run reads
	Secret   []string                                   // paths outside the data directory that no agent may reach
	UserHome string                                     // the owner's home, for ~/ in dirs
	Env      []string                                   // environment of gates and of commands in skills
	Commands policy.OllimAccess                         // what an agent may do with the commands of ollim
	Serve    func(Service) Socket                       // executes the commands of ollim of a sealed run
	Embeds   func() bool                                // reports whether a messenger of the owner shows embeds
	Sealing  Sealing                                    // how the programs that an agent starts are sealed
	Sleep    func(context.Context, time.Duration) error // returns early, with its error, when the context ends
}

// conversations returns what conversations share.
func (r *Runner) conversations() conversation.Book {
	return conversation.Book{Home: r.Home, Sessions: r.Sessions, Updates: r.Updates, Runs: r.Runs, Archive: r.Archive, Sleep: r.Host.Sleep}
}

func (r *Runner) past() past { return past{r.Home, r.Runs} }

// Busy reports whether a turn of the main conversation is in progress.
func (r *Runner) Busy() bool { return r.conversations().Busy() }

// Tools returns the tools of a run that another process has begun. Their messages are not shown on a terminal of this process, whose
// streams carry a protocol.
func (r *Runner) Tools(run *runlog.Run) *tools.Set {
	sender := r.Outbox
	sender.Terminal = nil
	return r.ToolsOf(run, sender)
}

// ToolsOf returns the tools of a run. sender sends their messages.
func (r *Runner) ToolsOf(run *runlog.Run, sender outbox.Sender) *tools.Set {
	return &tools.Set{
		World:  tools.World{Home: r.Home, Disk: r.Disk, Zone: r.Zone, Random: r.Random, Secret: r.Host.Secret, Env: r.EnvOf(run), Quiet: r.Settings.Quiet, Embeds: r.Host.Embeds},
		Stores: r.Stores, Run: run, Sender: sender, Busy: r.Busy, SetNames: r.SetNames, Commands: r.Host.Commands,
	}
}

// EnvOf returns the environment of the programs that a run starts. It puts the ollim commands in them under that run's rules.
func (r *Runner) EnvOf(run *runlog.Run) []string {
	env := append(append([]string{}, r.Host.Env...), "OLLIM_RUN="+run.ID, "OLLIM_JOB="+run.Job)
	if run.Scheduled != nil {
		env = append(env, "OLLIM_SLOT="+run.Scheduled.UTC().Format(time.RFC3339))
	}
	return env
}

// Hides reports whether a file is one that no agent may reach.
func (r *Runner) Hides(file string) bool {
	p := policy.Policy{Roots: []policy.Root{{Dir: "/"}}, Protected: tools.World{Home: r.Home, Secret: r.Host.Secret}.Protected()}
	ground, err := p.Ground()
	if err != nil {
		return true
	}
	real, err := filepath.Abs(file)
	if err == nil {
		real, err = policy.Resolve(real)
	}
	info, statErr := os.Stat(file)
	return errors.Join(err, statErr) != nil || ground.Hides(real, info)
}

// Notify returns the book that notifies the owner of causes.
func (r *Runner) Notify() notify.Book {
	return notify.Book{
		Notices: r.Notices, Updates: r.Updates, Sender: r.Outbox, Zone: r.Zone, Quiet: r.Settings.Quiet, Random: r.Random, Now: r.Disk.Now,
		Number: func(ctx context.Context, id, text string) (string, error) {
			run, err := r.Runs.At(id)
			if err != nil {
				return "", err
			}
			return r.Mail().Number(ctx, run, outbox.Failure, text)
		},
	}
}

// Mail returns what sends the messages of runs to the owner.
func (r *Runner) Mail() notify.Mail {
	return notify.Mail{Runs: r.Runs, Sessions: r.Sessions, Updates: r.Updates, Outbox: r.Outbox, Now: r.Disk.Now, Warn: r.Warn}
}

// Warn reports an error that stops nothing; nil is none.
func (r *Runner) Warn(err error) {
	if err != nil {
		r.Disk.Warn(plaintext.OneLine(err))
	}
}
