package acp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
)

// A session has a directory of its own, below sessions/acp, in which the agent keeps it. So an agent, sealed or not, reaches neither the
// sessions of other conversations nor the settings and the login of the owner. A branch is a copy of the directory. The directory has:
//
//	session.json  what ollim knows of the session
//	talk.jsonl    what was said, for people and other engines
//	state/        what the agent can write
//	config/       what it can only read; it is made anew for each process
//	base/         a copy of state/ from before the turn in progress, which branches are made from

// note is the content of session.json.
type note struct {
	ID      string  `json:"id"`
	Agent   string  `json:"agent_session,omitempty"` // the agent's id; "": the next turn begins a session
	Parent  string  `json:"parent,omitempty"`
	Version string  `json:"version,omitempty"` // of the agent
	Cost    float64 `json:"cost,omitempty"`    // USD, as the agent reports it for the session
	Model   string  `json:"model,omitempty"`   // that the last turn asked
	Context int     `json:"context,omitempty"` // tokens
	Window  int     `json:"window,omitempty"`  // tokens of the model's window, as the agent reports it
	Seed    string  `json:"seed,omitempty"`    // text before the next prompt: the summary of the session that was compacted

	Full   int       `json:"full,omitempty"`  // tokens that the session had when a compaction failed
	Failed time.Time `json:"failed,omitzero"` // when it failed
}

// sessionVariable is the variable with the id of the session of a process.
const sessionVariable = "OLLIM_SESSION"

// newID returns the id of a new session.
func (e *Engine) newID() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return engine.ACPPrefix + e.Name + "-" + hex.EncodeToString(b)
}

// own returns an error for a session of another engine.
func (e *Engine) own(id string) error {
	if id == "" || engine.Holder(id) == engine.ACP+":"+e.Name {
		return nil
	}
	return engine.Foreign(id)
}

// folder is the directory of a session.
type folder string

func (e *Engine) folder(id string) folder { return folder(filepath.Join(e.Home.ACPSessions(), id)) }

func (f folder) path(elem ...string) string {
	return filepath.Join(append([]string{string(f)}, elem...)...)
}

// read returns the note of a session. The error wraps engine.ErrSessionUnknown.
func (f folder) read() (n note, err error) {
	n, invalid, err := store.PeekJSON[note](f.path("session.json"))
	if errors.Is(err, fs.ErrNotExist) || err == nil && n.ID == "" { // also one that is not valid
		return n, errors.Join(fmt.Errorf("%w: %s", engine.ErrSessionUnknown, filepath.Base(string(f))), invalid)
	}
	return n, err
}

func (f folder) write(n note) error {
	return store.WriteJSON(f.path("session.json"), n, store.Whole)
}

// say adds messages to the conversation as people and other engines read it.
func (f folder) say(entries ...transcript.Entry) error {
	values := make([]any, len(entries))
	for i, e := range entries {
		values[i] = line{e, e.At}
	}
	return store.AppendJSON(f.path("talk.jsonl"), store.Buffered, values...)
}

// begin makes the directories of a turn's process. A turn that continues a session keeps a copy of it for branches.
func (f folder) begin(ctx context.Context, continues bool) error {
	err := errors.Join(store.RemoveAll(ctx, f.path("config")), store.RemoveAll(ctx, f.path("base")), store.RemoveAll(ctx, f.path("base.new")))
	for _, name := range []string{"", "state", "config"} {
		err = errors.Join(err, os.MkdirAll(f.path(name), 0o700))
	}
	if err != nil {
		return err
	}
	if !continues {
		return os.Mkdir(f.path("base"), 0o700)
	}
	if err := copyTree(f.path("state"), f.path("base.new")); err != nil {
		return err
	}
	return os.Rename(f.path("base.new"), f.path("base"))
}

// end removes what only a turn in progress needs.
func (f folder) end(ctx context.Context) { _ = store.Discard(ctx, f.path("base")) }

// branchTries is how often a branch is copied again because a turn of the session began or ended meanwhile.
const branchTries = 10

// branch copies the complete turns of a session. It leaves out the files whose names match a pattern of leave.
func (f folder) branch(to folder, leave []string) (n note, err error) {
	if n, err = f.read(); err != nil {
		return n, err
	}
	if err := os.MkdirAll(string(to), 0o700); err != nil {
		return n, err
	}
	for range branchTries {
		before, from := stamp(f.path("base")), f.path("base")
		if before == nil {
			from = f.path("state")
		}
		err = copyTree(from, to.path("state"), leave...)
		if after := stamp(f.path("base")); err == nil && (before == nil) == (after == nil) && (before == nil || os.SameFile(before, after)) {
			break
		}
		err = errors.Join(errors.New("the session changed while it was copied: try again"), os.RemoveAll(to.path("state")))
	}
	if err != nil {
		return n, err
	}
	if entries, _ := os.ReadDir(to.path("state")); len(entries) == 0 && n.Seed == "" { // its first turn is in progress
		return n, fmt.Errorf("%w: %s has no complete turn", engine.ErrSessionUnknown, n.ID)
	}
	text, err := store.Read(f.path("talk.jsonl"))
	if err == nil {
		err = store.Write(to.path("talk.jsonl"), text, store.Buffered)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return n, err
}

func stamp(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

// copyTree copies the files and directories of a tree, without files whose names match a pattern of leave. It follows no links and copies none, which an agent may have made.
func copyTree(from, to string, leave ...string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		case !entry.Type().IsRegular(), slices.ContainsFunc(leave, func(p string) bool { found, _ := filepath.Match(p, entry.Name()); return found }):
			return nil
		}
		data, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o600)
	})
}

