package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// TestMain makes this test binary an agent: "agent", then words that change what it does.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "agent" {
		testkit.Run(m)
		return
	}
	a := &agent{in: bufio.NewReader(os.Stdin), words: strings.Join(os.Args[2:], " "), state: os.Getenv("AGENT_STATE")}
	a.serve()
}

// agent is a small agent. A session is a file of its prompts. A prompt is a list of actions, one on each line.
type agent struct {
	in      *bufio.Reader
	words   string
	state   string
	session string
	mode    string
	uses    int
	cost    float64
}

func (a *agent) is(word string) bool { return strings.Contains(" "+a.words+" ", " "+word+" ") }

func (a *agent) put(v any) {
	line, _ := json.Marshal(v)
	_, _ = os.Stdout.Write(append(line, '\n'))
}

func (a *agent) answer(id json.RawMessage, result any) {
	a.put(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

func (a *agent) fail(id json.RawMessage, code int, text string) {
	a.put(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}})
}

func (a *agent) update(kind string, fields map[string]any) {
	fields["sessionUpdate"] = kind
	a.put(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": a.session, "update": fields}})
}

func (a *agent) say(text string) {
	a.update("agent_message_chunk", map[string]any{"content": map[string]any{"type": "text", "text": text}})
}

func (a *agent) read() (m message) {
	line, err := a.in.ReadBytes('\n')
	if err != nil {
		os.Exit(0)
	}
	_ = json.Unmarshal(line, &m)
	return m
}

func (a *agent) file(session string) string { return filepath.Join(a.state, session) }

func (a *agent) serve() {
	a.mode = "asks"
	for {
		m := a.read()
		var p struct {
			Session string `json:"sessionId"`
			Mode    string `json:"modeId"`
			Prompt  []struct{ Text string }
			Servers []struct{ Name string } `json:"mcpServers"`
		}
		_ = json.Unmarshal(m.Params, &p)
		opened := map[string]any{"modes": map[string]any{"currentModeId": a.mode}}
		switch m.Method {
		case "initialize":
			if a.is("mute") {
				continue
			}
			can := map[string]any{"loadSession": true, "sessionCapabilities": map[string]any{}}
			if !a.is("loads") {
				can["sessionCapabilities"] = map[string]any{"resume": map[string]any{}, "fork": map[string]any{}}
			}
			version := 1
			if a.is("two") {
				version = 2
			}
			a.answer(m.ID, map[string]any{"protocolVersion": version, "agentInfo": map[string]any{"name": "Test", "version": "1.2.3"}, "agentCapabilities": can})
		case "session/new", "session/fork":
			if a.is("yolo") {
				a.mode = "yolo"
			}
			a.session = fmt.Sprintf("s%d", time.Now().UnixNano())
			past := []byte{}
			if m.Method == "session/fork" {
				past, _ = os.ReadFile(a.file(p.Session))
			}
			_ = os.WriteFile(a.file(a.session), past, 0o600)
			opened["sessionId"], opened["modes"] = a.session, map[string]any{"currentModeId": a.mode}
			a.answer(m.ID, opened)
		case "session/load", "session/resume":
			past, err := os.ReadFile(a.file(p.Session))
			if err != nil {
				a.fail(m.ID, -32603, "no such session")
				continue
			}
			if a.session = p.Session; m.Method == "session/load" {
				a.say(string(past))
			}
			a.answer(m.ID, opened)
		case "session/set_mode":
			if !a.is("stubborn") {
				a.mode = p.Mode
			}
			if a.is("first") { // the notification comes before the answer
				a.update("current_mode_update", map[string]any{"currentModeId": a.mode})
			}
			a.answer(m.ID, map[string]any{})
			a.update("current_mode_update", map[string]any{"currentModeId": a.mode})
		case "session/prompt":
			text := ""
			for _, b := range p.Prompt {
				text += b.Text
			}
			a.prompt(m.ID, text)
		default:
			a.fail(m.ID, -32601, "no method")
		}
	}
}

func (a *agent) prompt(id json.RawMessage, text string) {
	past, _ := os.ReadFile(a.file(a.session))
	_ = os.WriteFile(a.file(a.session), append(past, text+"\n"...), 0o600)
	if a.is("sums") && strings.Contains(text, "Summarize this conversation") {
		a.say("the summary")
	}
	for line := range strings.Lines(text) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "say":
			a.say(rest)
		case "past":
			a.say(strings.TrimSpace(string(past)))
		case "env":
			a.say(os.Getenv(rest))
		case "ask":
			status, _ := askModel(fmt.Sprintf(`{"model":%q}`, rest))
			a.say(status)
		case "Try":
			if !a.try() {
				a.answer(id, map[string]any{"stopReason": "end_turn"})
				return
			}
		case "cost":
			a.cost += 0.4
			a.update("usage_update", map[string]any{"used": 1200, "size": 200000, "cost": map[string]any{"amount": a.cost, "currency": "USD"}})
		case "bash":
			if !a.use(rest, true) {
				a.answer(id, map[string]any{"stopReason": "end_turn"})
				return
			}
		case "quiet":
			a.use(rest, false)
		case "unasked":
			a.fails("bash", rest)
		case "unasked-read":
			a.fails("read", rest)
		case "write":
			a.put(map[string]any{"jsonrpc": "2.0", "id": 70, "method": "fs/write_text_file", "params": map[string]any{"path": rest, "content": "x"}})
			if m := a.read(); m.Error != nil {
				a.say(fmt.Sprint(m.Error.Code))
			}
		case "long":
			a.say(strings.Repeat("x", 33<<20))
		case "hang":
			if m := a.read(); m.Method == "session/cancel" {
				a.answer(id, map[string]any{"stopReason": "cancelled"})
				return
			}
		case "away":
			for { // until ollim ends it
				trouble := map[string]any{"message": "waiting for network", "additionalDetails": "connection refused"}
				a.update("session_info_update", map[string]any{"_meta": map[string]any{"codex": map[string]any{"error": trouble}}})
				time.Sleep(50 * time.Millisecond)
			}
		case "cut":
			a.answer(id, map[string]any{"stopReason": "max_tokens"})
			return
		case "die":
			_, _ = fmt.Fprintln(os.Stderr, rest)
			os.Exit(3)
		case "fail":
			a.fail(id, -32603, rest)
			return
		}
	}
	if a.is("free") {
		a.answer(id, map[string]any{"stopReason": "end_turn"})
		return
	}
	a.answer(id, map[string]any{"stopReason": "end_turn", "usage": map[string]any{"inputTokens": 1000, "outputTokens": 10}})
}

