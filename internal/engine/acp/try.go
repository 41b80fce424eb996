package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/trialmodel"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
)

// tryTime bounds a trial. Agents take up to ten seconds to start where the machine is busy.
const tryTime = 2 * time.Minute

// Try runs the agent for one turn, without a seal, with an invented key and with a service in this process, whose model wants to run a
// command that is refused. No other model is asked, and nothing is charged. fault is what the agent does against its profile; "" if nothing.
// An agent whose service ollim does not know is only asked for its version; one that runs only sealed, because nothing is known of it, is not
// started, and its version is "". The error wraps engine.ErrSetup if the agent cannot be used.
func (e *Engine) Try(ctx context.Context) (version, fault string, err error) {
	if len(e.Profile.Services) == 0 {
		version, err = e.version(ctx)
		return version, "", err
	}
	dir, err := os.MkdirTemp("", "ollim-acp-")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = store.Discard(context.WithoutCancel(ctx), dir) }()
	ctx, stop := context.WithTimeoutCause(ctx, tryTime, fmt.Errorf("%w: it does not end a turn within %s", engine.ErrSetup, tryTime))
	defer stop()
	service, err := trialmodel.Serve(ctx, e.Profile.Try)
	if err != nil {
		return "", "", err
	}
	defer service.Close()
	own, root := e.inTrial(dir, service.URL), filepath.Join(dir, "work")
	r := engine.Request{
		Run: engine.Run{ID: filepath.Base(dir)}, Input: engine.Input{Prompt: "Try the command."}, Scope: engine.Scope{Root: root, BuiltIns: []string{"Bash"}},
	}
	for _, made := range []string{root, own.Home.Run(r.Run.ID)} {
		if err := store.MkdirAll(made); err != nil {
			return "", "", err
		}
	}
	tools, refused := &refusing{}, ""
	_, err = own.Run(ctx, r, tools, func(event runlog.Event) error {
		switch {
		case event.Type == runlog.Session:
			version = event.Version
		case event.Type == runlog.ToolResult && event.IsError:
			refused = event.Text
		}
		return nil
	})
	_, statErr := os.Lstat(filepath.Join(root, "tried"))
	switch {
	case statErr == nil:
		return version, "it runs a command that ollim refuses", nil
	case errors.Is(err, engine.ErrSetup):
		return version, "", err
	case tools.asked.Load(): // however it ends its turn then
		return version, "", nil
	case refused != "":
		return version, "it does not say which command it asks about: " + refused, nil
	case err != nil:
		return version, "", err
	case !service.Offered():
		return version, fmt.Sprintf("it does not offer its model the tool %s", e.Profile.Try.Tool), nil
	}
	return version, "it does not ask before it runs a command", nil
}

// inTrial is the engine with a data directory, a key and a service of its own.
func (e *Engine) inTrial(dir, url string) *Engine {
	t := *e
	service := t.Profile.Services[0]
	t.Home, t.Args, t.AskServers, t.Self = paths.Dir(filepath.Join(dir, "data")), nil, nil, "/bin/false"
	t.Profile.Sealed, t.Profile.Reads = false, nil // it reads what nobody else has written
	t.Env = nil
	for _, entry := range e.keyless() {
		name, _, _ := strings.Cut(entry, "=")
		if upper := strings.ToUpper(name); !strings.HasSuffix(upper, "_PROXY") {
			t.Env = append(t.Env, entry)
		}
	}
	for _, name := range e.Profile.Reads {
		t.Env = append(t.Env, name+"=")
	}
	t.Env = append(t.Env, service.Keys[0]+"=canary", service.Base+"="+url)
	return &t
}

// refusing are the tools of a trial: all uses are refused.
type refusing struct {
	engine.Tools

	asked atomic.Bool // for the command of the trial
}

func (*refusing) List() []engine.Tool { return nil }

func (r *refusing) Verdict(_ context.Context, tool, _ string, input json.RawMessage) (string, error) {
	if tool == "Bash" && strings.Contains(string(input), "touch tried") {
		r.asked.Store(true)
	}
	return "this is a trial: nothing is carried out", nil
}

func (*refusing) Judged() (map[string]bool, error) { return nil, nil }

func (*refusing) Nudge(context.Context) (string, error) { return "", nil }

// version asks an agent without a service for its version.
func (e *Engine) version(ctx context.Context) (string, error) {
	if e.Profile.Name == "" && !e.Trusted {
		return "", nil
	}
	dir, err := os.MkdirTemp("", "ollim-acp-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	f := folder(dir)
	if err := f.begin(ctx, false); err != nil {
		return "", err
	}
	at, err := e.prepare(ctx, engine.Request{}, "none", f)
	if err != nil {
		return "", err
	}
	peer, err := process.Open(process.Call{Argv: e.argv(at.given), Env: at.env, Dir: dir, Tied: true})
	if err != nil {
		return "", fmt.Errorf("%w: %s", engine.ErrSetup, store.Cause(err))
	}
	defer peer.Close(e.Grace)
	t := &turn{stop: func() {}, known: make(chan struct{})}
	t.conn = &conn{out: peer.In, heard: t.heard, waiting: map[int]chan message{}}
	go t.conn.listen(peer.Out)
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	hello, err := e.greet(ctx, t)
	if errors.Is(err, errEnded) {
		err = e.died(peer)
	}
	return hello.Agent.Version, err
}
