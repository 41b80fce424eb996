// Package acp runs agents that speak the Agent Client Protocol as engines: one process of the agent for each turn, which this process
// talks to over its standard streams. The protocol lets an agent decide itself what it asks for. So the seal is the boundary; requests for
// permission are judged by the patterns of the run as far as the agent makes them; what the agent does with ollim goes through `ollim mcp
// serve`, where control is exact. What an agent cannot promise is in its Profile.
package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Engine is one agent and its configuration.
type Engine struct {
	Name    string   // NAME in acp:NAME
	Command []string // the program is an absolute path
	Profile Profile
	Trusted bool     // the owner lets an agent without a profile run unsealed
	Self    string   // absolute path of ollim, for the tool server
	Args    []string // arguments of Self before the verb, such as --data-dir
	Env     []string // the whole environment, as KEY=value; nothing is inherited
	Home    paths.Dir
	Grace   time.Duration // time for each step of a stop
	Sought  string        // places where a key was looked for, for an error message
	Models  model.Table
	Disk    store.Disk
	Idle    time.Duration     // longest silence of the agent; 0: by the time that the run has left
	Client  string            // version of ollim
	Located map[string]string // see claudecode.Engine

	// AskServers finds out the tools of the request's MCP servers, and returns why servers cannot be used; nil: there are no servers.
	AskServers func(context.Context, engine.Request) map[string][]string
}

// Guarantees returns what the agent's profile promises, and what a gateway to the service of a model does.
func (e *Engine) Guarantees(model string) engine.Guarantees {
	g := e.Profile.Promises
	g.Asks = cmp.Or(g.Asks, engine.AsksNothing)
	_, g.Key = e.access(model)
	g.MaxCost = g.Key
	return g
}

// Plan returns the model and the tools of ollim that the agent is offered. The agent's own tools are not known.
func (e *Engine) Plan(r engine.Request, tools engine.Tools) (engine.Plan, error) {
	p := engine.Plan{Model: r.Model.Name}
	for _, tool := range tools.List() {
		p.Tools = append(p.Tools, "mcp__"+policy.OwnServer+"__"+tool.Name)
	}
	p.Tools = append(p.Tools, r.Scope.Servers...)
	slices.Sort(p.Tools)
	err := e.own(r.Session.ID)
	if err == nil && r.Session.ID != "" {
		_, err = e.folder(r.Session.ID).read()
	}
	return p, err
}

// Run starts or continues a session with one prompt.
func (e *Engine) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (result engine.Result, err error) {
	if err := errors.Join(e.own(r.Session.ID), e.fit(r)); err != nil {
		return result, err
	}
	if missing := e.NoKey(); missing != "" && len(e.Profile.Keys) == 1 { // agents of many services have keys that ollim does not know
		return result, fmt.Errorf("%w: acp:%s: %s", engine.ErrNoKey, e.Name, missing)
	}
	if r, err = command.Reserve(ctx, r); err != nil {
		return result, err
	}
	if err := e.shorten(ctx, &r, &result, sink); err != nil {
		return result, err
	}
	s, err := e.enter(ctx, r)
	if err != nil {
		return result, err
	}
	defer s.leave(ctx, r.Session.Begins() && !r.Session.Kept())
	t := &turn{tools: tools, delta: r.Input.Delta, most: r.Limits.MaxTurns}
	t.sink = sink.Collect(&result.Messages)
	if e.AskServers != nil && len(r.Scope.Servers) > 0 {
		if err := sink.ReportServers(e.AskServers(ctx, r)); err != nil {
			return result, err
		}
	}
	err = e.talk(ctx, r, s, t, func(ctx context.Context) error { return e.work(ctx, r, s, t) })
	result.Session, result.Text, result.Cost, result.Usage = s.ID, t.text, result.Cost+t.cost.booked, result.Usage.Add(t.cost.usage)
	err = errors.Join(err, s.record(e, r, result, t))
	if err != nil {
		return result, err
	}
	return result, sink(runlog.Event{Type: runlog.Result, Text: result.Text})
}