// fails uses a tool, which fails with a text, and does not ask.
func (a *agent) fails(tool, text string) {
	a.uses++
	fields := map[string]any{"toolCallId": fmt.Sprintf("u%d", a.uses), "title": tool, "status": "in_progress"}
	a.update("tool_call", fields)
	fields["status"], fields["rawOutput"] = "failed", map[string]any{"error": text}
	a.update("tool_call_update", fields)
}

// askModel sends a request to the service, and returns the status and the answer of the model.
func askModel(request string) (status, answer string) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, os.Getenv("AGENT_BASE")+"/messages", strings.NewReader(request))
	if err != nil {
		return err.Error(), ""
	}
	r.Header.Set("X-Api-Key", os.Getenv("TEST_KEY"))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error(), ""
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	return resp.Status, string(body)
}

// try does what the model wants, and reports false if that was refused. An agent that is bold does not ask, a deaf one does it all the same,
// and a timid one neither asks nor does it.
func (a *agent) try() bool {
	offered := `,"tools":[{"name":"bash"}]`
	if a.is("toolless") {
		offered = ""
	}
	_, answer := askModel(`{"model":"claude-test-1"` + offered + `}`)
	if !strings.Contains(answer, "touch tried") {
		return true
	}
	asks := !a.is("bold") && !a.is("timid")
	allowed := a.use("touch tried", asks)
	if a.is("bold") || a.is("deaf") {
		_ = os.WriteFile("tried", nil, 0o600)
	}
	return allowed
}

// use uses the tool bash, and reports false if that was refused. The input comes after the request.
func (a *agent) use(command string, asks bool) bool {
	a.uses++
	id := fmt.Sprintf("u%d", a.uses)
	a.update("tool_call", map[string]any{"toolCallId": id, "title": "bash", "kind": "execute", "status": "pending", "rawInput": map[string]any{}})
	allowed := true
	if asks {
		a.put(map[string]any{"jsonrpc": "2.0", "id": a.uses, "method": "session/request_permission", "params": map[string]any{
			"sessionId": a.session, "toolCall": map[string]any{"toolCallId": id, "title": command, "rawInput": map[string]any{}},
			"options": []any{
				map[string]any{"optionId": "for ever", "kind": "allow_always"}, map[string]any{"optionId": "never", "kind": "reject_always"},
				map[string]any{"optionId": "yes", "kind": "allow_once"}, map[string]any{"optionId": "no", "kind": "reject_once"},
			},
		}})
		a.update("tool_call_update", map[string]any{"toolCallId": id, "rawInput": map[string]any{"command": command}})
		var r struct{ Outcome struct{ OptionID string } }
		_ = json.Unmarshal(a.read().Result, &r)
		if allowed = r.Outcome.OptionID == "yes"; !allowed && r.Outcome.OptionID != "no" {
			a.say("chose " + r.Outcome.OptionID)
		}
	} else {
		a.update("tool_call_update", map[string]any{"toolCallId": id, "status": "in_progress", "rawInput": map[string]any{"command": command}})
	}
	status, text := "completed", "did "+command
	if !allowed {
		status, text = "failed", "rejected"
	}
	a.update("tool_call_update", map[string]any{"toolCallId": id, "status": status, "content": []any{map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": text}}}})
	return allowed
}
