// Package approval records what the owner approved. A job with allowed-tools, gate, after, verify, unsealed, heartbeat, dirs, subagent,
// skills or fallback has permissions beyond the default, which take effect only in the form that the owner saw. That form is a Subject:
// the id, those fields, the prompt, the definitions of the MCP servers whose tools allowed-tools names, and the contents of every file
// that they name, including literal words of Bash patterns and of the servers' commands.
// tool-policy.yaml is a subject of its own. After a change of any part the owner must approve it again. The caller asks the
// owner.
//
// On disk: state/approvals.json, absent when nothing is approved, an object of
//
//	"<job id>", "skill:<name>" or "file:tool-policy.yaml": {
//	  "digest":   "<SHA-256 of the subject>",   this alone decides
//	  "approved": "2026-02-24T14:30:00+01:00",
//	  "by":       "owner",                      or the id of the run that passed it on to a child
//	  "kind": "routine", "fields": {…}, "body": "…", "files": {"gates/x": "<SHA-256>"}   for telling what changed
//	}
//
// changed under the lock "approvals". A file that cannot be parsed is set aside, and nothing is approved then.
package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"time"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/object"
)

// Owner is the approver; a run only passes approvals on.
const Owner = "owner"

// ErrNotInherited is the error of a run that passes on a file which differs from the one the owner approved.
var ErrNotInherited = errors.New("not as the owner approved it")

// Book holds the approvals of one data directory. An error of a change wraps *store.NotWritten or *lock.Failed, or
// lock.ErrBusy after ten seconds; then nothing has been approved. A caller that cannot read the book must treat
// everything as not approved.
type Book struct {
	Home paths.Dir
	Disk store.Disk
	Zone *time.Location
	User string // the owner's home, for ~/ in dirs

	Servers config.Servers // the MCP servers as they are configured now

	Secrets func() plaintext.Secrets // values that no stored text may contain; nil: none
}

// Approval is the last approval under one key.
type Approval struct {
	Digest string            `json:"digest"`
	At     time.Time         `json:"approved"`
	By     string            `json:"by"`
	Kind   string            `json:"kind"`
	Fields fields            `json:"fields,omitzero"`
	Body   string            `json:"body,omitempty"`
	Files  map[string]string `json:"files,omitempty"`
}

type page map[string]Approval

// Approved reports whether this subject was approved, or one that differs only in less sealing.
func (b Book) Approved(s Subject) (bool, error) {
	last, known, err := b.Last(s.Key)
	for _, wider := range s.wider() {
		if known && last.Digest == wider.Digest() {
			return true, err
		}
	}
	if err != nil || !known || len(s.data) == 0 {
		return false, err
	}
	before := s // approvals used to cover the files that commands only read
	before.data, before.Files = nil, maps.Clone(s.Files)
	if b.words(before.Files, s.data, s.roots) != nil {
		return false, nil //nolint:nilerr // such a file cannot be read now
	}
	return b.Approved(before)
}

// Waits reports whether a job asks for more than was approved, so that it does not run.
func (b Book) Waits(j job.Job) (bool, error) {
	s, widened, err := b.Of(j)
	if err != nil || !widened {
		return false, err
	}
	approved, err := b.Approved(s)
	return err == nil && !approved, err
}

// Holds reports whether a job asks for more than every job may and the owner has approved that.
func (b Book) Holds(j job.Job) bool {
	s, widened, err := b.Of(j)
	if err != nil || !widened {
		return false
	}
	approved, err := b.Approved(s)
	return err == nil && approved
}

// Last returns the last approval under a key, whether or not it still holds.
func (b Book) Last(key string) (last Approval, known bool, err error) {
	p, err := b.read()
	last, known = p[key]
	return last, known, err
}

