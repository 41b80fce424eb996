package backtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// Book is the backtests of one data directory.
type Book struct {
	Home paths.Dir
	Disk store.Disk
}

func (b Book) path(id string, elem ...string) string { return b.Home.Backtest(id, elem...) }

// Begin stores the plan of a new backtest.
func (b Book) Begin(p Plan) error {
	if err := store.MkdirOwn(b.path(p.ID)); err != nil {
		return err
	}
	return store.WriteJSON(b.path(p.ID, "plan.json"), p, store.Buffered)
}

// Load returns the plan of a backtest. The error is a *plaintext.Unknown if there is none.
func (b Book) Load(id string) (p Plan, err error) {
	data, err := store.Read(b.path(filepath.Base(id), "plan.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return p, &plaintext.Unknown{What: "backtest", Name: id}
	}
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w", b.path(filepath.Base(id), "plan.json"), err)
	}
	return p, nil
}

// List returns the plans of all backtests, the newest first. bad has the errors of those that cannot be read.
func (b Book) List() (list []Plan, bad []error, err error) {
	return store.LoadAll(b.Home.State("backtests"), b.Load)
}

// Verdicts returns the verdicts that were reached, in the order of the plan's runs.
func (b Book) Verdicts(p Plan) (list []Verdict, err error) {
	for v, err := range store.Lines[Verdict](b.path(p.ID, "verdicts.jsonl"), nil) {
		if err != nil {
			return nil, err
		}
		if slices.Contains(p.Runs, v.Run) && slices.Contains(results(), v.Result) { // else the line is damaged
			list = append(list, v)
		}
	}
	p.sort(list)
	return list, nil
}

func (b Book) add(id string, v Verdict) error {
	return store.AppendJSON(b.path(id, "verdicts.jsonl"), store.Buffered, v)
}

// hold prevents other processes from carrying out a backtest. The error wraps lock.ErrBusy if one does.
func (b Book) hold(id string) (*lock.Guard, error) {
	held, err := b.Disk.Locks.TryGuard(b.path(id, "lock"))
	if err != nil {
		return nil, fmt.Errorf("backtest %s: %w", id, err)
	}
	return held, nil
}

// answers are the model's answers of a backtest, which are stored before they are used.
type answers struct {
	path string

	mu    sync.Mutex
	known map[string]stored
}

// stored is a line of answers.jsonl.
type stored struct {
	Key    string          `json:"key"`
	Run    string          `json:"run"`
	Most   int             `json:"most"` // the limit of the answer in tokens
	Answer provider.Answer `json:"answer"`
}

func (b Book) answers(id string) (*answers, error) {
	a := &answers{path: b.path(id, "answers.jsonl"), known: map[string]stored{}}
	for s, err := range store.Lines[stored](a.path, nil) {
		if err != nil {
			return nil, err
		}
		a.known[s.Key] = s
	}
	return a, nil
}

// of returns the answers of one variant of a run.
func (a *answers) of(v variant) asked { return asked{a, v} }

// asked is the answers to the requests of one variant of a run.
type asked struct {
	*answers
	variant
}

// key returns what identifies a request. How long its answer may be depends on the money that is left.
func (a asked) key(r provider.Request) (string, error) {
	body, err := json.Marshal([]any{a.baseline, r.Model, r.System, r.Messages, r.Tools, r.Thinking})
	sum := sha256.Sum256(append(body, a.run...))
	return hex.EncodeToString(sum[:]), err
}

// cachedProvider asks a service for the answers that are not stored, and stores them.
type cachedProvider struct {
	provider.Provider

	asked asked
	fresh *bool // is set by Ask: the service was asked
}

// Ask returns the stored answer to a request, or asks the service.
func (p cachedProvider) Ask(ctx context.Context, r provider.Request, delta func(text string) error) (provider.Answer, error) {
	key, err := p.asked.key(r)
	if err != nil {
		return provider.Answer{}, err
	}
	p.asked.mu.Lock()
	old, known := p.asked.known[key]
	p.asked.mu.Unlock()
	if known && old.Answer.Stop == provider.MaxTokens && old.Most < r.MaxTokens { // it was cut, and may be longer now
		known = false
	}
	if *p.fresh = !known; known {
		return old.Answer, nil
	}
	a, err := p.Provider.Ask(ctx, r, delta)
	if err != nil {
		return a, err
	}
	p.asked.mu.Lock()
	defer p.asked.mu.Unlock()
	return a, store.AppendJSON(p.asked.path, store.Buffered, stored{key, p.asked.run, r.MaxTokens, a})
}
