package app

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/ollim/ollim/internal/agent/confine"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/proxy"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/server/door"
	"github.com/ollim/ollim/internal/state/config"
)

// DoorSettings returns the settings of a door. One that is not in config.yaml has the defaults. The error is a *ConfigFault.
func (h Home) DoorSettings(name string) (config.Door, error) {
	if err := config.CheckDoorName(name); err != nil {
		return config.Door{}, &ConfigFault{err}
	}
	if d, found := h.Config.Doors.Find(name); found {
		return d, nil
	}
	return config.Door{Name: name, Seal: config.SealOff}, nil
}

// Door returns the program of a door. warn gets what it writes on standard error. The caller calls end when the last one has ended. The
// error is a *ConfigFault, also if there is no such program, or that of a seal that is not possible.
func (h Home) Door(name string, warn func(string)) (p door.Program, end func() error, err error) {
	call, settings, err := h.doorCall(name)
	if err != nil {
		return p, nil, err
	}
	p = door.Program{Name: name, Files: h.Dir.State("doors", name), Quiet: &atomic.Bool{}}
	call.Env = append(call.Env, "TMPDIR="+p.Files)
	end = func() error { return nil }
	if settings.Seal == config.SealOn {
		if end, err = h.sealDoor(settings, p.Files, &call, warn); err != nil {
			return p, nil, err
		}
	}
	hidden := h.hidden()
	p.Hide = hidden.Hide
	p.Start = func() (*process.Peer, error) {
		call.Heard = &door.Log{Name: name, Hide: hidden.Hide, Warn: warn, Quiet: p.Quiet}
		return process.Open(call)
	}
	return p, end, nil
}

// sealDoor seals the program of a door, and restricts it to the hosts of its settings, if there are any. The caller calls end when the
// program has ended.
func (h Home) sealDoor(d config.Door, files string, call *process.Call, warn func(string)) (end func() error, err error) {
	r, hosts := h.Runner(false), d.Hosts()
	by, err := run.Private(r, files, len(hosts) == 0)
	if err != nil {
		return nil, err
	}
	rules := seal.Rules{Read: confine.Program(call.Argv, call.Dir, call.Env, confine.Protected(h.Dir, r.Host.Secret), nil)}
	if end = by.Close; len(hosts) > 0 {
		p, err := proxy.Listen(hosts, func(host string) {
			warn(fmt.Sprintf("%s: it may not connect to %s: doors.%s.network does not list it", d.Name, host, d.Name))
		})
		if err != nil {
			return nil, errors.Join(err, by.Close())
		}
		call.Env = append(call.Env, p.Env()...)
		rules.TCP = append(proxy.Addresses(hosts), p.Address())
		end = func() error { return errors.Join(by.Close(), p.Close()) }
	}
	call.Seal = by.With(rules)
	return end, nil
}

// doorCall returns how a door is started: with its own secrets, and none of the program's other variables.
func (h Home) doorCall(name string) (c process.Call, d config.Door, err error) {
	if d, err = h.DoorSettings(name); err != nil {
		return c, d, err
	}
	secrets, err := h.app.loadSecrets()
	if err != nil {
		return c, d, &ConfigFault{err}
	}
	c = process.Call{Argv: d.Argv(), Env: h.app.DoorEnv(), Dir: string(h.Dir), Tied: true}
	for _, entry := range h.Config.Env {
		if strings.HasPrefix(entry, "PATH=") {
			c.Env = append(c.Env, entry)
		}
	}
	c.Env = append(append(append(c.Env, d.Env...), secrets.Door(name)...), "OLLIM_DOOR="+name)
	if err := process.Find(c.Argv[0], c.Dir, c.Env); err != nil {
		what := "set doors." + name + ".command"
		if errors.Is(err, process.ErrNotFound) && len(d.Command) == 0 {
			what = "install ollim-" + name + " into a directory of PATH, or " + what
		}
		return c, d, Hint(&ConfigFault{err}, "%s", what)
	}
	return c, d, nil
}

// DoorEnv returns what every door has of this process's environment.
func (a *App) DoorEnv() (env []string) {
	for _, name := range []string{"HOME", "PATH", "TZ", "LANG"} {
		if value, ok := a.Lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// DoorFault returns why a door cannot be started, without trying to.
func (h Home) DoorFault(name string) error {
	_, _, err := h.doorCall(name)
	return err
}

// DoorFailure returns why a door that is served does not run; "" if it runs.
func (h Home) DoorFailure(name string) string { return door.Failure(h.Dir, name) }
