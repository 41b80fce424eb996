package app

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/skill"
)

// ModelUse is a use of a model: by a job, or by a setting or file that names it.
type ModelUse struct {
	By     string // id of a job, key of a setting, agents/NAME.md, or claude-code for the default of that engine
	Name   string // of a job, for people; "" for anything else
	Engine string
	Model  model.Model // its ID is what the service is asked for

	remedy string // changes the model
}

// ModelUses returns the uses of models, the settings first. Jobs that are disabled or need no model have none, and neither have those whose
// engine asks no service. Job files that are invalid are omitted.
func (h Home) ModelUses() ([]ModelUse, error) {
	table, err := h.Models()
	if err != nil {
		return nil, err
	}
	set, err := h.Jobs.Load()
	if err != nil {
		return nil, err
	}
	u := uses{home: h, table: table, defaults: map[string]bool{}}
	u.add(ModelUse{By: "chat.model", Engine: h.Config.Engine, remedy: setModel("chat.model")}, h.Config.Chat.Model)
	for _, name := range h.Config.Fallback {
		u.add(ModelUse{By: "fallback", Engine: h.Config.Engine, remedy: setModel("fallback")}, name)
	}
	for _, j := range set.Jobs {
		if j.Enabled && !j.Plain {
			u.addJob(j)
		}
	}
	for _, name := range skill.AgentNames(h.Dir) {
		if a, err := skill.LoadAgent(h.Dir, name); err == nil && a.Model != "" {
			file := "agents/" + name + ".md"
			u.add(ModelUse{By: file, Engine: h.Config.Engine, remedy: "change model in " + file}, a.Model)
		}
	}
	if u.defaults[engine.Native] {
		native := ModelUse{By: "native.model", Engine: engine.Native, remedy: setModel("native.model")}
		u.list = slices.Insert(u.list, 0, native.of(table, h.defaultModel(engine.Native))...)
	}
	if u.defaults[engine.ClaudeCode] {
		claude := ModelUse{By: engine.ClaudeCode, Engine: engine.ClaudeCode, remedy: setModel("chat.model")}
		u.list = slices.Insert(u.list, 0, claude.of(table, h.defaultModel(engine.ClaudeCode))...)
	}
	return u.list, nil
}

// Remedy returns what changes the model: a command, with MODEL in the place of the new one, or a sentence.
func (use ModelUse) Remedy() string { return use.remedy }

func setModel(key string) string { return "ollim config set " + key + " MODEL" }

// uses collects uses.
type uses struct {
	home     Home
	table    model.Table
	list     []ModelUse
	defaults map[string]bool // engines whose default model is used
}

// add adds a use of the model of a name; "" is the engine's default, which is a use by the engine.
func (u *uses) add(use ModelUse, name string) {
	if name == "" {
		u.defaults[use.Engine] = true
		return
	}
	u.list = append(u.list, use.of(u.table, name)...)
}

// addJob adds the use by a job, also if it has the model from a setting.
func (u *uses) addJob(j job.Job) {
	use := ModelUse{By: j.ID, Name: j.Name(), Engine: cmp.Or(j.Engine, u.home.Config.Engine)}
	use.remedy = "ollim " + string(j.Kind) + " edit " + j.ID
	if j.Kind == job.Reminder {
		use.remedy = "change model in " + j.Path
	}
	for _, other := range j.Fallback {
		u.add(use, other)
	}
	name := j.Model
	if name == "" && j.Mode() == job.Foreground && u.home.Config.Chat.Model != "" {
		name, use.remedy = u.home.Config.Chat.Model, setModel("chat.model")
	}
	if name == "" {
		u.defaults[use.Engine] = true
		if name = u.home.defaultModel(use.Engine); name == "" {
			return
		}
		if use.Engine == engine.Native {
			use.remedy = setModel("native.model")
		}
	}
	u.list = append(u.list, use.of(u.table, name)...)
}

// of returns the use with its model. There is none if no service is asked for a model of that name.
func (use ModelUse) of(table model.Table, name string) []ModelUse {
	switch use.Engine {
	case engine.ClaudeCode:
		name, _, _ = strings.Cut(name, "[") // a window, as in opus[1m]
		if slices.Contains([]string{"default", "inherit", "opusplan"}, name) {
			return nil // the command chooses
		}
	case engine.Native:
		if name == "inherit" {
			return nil
		}
	default:
		return nil
	}
	if name == "" {
		return nil
	}
	use.Model = table.Resolve(name)
	return []ModelUse{use}
}
