package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/server/door"
	"github.com/ollim/ollim/internal/server/listener"
)

func newDoor(d *deps) *cobra.Command {
	serve := command(agentNever(nested), "serve NAME", "Answer messages of a messenger, as a service",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error { return runDoorServe(ctx, d, h, args[0]) }))
	return group("door", "Connect the agent to messengers by programs", newDoorSend(d), serve, newDoorTest(d))
}

type doorTestOptions struct {
	channel string
	receive bool
	env     []string
}

func newDoorTest(d *deps) *cobra.Command {
	var o doorTestOptions
	cmd := withJSON(d, command(agentNever(refused), "test COMMAND...", "Test whether a program is a door, and say what it lacks",
		func(cmd *cobra.Command, args []string) error { return runDoorTest(cmd.Context(), d, o, args) }), jsonLines)
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVar(&o.channel, "channel", "", "the channel that gets the messages of the test (default: that of the owner's direct messages)")
	f.BoolVar(&o.receive, "receive", false, "also wait for a message that the owner writes")
	f.StringArrayVar(&o.env, "env", nil, "a variable KEY=value for the program, besides HOME, PATH, TZ and LANG; may be repeated")
	return cmd
}

func runDoorTest(ctx context.Context, d *deps, o doorTestOptions, argv []string) (err error) {
	files, err := os.MkdirTemp("", "ollim-door-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(files)) }()
	call := process.Call{Argv: argv, Env: append(d.DoorEnv(), append(o.env, "OLLIM_DOOR=test", "TMPDIR="+files)...), Tied: true}
	p := door.Program{Name: "test", Files: files, Start: func() (*process.Peer, error) { return process.Open(call) }}
	var found []doctor.Finding
	err = door.Conform(ctx, p, o.channel, o.receive, func(c door.Case) {
		if c.Waits {
			d.line("info", "door test: write a message to the bot now, as its owner; the test waits for it for five minutes")
			return
		}
		f := doctor.Finding{Result: doctor.Pass, What: c.Name}
		if c.Lacks != "" {
			f.Result, f.Text = doctor.Warn, "it cannot do that: "+c.Lacks
		}
		if c.Err != nil {
			f.Result, f.Text = doctor.Fail, plaintext.OneLine(c.Err)
		}
		found = append(found, f)
		d.note("%s: %s", f.Result, f.What)
	})
	if err != nil {
		return err
	}
	return findings(d, "RESULT CHECK FINDING", found, func(error) status { return statusFailed })
}

func runDoorServe(ctx context.Context, d *deps, h app.Home, name string) error {
	outlivePipe()
	program, end, err := h.Door(name, d.warn)
	if err != nil {
		return err
	}
	defer func() {
		if err := end(); err != nil {
			d.warn(err.Error())
		}
	}()
	socket, _ := d.Lookup("NOTIFY_SOCKET")
	return door.Serve(ctx, door.Options{
		Program: program,
		Options: listener.Options{
			Actions: d.actions(h, name), Home: func() (listener.Home, error) { return d.doorHome(name) },
			Notify: process.Notifier(socket), Grace: listenGrace, Free: d.Free,
		},
	})
}

// doorHome returns the data directory as the listener of a door needs it, with the settings as they are now.
func (d *deps) doorHome(name string) (listener.Home, error) {
	h, err := d.discordHome()
	if err != nil {
		return h, err
	}
	home, err := d.Home()
	if err != nil {
		return h, err
	}
	settings, err := home.DoorSettings(name)
	h.Owner, h.Allow = settings.Owner, settings.Allow
	return h, err
}
