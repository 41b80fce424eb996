package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/config"
)

// ModelLists is state/cache/models.json: what the services of the engines listed when they were last asked.
type ModelLists struct {
	At    time.Time   `json:"at"` // when they were last asked
	Lists []ModelList `json:"lists"`
}

// ModelList is what the service of one engine listed.
type ModelList struct {
	Engine  string            `json:"engine"`
	Service string            `json:"service"`          // host, and port if it is not the usual one
	Listed  time.Time         `json:"listed,omitzero"`  // when it sent the list; zero: there is none
	Models  []provider.Listed `json:"models,omitempty"` // none if there is no list
	Why     string            `json:"why,omitempty"`    // why the last attempt brought no list

	err error // the service could not be asked
}

// Asked reports whether the service could be asked, as far as this process knows. It may have no list, or be reached by a login only.
func (l ModelList) Asked() bool { return l.err == nil }

// service is the model service of an engine.
type service struct {
	provider.Options
	api  string // config.Anthropic or config.OpenAI
	skip string // why its list is not asked for; "": it is
}

// serviceOf returns the model service of an engine, native or claude-code.
func (h Home) serviceOf(engineName string, atShell bool) (service, error) {
	keys, err := h.credentials(atShell)
	if err != nil {
		return service{}, err
	}
	if engineName == engine.Native {
		c := h.Config.Native
		if c.BaseURL, err = h.app.address(c, keys); err != nil {
			return service{}, err
		}
		o, err := h.app.options(c, keys)
		return service{Options: o, api: c.Provider}, err
	}
	name := keyName(config.Anthropic)
	address, err := h.app.address(config.Service{Provider: config.Anthropic}, keys)
	s := service{Options: provider.Options{BaseURL: address, Key: keys.get(name), KeyName: keys.place(h.app, name)}, api: config.Anthropic}
	if s.Key == "" {
		s.skip = "claude uses its login, and the list needs a key: ollim secret set engine." + name
	}
	return s, err
}

// host returns the host of a service, with its port.
func (s service) host() string {
	u, err := url.Parse(cmp.Or(s.BaseURL, provider.Vendor(s.api)))
	if err != nil {
		return ""
	}
	return u.Host
}

// askTime bounds how long the services of all engines are asked.
const askTime = 20 * time.Second

// AskModels asks the services of the engines in uses for the lists of their models, and keeps them in the cache. It asks no model, so it
// costs nothing. A list that cannot be had now is taken from the cache. The error says which services could not be asked.
func (h Home) AskModels(ctx context.Context, uses []ModelUse, atShell bool) (ModelLists, error) {
	before, now := h.ModelLists(), ModelLists{At: h.Disk.Now().UTC(), Lists: []ModelList{}}
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var failed error
	for _, name := range enginesOf(uses) {
		list := h.askModels(asking, name, atShell)
		if ctx.Err() != nil {
			return before, context.Cause(ctx)
		}
		old := slices.IndexFunc(before.Lists, func(l ModelList) bool { return l.Engine == name && l.Service == list.Service })
		if list.err != nil && old >= 0 {
			list.Models, list.Listed = before.Lists[old].Models, before.Lists[old].Listed
		}
		failed = errors.Join(failed, list.err)
		now.Lists = append(now.Lists, list)
	}
	if err := store.WriteJSON(h.Dir.ModelLists(), now, store.Buffered); err != nil {
		h.app.warn(err.Error())
	}
	return now, failed
}

func (h Home) askModels(ctx context.Context, engineName string, atShell bool) ModelList {
	s, err := h.serviceOf(engineName, atShell)
	l := ModelList{Engine: engineName, Service: s.host(), Why: s.skip}
	if err == nil && s.skip == "" {
		l.Models, err = s.Models(ctx, s.api)
	}
	switch {
	case errors.Is(err, provider.ErrNoList):
		l.Why = err.Error()
	case err != nil:
		l.Why, l.err = err.Error(), fmt.Errorf("%s: %w", engineName, err)
	case s.skip == "":
		l.Listed = h.Disk.Now().UTC()
	}
	return l
}

// ModelLists returns the lists in the cache. A cache that cannot be read is empty.
func (h Home) ModelLists() ModelLists {
	lists, _, err := store.PeekJSON[ModelLists](h.Dir.ModelLists())
	if err != nil {
		return ModelLists{}
	}
	return lists
}

// of returns the list of an engine; ok reports whether there is one.
func (l ModelLists) of(engineName string) (list ModelList, ok bool) {
	i := slices.IndexFunc(l.Lists, func(l ModelList) bool { return l.Engine == engineName && !l.Listed.IsZero() })
	if i < 0 {
		return ModelList{}, false
	}
	return l.Lists[i], true
}

// enginesOf returns the engines of uses, each once.
func enginesOf(uses []ModelUse) (names []string) {
	for _, u := range uses {
		if !slices.Contains(names, u.Engine) {
			names = append(names, u.Engine)
		}
	}
	slices.Sort(names)
	return names
}
