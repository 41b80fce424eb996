package app

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/native"
	"github.com/ollim/ollim/internal/engine/native/builtin"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/config"
)

func (h Home) native(atShell bool) (engine.Engine, error) {
	keys, err := h.credentials(atShell)
	if err != nil {
		return nil, err
	}
	table, err := h.Models()
	if err != nil {
		return nil, err
	}
	c := h.Config.Native
	var noModel error
	if model, err := h.Config.Get("native.model"); err == nil && model.Origin == "default" && c.Provider == config.OpenAI {
		noModel = Hint(&config.Wrong{Reason: "native.model is not set: " + c.Model + " is not a model of this provider"}, "ollim config set native.model MODEL")
		c.Model = ""
	}
	if c.BaseURL, err = h.app.address(c, keys); err != nil {
		return nil, err
	}
	service, err := h.app.service(c, keys)
	if err != nil {
		return nil, err
	}
	return &native.Engine{
		Sessions: h.Dir.Sessions(), Service: native.Service{Provider: service, Name: c.Provider, Local: isLocal(c.BaseURL)},
		Model: c.Model, NoModel: noModel, Models: table, MaxTokens: c.MaxTokens,
		Tools: func(r engine.Request) native.BuiltIns { return h.builtIns(r) },
		Now:   h.app.Now, Locks: h.Disk.Locks, Sleep: h.app.Sleep, Random: h.app.Random,
	}, nil
}

// address returns where the service is: native.base-url, else ANTHROPIC_BASE_URL or OPENAI_BASE_URL of the credentials; "" is the
// provider's own.
func (a *App) address(c config.Service, keys credentials) (string, error) {
	name := strings.Replace(keyName(c.Provider), "API_KEY", "BASE_URL", 1)
	address := keys.get(name)
	if c.BaseURL != "" || address == "" {
		return c.BaseURL, nil
	}
	if err := config.CheckURL(address); err != nil {
		return "", &config.Wrong{Reason: fmt.Sprintf("%s: %v", keys.place(a, name), err)}
	}
	return address, nil
}

// service returns the API that the native engine talks to. Only a service on this machine needs no key.
func (a *App) service(c config.Service, keys credentials) (provider.Provider, error) {
	name := keyName(c.Provider)
	key := keys.get(name)
	if key == "" && !isLocal(c.BaseURL) {
		err := fmt.Errorf("%w: no key for %s: %s", engine.ErrUnavailable, cmp.Or(c.BaseURL, c.Provider), keys.sought(a, name))
		return nil, a.keyHint(err, name)
	}
	o := provider.Options{BaseURL: c.BaseURL, Key: key, KeyName: keys.place(a, name)}
	if c.Provider == config.OpenAI {
		return provider.NewOpenAI(o), nil
	}
	return provider.NewAnthropic(o), nil
}

// isLocal reports whether a service runs on this machine.
func isLocal(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// builtIns returns the native engine's own tools for one request. Its commands get the environment of all commands and the id of
// their run, never the keys.
func (h Home) builtIns(r engine.Request) *builtin.Box {
	env := slices.DeleteFunc(append(h.ProgramEnv(), r.Run.Env()...), func(kv string) bool {
		return strings.HasPrefix(kv, "ANTHROPIC_API_KEY=") || strings.HasPrefix(kv, "OPENAI_API_KEY=")
	})
	if self, err := os.Executable(); err == nil { // cron's PATH does not have ollim
		for i, entry := range env {
			if strings.HasPrefix(entry, "PATH=") {
				env[i] = entry + string(os.PathListSeparator) + filepath.Dir(self)
			}
		}
	}
	box := &builtin.Box{
		Roots:     append([]policy.Root{{Dir: r.Scope.Root, Writable: true}}, r.Scope.Dirs...),
		Protected: r.Scope.Protected, Secrets: h.secrets(), Env: env, Hold: r.Run.Locks, Shared: r.Scope.Root != string(h.Dir),
	}
	for _, text := range r.Scope.Allow {
		if p, err := policy.Parse(text); err == nil { // an invalid pattern allows nothing
			box.Allow = append(box.Allow, p)
		}
	}
	box.Open()
	return box
}