// fit returns an error for a request that the agent cannot be given.
func (e *Engine) fit(r engine.Request) error {
	_, gated := e.access(r.Model.Name)
	switch {
	case r.Limits.Strict && !gated:
		return fmt.Errorf("%w: acp:%s reaches the service of the model %s without the gateway of ollim, so the job's cost limit cannot be enforced", engine.ErrSetup, e.Name, r.Model.Name)
	case r.Scope.Subagent != nil:
		return fmt.Errorf("%w: acp:%s cannot delegate to the subagent %s", engine.ErrSetup, e.Name, r.Scope.Subagent.Name)
	case r.Session.Fork && !e.Profile.Promises.Branch:
		return fmt.Errorf("%w: acp:%s cannot branch a session", engine.ErrSetup, e.Name)
	case e.Profile.Sealed && r.Scope.Seal == nil:
		return fmt.Errorf("%w: acp:%s can change its own settings, so it runs only sealed: remove `seal: off`, or use Linux 6.12 or later", engine.ErrSetup, e.Name)
	case e.Profile.Name != "" && r.Scope.Offline && !gated:
		return fmt.Errorf("%w: with network: none acp:%s reaches no model service, because it needs the gateway of ollim for that: leave network out", engine.ErrSetup, e.Name)
	case e.Profile.Name == "" && !e.Trusted && (r.Scope.Seal == nil || !r.Scope.Offline):
		return fmt.Errorf("%w: acp:%s has no profile, so ollim does not know which uses of tools it asks about: `ollim config set acp.%s.trusted on` "+
			"lets it run; else it runs only sealed and with `network: none`, where it reaches no model service", engine.ErrSetup, e.Name, e.Name)
	}
	return nil
}

// visit is one process's use of a session.
type visit struct {
	note
	folder

	begins bool   // the process begins a session of the agent
	branch bool   // it begins with session/fork
	parent string // of a branch
	past   string // conversation so far, for an agent that is given it anew
}

// enter prepares the directory of the request's session.
func (e *Engine) enter(ctx context.Context, r engine.Request) (v visit, err error) {
	v, err = e.arrive(ctx, r)
	if err != nil || !e.Profile.Quotes || r.Session.ID == "" {
		return v, err
	}
	v.begins, v.branch, v.Seed = true, false, ""
	v.past, err = e.said(r.Session.ID)
	return v, err
}

// said quotes what was said in a session.
func (e *Engine) said(id string) (string, error) {
	entries, err := Entries(e.Home, id)
	var said []transcript.Message
	for _, entry := range entries {
		said = append(said, entry.Message)
	}
	return engine.Quoted(said), err
}

func (e *Engine) arrive(ctx context.Context, r engine.Request) (v visit, err error) {
	if r.Session.Begins() {
		id := e.newID()
		v = visit{note: note{ID: id}, folder: e.folder(id), begins: true}
		if err := store.MkdirOwn(string(v.folder)); err != nil {
			return v, err
		}
		if r.Session.Fork {
			if v.note, err = e.folder(r.Session.ID).branch(v.folder, e.Profile.Uncopied); err != nil {
				return v, errors.Join(err, store.RemoveAll(ctx, string(v.folder)))
			}
			v.parent, v.Parent, v.ID = r.Session.ID, r.Session.ID, id
			v.begins, v.branch = v.Agent == "", v.Agent != ""
		}
		if err := v.begin(ctx, v.branch); err != nil {
			return v, errors.Join(err, store.RemoveAll(ctx, string(v.folder)))
		}
		return v, nil
	}
	v.folder = e.folder(r.Session.ID)
	if v.note, err = v.read(); err != nil {
		return v, err
	}
	v.begins = v.Agent == ""
	if err := command.EndAll(ctx, sessionVariable+"="+v.ID); err != nil {
		return v, err
	}
	return v, v.begin(ctx, true)
}

