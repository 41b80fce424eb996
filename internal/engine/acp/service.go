package acp

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
)

// Service is a service of models that an agent reaches through a gateway in this process, on a port of 127.0.0.1: the agent gets a key that
// only the gateway knows.
type Service struct {
	Name    string   // what names of models begin with, before a slash; "": any model is of this service
	Keys    []string // variables, of which one must hold the key
	Base    string   // variable with its address
	Address string   // without that variable
	Path    string   // what is added to the owner's address unless it ends so
	Paths   []string // see gateway.Gateway
}

// Variables are the variables with keys and addresses of services.
func (p Profile) Variables() []string {
	names := slices.Clone(p.Keys)
	for _, s := range p.Services {
		names = append(names, s.Base)
	}
	return names
}

// access is a service with its key.
type access struct {
	Service

	variable, key string
}

// access returns the service of a model that the agent reaches through a gateway. There is none if it has no key, or if the owner gives the
// agent settings of its own, which can name other services.
func (e *Engine) access(model string) (a access, found bool) {
	for _, name := range e.Profile.Reads {
		if variable(e.Env, name) != "" {
			return a, false
		}
	}
	vendor, _, named := strings.Cut(model, "/")
	for _, s := range e.Profile.Services {
		if named && s.Name != "" && s.Name != vendor {
			continue
		}
		for _, name := range s.Keys {
			if key := variable(e.Env, name); key != "" {
				return access{s, name, key}, true
			}
		}
	}
	return a, false
}

// gate opens the gateway of a process, and has the place lead to it.
func (e *Engine) gate(ctx context.Context, r engine.Request, a access, p *place) error {
	service, err := url.Parse(cmp.Or(variable(e.Env, a.Base), a.Address))
	if err != nil || service.Host == "" {
		return fmt.Errorf("%w: %s is not an address: want https://HOST", engine.ErrSetup, a.Base)
	}
	if path := strings.TrimSuffix(service.Path, "/"); !strings.HasSuffix(path, a.Path) {
		service.Path = path + a.Path
	}
	g, err := command.NewGate(ctx, r, e.Disk.Now(), func(name string) string { return variable(e.Env, name) })
	if err != nil {
		return err
	}
	g.Service, g.Paths, g.Models, g.Strict = service, a.Paths, e.Models, r.Limits.Strict
	if p.at, err = g.ListenTCP(ctx); err != nil {
		return fmt.Errorf("open a port of 127.0.0.1 for the gateway: %w", err)
	}
	p.gate = g
	p.given["base"], p.given["service"] = g.At(p.at.String()), a.Name
	p.env = append(e.keyless(), a.variable+"="+g.Hide(a.key))
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		p.env = append(p.env, name+"="+strings.TrimPrefix(variable(e.Env, name)+","+p.at.Addr().String(), ","))
	}
	return nil
}

// keyless returns the environment without keys and addresses of services.
func (e *Engine) keyless() []string {
	names := e.Profile.Variables()
	return slices.DeleteFunc(slices.Clone(e.Env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}