// place is where a process of the agent runs.
type place struct {
	given given
	env   []string
	seal  *seal.Seal
	gate  *command.Gate  // way to the model's service; nil: the agent connects to it itself
	at    netip.AddrPort // of the gate
}

func (p place) close() {
	if p.gate != nil {
		p.gate.Close()
	}
}

// explain is command.Gate.Explain; a process may have no gateway.
func (p place) explain(err error) error {
	if p.gate == nil {
		return err
	}
	return p.gate.Explain(err)
}

// prepare writes what the agent is given, and returns its environment and its seal. The caller closes the place.
func (e *Engine) prepare(ctx context.Context, r engine.Request, id string, f folder) (p place, err error) {
	p = place{seal: r.Scope.Seal, env: e.Env}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	system := f.path("config", "system.md")
	text := joined(r.Input.System, e.Profile.Note)
	p.given = newGiven(f.path("state"), f.path("config"), system, text)
	if len(e.Profile.Services) > 0 {
		p.given["base"] = e.Profile.Services[0].Address
	}
	if a, found := e.access(r.Model.Name); found {
		if err := e.gate(ctx, r, a, &p); err != nil {
			return p, err
		}
	}
	files := map[string]string{system: text}
	for name, text := range e.Profile.Files {
		files[p.given.fill(name)] = p.given.fill(text)
	}
	config := e.Profile.config(p.given, r.Input, r.Scope.BuiltIns)
	if e.Profile.ConfigFile != "" {
		files[p.given.fill(e.Profile.ConfigFile)] = config
	}
	for name, text := range files {
		if err := f.put(name, text); err != nil {
			return p, err
		}
	}
	p.env = slices.Concat(p.env, r.Run.Env(), []string{sessionVariable + "=" + id})
	for _, entry := range e.Profile.Env {
		p.env = append(p.env, p.given.fill(entry))
	}
	if e.Profile.ConfigVariable != "" {
		p.env = append(p.env, e.Profile.ConfigVariable+"="+config)
	}
	if p.seal == nil {
		return p, nil
	}
	rules := seal.Rules{Read: append(e.files(), e.Self, f.path("config")), Write: []string{f.path("state")}}
	if p.gate != nil {
		rules.TCP = append(rules.TCP, p.at)
	}
	for _, name := range e.Profile.Reads {
		if file := variable(e.Env, name); filepath.IsAbs(file) {
			rules.Read = append(rules.Read, file)
		}
	}
	for _, list := range [][]string{rules.Read, rules.Write} {
		for i := range list {
			list[i] = command.Followed(list[i])
		}
	}
	p.seal = r.Scope.Seal.With(rules)
	return p, command.Try(ctx, e.Name, p.env, p.seal, f.path("state"))
}

// put writes a file for the agent, in place of a link, a pipe or a directory that the agent may have made there.
func (f folder) put(name, text string) error {
	rel, err := filepath.Rel(string(f), name)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(string(f))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := errors.Join(root.RemoveAll(rel), root.MkdirAll(filepath.Dir(rel), 0o700)); err != nil {
		return err
	}
	file, err := root.OpenFile(rel, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// joined joins texts that are not empty by a blank line.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n\n")
}

// variable returns the value of a variable; of two entries with one name the last counts.
func variable(env []string, name string) (value string) {
	for _, entry := range env {
		if v, found := strings.CutPrefix(entry, name+"="); found {
			value = v
		}
	}
	return value
}

// files returns the files of the agent's program.
func (e *Engine) files() (list []string) {
	for _, word := range e.Command {
		if filepath.IsAbs(word) {
			list = append(list, command.Files(word)...)
		}
	}
	return list
}

// Sessions lists the sessions of all agents. The path of each is its directory.
func Sessions(home paths.Dir) (list []transcript.Summary, err error) {
	folders, err := store.List(home.ACPSessions())
	for _, entry := range folders {
		f := folder(filepath.Join(home.ACPSessions(), entry.Name()))
		s := transcript.Summary{Transcript: transcript.Transcript{Path: string(f), Header: transcript.Header{Provider: engine.ACP}}}
		for _, path := range []string{f.path("session.json"), f.path("talk.jsonl"), string(f)} {
			if info, err := os.Stat(path); err == nil && info.ModTime().After(s.Modified) {
				s.Modified = info.ModTime()
			}
		}
		if n, err := f.read(); err == nil {
			s.ID, s.ParentID = n.ID, n.Parent
		}
		list = append(list, s)
	}
	return list, err
}

// Entries returns what was said in a session, oldest first. The error wraps transcript.ErrUnknown.
func Entries(home paths.Dir, id string) (list []transcript.Entry, err error) {
	if !strings.HasPrefix(id, engine.ACPPrefix) || filepath.Base(id) != id {
		return nil, fmt.Errorf("%w: %.100q", transcript.ErrUnknown, id)
	}
	f := folder(filepath.Join(home.ACPSessions(), id))
	if _, err := f.read(); err != nil {
		return nil, fmt.Errorf("%w: %.100q", transcript.ErrUnknown, id)
	}
	for l, err := range store.Lines[line](f.path("talk.jsonl"), nil) {
		if err != nil {
			return list, err
		}
		l.Entry.At = l.At
		list = append(list, l.Entry)
	}
	return list, nil
}
