// Package notice stores what the owner has been told about causes: what is wrong now, since when, which jobs it concerns, when it was
// last said, and what waits to be said. It has no rules of its own; package internal/agent/notify decides what is said and when.
//
// On disk: state/notices.json, absent when it would be empty,
//
//	{
//	  "causes": {"key native": {"kind": "key", "subject": "native", "name": "The key of native", …}},
//	  "unsent": [{"id": "notice-20260224T143000.000Z-ab12cd", "text": "…"}]
//	}
//
// changed under the lock "notices". state/notices.jsonl, under the same lock, has a line for each message that was said. A kill after the
// line and before the change of the page leaves the message on the page, and its line may be there twice; Archive yields it once.
//
// Earlier versions counted the failures of each job in "failures"; such a job is read as a cause that the owner knows about. What they noted in "seen" is dropped, so that what is still wrong is said once more. A file that cannot
// be parsed is set aside, and everything is said once more. The file was called told.json; one of that name is renamed.
package notice

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// Book holds the notices of one data directory. An error wraps *store.NotWritten or *lock.Failed, or lock.ErrBusy after
// ten seconds; the notices are unchanged then.
type Book struct {
	Home paths.Dir
	Disk store.Disk
}

// Entry is a cause: something that is wrong, or was until lately.
type Entry struct {
	Kind    string           `json:"kind"`
	Subject string           `json:"subject"`
	Name    string           `json:"name"`             // of what is wrong, as a message begins with it
	Text    string           `json:"text"`             // what is wrong, a sentence
	Remedy  string           `json:"remedy,omitempty"` // what to do
	Since   time.Time        `json:"since"`
	Until   time.Time        `json:"until,omitzero"`  // when it ends by itself; zero: it does not
	Jobs    map[string]Count `json:"jobs,omitempty"`  // that it concerns, by id
	Told    time.Time        `json:"told,omitzero"`   // the last message about it
	Said    bool             `json:"said,omitempty"`  // the owner knows that it lasts
	Fresh   bool             `json:"fresh,omitempty"` // it did something since the last message
	Closed  time.Time        `json:"closed,omitzero"` // when it ended; zero: it lasts
}

// Open reports whether the cause lasts.
func (e Entry) Open() bool { return e.Closed.IsZero() }

// Count is what a cause did to a job.
type Count struct {
	Name   string `json:"name"`             // for people
	Failed int    `json:"failed,omitempty"` // fires that failed or were refused
	Missed int    `json:"missed,omitempty"` // slots for which there was no fire
}

// Message is a message that has not reached the outbox.
type Message struct {
	ID       string    `json:"id"`
	Cause    string    `json:"cause"` // its key
	Run      string    `json:"run,omitempty"`
	Kind     string    `json:"kind"` // of the outbox
	Label    string    `json:"label"`
	Job      string    `json:"job,omitempty"`
	Text     string    `json:"text"`
	Critical bool      `json:"critical,omitempty"`
	At       time.Time `json:"at"`
}

// Page is the file.
type Page struct {
	Causes map[string]Entry `json:"causes,omitempty"`
	Unsent []Message        `json:"unsent,omitempty"` // oldest first

	Failures map[string]int `json:"failures,omitempty"` // of earlier versions: how often a job has failed in a row
}

// JobKind is the kind of the cause that one job fails.
const JobKind = "job"

// Key returns the key of a cause.
func Key(kind, subject string) string { return kind + " " + subject }

// adopt makes causes of what an earlier version wrote.
func (p *Page) adopt(now time.Time) {
	for id, n := range p.Failures {
		key := Key(JobKind, id)
		if _, known := p.Causes[key]; !known {
			p.Set(key, Entry{
				Kind: JobKind, Subject: id, Name: id, Text: id + " failed", Since: now, Told: now, Said: true,
				Jobs: map[string]Count{id: {Name: id, Failed: n}},
			})
		}
	}
	p.Failures = nil
}

// Set stores a cause.
func (p *Page) Set(key string, e Entry) {
	if p.Causes == nil {
		p.Causes = map[string]Entry{}
	}
	p.Causes[key] = e
}

// Read returns the page as it is now. It takes no lock. A file that cannot be parsed is an empty page; the next change sets it aside.
func (b Book) Read() (Page, error) {
	p, _, err := store.PeekJSON[Page](b.Home.Notices())
	p.adopt(b.Disk.Now().UTC())
	return p, err
}

// Say takes messages off the page and notes them in the archive. It does nothing for messages that are not there.
func (b Book) Say(ctx context.Context, said ...Message) error {
	var archiveErr error
	err := b.Edit(ctx, func(p *Page) bool {
		before := len(p.Unsent)
		p.Unsent = slices.DeleteFunc(p.Unsent, func(m Message) bool {
			gone := slices.ContainsFunc(said, func(s Message) bool { return s.ID == m.ID })
			if gone {
				archiveErr = errors.Join(archiveErr, store.AppendJSON(b.Home.NoticeArchive(), store.Buffered, m))
			}
			return gone
		})
		return len(p.Unsent) != before
	})
	return errors.Join(err, archiveErr)
}

// Archive yields the messages that were said, the oldest first, each once. Lines that cannot be read are skipped.
func (b Book) Archive() iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		seen := map[string]bool{}
		for m, err := range store.Lines[Message](b.Home.NoticeArchive(), nil) {
			if err == nil && seen[m.ID] {
				continue
			}
			if seen[m.ID] = true; !yield(m, err) {
				return
			}
		}
	}
}

// Trim removes the messages from before an instant from the archive.
func (b Book) Trim(ctx context.Context, before time.Time) error {
	return b.Disk.Locked(ctx, b.Home.Lock("notices"), func() error {
		return store.FilterLines(b.Home.NoticeArchive(), func(m Message) bool { return !m.At.Before(before) })
	})
}

// Empty reports whether there is nothing on the page. It reads nothing, and most fires and ticks find nothing.
func (b Book) Empty() bool {
	for _, path := range []string{b.Home.Notices(), b.former()} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// Edit changes the page under its lock and writes it only if change reports a change. change must not use the book.
func (b Book) Edit(ctx context.Context, change func(*Page) bool) error {
	return b.Disk.Locked(ctx, b.Home.Lock("notices"), func() error {
		if err := b.renameFormer(); err != nil {
			return err
		}
		p, err := store.ReadJSON[Page](b.Disk, b.Home.Notices())
		if err != nil {
			return err
		}
		p.adopt(b.Disk.Now().UTC())
		switch {
		case !change(&p):
			return nil
		case len(p.Causes) == 0 && len(p.Unsent) == 0:
			return store.Remove(b.Home.Notices())
		}
		return store.WriteJSON(b.Home.Notices(), p, store.Synced)
	})
}

func (b Book) former() string { return b.Home.State("told.json") }

// renameFormer renames told.json, the former file name, or removes it if the new file exists.
func (b Book) renameFormer() error {
	former := b.former()
	if _, err := os.Lstat(former); err != nil {
		return nil //nolint:nilerr // it does not exist
	}
	if _, err := os.Lstat(b.Home.Notices()); err == nil {
		return store.Remove(former)
	}
	if err := os.Rename(former, b.Home.Notices()); err != nil {
		return &store.NotWritten{Path: b.Home.Notices(), Err: err}
	}
	return nil
}
