// Package setup prepares an installation: it finds what is there, makes the files, stores settings and secrets, sends a test message and
// writes a first routine, and it knows what is still to be done. It asks nothing and prints nothing.
package setup

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/config"
)

// None is the answer that declines everything that is offered.
const None = "none"

// Setup is an installation that is being set up.
type Setup struct {
	Doctor doctor.Doctor
	App    *app.App
	Dir    paths.Dir
	Home   app.Home // from Make on
	Fresh  bool     // there were no settings
}

// New returns the set-up of the data directory of an App.
func New(d doctor.Doctor) (*Setup, error) {
	dir, err := d.App.Dir()
	return &Setup{Doctor: d, App: d.App, Dir: dir, Fresh: !store.Exists(d.App.ConfigFile(dir))}, err
}

// Answers are what the flags or the owner say about the settings; "" means no answer.
type Answers struct {
	Zone, Engine string
	Service      Service
}

// Service is the service of an engine.
type Service struct{ Provider, URL, Model string }

// Serves returns the engine that the answers are about: the one they name, else the configured one. Without any, a service is the native
// engine's, and a new installation has the claude command if there is one.
func (s *Setup) Serves(a Answers) string {
	if a.Engine != "" {
		return a.Engine
	}
	if c, err := s.App.Config(); err == nil && c.Engine != "" && !s.Fresh {
		return c.Engine
	}
	switch {
	case a.Service != Service{}:
		return engine.Native
	case s.Fresh && s.App.FindClaude() != "":
		return engine.ClaudeCode
	}
	return ""
}

// Settings returns the lines of config.yaml that the answers mean, each checked. In a new config.yaml the zone of the system and the claude
// command replace missing answers. The error is a *config.Wrong, whose origin is the setting.
func (s *Setup) Settings(a Answers) (map[string]string, error) {
	set := map[string]string{"timezone": ZoneOf(a.Zone), "native.provider": a.Service.Provider, "native.model": a.Service.Model}
	about, command := s.Serves(a), s.App.FindClaude()
	if s.Fresh || a.Engine != "" || a.Service != (Service{}) && about == engine.Native {
		set["engine"] = about
	}
	if about == None {
		delete(set, "engine")
	}
	if s.Fresh {
		set["timezone"] = cmp.Or(set["timezone"], s.App.SystemZone())
	}
	if about != engine.ClaudeCode {
		set["native.base-url"] = a.Service.URL
	} else if s.Fresh && command != "" {
		set["claude-code.command"], set["env"] = command, quotedList(s.App.ClaudeEnv())
	}
	maps.DeleteFunc(set, func(_, value string) bool { return value == "" })
	checked := maps.Clone(set)
	checked["native.base-url"] = a.Service.URL // even if it becomes a secret
	for key, value := range checked {
		if err := config.Check(key, value); value != "" && err != nil {
			return nil, &config.Wrong{Origin: key, Reason: err.Error()}
		}
	}
	return set, nil
}

// quotedList returns a list as written in config.yaml.
func quotedList(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = strconv.Quote(item)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// Make makes the directories and the files that are not there, changes the settings of a config.yaml that was there before, and opens the
// data directory. It returns the names of the files that it made.
func (s *Setup) Make(ctx context.Context, a Answers) (made []string, err error) {
	set, err := s.Settings(a)
	if err != nil {
		return nil, err
	}
	for _, folder := range s.Dir.Folders() {
		if err := store.MkdirAll(folder); err != nil {
			return nil, err
		}
	}
	for _, file := range []struct{ path, text string }{{s.App.ConfigFile(s.Dir), config.Template(set)}, {s.Dir.ToolPolicy(), emptyPolicy}} {
		switch err := store.Create(file.path, []byte(file.text)); {
		case err == nil:
			made = append(made, filepath.Base(file.path))
		case !errors.Is(err, fs.ErrExist):
			return made, err
		}
	}
	if err := s.Refresh(); err != nil || s.Fresh {
		return made, err
	}
	if set["engine"] == engine.ClaudeCode {
		if _, err := s.Home.UseClaude(ctx); err != nil {
			return made, err
		}
	}
	for _, key := range append(slices.Sorted(maps.Keys(set)), "engine") { // the engine comes last, when its service is set
		if value, given := set[key]; given && err == nil {
			err = s.Home.Set(ctx, key, value)
		}
	}
	return made, errors.Join(err, s.Refresh())
}

// emptyPolicy gives no tools. It exists so that a program that downloads a file of that name cannot create it.
const emptyPolicy = `# Additional tools for all runs, see tool-policy.yaml in ollim-routine(5).
# A change has no effect until you approve it: ollim approve tool-policy.yaml
# main:
#   additional-allowed: ["Bash(git log *)"]
# background:
#   additional-allowed: [WebSearch]
`

// Refresh reads the settings again.
func (s *Setup) Refresh() (err error) {
	s.Home, err = s.App.Home()
	return err
}

// SetKey stores the key of the engine, and the address of the service of the claude command. "" leaves either unchanged, and the address
// config.Anthropic means the vendor's own. It returns the name of the secret that holds the key. from is the variable in which the key was
// found, if any.
func (s *Setup) SetKey(ctx context.Context, key, address, from string) (name string, err error) {
	variable, _, err := s.Home.EngineKey(ctx)
	if err == nil && variable == "" {
		err = &app.BadArgument{Reason: "the engine " + cmp.Or(s.Home.Config.Engine, None) + " needs no key"}
	}
	name = "engine." + variable
	if given := "engine." + from; s.Home.Config.Engine == engine.ClaudeCode && slices.Contains(config.KnownSecrets(), given) {
		name = given // such as CLAUDE_CODE_OAUTH_TOKEN
	}
	switch {
	case err != nil || address == "" || s.Home.Config.Engine != engine.ClaudeCode:
	case address == config.Anthropic:
		_, err = s.App.RemoveSecret(ctx, addressSecret)
	default:
		// The claude command appends /v1 itself.
		err = s.App.SetSecret(ctx, addressSecret, strings.TrimSuffix(strings.TrimRight(address, "/"), "/v1"))
	}
	if err == nil && key != "" {
		err = s.App.SetSecret(ctx, name, key)
	}
	return name, errors.Join(err, s.Refresh())
}

// addressSecret is the secret from which the claude command gets the address of its service.
const addressSecret = "engine.ANTHROPIC_BASE_URL"