// leave removes what only the turn needs, and a session that is not kept.
func (v *visit) leave(ctx context.Context, drop bool) {
	ctx = context.WithoutCancel(ctx)
	if drop {
		_ = store.Discard(ctx, string(v.folder))
		return
	}
	v.end(ctx)
}

// talk starts the agent, lets do talk to it, and ends it with all its processes.
func (e *Engine) talk(ctx context.Context, r engine.Request, v visit, t *turn, do func(context.Context) error) (err error) {
	at, err := e.prepare(ctx, r, v.ID, v.folder)
	if err != nil {
		return err
	}
	defer func() {
		at.close()
		err = errors.Join(err, t.settle())
	}()
	said, err := command.OpenLog(e.Home.Run(r.Run.ID, "stderr.log"))
	if err != nil {
		return err
	}
	defer func() {
		leftOut, closeErr := said.Close()
		if err = errors.Join(err, closeErr); leftOut > 0 {
			err = errors.Join(err, t.sink(runlog.Event{Type: runlog.LeftOut, Text: fmt.Sprintf("%d bytes of standard error", leftOut)}))
		}
	}()
	locks := r.Run.Locks
	if t.hidden = r.Scope.Protected; at.seal != nil {
		locks, t.hidden = nil, nil // a sealed process ends with this one, and the kernel closes these paths to it
	}
	peer, err := process.Open(process.Call{Argv: e.argv(at.given), Env: at.env, Dir: r.Scope.Root, Files: locks, Heard: said, Seal: at.seal})
	if err != nil {
		return fmt.Errorf("%w: %s", engine.ErrSetup, store.Cause(err))
	}
	defer process.KillAll("OLLIM_RUN=" + r.Run.ID) // processes that it left, in any process group
	var reader sync.WaitGroup
	defer reader.Wait()
	defer peer.Close(e.Grace)
	running, stop := context.WithCancel(ctx)
	defer stop()
	t.ctx, t.profile, t.root, t.servers, t.stop, t.known, t.beat = running, e.Profile, r.Scope.Root, serversOf(r.Scope.Servers), stop, make(chan struct{}), make(chan struct{}, 1)
	t.conn = &conn{out: peer.In, heard: t.heard, waiting: map[int]chan message{}}
	t.given, t.gate = at.given, at.gate
	reader.Go(func() { t.conn.listen(peer.Out) }) // ends with the agent
	defer context.AfterFunc(running, func() {
		time.Sleep(2 * e.Grace)
		_ = peer.In.Close() // so that a write to an agent that reads nothing ends
	})()
	watching, enough := context.WithCancel(running)
	go t.watch(watching, cmp.Or(e.Idle, command.Silence(ctx, e.Disk.Now(), longestSilence)))
	err = do(running)
	enough()
	stop() // a decision for an agent that has ended waits for nobody
	t.rest()
	switch {
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), t.ending())
	case t.ending() != nil:
		return t.ending()
	case errors.Is(err, errEnded):
		return at.explain(e.died(peer))
	}
	stderr, _ := peer.Stderr()
	return at.explain(e.explain(err, stderr))
}

// argv is the agent's command.
func (e *Engine) argv(g given) []string {
	argv := slices.Clone(e.Command)
	for _, word := range e.Profile.Args {
		argv = append(argv, g.fill(word))
	}
	return argv
}

// ending returns the error for which ollim has ended the turn.
func (t *turn) ending() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fatal
}

// died returns the error of an agent that has ended by itself.
func (e *Engine) died(peer *process.Peer) error {
	end := orElse(peer.End(time.Second), "its output is closed")
	stderr, _ := peer.Stderr()
	text := fmt.Sprintf("the agent has ended (%s): %s", end, orElse(lastLine(stderr), "no output"))
	return e.as(kindOf(text), text)
}
