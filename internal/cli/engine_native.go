package cli

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/builtin"
	"github.com/ollim/ollim/internal/config"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/native"
	"github.com/ollim/ollim/internal/provider"
	"github.com/ollim/ollim/internal/toolpolicy"
)

func (d *Deps) native(h house) (engine.Engine, error) {
	secrets, err := d.loadSecrets()
	if err != nil {
		return nil, &configFault{err}
	}
	table, err := h.models()
	if err != nil {
		return nil, err
	}
	c, env := h.config.Native, slices.Concat(d.childEnv(h.config), secrets.For("engine"))
	var noModel error
	if model, err := h.config.Get("native.model"); err == nil && model.Origin == "default" && c.Provider == config.OpenAI {
		noModel = hint(&config.Wrong{Reason: "native.model is not set: " + c.Model + " is none of this provider's"}, "ollim config set native.model MODEL")
		c.Model = ""
	}
	service, err := d.service(c, env)
	if err != nil {
		return nil, err
	}
	return &native.Engine{
		Sessions: h.home.Sessions(), Service: service, Provider: c.Provider, Local: isLocal(c.BaseURL),
		Model: c.Model, NoModel: noModel, Models: table, MaxTokens: c.MaxTokens,
		Tools: func(r engine.Request) native.BuiltIns { return d.builtIns(h, r) },
		Now:   d.Now, Sleep: d.Sleep, Random: d.Random,
	}, nil
}

// service is the API that the native engine talks to. Only a service on this machine needs no key.
func (d *Deps) service(c config.Service, env []string) (provider.Provider, error) {
	name := "ANTHROPIC_API_KEY"
	if c.Provider == config.OpenAI {
		name = "OPENAI_API_KEY"
	}
	key := ""
	for _, entry := range env {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			key = value
		}
	}
	if key == "" && !isLocal(c.BaseURL) {
		err := fmt.Errorf("%w: no key for %s: %s is not set", engine.ErrUnavailable, cmp.Or(c.BaseURL, c.Provider), name)
		return nil, hint(err, "put the line engine.%s=… into %s, mode 600", name, d.secretsFile())
	}
	o := provider.Options{BaseURL: c.BaseURL, Key: key, KeyName: fmt.Sprintf("engine.%s in %s", name, d.secretsFile())}
	if c.Provider == config.OpenAI {
		return provider.NewOpenAI(o), nil
	}
	return provider.NewAnthropic(o), nil
}

// isLocal says whether a service runs on this machine.
func isLocal(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// builtIns is the native engine's own tools for one request. Commands get what commands of ours get, and know their run; never
// the keys.
func (d *Deps) builtIns(h house, r engine.Request) *builtin.Box {
	env := slices.DeleteFunc(append(d.programEnv(h), r.Env()...), func(kv string) bool {
		return strings.HasPrefix(kv, "ANTHROPIC_API_KEY=") || strings.HasPrefix(kv, "OPENAI_API_KEY=")
	})
	if self, err := os.Executable(); err == nil { // cron's PATH does not lead to us
		for i, entry := range env {
			if strings.HasPrefix(entry, "PATH=") {
				env[i] = entry + string(os.PathListSeparator) + filepath.Dir(self)
			}
		}
	}
	return &builtin.Box{
		Roots:     append([]toolpolicy.Root{{Dir: r.Root, Writable: true}}, r.Dirs...),
		Protected: r.Protected, Env: env, Hold: r.Hold, Shared: r.Root != string(h.home),
	}
}
