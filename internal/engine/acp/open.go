package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/transcript"
)

// greet exchanges the first messages with the agent.
func (e *Engine) greet(ctx context.Context, t *turn) (hello greeting, err error) {
	err = t.conn.call(ctx, "initialize", object{
		"protocolVersion": protocol, "clientInfo": object{"name": "ollim", "version": cmp.Or(e.Client, "0")},
		"clientCapabilities": object{"fs": object{"readTextFile": false, "writeTextFile": false}, "terminal": false},
	}, &hello)
	switch {
	case err != nil:
		return hello, err
	case hello.Version != protocol:
		return hello, fmt.Errorf("%w: %s speaks version %d of the protocol, not %d", engine.ErrSetup, e.Command[0], hello.Version, protocol)
	case e.Profile.Agent != "" && hello.Agent.Name != "" && hello.Agent.Name != e.Profile.Agent:
		return hello, fmt.Errorf("%w: %s is %s, and its profile is that of %s: correct acp.%s.profile in config.yaml", engine.ErrSetup, e.Command[0], hello.Agent.Name, e.Profile.Agent, e.Name)
	case e.Profile.Auth != "":
		err = t.conn.call(ctx, "authenticate", object{"methodId": e.Profile.Auth}, nil)
	}
	return hello, err
}

// prompt returns the content of the first prompt.
func (e *Engine) prompt(r engine.Request, v visit, hello greeting) ([]object, error) {
	text := v.past + engine.Quoted(r.Session.Messages) + r.Input.Prompt
	if v.Seed != "" {
		text = v.Seed + "\n\n" + text
	}
	if strings.HasPrefix(text, "/") { // it would begin a command of the agent's
		text = " " + text
	}
	files, err := r.Input.Shown(limits())
	if err != nil {
		return nil, err
	}
	var list []object
	for _, b := range files {
		if b.Type != transcript.ImageBlock || !hello.Can.Prompt.Image {
			return nil, fmt.Errorf("%w: acp:%s takes no files of the type %s", engine.ErrAttachment, e.Name, b.Source.MediaType)
		}
		list = append(list, object{"type": "image", "mimeType": b.Source.MediaType, "data": b.Source.Content})
	}
	return append(list, object{"type": "text", "text": text}), nil
}

// open begins, continues or branches the agent's session, and chooses its model and mode.
func (e *Engine) open(ctx context.Context, r engine.Request, v *visit, t *turn, hello greeting) error {
	params := t.given.object(e.Profile.Session)
	if t.given["text"] == "" {
		params = object{}
	}
	params["cwd"], params["mcpServers"] = r.Scope.Root, e.servers(r)
	method := "session/new"
	switch {
	case v.begins:
	case v.branch && hello.Can.Session.Fork != nil:
		method = "session/fork"
	case hello.Can.Session.Resume != nil:
		method = "session/resume"
	case hello.Can.Load:
		method = "session/load"
	default:
		return fmt.Errorf("%w: acp:%s cannot continue a session", engine.ErrSetup, e.Name)
	}
	if !v.begins {
		params["sessionId"] = v.Agent
	}
	var o opened
	err := t.conn.call(ctx, method, params, &o)
	if unknown := (*rpcError)(nil); !v.begins && errors.As(err, &unknown) && unknown.Code != authRequired {
		return fmt.Errorf("%w: %s: %s", engine.ErrSessionUnknown, v.ID, err.Error())
	}
	if err != nil {
		return err
	}
	v.Agent, v.Version = cmp.Or(o.ID, v.Agent), hello.Agent.Version
	if v.Agent == "" {
		return fmt.Errorf("%s: the agent gives no session id", method)
	}
	if err := v.write(v.note); err != nil {
		return err
	}
	t.note = v.note
	if begun := method == "session/new" || method == "session/fork"; begun && e.Profile.Title != "" {
		if err := t.conn.call(ctx, e.Profile.Title, object{"sessionId": v.Agent, "title": "ollim"}, nil); err != nil {
			return err
		}
	}
	return errors.Join(e.choose(ctx, r, v, t, o), e.safe(ctx, v, t, o))
}

// choose selects the request's model.
func (e *Engine) choose(ctx context.Context, r engine.Request, v *visit, t *turn, o opened) error {
	t.model, _ = o.option(optionModel)
	t.model = cmp.Or(t.model, o.Models.Current)
	want := r.Model.Name
	if want == "" || want == t.model {
		return nil
	}
	var err error
	if _, has := o.option(optionModel); has {
		err = t.conn.call(ctx, "session/set_config_option", object{"sessionId": v.Agent, "configId": optionModel, "value": want}, nil)
	} else {
		err = t.conn.call(ctx, "session/set_model", object{"sessionId": v.Agent, "modelId": want}, nil)
	}
	if refused := (*rpcError)(nil); errors.As(err, &refused) {
		return fmt.Errorf("%w: acp:%s has no model %s: %s", engine.ErrModel, e.Name, want, err.Error())
	}
	t.model = want
	return err
}

// safe returns an error unless the session is in the mode in which the agent asks.
func (e *Engine) safe(ctx context.Context, v *visit, t *turn, o opened) error {
	want := e.Profile.Mode
	if want == "" || o.mode() == want {
		return nil
	}
	var set opened
	var err error
	_ = t.locked(func() error { t.mode = ""; return nil })
	if _, has := o.option(optionMode); has && o.Modes.Current == "" {
		err = t.conn.call(ctx, "session/set_config_option", object{"sessionId": v.Agent, "configId": optionMode, "value": want}, &set)
	} else {
		err = t.conn.call(ctx, "session/set_mode", object{"sessionId": v.Agent, "modeId": want}, &set)
	}
	if err != nil {
		return fmt.Errorf("%w: acp:%s is in the mode %q and does not change to %q, in which it asks: %s", engine.ErrSetup, e.Name, o.mode(), want, err.Error())
	}
	return t.locked(func() error { // an agent need not report the mode that it was told
		if t.mode = orElse(set.mode(), t.mode); t.unsafe() {
			return t.wrongMode(t.mode)
		}
		return nil
	})
}

// servers returns ollim's tool server and the other MCP servers of the request, which the agent reaches through ollim.
func (e *Engine) servers(r engine.Request) []object {
	env := maps.Clone(e.Located)
	if env == nil {
		env = map[string]string{}
	}
	for _, entry := range r.Run.Env() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	var vars []object
	for _, name := range slices.Sorted(maps.Keys(env)) {
		vars = append(vars, object{"name": name, "value": env[name]})
	}
	entry := func(name string, verb ...string) object {
		return object{"name": name, "command": e.Self, "args": slices.Concat(e.Args, []string{"mcp"}, verb), "env": vars}
	}
	all := []object{entry(policy.OwnServer, "serve")}
	for _, name := range policy.Servers(r.Scope.Servers) {
		all = append(all, entry(name, append([]string{"connect", name}, r.Scope.Servers...)...))
	}
	return all
}