// read takes no lock, because the file is replaced as a whole. It takes the lock only to set aside a file that cannot
// be parsed, since another process may have replaced it by then.
func (b Book) read() (p page, err error) {
	p, invalid, err := store.PeekJSON[page](b.Home.Approvals())
	if err != nil || invalid == nil {
		return p, err
	}
	err = b.Disk.Locked(context.Background(), b.Home.Lock("approvals"), func() error {
		p, err = store.ReadJSON[page](b.Disk, b.Home.Approvals())
		return err
	})
	return p, err
}

// Approve records s as approved, either by the Owner, who must have been shown exactly s, or by the run with the id by,
// which passes its own permissions on to a child. The caller checks that the run has these fields. A run may pass on
// only files whose bytes are in the book already, else the error is ErrNotInherited: it may have changed a skill since
// the owner looked.
//
// The texts of the files are kept under their digests, so that Difference can say what has changed in them since.
func (b Book) Approve(ctx context.Context, s Subject, by string) error {
	if err := b.keep(ctx, s); err != nil {
		return err
	}
	return b.edit(ctx, func(p page) error {
		for _, name := range sortedKeys(s.Files) {
			if by != Owner && !p.has(name, s.Files[name]) {
				return fmt.Errorf("%s: %s: %w", s.Key, legible(name), ErrNotInherited)
			}
		}
		p[s.Key] = Approval{
			Digest: s.Digest(), At: b.Disk.Now().In(b.Zone).Truncate(time.Second), By: by,
			Kind: s.Kind, Fields: s.Fields, Body: s.Body, Files: s.Files,
		}
		return nil
	})
}

// keep stores the texts of a subject's files that can be shown and hold no secret.
func (b Book) keep(ctx context.Context, s Subject) error {
	texts := map[string][]byte{}
	for name, digest := range s.Files {
		data, err := store.ReadText(b.Home.Path(name), maxShown, false)
		if sum := sha256.Sum256(data); err == nil && hex.EncodeToString(sum[:]) == digest && utf8.Valid(data) && !b.secret(data) {
			texts[digest] = data
		}
	}
	return b.objects().Add(ctx, texts)
}

func (b Book) secret(text []byte) bool {
	return b.Secrets != nil && b.Secrets().Hide(string(text)) != string(text)
}

func (b Book) objects() object.Box { return object.Box{Home: b.Home, Disk: b.Disk} }

// Kept returns the digests of the approved files. Their texts are kept.
func (b Book) Kept() (map[string]bool, error) {
	p, err := b.read()
	kept := map[string]bool{}
	for _, a := range p {
		for _, digest := range a.Files {
			kept[digest] = true
		}
	}
	return kept, err
}

// has reports whether a file with that digest has been approved.
func (p page) has(name, digest string) bool {
	for _, a := range p {
		if known, ok := a.Files[name]; ok && known == digest {
			return true
		}
	}
	return false
}

// Touched returns the files of s that were approved with different bytes, sorted.
func (a Approval) Touched(s Subject) (names []string) {
	for _, name := range sortedKeys(s.Files) {
		if digest, known := a.Files[name]; known && digest != s.Files[name] {
			names = append(names, name)
		}
	}
	return names
}

// Forget drops the approvals whose keys keep rejects. keep is called under the lock and must not use the book.
func (b Book) Forget(ctx context.Context, keep func(key string, a Approval) bool) error {
	return b.edit(ctx, func(p page) error {
		before := len(p)
		maps.DeleteFunc(p, func(key string, a Approval) bool { return !keep(key, a) })
		if len(p) == before {
			return store.ErrUnchanged
		}
		return nil
	})
}

// edit changes the page under its lock; see store.EditJSON for the errors of change.
func (b Book) edit(ctx context.Context, change func(page) error) error {
	return store.EditJSON(ctx, b.Disk, b.Home.Lock("approvals"), b.Home.Approvals(), func(p *page) error {
		if *p == nil {
			*p = page{}
		}
		if err := change(*p); err != nil {
			return err
		}
		if len(*p) == 0 {
			return store.ErrEmpty
		}
		return nil
	})
}
