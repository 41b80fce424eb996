package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
)

// The canary's prompts, and the marks that it puts where the command must not look.
const (
	canaryModel  = "claude-haiku-4-5" // all tested versions have its price
	canaryPrompt = "Look at the file."
	canaryFile   = "file.txt"
	secretText   = "text of the canary's file"
	plantedText  = "text that the canary has planted"
)

// canarySystem returns the system prompts of the session's turns.
func canarySystem() []string { return []string{"First system prompt.", "Second system prompt."} }

// canary runs the command for two turns of one session, without a seal, against a service in this process and with an invented key.
// Nothing leaves the machine and nothing is charged. In each turn the model asks for two tool uses, and the hook denies both. It returns
// what the command does differently from what ollim relies on; "" if nothing.
func (e *Engine) canary(ctx context.Context, known Known) (fault string, err error) {
	cache := filepath.Dir(e.Home.ClaudeContract())
	if err := store.MkdirOwn(cache); err != nil {
		return "", err
	}
	left, _ := filepath.Glob(filepath.Join(cache, "canary-*")) // directories of trials that were killed; no other process runs a trial now
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
	dir, err := os.MkdirTemp(cache, "canary-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	service, err := newService(ctx)
	if err != nil {
		return "", err
	}
	defer service.Close()
	trial, err := e.trial(dir, service.URL)
	if err != nil {
		return "", err
	}
	var costs []float64
	session := engine.Session{}
	for i, system := range canarySystem() {
		service.begin(i, trial.listening)
		made, err := trial.turn(ctx, known, session, system)
		switch fault := service.fault(i, err); {
		case made != nil && made.fatal != nil: // the reason why ollim stopped the command
			return strings.TrimPrefix(made.fatal.Error(), engine.ErrUnavailable.Error()+": "), nil
		case fault != "":
			return fault, nil
		case err != nil:
			return "", err
		}
		costs, session = append(costs, made.result.Cost), engine.Session{ID: made.result.Session}
	}
	return misbooked(costs, trial.price(service)), nil
}

// misbooked compares the recorded costs of the turns, which are equal, with each other and with their price, in USD.
func misbooked(costs []float64, price float64) string {
	for i, cost := range costs {
		if math.Abs(cost-price) > price/10 {
			return fmt.Sprintf("turn %d of a session is booked at %s USD, and its requests cost %s", i+1, engine.USD(cost), engine.USD(price))
		}
	}
	return ""
}

// trial is an engine with a data directory of its own.
type trial struct {
	Engine
	run  string // unique id of the run, by which processes of the command are found
	root string // working directory
}

// trial prepares a data directory with files that the command must not read, and a hook that denies every tool.
func (e *Engine) trial(dir, url string) (*trial, error) {
	t := &trial{Engine: *e, run: filepath.Base(dir), root: filepath.Join(dir, "work")}
	t.Effort = "low"
	t.Home, t.Args, t.AskServers, t.Secrets = paths.Dir(filepath.Join(dir, "data")), nil, nil, nil
	t.Self = filepath.Join(dir, "hook")
	config, temporary := filepath.Join(dir, "config"), filepath.Join(dir, "tmp")
	t.Env = slices.DeleteFunc(slices.Clone(e.Env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		upper := strings.ToUpper(name)
		return slices.Contains(e.Secrets, name) || strings.HasPrefix(upper, "ANTHROPIC_") || strings.HasPrefix(upper, "CLAUDE_") ||
			strings.HasPrefix(upper, "AWS_") || strings.HasSuffix(upper, "_PROXY")
	})
	t.Env = append(t.Env, "TMPDIR="+temporary, configVariable+"="+config, "ANTHROPIC_BASE_URL="+url, "ANTHROPIC_API_KEY=canary")
	for _, made := range []string{t.Home.Run(t.run), config, temporary, filepath.Join(t.root, ".claude")} {
		if err := store.MkdirAll(made); err != nil {
			return nil, err
		}
	}
	denied := `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"canary"}}`
	files := map[string]string{
		t.Self:                             "#!/bin/sh\ncase $* in 'hook pre-tool') echo '" + denied + "' ;; mcp*) exit 1 ;; esac\n",
		filepath.Join(t.root, canaryFile):  secretText,
		filepath.Join(t.root, "CLAUDE.md"): plantedText,
		filepath.Join(t.root, "AGENTS.md"): plantedText,
		filepath.Join(config, "CLAUDE.md"): plantedText,
		filepath.Join(t.root, ".mcp.json"): `{"mcpServers":{"planted":{"command":"` + t.Self + `"}}}`,
		filepath.Join(config, "settings.json"): `{"permissions":{"allow":["Read","Bash"]},"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"echo ` +
			plantedText + `"}]}]}}`,
	}
	syscall.ForkLock.RLock() // a process that is being forked holds descriptors open for writing, and the programs would be busy
	defer syscall.ForkLock.RUnlock()
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// turn runs the command for one prompt.
func (t *trial) turn(ctx context.Context, known Known, session engine.Session, system string) (*turn, error) {
	r := engine.Request{
		Run: engine.Run{ID: t.run}, Input: engine.Input{System: system, SystemOnly: true, Prompt: canaryPrompt}, Session: session,
		Model: engine.Model{Name: canaryModel}, Scope: engine.Scope{Root: t.root, BuiltIns: canaryTools()},
	}
	id := session.ID
	from := source{}
	if id == "" {
		id = newUUID()
		from = anew(id)
	} else {
		var err error
		if from, err = t.resume(known, id, id, false); err != nil {
			return nil, err
		}
	}
	made := &turn{
		want: wanted{session: id, settings: inForce(t.run), serverless: true}, cost: t.costs(engine.Request{}, from.past), sink: func(runlog.Event) error { return nil },
	}
	return made, t.start(ctx, r, known, from, input{text: canaryPrompt}, made)
}

// price returns the price of one turn by the table of models, in USD.
func (t *trial) price(s *service) float64 {
	total := 0.0
	for range s.asked(0) {
		cost, _ := t.Models.Resolve(canaryModel).Cost(canaryUsage())
		total += cost
	}
	return total
}

// listening returns the addresses at which processes of the command accept connections.
func (t *trial) listening() (found []string) {
	for _, p := range process.Carrying("OLLIM_RUN=" + t.run) {
		found = append(found, process.Listening(p.PID)...)
	}
	return found
}

// judge returns what is wrong with the requests of one turn; "" if nothing. ended says whether the turn ended normally.
func judge(turn int, requests []asked, ended bool) string {
	for _, q := range requests {
		if fault := q.fault(turn); fault != "" {
			return fault
		}
	}
	if !ended {
		return ""
	}
	if n := len(requests); n != 2 {
		return fmt.Sprintf("a turn with tools made %d requests, not 2", n)
	}
	for _, b := range requests[1].results() {
		if !b.IsError {
			return "a tool use that the hook denied was carried out"
		}
	}
	if len(requests[1].results()) != len(canaryTools()) {
		return "the model is not told that its tool uses were denied"
	}
	return ""
}

// fault returns what is wrong with one request.
func (q asked) fault(turn int) string {
	system, raw := canarySystem(), string(q.raw)
	switch {
	case len(q.listening) > 0:
		return "it accepts connections at " + strings.Join(q.listening, ", ")
	case !strings.Contains(string(q.System), system[turn]):
		return "a changed system prompt does not arrive"
	case turn > 0 && strings.Contains(string(q.System), system[0]):
		return "an earlier system prompt is sent as well"
	case !slices.Equal(q.tools(), canaryTools()):
		return fmt.Sprintf("the model is offered the tools %q, not %q", q.tools(), canaryTools())
	case strings.Contains(raw, plantedText):
		return "it reads instructions or settings that ollim did not pass"
	case strings.Contains(raw, secretText):
		return "a tool use that the hook denied was carried out"
	}
	for _, text := range q.said() {
		if text != canaryPrompt {
			return fmt.Sprintf("the model is told what neither ollim nor the model said: %.60q", text)
		}
	}
	return ""
}

// said returns the texts of the user's messages, without reminders that the command adds.
func (q asked) said() (texts []string) {
	for _, m := range q.Messages {
		if m.Role != "user" {
			continue
		}
		parts := blocksOf(m.Content)
		for _, b := range parts {
			text := strings.TrimSpace(b.Text)
			reminder := strings.HasPrefix(text, "<system-reminder>") && strings.HasSuffix(text, "</system-reminder>")
			if b.Type == "text" && text != "" && !reminder {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// results returns the tool results in the last message that has any.
func (q asked) results() (results []block) {
	for _, m := range q.Messages {
		found := slices.DeleteFunc(blocksOf(m.Content), func(b block) bool { return b.Type != "tool_result" })
		if len(found) > 0 {
			results = found
		}
	}
	return results
}

// blocksOf returns the blocks of a message's content, which may also be a string.
func blocksOf(content json.RawMessage) (parts []block) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	_ = json.Unmarshal(content, &parts) // content that cannot be parsed has no blocks
	return parts
}
